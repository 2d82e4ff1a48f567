/* Partial softmax states, and merging them in order.
 *
 * A state is that of one (row, KV head) piece for its G heads, kept in pairs of heads because that
 * is how the accumulators of the matrix unit come: first PT = ceil(G/2) x float4 {m0,l0,m1,l1},
 * then PT x D/2 x float4 {d h0, d h1, d+1 h0, d+1 h1}: an "item" is one such float4, that is two
 * dimensions of two heads. m is in units of log2 (score x scale x log2 e). The neutral state is
 * m = -inf, l = 0, acc = 0. A slot is a state in global memory.
 *
 * merge_states() is run by all threads of a CTA, over states that lie in shared memory already (the
 * CTA's warps) or over slots, which it brings there, as many at a time as there is room for. A
 * warp's items are of one pair, so lane i weighs state i (exp2(m - max), once for the warp) and
 * every lane then adds its item of all states in order. So the same states give the same bits,
 * whoever merges and when, and however many threads he has. Nothing hides a merge at the end of a
 * launch: loads are independent and unconditional, and both kinds of merge run the same code
 * (called, not inlined).
 */
#ifndef KV_KERNELS_ATTN_MERGE_CUH
#define KV_KERNELS_ATTN_MERGE_CUH

#include "kernels/cuda_ptx.cuh"

namespace kv
{

__device__ __forceinline__ float finite_or_zero(float m)
{
    return m == -INFINITY ? 0.f : m;
}

__host__ __device__ constexpr int slot_floats(int group, int d)
{
    return ((group + 1) / 2) * (4 + 2 * d);
}

/* Floats between slots in shared memory: neighbours four banks apart, so that eight lanes read the
 * m and l of eight states at once. */
__host__ __device__ constexpr int slot_stride(int group, int d)
{
    return (slot_floats(group, d) + 27) / 32 * 32 + 4;
}

/* Where states lie: `stride` floats apart, items from `items_at` on, `pair_stride` floats a pair.
 */
struct StateLayout {
    int stride, items_at, pair_stride;
};

/* The n slots of one (row, KV head): slot i is i * step behind the first, and slot 0 skew more, so
 * that the persistent kernel's odd first slot fits. */
struct SlotList {
    const float *base; /* slot `first`; NULL: the states are in shared memory */
    int floats, step, skew;
};

/* Where a merged state goes: to the output, or unnormalised into a slot. */
struct MergeTo {
    void *out;   /* first output of the row and KV head */
    float *slot; /* NULL: the output */
    int group, first_pair;
};

/* An item's state so far; all lanes of a warp have the same pair, so the same m and l. */
struct Merged {
    float m0, l0, m1, l1;
    float4 o;
};

/* Adds `count` <= 32 states: lane i weighs state i, then every lane adds its item of all of them.
 */
__device__ __forceinline__ void merged_add(Merged &s, const float *ml_at, const float *item_at,
                                           int stride, int count)
{
    constexpr int U = 8; /* loads on their way at once; those past the last state weigh nothing */
    const int lane = threadIdx.x & 31;
    float4 ml = make_float4(-INFINITY, 0.f, -INFINITY, 0.f), x[U];
    if (lane < count)
        ml = *reinterpret_cast<const float4 *>(ml_at + lane * stride);
#pragma unroll
    for (int u = 0; u < U; ++u)
        x[u] = *reinterpret_cast<const float4 *>(item_at + min(u, count - 1) * stride);
    const float m0 = fmaxf(s.m0, warp_max(ml.x)), m1 = fmaxf(s.m1, warp_max(ml.z));
    const float z0 = finite_or_zero(m0), z1 = finite_or_zero(m1);
    const float e0 = exp2_fast(s.m0 - z0), e1 = exp2_fast(s.m1 - z1);
    const float w0 = exp2_fast(ml.x - z0), w1 = exp2_fast(ml.z - z1);
    float l0 = w0 * ml.y, l1 = w1 * ml.w;
#pragma unroll 1
    for (int d = 1; d < count; d *= 2) {
        l0 += __shfl_xor_sync(~0u, l0, d);
        l1 += __shfl_xor_sync(~0u, l1, d);
    }
    l0 = __shfl_sync(~0u, l0, 0), l1 = __shfl_sync(~0u, l1, 0); /* the first lanes have all */
    s = Merged{m0, fmaf(s.l0, e0, l0), m1, fmaf(s.l1, e1, l1),
               make_float4(s.o.x * e0, s.o.y * e1, s.o.z * e0, s.o.w * e1)};
#pragma unroll 1
    for (int i = 0;;) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const float a0 = __shfl_sync(~0u, w0, i + u), a1 = __shfl_sync(~0u, w1, i + u);
            s.o.x = fmaf(a0, x[u].x, s.o.x), s.o.y = fmaf(a1, x[u].y, s.o.y);
            s.o.z = fmaf(a0, x[u].z, s.o.z), s.o.w = fmaf(a1, x[u].w, s.o.w);
        }
        i += U;
        if (i >= count)
            break;
#pragma unroll
        for (int u = 0; u < U; ++u)
            x[u] = *reinterpret_cast<const float4 *>(item_at + min(i + u, count - 1) * stride);
    }
}

template <typename T, int D>
__device__ __forceinline__ void merged_write(const Merged &s, const MergeTo &to, int pair, int dd)
{
    pair += to.first_pair;
    if (to.slot != NULL) {
        float4 *slot = reinterpret_cast<float4 *>(to.slot);
        if (dd == 0)
            __stcg(slot + pair, make_float4(s.m0, s.l0, s.m1, s.l1));
        __stcg(slot + (to.group + 1) / 2 + pair * (D / 2) + dd / 2, s.o);
        return;
    }
    const float i0 = s.l0 == 0.f ? 0.f : reciprocal_fast(s.l0),
                i1 = s.l1 == 0.f ? 0.f : reciprocal_fast(s.l1);
    uint32_t *out =
        reinterpret_cast<uint32_t *>(static_cast<T *>(to.out) + (int64_t)2 * pair * D + dd);
    out[0] = Half<T>::pack(s.o.x * i0, s.o.z * i0);
    if (2 * pair + 1 < to.group)
        out[D / 2] = Half<T>::pack(s.o.y * i1, s.o.w * i1);
}

/* Slots [from, from + count) into shared memory. All threads; they are there when it returns. */
__device__ __forceinline__ void bring_slots(float *states, const SlotList &list, int stride,
                                            int from, int count)
{
    constexpr int U = 5; /* copies of a lane without a branch back: a slot of 4 heads, d 128 */
    const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
#pragma unroll 1
    for (int i = threadIdx.x >> 5; i < count; i += warps) {
        const int slot = (from + i) * list.step + (from + i == 0 ? list.skew : 0);
        const float *src = list.base + (int64_t)slot * list.floats + 4 * lane;
        const uint32_t dst = smem_address(states + i * stride + 4 * lane);
#pragma unroll 1
        for (int x = 0; x < list.floats; x += 128 * U)
#pragma unroll
            for (int u = 0; u < U; ++u)
                if (x + 128 * u + 4 * lane < list.floats)
                    cp_async16(dst + 4 * (x + 128 * u), src + x + 128 * u);
    }
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
}

/* Merges n states of `pairs` pairs of heads. All threads of the CTA (whole warps). `room`: how many
 * slots fit into `states` at a time. No barrier at the end. */
template <typename T, int D>
__device__ __noinline__ void merge_states(float *states, StateLayout layout, int pairs, int n,
                                          SlotList list, int room, MergeTo to)
{
    const int items = pairs * (D / 2);
    if (list.base == NULL)
        room = n;
#pragma unroll 1
    for (int base = 0; base < items; base += blockDim.x) {
        const int it = base + (int)threadIdx.x, pair = it / (D / 2), dd = 2 * (it % (D / 2));
        Merged s = {-INFINITY, 0.f, -INFINITY, 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
#pragma unroll 1
        for (int from = 0; from < n; from += room) {
            const int count = min(room, n - from);
            if (list.base != NULL && (base == 0 || room < n)) {
                if (base + from > 0)
                    __syncthreads(); /* all have read the ones before */
                bring_slots(states, list, layout.stride, from, count);
            }
            const float *at = states + 4 * pair;
            const float *item = states + layout.items_at + pair * layout.pair_stride + 2 * dd;
#pragma unroll 1
            for (int i = 0; i < count && it < items; i += 32)
                merged_add(s, at + i * layout.stride, item + i * layout.stride, layout.stride,
                           min(32, count - i));
        }
        if (it < items)
            merged_write<T, D>(s, to, pair, dd);
    }
}

/* Merges n slots of one (row, KV head) into `out`, through shared memory of `bytes` bytes. */
template <typename T, int D>
__device__ __forceinline__ void merge_slots(const SlotList &list, int n, int group, T *out,
                                            float *states, int bytes)
{
    const int stride = slot_stride(group, D), pairs = (group + 1) / 2;
    merge_states<T, D>(states, {stride, 4 * pairs, 2 * D}, pairs, n, list, bytes / (4 * stride),
                       {out, NULL, group, 0});
}

} // namespace kv
#endif
