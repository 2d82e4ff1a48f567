/* Partial softmax states, and merging them.
 *
 * A state is that of one (row, KV head) piece for its G heads, kept in pairs of heads because that
 * is how the accumulators of the matrix unit come: PT = ceil(G/2) x float4 {m0,l0,m1,l1}, and
 * PT x D/2 x float4 {d h0, d h1, d+1 h0, d+1 h1}: an "item" is one such float4, that is two
 * dimensions of two heads. m is in units of log2 (score x scale x log2 e). The neutral state is
 * m = -inf, l = 0, acc = 0. A slot is a state in global memory, with the m and l once for each of
 * its readers, before the items.
 *
 * merge_states(): the states of a CTA's own warps, in shared memory, by all its threads.
 *
 * merge_shares(): slots that other CTAs of the same launch write. All of them at once: of the CTAs
 * that have a part of a (row, KV head), up to MAX_READERS each merge a share of the items of all
 * slots, so that the last step of a launch is one exchange with little work. There are no flags and
 * no fences: between launches every word of a slot is EMPTY (a NaN that no arithmetic yields and
 * that is never stored), a word that is not has been written, and its one reader waits for it and
 * empties it again. Where a launch has more CTAs than run at once, waiting would keep others from
 * starting: there the last of a (row, KV head) to arrive, by a counter, is its only reader.
 *
 * Both add states by a rule that knows the plan and the launch numbers alone, so the same launch
 * gives the same bits, in whatever order states come. No CTA that waits keeps one from starting
 * that it waits for: CTAs are started in the order of their indices, and readers are those of a
 * (row, KV head) that come last. Nothing hides a merge at the end of a launch: loads are
 * independent and chains short.
 */
#ifndef KV_KERNELS_ATTN_MERGE_CUH
#define KV_KERNELS_ATTN_MERGE_CUH

#include "kernels/cuda_ptx.cuh"

namespace kv
{

constexpr uint32_t EMPTY = 0xffffffff; /* a word of a slot that holds nothing */
constexpr int MAX_READERS = 16;

__device__ __forceinline__ float finite_or_zero(float m)
{
    return m == -INFINITY ? 0.f : m;
}

__host__ __device__ constexpr int slot_floats(int group, int d)
{
    return ((group + 1) / 2) * (4 * MAX_READERS + 2 * d);
}

/* Where reader `reader` finds the m and l of a pair, and where all find an item; floats. */
__device__ __forceinline__ int slot_ml(int group, int reader, int pair)
{
    return 4 * (reader * ((group + 1) / 2) + pair);
}
__device__ __forceinline__ int slot_item(int group, int item)
{
    return 4 * (MAX_READERS * ((group + 1) / 2) + item);
}

/* Items of each reader. */
__host__ __device__ __forceinline__ int items_per_reader(int group, int d, int readers)
{
    return ((group + 1) / 2 * (d / 2) + readers - 1) / readers;
}
/* Has the reader items of the pair? Its m and l are stored for those readers, and emptied by them.
 */
__device__ __forceinline__ bool reads_pair(int per, int reader, int pair, int d)
{
    return reader * per < (pair + 1) * (d / 2) && (reader + 1) * per > pair * (d / 2);
}

__device__ __forceinline__ bool is_empty(const float4 &x)
{
    return __float_as_uint(x.x) == EMPTY || __float_as_uint(x.y) == EMPTY ||
           __float_as_uint(x.z) == EMPTY || __float_as_uint(x.w) == EMPTY;
}

__device__ __forceinline__ void slot_empty(float *at)
{
    const float x = __uint_as_float(EMPTY);
    store_relaxed(at, make_float4(x, x, x, x));
}

/* A NaN may have any bits but those of EMPTY. */
__device__ __forceinline__ float never_empty(float x)
{
    return x == x ? x : __uint_as_float(0x7fffffff);
}

__device__ __forceinline__ void slot_store(float *at, const float4 &x)
{
    store_relaxed(
        at, make_float4(never_empty(x.x), never_empty(x.y), never_empty(x.z), never_empty(x.w)));
}

/* Where a CTA's states lie: `stride` floats apart, items from `items_at` on, `pair_stride` floats a
 * pair. */
struct StateLayout {
    int stride, items_at, pair_stride;
};

/* Where a merged state goes: to the output, or unnormalised into a slot. */
struct MergeTo {
    void *out;   /* first output of the row and KV head */
    float *slot; /* NULL: the output */
    int readers; /* of the slot */
    int group, first_pair;
};

/* An item's state. */
struct Merged {
    float m0, l0, m1, l1;
    float4 o;
};

template <typename T, int D>
__device__ __forceinline__ void output_write(const Merged &s, void *to, int group, int pair, int dd)
{
    const float i0 = s.l0 == 0.f ? 0.f : reciprocal_fast(s.l0),
                i1 = s.l1 == 0.f ? 0.f : reciprocal_fast(s.l1);
    uint32_t *out = reinterpret_cast<uint32_t *>(static_cast<T *>(to) + (int64_t)2 * pair * D + dd);
    out[0] = Half<T>::pack(s.o.x * i0, s.o.z * i0);
    if (2 * pair + 1 < group)
        out[D / 2] = Half<T>::pack(s.o.y * i1, s.o.w * i1);
}

/* Merges the n <= 32 states of a CTA's warps, `pairs` pairs of heads. All threads (whole warps). A
 * warp's items are of one pair: lane i weighs state i, then every lane adds its item of all states
 * in order. No barrier at the end. */
template <typename T, int D>
__device__ __noinline__ void merge_states(const float *states, StateLayout layout, int pairs, int n,
                                          MergeTo to)
{
    constexpr int U = 4; /* loads on their way at once */
    const int items = pairs * (D / 2), lane = threadIdx.x & 31;
#pragma unroll 1
    for (int it = threadIdx.x; it < items; it += blockDim.x) {
        const int pair = it / (D / 2), j = it % (D / 2), all = to.first_pair + pair;
        const float *item = states + layout.items_at + pair * layout.pair_stride + 4 * j;
        float4 ml = make_float4(-INFINITY, 0.f, -INFINITY, 0.f);
        if (lane < n)
            ml = *reinterpret_cast<const float4 *>(states + 4 * pair + lane * layout.stride);
        Merged s = {warp_max(ml.x), 0.f, warp_max(ml.z), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
        const float w0 = exp2_fast(ml.x - finite_or_zero(s.m0)), l0 = w0 * ml.y;
        const float w1 = exp2_fast(ml.z - finite_or_zero(s.m1)), l1 = w1 * ml.w;
#pragma unroll 1
        for (int i = 0; i < n; i += U) { /* those past the last state weigh nothing */
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const float4 x =
                    *reinterpret_cast<const float4 *>(item + min(i + u, n - 1) * layout.stride);
                const float a0 = __shfl_sync(~0u, w0, i + u), a1 = __shfl_sync(~0u, w1, i + u);
                s.l0 += __shfl_sync(~0u, l0, i + u), s.l1 += __shfl_sync(~0u, l1, i + u);
                s.o.x = fmaf(a0, x.x, s.o.x), s.o.y = fmaf(a1, x.y, s.o.y);
                s.o.z = fmaf(a0, x.z, s.o.z), s.o.w = fmaf(a1, x.w, s.o.w);
            }
        }
        if (to.slot == NULL) {
            output_write<T, D>(s, to.out, to.group, all, 2 * j);
        } else {
            slot_store(to.slot + slot_item(to.group, all * (D / 2) + j), s.o);
            if (j < to.readers && reads_pair(items_per_reader(to.group, D, to.readers), j, all, D))
                slot_store(to.slot + slot_ml(to.group, j, all),
                           make_float4(s.m0, s.l0, s.m1, s.l1));
        }
    }
}

/* One reader's part in merging the n slots of a (row, KV head): slot i is i * step behind the
 * first, and slot 0 skew more, so that the persistent kernel's odd first slot fits. */
struct Share {
    float *base; /* slot `first` */
    int step, skew;
    int n;               /* 0: nothing to do */
    int reader, readers; /* this one, of how many */
    void *out;           /* first output of the row and KV head */
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
    const int per = items_per_reader(group, D, max(share.readers, 1));
    const int first = share.reader * per, end = min(items, first + per);
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
            t.ml[k] = make_float4(-INFINITY, 0.f, -INFINITY, 0.f);
            t.x[k] = make_float4(0.f, 0.f, 0.f, 0.f);
        }
}

__device__ __forceinline__ bool any_empty(const Taken &t)
{
    return is_empty(t.ml[0]) || is_empty(t.x[0]) || is_empty(t.ml[1]) || is_empty(t.x[1]);
}

__device__ __forceinline__ void state_add(Merged &s, const float4 &ml, const float4 &x)
{
    const float m0 = fmaxf(s.m0, ml.x), m1 = fmaxf(s.m1, ml.z);
    const float z0 = finite_or_zero(m0), z1 = finite_or_zero(m1);
    const float a0 = exp2_fast(s.m0 - z0), b0 = exp2_fast(ml.x - z0);
    const float a1 = exp2_fast(s.m1 - z1), b1 = exp2_fast(ml.z - z1);
    s = Merged{m0, s.l0 * a0 + ml.y * b0, m1, s.l1 * a1 + ml.w * b1,
               make_float4(s.o.x * a0 + x.x * b0, s.o.y * a1 + x.y * b1, s.o.z * a0 + x.z * b0,
                           s.o.w * a1 + x.w * b1)};
}

/* Waits for `t`, which was asked for, then for the words of further slots, and adds them up;
 * empties those of the item. */
__device__ __forceinline__ Merged share_read(const Share &share, int floats, const Place &p,
                                             Taken &t)
{
    Merged s = {-INFINITY, 0.f, -INFINITY, 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
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
    if (share.n == 0 || pair >= (group + 1) / 2 ||
        !reads_pair(items_per_reader(group, D, share.readers), share.reader, pair, D))
        return;
#pragma unroll 1
    for (int i = threadIdx.x >> 5; i < share.n; i += warps)
        slot_empty(share_slot(share, slot_floats(group, D), i) +
                   slot_ml(group, share.reader, pair));
}

} // namespace kv
#endif
