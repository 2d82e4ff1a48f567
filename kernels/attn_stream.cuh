/* The decode kernel: one stream of 16-token tiles per CTA, used by every route.
 *
 * A CTA is given a contiguous range of tiles: one task of a plan (task mode), or its share of all
 * tiles of the batch in the order row, KV head, token (persistent mode, planned by every CTA from
 * the lengths alone). Its warps take tiles in turn, each with its own ring of cp.async stages, so
 * the main loop has no CTA barrier and loads run ahead over the borders of rows. At the end of a
 * piece (the range's part of one row and KV head) the warps' states are merged in shared memory; a
 * whole piece goes straight to the output, a cut one into a partial slot, merged by a later launch,
 * by the last CTA to arrive, or by the CTA that owns the piece.
 *
 * Arithmetic: S^T = K Q^T and O^T = V^T P^T with mma.m16n8k16, so tokens (then dimensions) fill the
 * 16 rows and the group's heads, padded to 8 (NT = 1) or 16 (NT = 2), the columns: K and V are read
 * once for the whole group, and both accumulators have a head's values in the same threads.
 *
 * Page ids: lane i of a warp resolves (row, head, page id, offset) for the warp's i-th next tile,
 * 32 lookups at a time and one batch ahead; pages below 16 entries take 16/p lanes a tile.
 *
 * Bits depend on the plan (or the grid), never on timing.
 */
#ifndef KV_KERNELS_ATTN_STREAM_CUH
#define KV_KERNELS_ATTN_STREAM_CUH

#include "kernels/attn_merge.cuh"

namespace kv
{

constexpr int TILE = 16; /* tokens */
constexpr int MAX_WARPS = 8;

/* One CTA's work in task mode: tokens [begin, end) of (row, head); slot < 0: the output. */
struct StreamTask {
    int row, head, begin, end;
    int slot, first_slot, n_slots, counter; /* counter < 0: merged by a later launch */
};

enum MergeKind { MERGE_LAST_ARRIVER = 0, MERGE_OWNER = 1 };

struct StreamArgs {
    const char *k, *v;
    int64_t page_bytes;
    int head_bytes, token_bytes;
    int page_shift; /* log2 of the page size */
    int rows, kv_heads, group;
    const int *lens, *table, *offset;
    const void *q;
    void *out;
    float scale_log2;        /* scale x log2 e */
    const StreamTask *tasks; /* NULL: persistent */
    int n_tasks;
    float *slots;
    uint32_t *counters; /* zero between launches */
    int c0,
        min_units; /* persistent: tiles a (row, head) costs besides its own; least share of a CTA */
    int merge_kind;
    int stages, buffers; /* ring depth 2..4; merge buffers 1..2 */
    uint32_t delay_seed; /* tests: random waits before global protocol steps; 0 = none */
};

template <int D> struct Geometry {
    static constexpr int ROW = 2 * D;            /* bytes of an entry */
    static constexpr int CHUNKS = D / 8;         /* 16-byte chunks of an entry */
    static constexpr int ROWS_PER = 32 / CHUNKS; /* entries a warp copies at once */
    static constexpr int COPIES = TILE / ROWS_PER;
    static constexpr int HALF = TILE * ROW; /* K (or V) of a tile */
    static constexpr int STAGE = 2 * HALF;
};

/* Floats of one warp's part of a merge buffer: m, l of 8 heads, then pairs of heads, padded so that
 * the stores of an accumulator meet no bank twice. */
__host__ __device__ constexpr int pairs_per_pass(int group)
{
    return group > 8 ? 4 : (group + 1) / 2;
}
__host__ __device__ constexpr int merge_floats(int group, int d)
{
    return 16 + pairs_per_pass(group) * (2 * d + 8);
}
/* Bytes of all the CTA's merge buffers; also the scratch of merge_slots (32 bytes a thread). */
__host__ __device__ constexpr int merge_bytes(int group, int d, int warps, int buffers)
{
    const int a = 4 * merge_floats(group, d) * warps * buffers, b = 32 * 32 * warps;
    return a > b ? a : b;
}
/* Bytes of the plan in shared memory: two prefixes, lengths, table offsets, and scratch of the
 * scan. */
__host__ __device__ constexpr int plan_bytes(int rows)
{
    return 4 * (2 * (rows + 1) + 2 * rows + 2 * 16);
}

struct Smem {
    uint32_t ring; /* this warp's */
    float *merge;
    int *
        units; /* [rows + 1] units of the rows before: kv_heads x (tiles + c0) each, 0 when empty */
    int *tiles; /* [rows + 1] tiles of the rows before */
    int *len, *off, *scan;
};

/* What a CTA works through: tile ordinals [g0, g1). */
struct Range {
    int g0, g1;
    int row_lo, row_hi; /* persistent: rows of the first and last tile */
    int cta, ctas;      /* persistent: index in the order of tiles, and how many work */
    int share, extra;   /* persistent: the first `extra` CTAs have share + 1 units, others share */
};

__device__ __forceinline__ void random_delay(const StreamArgs &a, uint32_t salt)
{
    if (a.delay_seed) {
        uint32_t x = a.delay_seed ^ (blockIdx.x * 0x9e3779b9u) ^ (salt * 0x85ebca6bu);
        x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
        __nanosleep(x & 0x3fff);
    }
}

/* ---- persistent plan ---------------------------------------------------------------------- */

/* Inclusive sum over the warp. */
__device__ __forceinline__ int warp_scan(int x)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int y = __shfl_up_sync(~0u, x, d);
        x += lane >= d ? y : 0;
    }
    return x;
}

__device__ __forceinline__ void plan_prefix(const StreamArgs &a, const Smem &sm)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    int rows_before = 0, tiles_before = 0; /* of earlier rounds */
    for (int base = 0; base < a.rows; base += blockDim.x) {
        const int r = base + threadIdx.x;
        int len = 0;
        if (r < a.rows) {
            len = a.lens[r];
            sm.off[r] = a.offset[r];
            sm.len[r] = len;
        }
        const int tiles = warp_scan((len + TILE - 1) / TILE);
        const int full = __popc(__ballot_sync(~0u, len > 0) & (2u << lane) - 1);
        if (lane == 31)
            sm.scan[2 * warp] = tiles, sm.scan[2 * warp + 1] = full;
        __syncthreads();
        int my_rows = rows_before + full, my_tiles = tiles_before + tiles;
        for (int w = 0; w < warps; ++w) {
            const int t = sm.scan[2 * w], f = sm.scan[2 * w + 1];
            my_tiles += w < warp ? t : 0, my_rows += w < warp ? f : 0;
            tiles_before += t, rows_before += f;
        }
        if (r < a.rows) {
            sm.tiles[r + 1] = a.kv_heads * my_tiles;
            sm.units[r + 1] = a.kv_heads * (my_tiles + a.c0 * my_rows);
        }
        if (base + (int)blockDim.x < a.rows)
            __syncthreads();
    }
    if (threadIdx.x == 0)
        sm.tiles[0] = sm.units[0] = 0;
    __syncthreads();
}

/* The row that holds tile g, between lo and hi. */
__device__ __forceinline__ int row_of_tile(const Smem &sm, int g, int lo, int hi)
{
    while (lo < hi) {
        const int mid = (lo + hi + 1) >> 1;
        if (sm.tiles[mid] <= g)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Tiles before unit x: the first c0 units of a (row, head) hold none. */
__device__ __forceinline__ int tiles_before_unit(const StreamArgs &a, const Smem &sm, int x)
{
    int lo = 0, hi = a.rows;
    while (lo < hi) { /* the last row that begins at or before x; `rows` when x is the end */
        const int mid = (lo + hi + 1) >> 1;
        if (sm.units[mid] <= x)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo == a.rows)
        return sm.tiles[lo];
    const int tiles = (sm.len[lo] + TILE - 1) / TILE, unit = tiles + a.c0;
    const int y = x - sm.units[lo], head = y / unit;
    return sm.tiles[lo] + head * tiles + max(0, y - head * unit - a.c0);
}

__device__ __forceinline__ int first_unit(const Range &r, int cta)
{
    return cta * r.share + min(cta, r.extra);
}

/* The CTA that has unit x. */
__device__ __forceinline__ int cta_of_unit(const Range &r, int x)
{
    const int wide = r.extra * (r.share + 1);
    return x < wide ? x / (r.share + 1) : r.extra + (x - wide) / r.share;
}

/* CTAs are numbered against the order in which they are started, so that an owner waits only for
 * CTAs started before it. */
__device__ __forceinline__ Range plan_range(const StreamArgs &a, const Smem &sm)
{
    Range r;
    const int units = sm.units[a.rows], lane = threadIdx.x & 31;
    r.ctas = min((int)gridDim.x, max(1, units / a.min_units));
    r.cta = gridDim.x - 1 - blockIdx.x;
    r.share = units / r.ctas;
    r.extra = units - r.share * r.ctas;
    int g = 0;
    if (r.cta < r.ctas)
        g = tiles_before_unit(a, sm, first_unit(r, r.cta + (lane & 1)));
    r.g0 = __shfl_sync(~0u, g, 0);
    r.g1 = __shfl_sync(~0u, g, 1);
    const int row = row_of_tile(sm, (lane & 1) ? r.g1 - 1 : r.g0, 0, a.rows - 1);
    r.row_lo = __shfl_sync(~0u, row, 0);
    r.row_hi = __shfl_sync(~0u, row, 1);
    return r;
}

/* ---- loading ------------------------------------------------------------------------------ */

/* A warp's tiles yet to be loaded. Each lane holds one lookup of the batch in hand and one of the
 * next: page id, and offset inside the page in 16-byte units with the tile's valid entries above.
 */
struct Loader {
    int next; /* ordinal of the next tile */
    int slot; /* its lookup in the batch */
    int id, where, id2, where2;
};

__device__ __forceinline__ void resolve(const StreamArgs &a, const Smem &sm, const Range &range,
                                        const StreamTask &task, int first, int stride, int &id,
                                        int &where)
{
    const int lane = threadIdx.x & 31, sub_shift = max(0, 4 - a.page_shift);
    const int g = first + (lane >> sub_shift) * stride;
    id = 0, where = 0;
    if (g >= range.g1)
        return;
    int head = task.head, tile = g, len = task.end, off;
    if (!a.tasks) {
        const int row = row_of_tile(sm, g, range.row_lo, range.row_hi);
        len = sm.len[row];
        const int tiles = (len + TILE - 1) / TILE, x = g - sm.tiles[row];
        head = x / tiles;
        tile = x - head * tiles;
        off = sm.off[row];
    } else {
        off = a.offset[task.row];
    }
    const int token = tile * TILE + ((lane & ((1 << sub_shift) - 1)) << a.page_shift);
    if (token < len)
        id = a.table[off + (token >> a.page_shift)];
    const int inside = token & ((1 << a.page_shift) - 1);
    where = ((head * a.head_bytes + inside * a.token_bytes) >> 4) |
            (min(TILE, len - tile * TILE) << 24);
}

/* Copies one tile into the stage at `dst` (already with this lane's place). */
template <int D>
__device__ __forceinline__ void load_tile(const StreamArgs &a, const Loader &ld, uint32_t dst)
{
    using G = Geometry<D>;
    const int lane = threadIdx.x & 31, mine = lane / G::CHUNKS, chunk = 16 * (lane % G::CHUNKS);
    if (a.page_shift >= 4) {
        const int id = __shfl_sync(~0u, ld.id, ld.slot),
                  where = __shfl_sync(~0u, ld.where, ld.slot);
        const int valid = where >> 24;
        const int64_t at =
            id * a.page_bytes + (int64_t)(where & 0xffffff) * 16 + mine * a.token_bytes + chunk;
        const char *k = a.k + at, *v = a.v + at;
#pragma unroll
        for (int j = 0; j < G::COPIES; ++j) {
            const uint32_t to = (dst ^ (((j * G::ROWS_PER) & 7) << 4)) + j * 512;
            const int bytes = j * G::ROWS_PER + mine < valid ? 16 : 0;
            cp_async16(to, k + j * G::ROWS_PER * a.token_bytes, bytes);
            cp_async16(to + G::HALF, v + j * G::ROWS_PER * a.token_bytes, bytes);
        }
    } else {
        const int sub_shift = 4 - a.page_shift, mask = (1 << a.page_shift) - 1;
#pragma unroll
        for (int j = 0; j < G::COPIES; ++j) {
            const int row = j * G::ROWS_PER + mine,
                      from = (ld.slot << sub_shift) + (row >> a.page_shift);
            const int id = __shfl_sync(~0u, ld.id, from), where = __shfl_sync(~0u, ld.where, from);
            const int64_t at = id * a.page_bytes + (int64_t)(where & 0xffffff) * 16 +
                               (row & mask) * a.token_bytes + chunk;
            const uint32_t to = (dst ^ (((j * G::ROWS_PER) & 7) << 4)) + j * 512;
            const int bytes = row < (where >> 24) ? 16 : 0;
            cp_async16(to, a.k + at, bytes);
            cp_async16(to + G::HALF, a.v + at, bytes);
        }
    }
}

/* Issues the warp's next tile (if there is one) into `stage`, and always closes a group. */
template <int D>
__device__ __forceinline__ void load_next(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task, Loader &ld, uint32_t stage)
{
    using G = Geometry<D>;
    if (ld.next < range.g1) {
        const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
        const int mine = lane / G::CHUNKS, c = lane % G::CHUNKS;
        load_tile<D>(a, ld, stage + mine * G::ROW + ((c ^ mine) << 4));
        ld.next += warps;
        const int batch = 32 >> max(0, 4 - a.page_shift);
        if (++ld.slot == batch) {
            ld.slot = 0, ld.id = ld.id2, ld.where = ld.where2;
            resolve(a, sm, range, task, ld.next + batch * warps, warps, ld.id2, ld.where2);
        }
    }
    cp_async_commit();
}

__device__ __forceinline__ void wait_stage(int stages)
{
    if (stages == 2)
        cp_async_wait<1>();
    else if (stages == 3)
        cp_async_wait<2>();
    else
        cp_async_wait<3>();
    __syncwarp();
}

/* ---- arithmetic --------------------------------------------------------------------------- */

/* A warp's queries and running state of one piece: heads 2t, 2t+1 (+8 n) of lane 4g + t. */
template <int D, int NT> struct Accumulator {
    static constexpr bool Q_KEPT = D * NT <= 256; /* else read again for each tile: registers */
    uint32_t q[Q_KEPT ? NT : 1][Q_KEPT ? D / 16 : 1][2];
    const uint16_t *q_from[NT];
    float m[NT][2], l[NT][2];
    float o[NT][D / 16][4];
};

template <typename T, int D, int NT>
__device__ __forceinline__ void accumulator_begin(const StreamArgs &a, Accumulator<D, NT> &acc,
                                                  int row, int head)
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int h = n * 8 + g;
        const int64_t at = ((int64_t)row * a.kv_heads + head) * a.group + min(h, a.group - 1);
        acc.q_from[n] = static_cast<const uint16_t *>(a.q) + at * D + 2 * t;
        if constexpr (Accumulator<D, NT>::Q_KEPT) {
#pragma unroll
            for (int k = 0; k < D / 16; ++k) {
                acc.q[n][k][0] = *reinterpret_cast<const uint32_t *>(acc.q_from[n] + k * 16);
                acc.q[n][k][1] = *reinterpret_cast<const uint32_t *>(acc.q_from[n] + k * 16 + 8);
            }
        }
        acc.m[n][0] = acc.m[n][1] = -INFINITY;
        acc.l[n][0] = acc.l[n][1] = 0.f;
#pragma unroll
        for (int k = 0; k < D / 16; ++k)
            acc.o[n][k][0] = acc.o[n][k][1] = acc.o[n][k][2] = acc.o[n][k][3] = 0.f;
    }
}

__device__ __forceinline__ uint32_t load_volatile(const uint16_t *p)
{
    uint32_t x;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}

/* s = scores of 16 tokens (rows g, g+8) and heads 2t, 2t+1. */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_scores(const Accumulator<D, NT> &acc, uint32_t stage,
                                            float (&s)[NT][4])
{
    using G = Geometry<D>;
    const int lane = threadIdx.x & 31;
    const uint32_t from =
        stage + ((lane & 7) + ((lane >> 3) & 1) * 8) * G::ROW + (((lane >> 4) ^ (lane & 7)) << 4);
    float odd[NT][4];
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            s[n][i] = odd[n][i] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32_t kf[4];
        ldmatrix_x4(kf, from ^ (k << 5));
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            uint32_t q0, q1;
            if constexpr (Accumulator<D, NT>::Q_KEPT)
                q0 = acc.q[n][k][0], q1 = acc.q[n][k][1];
            else
                q0 = load_volatile(acc.q_from[n] + k * 16),
                q1 = load_volatile(acc.q_from[n] + k * 16 + 8);
            Half<T>::mma((k & 1) && Accumulator<D, NT>::Q_KEPT ? odd[n] : s[n], kf, q0, q1);
        }
    }
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            s[n][i] += odd[n][i];
}

/* Online softmax of one n-tile: scores to weights (packed as the B operand p), state brought along.
 */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_softmax(Accumulator<D, NT> &acc, int n, float (&s)[4],
                                             float scale, uint32_t (&p)[2])
{
    float x0 = fmaxf(s[0], s[2]) * scale, x1 = fmaxf(s[1], s[3]) * scale;
    if (__any_sync(~0u, x0 > acc.m[n][0] || x1 > acc.m[n][1])) {
#pragma unroll
        for (int d = 4; d < 32; d *= 2) {
            x0 = fmaxf(x0, __shfl_xor_sync(~0u, x0, d));
            x1 = fmaxf(x1, __shfl_xor_sync(~0u, x1, d));
        }
        x0 = fmaxf(x0, acc.m[n][0]), x1 = fmaxf(x1, acc.m[n][1]);
        const float f0 = exp2_fast(acc.m[n][0] - finite_or_zero(x0)),
                    f1 = exp2_fast(acc.m[n][1] - finite_or_zero(x1));
        acc.m[n][0] = x0, acc.m[n][1] = x1;
        acc.l[n][0] *= f0, acc.l[n][1] *= f1;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
            acc.o[n][k][0] *= f0, acc.o[n][k][1] *= f1;
            acc.o[n][k][2] *= f0, acc.o[n][k][3] *= f1;
        }
    }
    const float m0 = finite_or_zero(acc.m[n][0]), m1 = finite_or_zero(acc.m[n][1]);
    s[0] = exp2_fast(fmaf(s[0], scale, -m0)), s[1] = exp2_fast(fmaf(s[1], scale, -m1));
    s[2] = exp2_fast(fmaf(s[2], scale, -m0)), s[3] = exp2_fast(fmaf(s[3], scale, -m1));
    acc.l[n][0] += s[0] + s[2], acc.l[n][1] += s[1] + s[3];
    p[0] = movmatrix_trans(Half<T>::pack(s[0], s[1]));
    p[1] = movmatrix_trans(Half<T>::pack(s[2], s[3]));
}

/* Takes in one tile of `valid` entries that lies in `stage`. */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_consume(const StreamArgs &a, Accumulator<D, NT> &acc,
                                             uint32_t stage, int valid)
{
    using G = Geometry<D>;
    const int lane = threadIdx.x & 31, g = lane >> 2;
    float s[NT][4];
    tile_scores<T, D, NT>(acc, stage, s);
    if (valid < TILE) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            if (g >= valid)
                s[n][0] = s[n][1] = -INFINITY;
            if (g + 8 >= valid)
                s[n][2] = s[n][3] = -INFINITY;
        }
    }
    uint32_t p[NT][2];
#pragma unroll
    for (int n = 0; n < NT; ++n)
        tile_softmax<T, D, NT>(acc, n, s[n], a.scale_log2, p[n]);
    const uint32_t from = stage + G::HALF + ((lane & 7) + (lane >> 4) * 8) * G::ROW +
                          ((((lane >> 3) & 1) ^ (lane & 7)) << 4);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32_t vf[4];
        ldmatrix_x4_trans(vf, from ^ (k << 5));
#pragma unroll
        for (int n = 0; n < NT; ++n)
            Half<T>::mma(acc.o[n][k], vf, p[n][0], p[n][1]);
    }
}

/* ---- the end of a piece -------------------------------------------------------------------- */

struct Piece {
    int row, head;
    int first, end;  /* ordinals of this CTA's tiles */
    int slot;        /* < 0: whole, goes to the output */
    uint32_t active; /* warps that had tiles */
};

/* This warp's n-tile into its part of the merge buffer. */
template <int D, int NT>
__device__ __forceinline__ void accumulator_store(const Accumulator<D, NT> &acc, int n, int pairs,
                                                  float *to)
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    float l0 = acc.l[n][0], l1 = acc.l[n][1];
#pragma unroll
    for (int d = 4; d < 32; d *= 2) {
        l0 += __shfl_xor_sync(~0u, l0, d);
        l1 += __shfl_xor_sync(~0u, l1, d);
    }
    if (g == 0)
        reinterpret_cast<float4 *>(to)[t] = make_float4(acc.m[n][0], l0, acc.m[n][1], l1);
    if (t < pairs) {
        float2 *o = reinterpret_cast<float2 *>(to + 16 + t * (2 * D + 8)) + g;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
            o[k * 16] = make_float2(acc.o[n][k][0], acc.o[n][k][1]);
            o[k * 16 + 8] = make_float2(acc.o[n][k][2], acc.o[n][k][3]);
        }
    }
}

/* The CTA's warps merged, for item (pair, dd) of the n-tile in `from`. */
template <int D>
__device__ __forceinline__ State merge_warps(const float *from, int stride, uint32_t active,
                                             int pair, int dd)
{
    State s = state_neutral();
    float m0 = -INFINITY, m1 = -INFINITY;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        const float *w = from + (__ffs(rest) - 1) * stride;
        m0 = fmaxf(m0, w[4 * pair]), m1 = fmaxf(m1, w[4 * pair + 2]);
    }
    s.m0 = m0, s.m1 = m1;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        const float *w = from + (__ffs(rest) - 1) * stride;
        state_add(s, reinterpret_cast<const float4 *>(w)[pair],
                  *reinterpret_cast<const float4 *>(w + 16 + pair * (2 * D + 8) + 2 * dd));
    }
    return s;
}

__device__ __forceinline__ void slot_store(const StreamArgs &a, float4 *to, float4 x)
{
    if (a.merge_kind == MERGE_OWNER && !a.tasks)
        store_relaxed(to, never_empty(x));
    else
        __stcg(to, x);
}

/* All threads: the piece's state to the output or its slot. */
template <typename T, int D, int NT>
__device__ __forceinline__ void finish_piece(const StreamArgs &a, const Smem &sm,
                                             const Piece &piece, const Accumulator<D, NT> &acc,
                                             int &buffer)
{
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int stride = merge_floats(a.group, D), all_pairs = (a.group + 1) / 2;
    T *out = static_cast<T *>(a.out) + ((int64_t)piece.row * a.kv_heads + piece.head) * a.group * D;
    float4 *slot =
        reinterpret_cast<float4 *>(a.slots + (int64_t)max(0, piece.slot) * slot_floats(a.group, D));
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int pairs = min(4, all_pairs - 4 * n);
        float *buf = sm.merge + buffer * warps * stride;
        if (piece.active >> warp & 1)
            accumulator_store<D, NT>(acc, n, pairs, buf + warp * stride);
        __syncthreads();
        for (int it = threadIdx.x; it < pairs * (D / 2); it += blockDim.x) {
            const int pair = it / (D / 2), dd = 2 * (it % (D / 2));
            const State s = merge_warps<D>(buf, stride, piece.active, pair, dd);
            if (piece.slot < 0) {
                state_write<T, D>(s, out, a.group, n * 8 + 2 * pair, dd);
            } else {
                if (dd == 0)
                    slot_store(a, slot + 4 * n + pair, make_float4(s.m0, s.l0, s.m1, s.l1));
                slot_store(a, slot + all_pairs + 4 * n * (D / 2) + it, s.o);
            }
        }
        if (a.buffers == 2)
            buffer ^= 1;
        else
            __syncthreads();
    }
}

/* After a partial store: TRUE in the CTA that arrives last of n. Resets the counter. */
__device__ __forceinline__ bool arrive_last(const StreamArgs &a, const Smem &sm, uint32_t *counter,
                                            int n)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const bool last = atomic_inc_acq_rel(counter) == (uint32_t)n - 1;
        if (last)
            *counter = 0;
        sm.scan[0] = last;
    }
    __syncthreads();
    return sm.scan[0];
}

/* A cut piece of the persistent mode: CTAs from..to share (row, head). */
template <typename T, int D>
__device__ void merge_cut_piece(const StreamArgs &a, const Smem &sm, const Range &range,
                                const Piece &piece, int from, int to)
{
    T *out = static_cast<T *>(a.out) + ((int64_t)piece.row * a.kv_heads + piece.head) * a.group * D;
    const SlotList slots = {a.slots, slot_floats(a.group, D), 2 * from, 2, 1, to - from + 1};
    random_delay(a, 1);
    if (a.merge_kind == MERGE_OWNER) {
        if (range.cta == from)
            merge_slots<T, D, true>(slots, a.group, out, reinterpret_cast<float4 *>(sm.merge));
    } else if (arrive_last(a, sm, a.counters + from, slots.n)) {
        merge_slots<T, D, false>(slots, a.group, out, reinterpret_cast<float4 *>(sm.merge));
    }
    __syncthreads();
}

/* ---- the kernel --------------------------------------------------------------------------- */

/* Works through `piece`: this warp's tiles of it. */
template <typename T, int D, int NT>
__device__ __forceinline__ void run_piece(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task, const Piece &piece, int tile_base,
                                          int len, Loader &ld, int &mine, int &at,
                                          Accumulator<D, NT> &acc)
{
    using G = Geometry<D>;
    const int warps = blockDim.x >> 5;
    for (; mine < piece.end; mine += warps) {
        const uint32_t stage = sm.ring + at * G::STAGE;
        wait_stage(a.stages);
        tile_consume<T, D, NT>(a, acc, stage, len - (mine - tile_base) * TILE);
        __syncwarp();
        load_next<D>(a, sm, range, task, ld, stage);
        at = at + 1 == a.stages ? 0 : at + 1;
    }
}

/* Rows without entries: zeros, row r by CTA r mod grid. */
template <typename T, int D> __device__ void write_empty_rows(const StreamArgs &a, const Smem &sm)
{
    const int words = a.kv_heads * a.group * D / 2;
    for (int r = blockIdx.x; r < a.rows; r += gridDim.x)
        if (sm.len[r] == 0)
            for (int i = threadIdx.x; i < words; i += blockDim.x)
                static_cast<uint32_t *>(a.out)[(int64_t)r * words + i] = 0;
}

__device__ __forceinline__ uint32_t active_warps(int first_warp, int tiles, int warps)
{
    if (tiles >= warps)
        return (1u << warps) - 1;
    const uint32_t run = ((1u << tiles) - 1) << first_warp;
    return (run | run >> warps) & ((1u << warps) - 1);
}

/* Fills the ring, then the second batch of lookups (before it where a batch may be shorter than the
 * ring). */
template <int D>
__device__ __forceinline__ void fill_ring(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task, Loader &ld)
{
    const int warps = blockDim.x >> 5, batch = 32 >> max(0, 4 - a.page_shift);
    const int second = ld.next + batch * warps;
    resolve(a, sm, range, task, ld.next, warps, ld.id, ld.where);
    if (a.page_shift < 4)
        resolve(a, sm, range, task, second, warps, ld.id2, ld.where2);
    for (int s = 0; s < a.stages; ++s)
        load_next<D>(a, sm, range, task, ld, sm.ring + s * Geometry<D>::STAGE);
    if (a.page_shift >= 4)
        resolve(a, sm, range, task, second, warps, ld.id2, ld.where2);
}

template <typename T, int D, int NT>
__device__ void run_task(const StreamArgs &a, const Smem &sm, const StreamTask &task)
{
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    Range range = {};
    range.g0 = task.begin / TILE;
    range.g1 = task.begin < task.end ? (task.end + TILE - 1) / TILE : range.g0;
    Loader ld = {range.g0 + warp, 0, 0, 0, 0, 0};
    fill_ring<D>(a, sm, range, task, ld);
    Accumulator<D, NT> acc;
    accumulator_begin<T, D, NT>(a, acc, task.row, task.head);
    Piece piece = {task.row, task.head, range.g0, range.g1, task.slot, 0};
    piece.active = active_warps(0, range.g1 - range.g0, warps);
    int mine = range.g0 + warp, at = 0, buffer = 0;
    run_piece<T, D, NT>(a, sm, range, task, piece, 0, task.end, ld, mine, at, acc);
    finish_piece<T, D, NT>(a, sm, piece, acc, buffer);
    if (task.slot < 0 || task.counter < 0)
        return;
    random_delay(a, 1);
    if (arrive_last(a, sm, a.counters + task.counter, task.n_slots)) {
        const SlotList slots = {
            a.slots, slot_floats(a.group, D), task.first_slot, 1, 0, task.n_slots};
        T *out = static_cast<T *>(a.out) +
                 ((int64_t)task.row * a.kv_heads + task.head) * a.group * D;
        merge_slots<T, D, false>(slots, a.group, out, reinterpret_cast<float4 *>(sm.merge));
    }
}

/* A CTA a task; fewer CTAs (a limited grid) take further ones in turn. */
template <typename T, int D, int NT> __device__ void run_tasks(const StreamArgs &a, const Smem &sm)
{
    for (int i = blockIdx.x; i < a.n_tasks; i += gridDim.x) {
        if (i != (int)blockIdx.x) {
            cp_async_wait<0>();
            __syncthreads();
        }
        run_task<T, D, NT>(a, sm, a.tasks[i]);
    }
}

/* Lines of the next piece's queries, so that its first use finds them near. */
template <int D>
__device__ __forceinline__ void prefetch_queries(const StreamArgs &a, int row, int head)
{
    const char *q =
        static_cast<const char *>(a.q) + 2 * ((int64_t)row * a.kv_heads + head) * a.group * D;
    for (int x = threadIdx.x * 128; x < 2 * D * a.group; x += blockDim.x * 128)
        prefetch_l1(q + x);
}

template <typename T, int D, int NT>
__device__ void run_persistent(const StreamArgs &a, const Smem &sm)
{
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    plan_prefix(a, sm);
    const Range range = plan_range(a, sm);
    if (range.cta >= range.ctas || range.g0 >= range.g1) {
        write_empty_rows<T, D>(a, sm);
        return;
    }
    const StreamTask none = {};
    Loader ld = {range.g0 + warp, 0, 0, 0, 0, 0};
    fill_ring<D>(a, sm, range, none, ld);

    int row = range.row_lo, begin = sm.tiles[row];
    int tiles = (sm.len[row] + TILE - 1) / TILE, head = (range.g0 - begin) / tiles;
    begin += head * tiles;
    int mine = range.g0 + warp, at = 0, buffer = 0;
    for (int g = range.g0; g < range.g1;) {
        Accumulator<D, NT> acc;
        accumulator_begin<T, D, NT>(a, acc, row, head);
        Piece piece = {row, head, g, min(begin + tiles, range.g1), -1, 0};
        piece.active = active_warps((g - range.g0) % warps, piece.end - g, warps);
        const bool cut = begin < range.g0 || begin + tiles > range.g1;
        int from = 0, to = 0;
        if (cut) {
            const int unit = sm.units[row] + head * (tiles + a.c0) + a.c0;
            from = cta_of_unit(range, unit), to = cta_of_unit(range, unit + tiles - 1);
            piece.slot = 2 * range.cta + (range.cta == from);
        }
        const int len = sm.len[row], base = begin, next = piece.end;
        if (next == begin + tiles && next < range.g1) { /* on to the next (row, head) */
            begin = next;
            if (++head == a.kv_heads) {
                head = 0;
                while (sm.len[++row] == 0)
                    ;
                tiles = (sm.len[row] + TILE - 1) / TILE;
            }
            prefetch_queries<D>(a, row, head);
        }
        run_piece<T, D, NT>(a, sm, range, none, piece, base, len, ld, mine, at, acc);
        finish_piece<T, D, NT>(a, sm, piece, acc, buffer);
        if (cut)
            merge_cut_piece<T, D>(a, sm, range, piece, from, to);
        g = next;
    }
    write_empty_rows<T, D>(a, sm);
}

template <typename T, int D, int NT>
__global__ void __launch_bounds__(32 * MAX_WARPS, D == 64 && NT == 1 ? 2 : 1)
    attn_stream(const __grid_constant__ StreamArgs a)
{
    extern __shared__ __align__(1024) unsigned char smem[];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int ring = a.stages * Geometry<D>::STAGE;
    Smem sm;
    sm.ring = smem_address(smem) + warp * ring;
    sm.merge = reinterpret_cast<float *>(smem + warps * ring);
    sm.scan =
        reinterpret_cast<int *>(smem + warps * ring + merge_bytes(a.group, D, warps, a.buffers));
    sm.units = sm.scan + 32;
    sm.tiles = sm.units + a.rows + 1;
    sm.len = sm.tiles + a.rows + 1;
    sm.off = sm.len + a.rows;
    if (a.tasks)
        run_tasks<T, D, NT>(a, sm);
    else
        run_persistent<T, D, NT>(a, sm);
}

} // namespace kv
#endif
