/* The plan that every CTA of `persistent` makes for itself (kernels/attn_plan.cuh, attn_piece.cuh),
 * run on the CPU by the kernels' own source, against the host's (attn_plan_build()): the same
 * pieces of the same (row, KV head)s, in the same order, cut at the same tokens; what is cut is so
 * by as many CTAs, and slots are each one's own.
 */
#include <glib.h> /* before the kernels' words for the compiler */
#include <set>
#include <vector>

#include "kernels/attn_piece.cuh"
#include "kernels/plan.h"

using namespace kv;

namespace
{

struct Batch {
    int kv_heads, warps;
    AttnPlanConfig config;
    std::vector<int> lens, offset;
};

/* Pieces of one CTA, in order. */
std::vector<Piece> pieces_of(const Batch &b, unsigned block)
{
    const int rows = (int)b.lens.size();
    std::vector<int> units((size_t)rows + 1), tiles((size_t)rows + 1), len((size_t)rows),
        off((size_t)rows), scan(32);
    StreamArgs a = {};
    a.rows = rows, a.kv_heads = b.kv_heads, a.lens = b.lens.data(), a.offset = b.offset.data();
    a.c0 = b.config.c0_tiles;
    a.min_units = b.config.min_tokens > TILE ? (b.config.min_tokens + TILE - 1) / TILE : 1;
    Smem sm = {};
    sm.units = units.data(), sm.tiles = tiles.data(), sm.len = len.data(), sm.off = off.data();
    sm.scan = scan.data();
    std::vector<Piece> pieces;
    emulated::cta_run(32 * b.warps, block, (unsigned)b.config.workers, block, [&] {
        plan_prefix(a, sm);
        const Range range = plan_range(a, sm);
        if (range.cta >= range.ctas || range.g0 >= range.g1 || threadIdx.x != 5)
            return;
        Piece p = first_piece(a, sm, range, StreamTask{});
        for (;;) {
            piece_bounds(a, sm, range, StreamTask{}, p);
            pieces.push_back(p);
            if (p.end >= range.g1)
                break;
            piece_next(a, sm, p);
        }
    });
    return pieces;
}

void check_batch(const Batch &b)
{
    const AttnShape shape = {b.kv_heads, b.kv_heads, 64, 16, ATTN_F16, ATTN_HND};
    AttnPlan plan;
    attn_plan_init(&plan);
    g_assert_cmpint(attn_plan_build(&plan, &b.config, &shape, (int)b.lens.size(), b.lens.data()),
                    ==, ATTN_OK);
    std::set<int> slots;
    int at = 0, merge = 0;
    for (int cta = 0; cta < b.config.workers; ++cta)
        for (const Piece &p : pieces_of(b, (unsigned)(b.config.workers - 1 - cta))) {
            while (at < plan.n_tasks && plan.tasks[at].begin == plan.tasks[at].end)
                ++at; /* rows without entries */
            g_assert_cmpint(at, <, plan.n_tasks);
            const AttnTask &t = plan.tasks[at++];
            g_assert_cmpint(p.row, ==, t.row);
            g_assert_cmpint(p.head, ==, t.kv_head);
            g_assert_cmpint((p.first - p.begin) * TILE, ==, t.begin);
            g_assert_cmpint(min((p.end - p.begin) * TILE, p.len), ==, t.end);
            g_assert_cmpint(p.cut.pair, ==, t.row * b.kv_heads + t.kv_head);
            g_assert_true((p.slot < 0) == (t.slot < 0));
            if (t.slot < 0) {
                g_assert_cmpint(p.cut.n_slots, ==, 0);
                continue;
            }
            while (plan.merges[merge].first_slot + plan.merges[merge].n_slots <= t.slot)
                ++merge;
            g_assert_cmpint(p.cut.n_slots, ==, plan.merges[merge].n_slots);
            g_assert_cmpint(p.cut.index, ==, t.slot - plan.merges[merge].first_slot);
            const int slot = p.cut.first_slot + 2 * p.cut.index + (p.cut.index == 0);
            g_assert_cmpint(p.slot, ==, slot);
            g_assert_cmpint(slot, <, 2 * b.config.workers);
            g_assert_true(slots.insert(slot).second);
        }
    while (at < plan.n_tasks && plan.tasks[at].begin == plan.tasks[at].end)
        ++at;
    g_assert_cmpint(at, ==, plan.n_tasks);
    attn_plan_free(&plan);
}

void test_device_plan()
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (int i = 0; i < 150; ++i) {
        Batch b = {g_rand_int_range(random, 1, 9), g_rand_int_range(random, 1, 5), {}, {}, {}};
        attn_plan_config_init(&b.config, ATTN_PERSISTENT, g_rand_int_range(random, 1, 30));
        b.config.c0_tiles = g_rand_int_range(random, 0, 20);
        b.config.min_tokens = 16 << g_rand_int_range(random, 0, 5);
        const int rows = g_rand_int_range(random, 1, i % 5 == 0 ? 300 : 40);
        const int longest = i % 3 == 0 ? 40 : 5000;
        for (int r = 0; r < rows; ++r) {
            b.lens.push_back(
                g_rand_int_range(random, 0, 6) == 0 ? 0 : g_rand_int_range(random, 1, longest));
            b.offset.push_back(r);
        }
        check_batch(b);
    }
}

} // namespace

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/device-plan/as-the-hosts", test_device_plan);
    return g_test_run();
}
