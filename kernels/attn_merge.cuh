/* Partial softmax states in global memory, and merging them in slot order.
 *
 * A slot holds one (row, KV head) piece's state for its G heads, kept in pairs of heads because
 * that is how the accumulators of the matrix unit come: PT = ceil(G/2) pairs, first PT x float4
 * {m0,l0,m1,l1}, then PT x D/2 x float4 {d h0, d h1, d+1 h0, d+1 h1}: an "item" is one such float4,
 * that is two dimensions of two heads. m is in units of log2 (score x scale x log2 e). The neutral
 * state is m = -inf, l = 0, acc = 0.
 *
 * merge_slots() is run by all threads of a CTA. Slots are taken in groups whose bounds depend on n
 * and the CTA's size alone, inside a group in order, then group by group: so the same states give
 * the same bits, whoever merges. With WAIT, a slot is read word by word until no word is the empty
 * mark; afterwards the mark is put back, so that the next launch (or graph replay) finds empty
 * slots: the data is its own flag, and no order between words is needed.
 */
#ifndef KV_KERNELS_ATTN_MERGE_CUH
#define KV_KERNELS_ATTN_MERGE_CUH

#include "kernels/cuda_ptx.cuh"

namespace kv
{

/* A NaN that no arithmetic of the machine makes (results are 0x7fffffff). */
constexpr uint32_t EMPTY_WORD = 0xffffffffu;

struct State { /* two heads, two dimensions */
    float m0, l0, m1, l1;
    float4 o; /* d h0, d h1, d+1 h0, d+1 h1 */
};

__device__ __forceinline__ State state_neutral()
{
    return State{-INFINITY, 0.f, -INFINITY, 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
}

__device__ __forceinline__ float finite_or_zero(float m)
{
    return m == -INFINITY ? 0.f : m;
}

__device__ __forceinline__ bool is_empty(float4 x)
{
    return __float_as_uint(x.x) == EMPTY_WORD || __float_as_uint(x.y) == EMPTY_WORD ||
           __float_as_uint(x.z) == EMPTY_WORD || __float_as_uint(x.w) == EMPTY_WORD;
}

__device__ __forceinline__ float never_empty(float x)
{
    return __float_as_uint(x) == EMPTY_WORD ? __uint_as_float(0x7fffffffu) : x;
}

__device__ __forceinline__ float4 never_empty(float4 x)
{
    return make_float4(never_empty(x.x), never_empty(x.y), never_empty(x.z), never_empty(x.w));
}

/* s is rescaled to the maxima m0, m1 (not below its own). */
__device__ __forceinline__ void state_rescale(State &s, float m0, float m1)
{
    const float f0 = exp2_fast(s.m0 - finite_or_zero(m0)),
                f1 = exp2_fast(s.m1 - finite_or_zero(m1));
    s.m0 = m0, s.m1 = m1;
    s.l0 *= f0, s.l1 *= f1;
    s.o.x *= f0, s.o.y *= f1, s.o.z *= f0, s.o.w *= f1;
}

/* Adds a state whose maxima are not above s's. */
__device__ __forceinline__ void state_add(State &s, float4 ml, float4 o)
{
    const float f0 = exp2_fast(ml.x - finite_or_zero(s.m0)),
                f1 = exp2_fast(ml.z - finite_or_zero(s.m1));
    s.l0 = fmaf(f0, ml.y, s.l0), s.l1 = fmaf(f1, ml.w, s.l1);
    s.o.x = fmaf(f0, o.x, s.o.x), s.o.y = fmaf(f1, o.y, s.o.y);
    s.o.z = fmaf(f0, o.z, s.o.z), s.o.w = fmaf(f1, o.w, s.o.w);
}

/* Writes heads h, h+1 (the second only below `group`) at dimensions dd, dd+1 of `out`, the row and
 * KV head's first output. */
template <typename T, int D>
__device__ __forceinline__ void state_write(const State &s, T *out, int group, int h, int dd)
{
    const float i0 = s.l0 == 0.f ? 0.f : 1.f / s.l0, i1 = s.l1 == 0.f ? 0.f : 1.f / s.l1;
    *reinterpret_cast<uint32_t *>(out + (int64_t)h * D + dd) =
        Half<T>::pack(s.o.x * i0, s.o.z * i0);
    if (h + 1 < group)
        *reinterpret_cast<uint32_t *>(out + (int64_t)(h + 1) * D + dd) =
            Half<T>::pack(s.o.y * i1, s.o.w * i1);
}

__host__ __device__ constexpr int slot_floats(int group, int d)
{
    return ((group + 1) / 2) * (4 + 2 * d);
}

/* The n slots of one (row, KV head): slot i is i * step behind the first, and slot 0 skew more, so
 * that the persistent kernel's odd first slot fits. */
struct SlotList {
    float4 *base; /* slot `first` */
    int quads;    /* a slot's size in float4 */
    int step, skew, n;
    __device__ __forceinline__ float4 *at(int i) const
    {
        return base + (i * step + (i == 0 ? skew : 0)) * quads;
    }
};

__device__ __forceinline__ SlotList slot_list(float *slots, int group, int d, int first, int n)
{
    const int floats = slot_floats(group, d);
    return {reinterpret_cast<float4 *>(slots + (int64_t)first * floats), floats / 4, 1, 0, n};
}

/* Merges slots [i0, i1) of item (pair, it). */
__device__ __forceinline__ State merge_range(const SlotList &slots, bool wait, int pairs, int pair,
                                             int it, int i0, int i1)
{
    constexpr int U = 10; /* slots in flight */
    State s = state_neutral();
#pragma unroll 1
    for (int i = i0; i < i1; i += U) {
        float4 ml[U], o[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            ml[u] = make_float4(-INFINITY, 0.f, -INFINITY, 0.f);
            o[u] = make_float4(0.f, 0.f, 0.f, 0.f);
            if (i + u < i1) {
                ml[u] = load_relaxed(slots.at(i + u) + pair);
                o[u] = load_relaxed(slots.at(i + u) + pairs + it);
            }
        }
        bool again = wait;
#pragma unroll 1
        while (again) { /* all that are still empty, at once */
            again = false;
#pragma unroll
            for (int u = 0; u < U; ++u)
                if (is_empty(ml[u]) || is_empty(o[u])) {
                    again = true;
                    ml[u] = load_relaxed(slots.at(i + u) + pair);
                    o[u] = load_relaxed(slots.at(i + u) + pairs + it);
                }
        }
        float m0 = s.m0, m1 = s.m1;
#pragma unroll
        for (int u = 0; u < U; ++u)
            m0 = fmaxf(m0, ml[u].x), m1 = fmaxf(m1, ml[u].z);
        state_rescale(s, m0, m1);
#pragma unroll
        for (int u = 0; u < U; ++u)
            state_add(s, ml[u], o[u]);
    }
    return s;
}

/* The groups' states of item tid, added to the first group's in order. */
__device__ __forceinline__ void merge_groups(State &s, const float4 *scratch, int items, int groups)
{
    float m0 = s.m0, m1 = s.m1;
#pragma unroll 1
    for (int g = 1; g < groups; ++g) {
        const float4 ml = scratch[2 * (threadIdx.x + g * items)];
        m0 = fmaxf(m0, ml.x), m1 = fmaxf(m1, ml.z);
    }
    state_rescale(s, m0, m1);
#pragma unroll 1
    for (int g = 1; g < groups; ++g) {
        const float4 *from = scratch + 2 * (threadIdx.x + g * items);
        state_add(s, from[0], from[1]);
    }
}

/* All threads of the CTA; ends with a barrier. `scratch`: 32 bytes a thread of shared memory.
 * `out`: first output of the row and KV head. */
template <typename T, int D>
__device__ __forceinline__ void merge_slots(const SlotList &slots, bool wait, int group, T *out,
                                            float4 *scratch)
{
    const int tid = threadIdx.x, threads = blockDim.x;
    const int pairs = (group + 1) / 2, items = pairs * (D / 2);
    const int groups = max(1, threads / items);
    const float empty = __uint_as_float(EMPTY_WORD);
    const float4 mark = make_float4(empty, empty, empty, empty);
#pragma unroll 1
    for (int base = 0; base < items; base += threads) {
        const int gi = groups > 1 ? tid / items : 0;
        const int it = groups > 1 ? tid - gi * items : base + tid;
        const bool mine = it < items && gi < groups;
        const int pair = it / (D / 2), dd = 2 * (it % (D / 2));
        State s = state_neutral();
        if (mine) {
            const int i0 = slots.n * gi / groups, i1 = slots.n * (gi + 1) / groups;
            s = merge_range(slots, wait, pairs, pair, it, i0, i1);
#pragma unroll 1
            for (int i = i0; wait && i < i1; ++i)
                __stcg(slots.at(i) + pairs + it, mark);
        }
        if (groups > 1) {
            __syncthreads(); /* the scratch was something else before */
            scratch[2 * tid] = make_float4(s.m0, s.l0, s.m1, s.l1);
            scratch[2 * tid + 1] = s.o;
            __syncthreads();
            if (mine && gi == 0)
                merge_groups(s, scratch, items, groups);
        }
        if (mine && gi == 0)
            state_write<T, D>(s, out, group, 2 * pair, dd);
    }
    __syncthreads(); /* every thread has read m and l, and the scratch */
#pragma unroll 1
    for (int x = tid; wait && x < slots.n * pairs; x += threads)
        __stcg(slots.at(x / pairs) + x % pairs, mark);
}

} // namespace kv
#endif
