/* Loading tiles: page lookups a batch ahead, and cp.async into a warp's own ring.
 *
 * Lane i of a warp resolves (row, head, page id, place) of the warp's i-th next tile, 32 lookups at
 * a time and one batch ahead of use; pages of fewer than 16 entries take 16/p lanes a tile. A stage
 * holds K then V, 16 rows of 2 D bytes, the 16-byte chunks of row r moved by XOR with r & 7, so
 * that ldmatrix, straight or transposed, meets no bank twice. Entries past the row's end are not
 * read: zeros.
 */
#ifndef KV_KERNELS_ATTN_LOAD_CUH
#define KV_KERNELS_ATTN_LOAD_CUH

#include "kernels/attn_plan.cuh"

namespace kv
{

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
    int head = task.head, tile = g, len = task.end, off = range.off;
    if (!range.task) {
        const int row = row_of_tile(sm, g, range.row_lo, range.row_hi);
        len = sm.len[row];
        const int tiles = (len + TILE - 1) / TILE, x = g - sm.tiles[row];
        head = x / tiles;
        tile = x - head * tiles;
        off = sm.off[row];
    }
    const int token = tile * TILE + ((lane & ((1 << sub_shift) - 1)) << a.page_shift);
    if (token < len)
        id = a.table[off + (token >> a.page_shift)];
    const int inside = token & ((1 << a.page_shift) - 1);
    where = ((head * a.head_bytes + inside * a.token_bytes) >> 4) |
            (min(TILE, len - tile * TILE) << 24);
}

/* The block table and the queries on their way into L2 while the lengths are waited for: each
 * thread of the grid asks for one line. */
__device__ __forceinline__ void prefetch_inputs(const StreamArgs &a)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = x - a.table_lines;
    if (x < a.table_lines)
        prefetch_l2(a.table + (int64_t)x * 32);
    else if (y < a.q_lines)
        prefetch_l2(static_cast<const char *>(a.q) + (int64_t)y * 128);
}

/* Copies one tile into the stage at `dst` (already with this lane's place). */
template <int D>
__device__ __forceinline__ void load_tile(const StreamArgs &a, uint64_t policy, const Loader &ld,
                                          uint32_t dst)
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
            cp_async16(to, k + j * G::ROWS_PER * a.token_bytes, bytes, policy);
            cp_async16(to + G::HALF, v + j * G::ROWS_PER * a.token_bytes, bytes, policy);
        }
    } else {
        const int sub_shift = 4 - a.page_shift, mask = (1 << a.page_shift) - 1;
#pragma unroll 1
        for (int j = 0; j < G::COPIES; ++j) {
            const int row = j * G::ROWS_PER + mine,
                      from = (ld.slot << sub_shift) + (row >> a.page_shift);
            const int id = __shfl_sync(~0u, ld.id, from), where = __shfl_sync(~0u, ld.where, from);
            const int64_t at = id * a.page_bytes + (int64_t)(where & 0xffffff) * 16 +
                               (row & mask) * a.token_bytes + chunk;
            const uint32_t to = (dst ^ (((j * G::ROWS_PER) & 7) << 4)) + j * 512;
            const int bytes = row < (where >> 24) ? 16 : 0;
            cp_async16(to, a.k + at, bytes, policy);
            cp_async16(to + G::HALF, a.v + at, bytes, policy);
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
        load_tile<D>(a, sm.policy, ld, stage + mine * G::ROW + ((c ^ mine) << 4));
        ld.next += warps;
        const int batch = 32 >> max(0, 4 - a.page_shift);
        if (++ld.slot == batch) {
            ld.slot = 0, ld.id = ld.id2, ld.where = ld.where2;
            resolve(a, sm, range, task, ld.next + batch * warps, warps, ld.id2, ld.where2);
        }
    }
    cp_async_commit();
}

/* Waits for the oldest stage of the ring, 2..5 deep. */
__device__ __forceinline__ void wait_stage(int stages)
{
    if (stages == 2)
        cp_async_wait<1>();
    else if (stages == 3)
        cp_async_wait<2>();
    else if (stages == 4)
        cp_async_wait<3>();
    else
        cp_async_wait<4>();
    __syncwarp();
}

/* Fills the ring, then looks up the second batch (before it where a batch may be shorter than the
 * ring). */
template <int D>
__device__ __forceinline__ void fill_ring(const StreamArgs &a, const Smem &sm, const Range &range,
                                          const StreamTask &task, Loader &ld)
{
    const int warps = blockDim.x >> 5, batch = 32 >> max(0, 4 - a.page_shift);
    const int first = ld.next;
    resolve(a, sm, range, task, first, warps, ld.id, ld.where);
    const int before = a.page_shift < 4 ? 0 : a.stages;
#pragma unroll 1
    for (int s = 0; s <= a.stages; ++s) {
        if (s == before)
            resolve(a, sm, range, task, first + batch * warps, warps, ld.id2, ld.where2);
        if (s < a.stages)
            load_next<D>(a, sm, range, task, ld, sm.ring + s * Geometry<D>::STAGE);
    }
}

} // namespace kv
#endif
