/* The persistent plan, made by every CTA from the lengths alone: which tiles are mine?
 *
 * The rules are plan.h's, in 32-bit integers. Parts (attn_plan_persistent_part()): where rows can
 * be cut into parts so that one a CTA fills the grid nearly evenly, a CTA has one part, as if it
 * were a task of a list. Every warp works that out for itself, lane r for row r: no barrier, no
 * shared memory. Ranges (attn_plan_persistent_ctas()): otherwise all (row, KV head) pairs are laid
 * end to end as c0 + tiles units and cut into equal shares. Cost: two block scans' worth of shared
 * memory traffic for the prefix, then one search and one division a CTA.
 */
#ifndef KV_KERNELS_ATTN_PLAN_CUH
#define KV_KERNELS_ATTN_PLAN_CUH

#include "kernels/attn_args.cuh"

namespace kv
{

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
#pragma unroll 1
    for (int base = 0; base < a.rows; base += blockDim.x) {
        const int r = base + threadIdx.x;
        int len = 0;
        if (r < a.rows) {
            len = a.lens[r];
            sm.off[r] = a.offset[r];
            sm.len[r] = len;
        }
        const int tiles = warp_scan((len + TILE - 1) / TILE);
        const int full = __popc(__ballot_sync(~0u, len > 0) & ((2u << lane) - 1));
        if (lane == 31)
            sm.scan[2 * warp] = tiles, sm.scan[2 * warp + 1] = full;
        __syncthreads();
        int my_rows = rows_before + full, my_tiles = tiles_before + tiles;
        const int used = min(warps, (a.rows - base + 31) >> 5);
#pragma unroll 1
        for (int w = 0; w < used; ++w) {
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
#pragma unroll 1
    while (lo < hi) {
        const int mid = (lo + hi + 1) >> 1;
        if (sm.tiles[mid] <= g)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* The last rows that begin at or before units x0 and x1; `rows` for the end. All lanes, 32 rows a
 * look, both at once. */
__device__ __forceinline__ int2 rows_of_units(const Smem &sm, int rows, int x0, int x1)
{
    const int lane = threadIdx.x & 31;
    int lo0 = 0, lo1 = 0, n0 = rows + 1, n1 = rows + 1;
#pragma unroll 1
    while (max(n0, n1) > 1) {
        const int step0 = (n0 + 31) >> 5, step1 = (n1 + 31) >> 5;
        const int at0 = lane * step0, at1 = lane * step1;
        const bool before0 = at0 < n0 && sm.units[lo0 + at0] <= x0;
        const bool before1 = at1 < n1 && sm.units[lo1 + at1] <= x1;
        const int k0 = (__popc(__ballot_sync(~0u, before0)) - 1) * step0;
        const int k1 = (__popc(__ballot_sync(~0u, before1)) - 1) * step1;
        lo0 += k0, n0 = min(step0, n0 - k0);
        lo1 += k1, n1 = min(step1, n1 - k1);
    }
    return make_int2(lo0, lo1);
}

/* Tiles before unit x of `row`, and the KV head it is in: the first c0 units of a (row, head) hold
 * none. */
__device__ __forceinline__ int tiles_before_unit(const StreamArgs &a, const Smem &sm, int row,
                                                 int x, int &head)
{
    head = 0;
    if (row == a.rows)
        return sm.tiles[row];
    const int tiles = (sm.len[row] + TILE - 1) / TILE, unit = tiles + a.c0;
    const int y = x - sm.units[row];
    head = (uint32_t)y / (uint32_t)unit;
    return sm.tiles[row] + head * tiles + max(0, y - head * unit - a.c0);
}

__device__ __forceinline__ int first_unit(const Range &r, int cta)
{
    return cta * r.share + min(cta, r.extra);
}

/* The CTA that has unit x. */
__device__ __forceinline__ int cta_of_unit(const Range &r, int x)
{
    const int wide = r.extra * (r.share + 1);
    return x < wide ? (uint32_t)x / (uint32_t)(r.share + 1)
                    : r.extra + (uint32_t)(x - wide) / (uint32_t)r.share;
}

/* CTAs are numbered against the order in which they are started. */
__device__ __forceinline__ Range plan_range(const StreamArgs &a, const Smem &sm)
{
    Range r = {};
    const int units = sm.units[a.rows], grid = gridDim.x, lane = threadIdx.x & 31;
    r.ctas = units >= grid * a.min_units ? grid : max(1u, (uint32_t)units / (uint32_t)a.min_units);
    r.cta = grid - 1 - blockIdx.x;
    r.share = (uint32_t)units / (uint32_t)r.ctas;
    r.extra = units - r.share * r.ctas;
    if (r.cta >= r.ctas)
        return r; /* no tiles */
    const int x0 = first_unit(r, r.cta), x1 = first_unit(r, r.cta + 1);
    const int2 at = rows_of_units(sm, a.rows, x0, x1);
    const int row0 = at.x, row1 = at.y;
    int head;
    const int g = tiles_before_unit(a, sm, lane & 1 ? row1 : row0, lane & 1 ? x1 : x0, head);
    r.g0 = __shfl_sync(~0u, g, 0);
    r.g1 = __shfl_sync(~0u, g, 1);
    r.head = __shfl_sync(~0u, head, 0);
    r.row_lo = row0, r.row_hi = min(row1, a.rows - 1);
#pragma unroll 1
    while (r.row_hi > row0 && sm.tiles[r.row_hi] >= r.g1)
        --r.row_hi;
    return r;
}

/* floor(x / y), given about 1 / y: exact while the quotient is below 2^22. A quarter of the time
 * that a division takes. */
__device__ __forceinline__ int quotient(int x, int y, float inverse)
{
    const int q = (int)((float)x * inverse), left = x - q * y;
    return q + (left >= y) - (left < 0);
}

/* How many parts this lane's row is cut into; 0 for all where parts would fill the grid unevenly.
 */
__device__ __forceinline__ int plan_parts(const StreamArgs &a, int tiles)
{
    const uint32_t sum = __reduce_add_sync(~0u, tiles), mean = __umulhi(2 * sum, a.part_scale);
    int ret = 0;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
        const uint32_t part = mean + 1 + (mean * i >> 6);
        const int n = quotient(tiles + part - 1, part, reciprocal_fast((float)part));
        if (__reduce_add_sync(~0u, n) <= a.part_budget && part >= (uint32_t)a.min_units)
            ret = n;
    }
    return ret;
}

/* This CTA's part, if the batch is cut into parts; else range.task is not set. No tiles: no part is
 * left for it. */
__device__ __forceinline__ Range part_range(const StreamArgs &a, const Smem &sm, StreamTask &task)
{
    const int lane = threadIdx.x & 31, at = min(lane, a.rows - 1);
    const int off = a.offset[at], len = a.lens[at];
    const int tiles = lane < a.rows ? (len + TILE - 1) / TILE : 0;
    const int n = plan_parts(a, tiles);
    Range range = {};
    range.task = __any_sync(~0u, n > 0);
    if (!range.task)
        return range;
    if (lane < a.rows)
        sm.len[lane] = len; /* by all warps alike; for write_empty_rows() */
    __syncwarp();
    const int end = a.kv_heads * warp_scan(n), begin = end - a.kv_heads * n;
    const int cta = blockIdx.x;
    if (cta >= __shfl_sync(~0u, end, 31))
        return range;
    const int row = __popc(__ballot_sync(~0u, lane < a.rows && begin <= cta)) - 1;
    const int parts = __shfl_sync(~0u, n, row), first = __shfl_sync(~0u, begin, row);
    const int all = __shfl_sync(~0u, tiles, row);
    range.off = __shfl_sync(~0u, off, row);
    task.row = row, task.end = __shfl_sync(~0u, len, row);
    const int x = cta - first;
    const float inverse = reciprocal_fast((float)parts);
    const int each = (uint32_t)all / (uint32_t)parts, more = all - each * parts;
    task.head = quotient(x, parts, inverse);
    const int part = x - task.head * parts;
    range.g0 = each * part + quotient(more * part, parts, inverse);
    range.g1 = each * (part + 1) + quotient(more * (part + 1), parts, inverse);
    task.begin = range.g0 * TILE, task.end = min(range.g1 * TILE, task.end);
    task.slot = parts > 1 ? cta : -1;
    task.first_slot = cta - part, task.n_slots = parts > 1 ? parts : 0;
    return range;
}

/* What this CTA works through; nothing where no tiles are left for it. */
__device__ __forceinline__ Range plan_cta(const StreamArgs &a, const Smem &sm, StreamTask &task)
{
    Range range = {};
    if (a.rows <= a.part_rows)
        range = part_range(a, sm, task);
    if (range.task)
        return range;
    plan_prefix(a, sm);
    return plan_range(a, sm);
}

} // namespace kv
#endif
