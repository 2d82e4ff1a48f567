/* The persistent plan, made by every CTA from the lengths alone: which tiles are mine?
 *
 * The rule is plan.h's (attn_plan_persistent_ctas), in 32-bit integers: all (row, KV head) pairs
 * laid end to end as c0 + tiles units, cut into equal shares. Cost: two block scans' worth of
 * shared memory traffic for the prefix, then one search and one division a CTA.
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
        const int full = __popc(__ballot_sync(~0u, len > 0) & (2u << lane) - 1);
        if (lane == 31)
            sm.scan[2 * warp] = tiles, sm.scan[2 * warp + 1] = full;
        __syncthreads();
        int my_rows = rows_before + full, my_tiles = tiles_before + tiles;
#pragma unroll 1
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

/* Tiles before unit x: the first c0 units of a (row, head) hold none. */
__device__ __forceinline__ int tiles_before_unit(const StreamArgs &a, const Smem &sm, int x)
{
    int lo = 0, hi = a.rows;
#pragma unroll 1
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

} // namespace kv
#endif
