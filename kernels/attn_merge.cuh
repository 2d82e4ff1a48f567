/* Partial softmax states, where they are kept, and merging those of a CTA's warps.
 *
 * A state is that of one (row, KV head) piece for its G heads, kept in pairs of heads because that
 * is how the accumulators of the matrix unit come: PT = ceil(G/2) x float4 {m0,l0,m1,l1}, and
 * PT x D/2 x float4 {d h0, d h1, d+1 h0, d+1 h1}: an "item" is one such float4, that is two
 * dimensions of two heads. m is in units of log2 (score x scale x log2 e). The neutral state is
 * m = -inf, l = 0, acc = 0.
 *
 * A slot is a state in global memory, on its way from one CTA to those that merge it, its readers:
 * the m and l of each pair once for each reader that has items of the pair, then the items. Between
 * launches all its words are EMPTY (attn_exchange.cuh).
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

/* Of a slot: how many there are, and how many items each has. */
struct Readers {
    int n, per;
};

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
    void *out;       /* first output of the row and KV head */
    float *slot;     /* NULL: the output */
    Readers readers; /* of the slot */
    int group, first_pair;
};

/* Slots that a CTA adds to its own state: the first of n, `step` slots apart, of one reader. */
constexpr int MAX_OTHERS = 3;
struct Others {
    float *first;
    int step, n;
};
/* Their words of one item, as far as they have been asked for. */
struct Asked {
    float4 ml[MAX_OTHERS], x[MAX_OTHERS];
};

/* An item's state. */
struct Merged {
    float m0, l0, m1, l1;
    float4 o;
};

/* The m and l, the item, and the state of nothing. */
__device__ __forceinline__ float4 neutral_ml()
{
    return make_float4(-INFINITY, 0.f, -INFINITY, 0.f);
}
__device__ __forceinline__ float4 neutral_item()
{
    return make_float4(0.f, 0.f, 0.f, 0.f);
}
__device__ __forceinline__ Merged neutral()
{
    return {-INFINITY, 0.f, -INFINITY, 0.f, neutral_item()};
}

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

template <int D>
__device__ __forceinline__ float *other_slot(const Others &others, int group, int i)
{
    return others.first + (int64_t)(i * others.step) * slot_floats(group, D);
}

/* Asks for an item of slot i; its words may not be there yet. */
template <int D>
__device__ __forceinline__ void other_ask(Asked &asked, const Others &others, int group, int item,
                                          int i)
{
    const float *slot = other_slot<D>(others, group, i);
    asked.ml[i] = load_relaxed(slot + slot_ml(group, 0, item / (D / 2)));
    asked.x[i] = load_relaxed(slot + slot_item(group, item));
}

template <int D>
__device__ __forceinline__ void others_ask(Asked &asked, const Others &others, int group, int item)
{
#pragma unroll
    for (int i = 0; i < MAX_OTHERS; ++i)
        if (i < others.n)
            other_ask<D>(asked, others, group, item, i);
}

/* Adds the others' item, asked for before, as its words come; empties it, but not the m and l,
 * which all threads of the pair read. */
template <int D>
__device__ __forceinline__ void others_add(Merged &s, Asked &asked, const Others &others, int group,
                                           int item)
{
#pragma unroll
    for (int i = 0; i < MAX_OTHERS; ++i)
        if (i < others.n) {
            while (is_empty(asked.ml[i]) || is_empty(asked.x[i]))
                other_ask<D>(asked, others, group, item, i);
            slot_empty(other_slot<D>(others, group, i) + slot_item(group, item));
            state_add(s, asked.ml[i], asked.x[i]);
        }
}

/* Merges the n <= 32 states of a CTA's warps, `pairs` pairs of heads, and where they go to the
 * output, those of `others`, of which the thread's first item was asked for. All threads (whole
 * warps). A warp's items are of one pair: lane i weighs state i, then every lane adds its item of
 * all states in order. No barrier at the end. */
template <typename T, int D>
__device__ __forceinline__ void merge_with(const float *states, StateLayout layout, int pairs,
                                           int n, MergeTo to, const Others &others, Asked &asked)
{
    constexpr int U = 4; /* loads on their way at once */
    const int items = pairs * (D / 2), lane = threadIdx.x & 31;
#pragma unroll 1
    for (int it = threadIdx.x; it < items; it += blockDim.x) {
        const int pair = it / (D / 2), j = it % (D / 2), all = to.first_pair + pair;
        const float *item = states + layout.items_at + pair * layout.pair_stride + 4 * j;
        float4 ml = neutral_ml();
        if (lane < n)
            ml = *reinterpret_cast<const float4 *>(states + 4 * pair + lane * layout.stride);
        Merged s = {warp_max(ml.x), 0.f, warp_max(ml.z), 0.f, neutral_item()};
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
            if (it >= (int)blockDim.x)
                others_ask<D>(asked, others, to.group, all * (D / 2) + j);
            others_add<D>(s, asked, others, to.group, all * (D / 2) + j);
            output_write<T, D>(s, to.out, to.group, all, 2 * j);
        } else {
            slot_store(to.slot + slot_item(to.group, all * (D / 2) + j), s.o);
            if (j < to.readers.n && reads_pair(to.readers.per, j, all, D))
                slot_store(to.slot + slot_ml(to.group, j, all),
                           make_float4(s.m0, s.l0, s.m1, s.l1));
        }
    }
}

/* The same without others, which is what most pieces take: small, and one copy of it. */
template <typename T, int D>
__device__ __noinline__ void merge_states(const float *states, StateLayout layout, int pairs, int n,
                                          MergeTo to)
{
    Asked none;
    merge_with<T, D>(states, layout, pairs, n, to, {NULL, 0, 0}, none);
}

} // namespace kv
#endif
