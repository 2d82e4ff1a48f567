/* Pieces: a CTA's range of tiles, one (row, KV head) after another, and where the state of each
 * goes.
 *
 * A task, of a list or a part of the persistent plan, is one piece. The pieces of a range follow
 * from the plan (attn_plan.cuh): a (row, KV head) that lies in one CTA is whole; of a cut one CTA c
 * keeps its state in slot 2 c + 1 where it begins and 2 c elsewhere, for a CTA may have the end of
 * one and the beginning of another. The same cuts as attn_plan_build() makes (a test holds them
 * together).
 */
#ifndef KV_KERNELS_ATTN_PIECE_CUH
#define KV_KERNELS_ATTN_PIECE_CUH

#include "kernels/attn_exchange.cuh"
#include "kernels/attn_plan.cuh"

namespace kv
{

/* A CTA's part of one (row, KV head). */
struct Piece {
    int row, head, len;
    int begin, tiles; /* ordinal of the (row, head)'s first tile, and how many it has */
    int first, end;   /* ordinals of this CTA's tiles */
    int slot;         /* < 0: whole, goes to the output */
    Cut cut;
};

/* The first piece of the range. */
__device__ __forceinline__ Piece first_piece(const StreamArgs &a, const Smem &sm,
                                             const Range &range, const StreamTask &task)
{
    Piece p;
    if (range.task) {
        p.row = task.row, p.head = task.head, p.len = task.end;
        p.begin = 0, p.tiles = range.g1;
    } else {
        p.row = range.row_lo, p.len = sm.len[p.row];
        p.tiles = (p.len + TILE - 1) / TILE;
        p.head = range.head;
        p.begin = sm.tiles[p.row] + p.head * p.tiles;
    }
    p.end = range.g0;
    return p;
}

/* What this CTA has of the (row, head) in `p`, and where its state goes. */
__device__ __forceinline__ void piece_bounds(const StreamArgs &a, const Smem &sm,
                                             const Range &range, const StreamTask &task, Piece &p)
{
    p.first = p.end, p.end = min(p.begin + p.tiles, range.g1);
    p.slot = -1;
    p.cut = {p.row * a.kv_heads + p.head, 0, 0, 0, range.task ? 1 : 2, false, {}};
    if (range.task) {
        p.slot = task.slot;
        p.cut.first_slot = task.first_slot, p.cut.n_slots = task.n_slots;
        p.cut.index = task.slot - task.first_slot;
    } else if (p.begin < range.g0 || p.begin + p.tiles > range.g1) {
        const int unit = sm.units[p.row] + p.head * (p.tiles + a.c0) + a.c0;
        const int from = cta_of_unit(range, unit), to = cta_of_unit(range, unit + p.tiles - 1);
        p.slot = 2 * range.cta + (range.cta == from);
        p.cut.first_slot = 2 * from, p.cut.n_slots = to - from + 1;
        p.cut.index = range.cta - from;
    }
}

/* On to the next (row, head) that has tiles; there is one. */
__device__ __forceinline__ void piece_next(const StreamArgs &a, const Smem &sm, Piece &p)
{
    p.begin = p.end;
    if (++p.head < a.kv_heads)
        return;
    p.head = 0;
#pragma unroll 1
    do
        p.len = sm.len[++p.row];
    while (p.len == 0);
    p.tiles = (p.len + TILE - 1) / TILE;
}

} // namespace kv
#endif
