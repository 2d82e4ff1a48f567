/* How partial states change hands between CTAs (kernels/attn_exchange.cuh), run on the CPU: the
 * kernels' own source over tests/kernels/emulated, words of slots becoming visible late and out of
 * order. After every launch: outputs against a merge in double precision, every word of every slot
 * empty, counters zero; the same launch again with other delays: the same bits. Launches follow one
 * another on the same slots with other cuts, as steps of a server do. A word that never comes fails
 * the test (emulated/cta.h).
 */
#include <glib.h> /* before the kernels' words for the compiler */
#include <vector>

#include "kernels/attn_exchange.cuh"

using namespace kv;

namespace
{

struct Piece {
    int pair;
    Cut cut;  /* n_slots 0: whole */
    int slot; /* -1: the output */
};
struct Work { /* of a CTA */
    std::vector<Piece> pieces;
};

struct Launch {
    int group, d, warps, pairs; /* pairs: (row, KV head)s */
    bool tasks, alone;
    std::vector<Work> ctas;
    int slots;
    uint64_t content;
};

uint64_t mix(uint64_t x)
{
    x ^= x >> 31, x *= 0x7fb5d329728ea185u, x ^= x >> 27, x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

double uniform(uint64_t key)
{
    return (double)(mix(key) >> 11) * 0x1p-53;
}

/* State of one warp's part of a piece: m, l, acc of a head. Some have seen nothing. */
double state_m(const Launch &l, int pair, int cta, int warp, int head)
{
    const uint64_t key =
        l.content ^ (uint64_t)((((pair * 331 + cta) * 17 + warp) * 37) + head) * 977;
    return uniform(key) < 0.1 ? -INFINITY : 30 * uniform(key + 1) - 15;
}
float state_x(const Launch &l, int pair, int cta, int warp, int head, int i)
{
    const uint64_t key =
        l.content ^ (uint64_t)(((((pair * 331 + cta) * 17 + warp) * 37) + head) * 977 + i + 2) * 31;
    if (state_m(l, pair, cta, warp, head) == -INFINITY)
        return 0;
    return (float)(i < 0 ? 1 + 4 * uniform(key) : 8 * uniform(key) - 4);
}

/* One head's value in the merge buffer's layout: pairs of heads, as accumulators lie. */
void fill_states(const Launch &l, int pair, int cta, int first_pair, int pairs, float *buf,
                 int stride)
{
    for (int w = 0; w < l.warps; ++w)
        for (int p = 0; p < pairs; ++p)
            for (int k = 0; k < 2; ++k) {
                const int head = 2 * (first_pair + p) + k;
                float *at = buf + w * stride;
                at[4 * p + 2 * k] = (float)state_m(l, pair, cta, w, head);
                at[4 * p + 2 * k + 1] = state_x(l, pair, cta, w, head, -1);
                for (int i = 0; i < l.d; ++i)
                    at[16 + p * (2 * l.d + 8) + 2 * i + k] = state_x(l, pair, cta, w, head, i);
            }
}

template <int D>
void run_cta(const Launch &l, const StreamArgs &a, const Work &work, int cta,
             std::vector<float> &smem, int *word)
{
    const int stride = merge_floats(l.group, D), all = (l.group + 1) / 2;
    Cut early = {}, late = {};
    for (size_t i = 0; i < work.pieces.size(); ++i) {
        Piece p = work.pieces[i];
        cut_readers<D>(a, p.cut);
        g_assert_false(l.alone && p.cut.owned); /* nobody waits where not all run at once */
        __half *out = output_of<__half, D>(a, p.pair);
        const Others others = others_of<D>(a, p.cut);
        float *slot = p.slot < 0 || owns(p.cut) ? NULL : slot_of<D>(a, p.slot);
        for (int first = 0; first < all; first += 4) {
            const int pairs = min(4, all - first);
            __syncthreads();
            if (threadIdx.x == 0)
                fill_states(l, p.pair, cta, first, pairs, smem.data(), stride);
            Asked asked;
            if ((int)threadIdx.x < pairs * (D / 2))
                others_ask<D>(asked, others, l.group, first * (D / 2) + (int)threadIdx.x);
            __syncthreads();
            const MergeTo to = {out, slot, p.cut.readers, l.group, first};
            if (others.n > 0)
                merge_with<__half, D>(smem.data(), {stride, 16, 2 * D + 8}, pairs, l.warps, to,
                                      others, asked);
            else
                merge_states<__half, D>(smem.data(), {stride, 16, 2 * D + 8}, pairs, l.warps, to);
        }
        late = p.cut;
        if (i + 1 < work.pieces.size() && p.cut.n_slots > 0 && !p.cut.owned)
            early = p.cut;
    }
    if (!work.pieces.empty())
        settle<__half, D>(a, word, early, late);
}

struct Device {
    std::vector<float> slots;
    std::vector<uint32_t> arrivals;
};

std::vector<uint16_t> run(const Launch &l, Device &device, uint64_t seed)
{
    std::vector<uint16_t> out((size_t)(l.pairs * l.group * l.d), 0xffff);
    StreamArgs a = {};
    static const StreamTask task = {};
    a.group = l.group, a.out = out.data(), a.slots = device.slots.data();
    a.tasks = l.tasks ? &task : NULL;
    a.readers = l.alone ? 1 : MAX_READERS;
    a.arrivals = l.alone ? device.arrivals.data() : NULL;
    const size_t n = l.ctas.size(), floats = (size_t)(merge_floats(l.group, l.d) * l.warps);
    std::vector<std::vector<float>> smem(n, std::vector<float>(floats));
    std::vector<int> word(n);
    emulated::grid_run(32 * l.warps, (unsigned)n, seed, [&](unsigned c) {
        if (l.d == 64)
            run_cta<64>(l, a, l.ctas[c], (int)c, smem[c], &word[c]);
        else
            run_cta<128>(l, a, l.ctas[c], (int)c, smem[c], &word[c]);
    });
    return out;
}

void check_outputs(const Launch &l, const std::vector<uint16_t> &out)
{
    for (int pair = 0; pair < l.pairs; ++pair)
        for (int head = 0; head < l.group; ++head) {
            double most = -INFINITY, sum = 0;
            std::vector<double> acc((size_t)l.d);
            for (int pass = 0; pass < 2; ++pass)
                for (size_t c = 0; c < l.ctas.size(); ++c)
                    for (const Piece &p : l.ctas[c].pieces)
                        for (int w = 0; w < l.warps && p.pair == pair; ++w) {
                            const double m = state_m(l, pair, (int)c, w, head);
                            if (pass == 0)
                                most = std::max(most, m);
                            else if (m != -INFINITY) {
                                sum += exp2(m - most) * state_x(l, pair, (int)c, w, head, -1);
                                for (int i = 0; i < l.d; ++i)
                                    acc[(size_t)i] +=
                                        exp2(m - most) * state_x(l, pair, (int)c, w, head, i);
                            }
                        }
            for (int i = 0; i < l.d; ++i) {
                const double want = sum == 0 ? 0 : acc[(size_t)i] / sum;
                const double got =
                    attn_f16_to_f32(out[(size_t)((pair * l.group + head) * l.d + i)]);
                if (!(fabs(got - want) <= 2e-3 * (1 + fabs(want))))
                    g_error("pair %d head %d dimension %d: %g, expected %g", pair, head, i, got,
                            want);
            }
        }
}

/* Ranges of a persistent launch: pairs laid end to end, equal shares (attn_plan.cuh without c0). */
void cut_ranges(Launch &l, int ctas, GRand *random)
{
    std::vector<int> begin = {0};
    for (int p = 0; p < l.pairs; ++p)
        begin.push_back(begin.back() +
                        g_rand_int_range(random, 1, g_rand_boolean(random) ? 40 : 6));
    const int tiles = begin.back(), n = std::min(ctas, tiles);
    auto first = [&](int c) { return (int)((int64_t)tiles * c / n); };
    auto owner = [&](int tile) {
        int c = 0;
        while (first(c + 1) <= tile)
            ++c;
        return c;
    };
    l.ctas.resize((size_t)n);
    l.slots = 2 * n;
    for (int p = 0; p < l.pairs; ++p) {
        const int from = owner(begin[(size_t)p]), to = owner(begin[(size_t)p + 1] - 1);
        for (int c = from; c <= to; ++c) {
            Piece piece = {p, {p, 0, 0, 0, 2, false, {}}, -1};
            if (from < to)
                piece.slot = 2 * c + (c == from),
                piece.cut = {p, 2 * from, to - from + 1, c - from, 2, false, {}};
            l.ctas[(size_t)c].pieces.push_back(piece);
        }
    }
}

void cut_tasks(Launch &l, int least, int most, GRand *random)
{
    for (int p = 0; p < l.pairs; ++p) {
        const int n = g_rand_int_range(random, least, most + 1);
        for (int i = 0; i < n; ++i) {
            Piece piece = {p, {p, 0, 0, 0, 1, false, {}}, -1};
            if (n > 1)
                piece.slot = l.slots + i, piece.cut = {p, l.slots, n, i, 1, false, {}};
            l.ctas.push_back({{piece}});
        }
        l.slots += n > 1 ? n : 0;
    }
}

void launch_and_check(const Launch &l, Device &device, GRand *random)
{
    const std::vector<uint16_t> once = run(l, device, g_rand_int(random));
    check_outputs(l, once);
    for (int again = 0; again < 2; ++again) {
        for (const float &x : device.slots)
            g_assert_cmphex(__float_as_uint(x), ==, EMPTY);
        for (uint32_t x : device.arrivals)
            g_assert_cmpuint(x, ==, 0);
        if (again == 0)
            g_assert_true(run(l, device, g_rand_int(random)) == once);
    }
}

/* A slot that nobody fills, and a barrier that one thread does not come to, end by failing. */
void wait_for_ever(gconstpointer barrier)
{
    emulated::be_patient(2000);
    if (barrier) {
        emulated::cta_run(64, 0, 1, 1, [] {
            if (threadIdx.x != 33)
                __syncthreads();
        });
        return;
    }
    Launch l = {4, 64, 2, 1, true, false, {}, 5, 1};
    for (int i = 0; i < 2; ++i)
        l.ctas.push_back({{{0, {0, 0, 5, i, 1, false, {}}, i}}});
    Device device = {std::vector<float>((size_t)(5 * slot_floats(4, 64)), __uint_as_float(EMPTY)),
                     {}};
    run(l, device, 1);
}

void test_never(gconstpointer barrier)
{
    if (g_test_subprocess()) {
        wait_for_ever(barrier);
        return;
    }
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(barrier
                                  ? "*CTA 0 of 1 waits for what never comes: 63 * 63 of them at*"
                                  : "*waits for what never comes*");
}

enum Kind { RANGES, TASKS, ALONE };

void test_exchange(gconstpointer data)
{
    const Kind kind = (Kind)GPOINTER_TO_INT(data);
    static const struct {
        int group, d, warps;
    } shapes[] = {{4, 64, 2}, {1, 64, 1}, {8, 64, 4}, {5, 128, 2}, {16, 64, 2}};
    g_autoptr(GRand) random = g_rand_new_with_seed(20261130 + kind);
    for (const auto &shape : shapes) {
        const int words = 80 * slot_floats(shape.group, shape.d);
        Device device = {std::vector<float>((size_t)words, __uint_as_float(EMPTY)),
                         std::vector<uint32_t>(80)};
        for (int i = 0; i < 5; ++i) {
            Launch l = {
                shape.group,       shape.d,       shape.warps, g_rand_int_range(random, 1, 6),
                kind != RANGES,    kind == ALONE, {},          0,
                g_rand_int(random)};
            if (kind == RANGES)
                cut_ranges(l, g_rand_int_range(random, 1, 24), random);
            else
                cut_tasks(l, 1, i == 0 ? 19 : 6, random);
            g_assert_cmpint(l.slots, <=, 80 + 20);
            if (l.slots <= 80)
                launch_and_check(l, device, random);
        }
        /* More slots than lanes, or than one look takes. */
        Launch many = {shape.group,   shape.d, shape.warps, 2, kind != RANGES,
                       kind == ALONE, {},      0,           77};
        if (kind == RANGES)
            cut_ranges(many, 40, random);
        else
            cut_tasks(many, 36, 40, random);
        launch_and_check(many, device, random);
    }
}

} // namespace

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/kernels/exchange/ranges", GINT_TO_POINTER(RANGES), test_exchange);
    g_test_add_data_func("/kernels/exchange/tasks", GINT_TO_POINTER(TASKS), test_exchange);
    g_test_add_data_func("/kernels/exchange/more-than-run-at-once", GINT_TO_POINTER(ALONE),
                         test_exchange);
    g_test_add_data_func("/kernels/exchange/never/word", NULL, test_never);
    g_test_add_data_func("/kernels/exchange/never/barrier", GINT_TO_POINTER(1), test_never);
    return g_test_run();
}
