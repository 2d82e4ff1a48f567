/* Merging what several CTAs of one launch have of a (row, KV head): how slots change hands.
 *
 * There are no fences. Between launches every word of a slot is EMPTY, a NaN that no arithmetic
 * yields and that is never stored; a word that is not has been written. Each word has one reader,
 * who waits for it and empties it again, so a launch leaves the slots as it found them, and a
 * captured graph replays.
 *
 * The owner: where few CTAs have a part (no more than MAX_OTHERS + 1), one of them never stores its
 * state, but adds the others' slots to those of its warps (merge_with()): one way through global
 * memory less at the end of a launch. Its words are asked for before its warps wait for one
 * another.
 *
 * merge_shares(): where more have a part, up to MAX_READERS of them each merge a share of the
 * items of all slots, so that the last step of a launch is one exchange with little work.
 *
 * In both CTAs wait, which is free while they have nothing else to do: where all CTAs of a launch
 * run at once. Should fewer run at once than was thought, none that waits keeps one from starting
 * that it waits for: CTAs are started in the order of their indices, and the owner and readers are
 * those of a (row, KV head) that come last.
 *
 * merge_alone(): where a launch has more CTAs than run at once, the last of a (row, KV head) to
 * arrive, found by a counter, merges all of it, and nobody else waits. Also a launch of its own.
 *
 * All add states by a rule that knows the plan and the launch numbers alone, so the same launch
 * gives the same bits, in whatever order states come. Nothing hides a merge at the end of a launch:
 * loads are independent and chains short.
 */
#ifndef KV_KERNELS_ATTN_EXCHANGE_CUH
#define KV_KERNELS_ATTN_EXCHANGE_CUH

#include "kernels/attn_args.cuh"
#include "kernels/attn_merge.cuh"

namespace kv
{

/* A (row, KV head) whose states are merged in this launch. */
struct Cut {
    int pair;                       /* row x KV heads + head */
    int first_slot, n_slots, index; /* n_slots 0: none; this CTA's is the index-th */
    int step;                       /* 1: a list's slots, in turn; 2: a range's (attn_piece.cuh) */
    bool owned;                     /* merged by its owner */
    Readers readers;                /* of its slots */
};

/* Where a slot lies, and the first output of a (row, KV head). */
template <int D> __device__ __forceinline__ float *slot_of(const StreamArgs &a, int slot)
{
    return a.slots + (int64_t)slot * slot_floats(a.group, D);
}
template <typename T, int D> __device__ __forceinline__ T *output_of(const StreamArgs &a, int pair)
{
    return static_cast<T *>(a.out) + (int64_t)pair * a.group * D;
}

/* Who is to merge. To be told before the tiles are worked through: divisions take their time. */
template <int D> __device__ __forceinline__ void cut_readers(const StreamArgs &a, Cut &cut)
{
    cut.owned = cut.n_slots > 0 && cut.n_slots <= MAX_OTHERS + 1 && a.arrivals == NULL;
    const int n = cut.owned ? 1 : max(1, min(a.readers, cut.n_slots));
    cut.readers = {n, items_per_reader(a.group, D, n)};
}

/* Is this CTA the owner? The last of a list's, the first of ranges: what it has there is its last
 * piece, and it is started last. */
__device__ __forceinline__ bool owns(const Cut &cut)
{
    return cut.owned && cut.index == (cut.step == 1 ? cut.n_slots - 1 : 0);
}

/* What the owner adds to its state. */
template <int D> __device__ __forceinline__ Others others_of(const StreamArgs &a, const Cut &cut)
{
    return {slot_of<D>(a, cut.first_slot + (cut.step == 1 ? 0 : 2)), cut.step,
            owns(cut) ? cut.n_slots - 1 : 0};
}

/* The owner's threads, once all have been through merge_with(): empties the m and l. */
template <int D> __device__ __forceinline__ void others_end(const Others &others, int group)
{
    const int pair = threadIdx.x & 31, warps = blockDim.x >> 5;
#pragma unroll 1
    for (int i = threadIdx.x >> 5; i < others.n && pair < (group + 1) / 2; i += warps)
        slot_empty(other_slot<D>(others, group, i) + slot_ml(group, 0, pair));
}

/* One reader's part in merging the n slots of a (row, KV head): slot i is i * step behind the
 * first, and slot 0 skew more, so that the persistent kernel's odd first slot fits. */
struct Share {
    float *base; /* slot `first` */
    int step, skew;
    int n;      /* 0: nothing to do */
    int reader; /* this one */
    int per;    /* items of a reader */
    void *out;  /* first output of the row and KV head */
};

__device__ __forceinline__ float *share_slot(const Share &share, int floats, int i)
{
    return share.base + (int64_t)(i * share.step + (i == 0 ? share.skew : 0)) * floats;
}

/* A warp's place in a share: as many neighbouring lanes an item as there are slots, or half as
 * many, so that two shares of up to 32 slots keep different halves of eight warps busy. */
struct Place {
    int item, sub, width; /* this lane's item, and its first slot of every `width` */
    bool any, mine;       /* has the warp an item, has the lane? */
    int ml_at, item_at;   /* in a slot, floats */
};

template <int D>
__device__ __forceinline__ Place share_place(const Share &share, int group, int warp, int warps,
                                             int round)
{
    const int items = (group + 1) / 2 * (D / 2), lane = threadIdx.x & 31;
    const int per = share.per, first = share.reader * per, end = min(items, first + per);
    int log = share.n > 16 ? 5 : 32 - __clz(max(share.n, 1) - 1);
    if (log > 0 && (per << log) > 16 * warps)
        --log;
    const int base = first + ((round * warps + warp) << (5 - log));
    Place p;
    p.width = 1 << log;
    p.item = base + (lane >> log), p.sub = lane & (p.width - 1);
    p.any = share.n > 0 && base < end, p.mine = p.any && p.item < end;
    p.ml_at = slot_ml(group, share.reader, p.item / (D / 2));
    p.item_at = slot_item(group, p.item);
    return p;
}

/* What a lane was given of its item in slots i and i + width. */
struct Taken {
    float4 ml[2], x[2];
};

__device__ __forceinline__ void share_take(Taken &t, const Share &share, int floats, const Place &p,
                                           int i)
{
#pragma unroll
    for (int k = 0; k < 2; ++k, i += p.width)
        if (p.mine && i < share.n) {
            const float *slot = share_slot(share, floats, i);
            t.ml[k] = load_relaxed(slot + p.ml_at);
            t.x[k] = load_relaxed(slot + p.item_at);
        } else {
            t.ml[k] = neutral_ml();
            t.x[k] = neutral_item();
        }
}

__device__ __forceinline__ bool any_empty(const Taken &t)
{
    return is_empty(t.ml[0]) || is_empty(t.x[0]) || is_empty(t.ml[1]) || is_empty(t.x[1]);
}

/* Waits for `t`, which was asked for, then for the words of further slots, and adds them up;
 * empties those of the item. */
__device__ __forceinline__ Merged share_read(const Share &share, int floats, const Place &p,
                                             Taken &t)
{
    Merged s = neutral();
#pragma unroll 1
    for (int i = p.sub;;) {
        while (__any_sync(~0u, any_empty(t)))
            share_take(t, share, floats, p, i);
#pragma unroll
        for (int k = 0; k < 2; ++k, i += p.width) {
            if (p.mine && i < share.n)
                slot_empty(share_slot(share, floats, i) + p.item_at);
            state_add(s, t.ml[k], t.x[k]);
        }
        if (i - p.sub >= share.n)
            return s;
        share_take(t, share, floats, p, i);
    }
}

/* Adds the states of `width` neighbouring lanes. */
__device__ __forceinline__ void lanes_add(Merged &s, int width)
{
    float m0 = s.m0, m1 = s.m1;
#pragma unroll 1
    for (int d = 1; d < width; d *= 2) {
        m0 = fmaxf(m0, __shfl_xor_sync(~0u, m0, d));
        m1 = fmaxf(m1, __shfl_xor_sync(~0u, m1, d));
    }
    const float w0 = exp2_fast(s.m0 - finite_or_zero(m0)),
                w1 = exp2_fast(s.m1 - finite_or_zero(m1));
    s = Merged{m0, s.l0 * w0, m1, s.l1 * w1,
               make_float4(s.o.x * w0, s.o.y * w1, s.o.z * w0, s.o.w * w1)};
#pragma unroll 1
    for (int d = 1; d < width; d *= 2) {
        s.l0 += __shfl_xor_sync(~0u, s.l0, d), s.l1 += __shfl_xor_sync(~0u, s.l1, d);
        s.o.x += __shfl_xor_sync(~0u, s.o.x, d), s.o.y += __shfl_xor_sync(~0u, s.o.y, d);
        s.o.z += __shfl_xor_sync(~0u, s.o.z, d), s.o.w += __shfl_xor_sync(~0u, s.o.w, d);
    }
}

/* This reader's items of two shares, to the output, by `warps` warps, of which this is `warp` (of
 * the second share's, `warp2`): both are asked for before either is waited for. share_end() is to
 * follow, behind a barrier. */
template <typename T, int D>
__device__ __forceinline__ void merge_shares(const Share &late, const Share &early, int group,
                                             int warp, int warp2, int warps)
{
    const int floats = slot_floats(group, D);
#pragma unroll 1
    for (int round = 0;; ++round) {
        Place p = share_place<D>(late, group, warp, warps, round);
        const Place q = share_place<D>(early, group, warp2, warps, round);
        if (!p.any && !q.any)
            break;
        Taken t, u;
        share_take(t, late, floats, p, p.sub);
        share_take(u, early, floats, q, q.sub);
        Share share = late;
#pragma unroll 1
        for (int k = 0; k < 2; ++k) {
            if (p.any) {
                Merged s = share_read(share, floats, p, t);
                lanes_add(s, p.width);
                if (p.mine && p.sub == 0)
                    output_write<T, D>(s, share.out, group, p.item / (D / 2),
                                       2 * (p.item % (D / 2)));
            }
            share = early, p = q, t = u;
        }
    }
}

/* All threads, once all have been through merge_shares(): empties the m and l that were read. */
template <int D> __device__ __forceinline__ void share_end(const Share &share, int group)
{
    const int pair = threadIdx.x & 31, warps = blockDim.x >> 5;
    if (share.n == 0 || pair >= (group + 1) / 2 || !reads_pair(share.per, share.reader, pair, D))
        return;
#pragma unroll 1
    for (int i = threadIdx.x >> 5; i < share.n; i += warps)
        slot_empty(share_slot(share, slot_floats(group, D), i) +
                   slot_ml(group, share.reader, pair));
}

/* What the m and l of 32 states make of them: lane i's weights are those of state i. */
struct Weights {
    float w0, w1;
};

/* Brings `s` to the largest m of it and the lanes' `ml`, and adds their l. */
__device__ __forceinline__ Weights merged_weigh(Merged &s, const float4 &ml)
{
    const float m0 = fmaxf(s.m0, warp_max(ml.x)), m1 = fmaxf(s.m1, warp_max(ml.z));
    const float z0 = finite_or_zero(m0), z1 = finite_or_zero(m1);
    const float e0 = exp2_fast(s.m0 - z0), e1 = exp2_fast(s.m1 - z1);
    const Weights w = {exp2_fast(ml.x - z0), exp2_fast(ml.z - z1)};
    float l0 = w.w0 * ml.y, l1 = w.w1 * ml.w;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        l0 += __shfl_xor_sync(~0u, l0, d);
        l1 += __shfl_xor_sync(~0u, l1, d);
    }
    s = Merged{m0, fmaf(s.l0, e0, l0), m1, fmaf(s.l1, e1, l1),
               make_float4(s.o.x * e0, s.o.y * e1, s.o.z * e0, s.o.w * e1)};
    return w;
}

/* Asks for the items at `at` of U slots; true when all of them are there. None from `n` on. */
template <int U>
__device__ __forceinline__ bool slots_read(float4 (&x)[U], const float *at, int floats, int n)
{
    bool full = true;
#pragma unroll
    for (int u = 0; u < U; ++u)
        x[u] = u < n ? load_relaxed(at + (int64_t)u * floats) : neutral_item();
#pragma unroll
    for (int u = 0; u < U; ++u)
        full = full && !is_empty(x[u]);
    return full;
}

/* Adds n <= 32 slots that follow one another from `slot` on, as their words come. */
__device__ __forceinline__ void slots_add(Merged &s, const float *slot, int floats, int ml_at,
                                          int item_at, int n)
{
    constexpr int U = 16; /* loads on their way at once */
    const int lane = threadIdx.x & 31;
    const float *mine = slot + (int64_t)min(lane, n - 1) * floats + ml_at;
    float4 ml, x[U];
    do {
        ml = load_relaxed(mine);
    } while (!__all_sync(~0u, slots_read<U>(x, slot + item_at, floats, n) && !is_empty(ml)));
    if (lane >= n)
        ml = neutral_ml();
    const Weights w = merged_weigh(s, ml);
#pragma unroll 1
    for (int i = 0;;) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const float a0 = __shfl_sync(~0u, w.w0, i + u), a1 = __shfl_sync(~0u, w.w1, i + u);
            s.o.x = fmaf(a0, x[u].x, s.o.x), s.o.y = fmaf(a1, x[u].y, s.o.y);
            s.o.z = fmaf(a0, x[u].z, s.o.z), s.o.w = fmaf(a1, x[u].w, s.o.w);
        }
        i += U;
        if (i >= n)
            break;
        while (
            !__all_sync(~0u, slots_read<U>(x, slot + (int64_t)i * floats + item_at, floats, n - i)))
            ;
    }
}

/* Merges n slots of one reader that follow one another from `slot` on, into `out`, and empties
 * them. All threads of the CTA (whole warps): a thread an item. */
template <typename T, int D>
__device__ __noinline__ void merge_alone(float *slot, int n, int group, void *out)
{
    const int floats = slot_floats(group, D), pairs = (group + 1) / 2, items = pairs * (D / 2);
#pragma unroll 1
    for (int it = threadIdx.x; it < items; it += blockDim.x) {
        const int pair = it / (D / 2);
        Merged s = neutral();
#pragma unroll 1
        for (int from = 0; from < n; from += 32)
            slots_add(s, slot + (int64_t)from * floats, floats, slot_ml(group, 0, pair),
                      slot_item(group, it), min(32, n - from));
        output_write<T, D>(s, out, group, pair, 2 * (it % (D / 2)));
    }
    __syncthreads(); /* all words have been read */
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int i = threadIdx.x >> 5; i < n; i += blockDim.x >> 5) {
        if (lane < pairs)
            slot_empty(slot + (int64_t)i * floats + slot_ml(group, 0, lane));
#pragma unroll 1
        for (int it = lane; it < items; it += 32)
            slot_empty(slot + (int64_t)i * floats + slot_item(group, it));
    }
}

/* What this CTA merges of a cut, of which all CTAs run at once. */
template <typename T, int D>
__device__ __forceinline__ Share share_of(const StreamArgs &a, const Cut &cut)
{
    const int readers = cut.readers.n;
    const int reader = cut.step == 1 ? cut.index - (cut.n_slots - readers) : cut.index;
    return {slot_of<D>(a, cut.first_slot),
            cut.step,
            cut.step - 1,
            reader >= 0 && reader < readers && !cut.owned ? cut.n_slots : 0,
            reader,
            cut.readers.per,
            output_of<T, D>(a, cut.pair)};
}

/* Merges this CTA's shares of the range's first and last piece, by different warps as far as
 * possible. */
template <typename T, int D>
__device__ __forceinline__ void settle_shares(const StreamArgs &a, const Cut &early,
                                              const Cut &late)
{
    const int warps = blockDim.x >> 5, warp = threadIdx.x >> 5;
    const Share first = share_of<T, D>(a, early), last = share_of<T, D>(a, late);
    merge_shares<T, D>(last, first, a.group, warp, warps - 1 - warp, warps);
    __syncthreads();
    share_end<D>(last, a.group);
    share_end<D>(first, a.group);
}

/* A task's cut, by the last CTA to arrive; others' words may still be on their way. `word`: of
 * shared memory. */
template <typename T, int D>
__device__ __forceinline__ void settle_alone(const StreamArgs &a, int *word, const Cut &cut)
{
    if (threadIdx.x == 0)
        *word = atomic_inc_wrap(a.arrivals + cut.first_slot, cut.n_slots - 1) ==
                (uint32_t)cut.n_slots - 1;
    __syncthreads();
    if (*word != 0)
        merge_alone<T, D>(slot_of<D>(a, cut.first_slot), cut.n_slots, a.group,
                          output_of<T, D>(a, cut.pair));
}

/* All threads of a CTA whose states are stored: what falls to it of the cuts at both ends of its
 * range. */
template <typename T, int D>
__device__ __forceinline__ void settle(const StreamArgs &a, int *word, const Cut &early,
                                       const Cut &late)
{
    const bool shared = early.n_slots > 0 || (late.n_slots > 0 && !late.owned);
    if (shared && a.arrivals != NULL)
        settle_alone<T, D>(a, word, late);
    else if (shared)
        settle_shares<T, D>(a, early, late);
    if (!owns(late))
        return;
    __syncthreads();
    others_end<D>(others_of<D>(a, late), a.group);
}

} // namespace kv
#endif
