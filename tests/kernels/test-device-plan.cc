/* The plan that every CTA of `persistent` makes for itself (kernels/attn_plan.cuh, attn_piece.cuh),
 * run on the CPU by the kernels' own source, against the host's (attn_plan_build()): the same
 * pieces of the same (row, KV head)s, in the same order, cut at the same tokens; what is cut is so
 * by as many CTAs, and slots are each one's own.
 *
 * And the tasks that the kernels are given (kernels/attn_tasks.cuh): the plan's, each with the
 * slots of its merge where the launch merges them itself, found here by (row, KV head).
 */
#include <glib.h> /* before the kernels' words for the compiler */
#include <map>
#include <set>
#include <vector>

#include "kernels/attn_piece.cuh"
#include "kernels/attn_tasks.cuh"
#include "kernels/plan.h"

using namespace kv;

namespace
{

struct Batch {
    int kv_heads, warps;
    AttnPlanConfig config;
    std::vector<int> lens, offset;
};

/* Pieces of one CTA, in order, and whether it was given a part. */
struct Pieces {
    bool part;
    std::vector<Piece> of;
};

Pieces pieces_of(const Batch &b, unsigned block)
{
    const int rows = (int)b.lens.size();
    std::vector<int> units((size_t)rows + 1), tiles((size_t)rows + 1), len((size_t)rows),
        off((size_t)rows), scan(32);
    StreamArgs a = {};
    a.rows = rows, a.kv_heads = b.kv_heads, a.lens = b.lens.data(), a.offset = b.offset.data();
    plan_args(a, b.config);
    Smem sm = {};
    sm.units = units.data(), sm.tiles = tiles.data(), sm.len = len.data(), sm.off = off.data();
    sm.scan = scan.data();
    Pieces pieces = {};
    emulated::cta_run(32 * b.warps, block, (unsigned)b.config.workers, block, [&] {
        StreamTask task = {};
        const Range range = plan_cta(a, sm, task);
        if (threadIdx.x == 5)
            pieces.part = range.task;
        if (range.g0 >= range.g1 || threadIdx.x != 5)
            return;
        Piece p = first_piece(a, sm, range, task);
        for (;;) {
            piece_bounds(a, sm, range, task, p);
            pieces.of.push_back(p);
            if (range.task)
                g_assert_cmpint(range.off, ==, b.offset[(size_t)p.row]);
            if (p.end >= range.g1)
                break;
            piece_next(a, sm, p);
        }
    });
    for (size_t r = 0; r < b.lens.size() && b.warps > 0; ++r)
        g_assert_cmpint(len[r], ==, b.lens[r]); /* write_empty_rows() relies on them */
    return pieces;
}

/* A piece is the host's task; `slots`: those met so far. */
void check_piece(const Batch &b, const Pieces &pieces, const Piece &p, const AttnPlan &plan,
                 const AttnTask &t, int &merge, std::set<int> &slots)
{
    g_assert_cmpint(p.row, ==, t.row);
    g_assert_cmpint(p.head, ==, t.kv_head);
    g_assert_cmpint((p.first - p.begin) * TILE, ==, t.begin);
    g_assert_cmpint(min((p.end - p.begin) * TILE, p.len), ==, t.end);
    g_assert_cmpint(p.cut.pair, ==, t.row * b.kv_heads + t.kv_head);
    g_assert_true((p.slot < 0) == (t.slot < 0));
    if (t.slot < 0) {
        g_assert_cmpint(p.cut.n_slots, ==, 0);
        return;
    }
    while (plan.merges[merge].first_slot + plan.merges[merge].n_slots <= t.slot)
        ++merge;
    g_assert_cmpint(p.cut.n_slots, ==, plan.merges[merge].n_slots);
    g_assert_cmpint(p.cut.index, ==, t.slot - plan.merges[merge].first_slot);
    g_assert_cmpint(p.cut.step, ==, pieces.part ? 1 : 2);
    const int slot =
        p.cut.first_slot + p.cut.step * p.cut.index + (p.cut.step == 2 && p.cut.index == 0);
    g_assert_cmpint(p.slot, ==, slot);
    g_assert_cmpint(slot, <, 2 * b.config.workers);
    g_assert_true(slots.insert(slot).second);
}

/* true: the batch is cut into parts. */
bool check_batch(const Batch &b)
{
    const AttnShape shape = {b.kv_heads, b.kv_heads, 64, 16, ATTN_F16, ATTN_HND};
    const int workers = b.config.workers;
    AttnPlan plan;
    attn_plan_init(&plan);
    g_assert_cmpint(attn_plan_build(&plan, &b.config, &shape, (int)b.lens.size(), b.lens.data()),
                    ==, ATTN_OK);
    const bool part =
        attn_plan_persistent_part(&b.config, &shape, (int)b.lens.size(), b.lens.data(), NULL) > 0;
    std::set<int> slots;
    int at = 0, merge = 0;
    auto skip_empty = [&] { /* rows without entries */
                            while (at < plan.n_tasks && plan.tasks[at].begin == plan.tasks[at].end)
                                ++at;
    };
    for (int i = 0; i < workers; ++i) {
        const Pieces pieces = pieces_of(b, (unsigned)(part ? i : workers - 1 - i));
        g_assert_true(pieces.part == part);
        g_assert_true(!part || pieces.of.size() <= 1);
        for (const Piece &p : pieces.of) {
            skip_empty();
            g_assert_cmpint(at, <, plan.n_tasks);
            check_piece(b, pieces, p, plan, plan.tasks[at++], merge, slots);
        }
    }
    skip_empty();
    g_assert_cmpint(at, ==, plan.n_tasks);
    attn_plan_free(&plan);
    return part;
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

void check_tasks(const AttnPlan &plan, bool fused)
{
    std::map<std::pair<int, int>, AttnMerge> merges;
    for (int i = 0; fused && i < plan.n_merges; ++i)
        merges[{plan.merges[i].row, plan.merges[i].kv_head}] = plan.merges[i];
    std::vector<StreamTask> tasks((size_t)plan.n_tasks + 1, {-7, -7, -7, -7, -7, -7, -7});
    fill_tasks(&plan, tasks.data());
    for (int i = 0; i < plan.n_tasks; ++i) {
        const StreamTask &is = tasks[(size_t)i];
        const AttnTask &t = plan.tasks[i];
        g_assert_cmpint(is.row, ==, t.row);
        g_assert_cmpint(is.head, ==, t.kv_head);
        g_assert_cmpint(is.begin, ==, t.begin);
        g_assert_cmpint(is.end, ==, t.end);
        g_assert_cmpint(is.slot, ==, t.slot);
        const auto merge = merges.find({t.row, t.kv_head});
        g_assert_true(!fused || (merge != merges.end()) == (t.slot >= 0));
        g_assert_cmpint(is.first_slot, ==, merge != merges.end() ? merge->second.first_slot : 0);
        g_assert_cmpint(is.n_slots, ==, merge != merges.end() ? merge->second.n_slots : 0);
    }
    g_assert_cmpint(tasks.back().row, ==, -7);
}

void test_tasks()
{
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    AttnPlan plan;
    attn_plan_init(&plan);
    gint64 merged = 0, whole = 0;
    for (int i = 0; i < 600; ++i) {
        const AttnRoute route = (AttnRoute)g_rand_int_range(random, 0, ATTN_PERSISTENT);
        const AttnShape shape = {8,       1 << g_rand_int_range(random, 0, 4), 64, 16, ATTN_F16,
                                 ATTN_HND};
        AttnPlanConfig config;
        attn_plan_config_init(&config, route, g_rand_int_range(random, 1, 300));
        std::vector<int> lens;
        for (int r = g_rand_int_range(random, 1, 60); r > 0; --r)
            lens.push_back(g_rand_int_range(random, 0, r % 3 == 0 ? 30000 : 300));
        g_assert_cmpint(attn_plan_build(&plan, &config, &shape, (int)lens.size(), lens.data()), ==,
                        ATTN_OK);
        const bool fused = route == ATTN_WORKQUEUE_FUSED;
        check_tasks(plan, fused);
        merged += fused ? plan.counts.partial_slots : 0;
        whole += fused ? plan.n_tasks - plan.counts.partial_slots : 0;
    }
    g_assert_cmpint(merged, >, 1000);
    g_assert_cmpint(whole, >, 1000);
    attn_plan_free(&plan);
}

/* Equal rows, and nearly equal ones, of which a wave of parts can be made; some are empty. */
void test_parts()
{
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    int parts = 0;
    for (int i = 0; i < 400; ++i) {
        Batch b = {g_rand_int_range(random, 1, 9), g_rand_int_range(random, 1, 3), {}, {}, {}};
        attn_plan_config_init(&b.config, ATTN_PERSISTENT,
                              g_rand_int_range(random, 8, i % 3 == 0 ? 140 : 50));
        b.config.min_tokens = 16 << g_rand_int_range(random, 0, 5);
        const int rows = g_rand_int_range(random, 1, 1 + min(34, b.config.workers / b.kv_heads));
        const int len = g_rand_int_range(random, 1, 20000);
        for (int r = 0; r < rows; ++r) {
            const bool empty = i % 7 == 0 && g_rand_int_range(random, 0, 3) == 0;
            b.lens.push_back(empty ? 0 : len + g_rand_int_range(random, 0, 1 + len / 50));
            b.offset.push_back(100 + 3 * r);
        }
        parts += check_batch(b);
    }
    g_assert_cmpint(parts, >, 60);
    g_assert_cmpint(parts, <, 380);
}

} // namespace

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/device-plan/as-the-hosts", test_device_plan);
    g_test_add_func("/kernels/device-plan/tasks", test_tasks);
    g_test_add_func("/kernels/device-plan/parts", test_parts);
    return g_test_run();
}
