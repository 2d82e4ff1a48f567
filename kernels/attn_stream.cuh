/* The decode kernel: one stream of 16-token tiles per CTA, used by every route.
 *
 * A CTA is given a contiguous range of tiles: one task of a plan (task mode), or its share of all
 * tiles of the batch in the order row, KV head, token (persistent mode). Its warps take tiles in
 * turn, each with its own ring of stages, so the main loop has no CTA barrier and loads run ahead
 * over the borders of rows. At the end of a piece (the range's part of one row and KV head) the
 * warps' states are merged in shared memory; a whole piece goes straight to the output, a cut one
 * into a partial slot, merged by a later launch or, at the end of this one, by the CTAs that have a
 * part of it, each a share.
 *
 * Bits depend on the plan (or the grid), never on timing. Both modes share one copy of the code: it
 * is fetched cold in a step of a server, and a short kernel starts sooner.
 */
#ifndef KV_KERNELS_ATTN_STREAM_CUH
#define KV_KERNELS_ATTN_STREAM_CUH

#include "kernels/attn_load.cuh"
#include "kernels/attn_math.cuh"
#include "kernels/attn_piece.cuh"

namespace kv
{

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

/* All threads: the piece's state to the output or its slot. Warps without tiles have neutral
 * states.
 */
template <typename T, int D, int NT>
__device__ __forceinline__ void finish_piece(const StreamArgs &a, const Smem &sm,
                                             const Piece &piece, T *out,
                                             const Accumulator<D, NT> &acc, int &buffer)
{
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int stride = merge_floats(a.group, D), all_pairs = (a.group + 1) / 2;
    const Others others = others_of<D>(a, piece.cut);
    float *slot = piece.slot < 0 || owns(piece.cut) ? NULL : slot_of<D>(a, piece.slot);
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int pairs = min(4, all_pairs - 4 * n);
        float *buf = sm.merge + buffer * warps * stride;
        const MergeTo to = {out, slot, piece.cut.readers, a.group, 4 * n};
        Asked asked;
        const bool asks = others.n > 0 && (int)threadIdx.x < pairs * (D / 2);
        const int item = 4 * n * (D / 2) + threadIdx.x;
        if (Accumulator<D, NT>::Q_KEPT && asks) /* else registers are short before the store */
            others_ask<D>(asked, others, a.group, item);
        accumulator_store<D, NT>(acc, n, pairs, buf + warp * stride);
        if (!Accumulator<D, NT>::Q_KEPT && asks)
            others_ask<D>(asked, others, a.group, item);
        __syncthreads();
        if (others.n > 0)
            merge_with<T, D>(buf, {stride, 16, 2 * D + 8}, pairs, warps, to, others, asked);
        else
            merge_states<T, D>(buf, {stride, 16, 2 * D + 8}, pairs, warps, to);
        if (a.buffers == 2)
            buffer ^= 1;
        else
            __syncthreads();
    }
}

/* Works through the warp's tiles of `piece`. */
template <typename T, int D, int NT>
__device__ __forceinline__ void run_piece(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task, const Piece &piece, Loader &ld,
                                          int &mine, int &at, int &until, Accumulator<D, NT> &acc)
{
    using G = Geometry<D>;
    const int warps = blockDim.x >> 5;
#pragma unroll 1
    for (; mine < piece.end; mine += warps) {
        const uint32_t stage = sm.ring + at * G::STAGE;
        if (--until == 0) { /* the same tile number in all warps */
            const int base = mine - (int)(threadIdx.x >> 5);
            until = a.rounds;
            if (base >= piece.first && base + warps <= piece.end)
                __syncthreads();
        }
        wait_stage(a.stages);
        tile_consume<T, D, NT>(a, acc, stage, piece.len - (mine - piece.begin) * TILE);
        __syncwarp();
        load_next<D>(a, sm, range, task, ld, stage);
        at = at + 1 == a.stages ? 0 : at + 1;
    }
}

/* Rows without entries: zeros, row r by CTA r mod grid. */
template <typename T, int D>
__device__ __forceinline__ void write_empty_rows(const StreamArgs &a, const Smem &sm)
{
    const int words = a.kv_heads * a.group * D / 2;
#pragma unroll 1
    for (int r = blockIdx.x; r < a.rows; r += gridDim.x)
#pragma unroll 1
        for (int i = threadIdx.x; sm.len[r] == 0 && i < words; i += blockDim.x)
            static_cast<uint32_t *>(a.out)[(int64_t)r * words + i] = 0;
}

/* Lines of a (row, head)'s queries, so that their first use finds them near. */
template <int D> __device__ __forceinline__ void prefetch_queries(const StreamArgs &a, int pair)
{
    const char *q = static_cast<const char *>(a.q) + 2 * (int64_t)pair * a.group * D;
    const int x = threadIdx.x * 128;
    if (x < 2 * D * a.group)
        prefetch_l1(q + x);
}

/* Task i of the list, and its tiles. Its row's place in the block table is asked for before the row
 * is known where rows are few, for one wait less before the first tile. */
__device__ __forceinline__ Range task_range(const StreamArgs &a, int i, StreamTask &task)
{
    const int lane = threadIdx.x & 31;
    int off = a.offset[min(lane, a.rows - 1)];
    Range range = {};
    range.task = true;
    task = a.tasks[i];
    off = __shfl_sync(~0u, off, task.row);
    range.off = a.rows <= 32 ? off : a.offset[task.row];
    range.g0 = task.begin / TILE;
    range.g1 = task.begin < task.end ? (task.end + TILE - 1) / TILE : range.g0;
    return range;
}

/* One range of tiles, from the first load to the last merge. */
template <typename T, int D, int NT>
__device__ __forceinline__ void run_range(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task)
{
    Loader ld = {range.g0 + (int)(threadIdx.x >> 5), 0, 0, 0, 0, 0};
    int mine = ld.next, at = 0, buffer = 0;
    int until = range.g1 - range.g0 < 8 * (int)(blockDim.x >> 5) ? -1 : a.rounds; /* few tiles */
    Piece p = first_piece(a, sm, range, task);
    Accumulator<D, NT> acc;
    accumulator_begin<T, D, NT>(a, acc, p.row,
                                p.head); /* queries first: nothing queues before them */
    fill_ring<D>(a, sm, range, task, ld);
    Cut early = {}; /* the range's first piece, settled at the end so that nothing waits for it */
#pragma unroll 1
    for (;;) {
        piece_bounds(a, sm, range, task, p);
        cut_readers<D>(a, p.cut);
        T *out = output_of<T, D>(a, p.cut.pair);
        if (p.end < range.g1)
            prefetch_queries<D>(a, p.cut.pair + 1);
        run_piece<T, D, NT>(a, sm, range, task, p, ld, mine, at, until, acc);
        random_delay(a, 1);
        finish_piece<T, D, NT>(a, sm, p, out, acc, buffer);
        if (p.end >= range.g1)
            break;
        if (p.cut.n_slots > 0 && !p.cut.owned)
            early = p.cut;
        piece_next(a, sm, p);
        accumulator_begin<T, D, NT>(a, acc, p.row, p.head);
    }
    random_delay(a, 2);
    settle<T, D>(a, sm.scan, early, p.cut);
}

template <typename T, int D, int NT>
__global__ void __launch_bounds__(32 * max_warps(D), 1)
    attn_stream(const __grid_constant__ StreamArgs a)
{
    extern __shared__ __align__(1024) unsigned char smem[];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int ring = a.stages * Geometry<D>::STAGE;
    Smem sm;
    prefetch_inputs(a);
    sm.policy = evict_first_policy();
    sm.ring = smem_address(smem) + warp * ring;
    sm.merge = reinterpret_cast<float *>(smem + warps * ring);
    sm.scan =
        reinterpret_cast<int *>(smem + warps * ring + merge_bytes(a.group, D, warps, a.buffers));
    sm.units = sm.scan + 32;
    sm.tiles = sm.units + a.rows + 1;
    sm.len = sm.tiles + a.rows + 1;
    sm.off = sm.len + a.rows;
    /* A list: a CTA a task; fewer CTAs (a limited grid) take further ones in turn. */
#pragma unroll 1
    for (int i = blockIdx.x; i < (a.tasks ? a.n_tasks : (int)gridDim.x); i += gridDim.x) {
        StreamTask task = {};
        const Range range = a.tasks ? task_range(a, i, task) : plan_cta(a, sm, task);
        if (!a.tasks && range.g0 >= range.g1)
            break;
        run_range<T, D, NT>(a, sm, range, task);
        cp_async_wait<0>();
        __syncthreads();
    }
    if (!a.tasks)
        write_empty_rows<T, D>(a, sm);
}

} // namespace kv
#endif
