/* Arithmetic on one tile: S^T = K Q^T, online softmax, O^T += V^T P^T.
 *
 * mma.m16n8k16: tokens, then dimensions, fill the 16 rows; the group's heads, padded to 8 (NT = 1)
 * or 16 (NT = 2), are the columns. So K and V are read once for the whole group, both accumulators
 * keep a head in the same threads, and P^T needs one movmatrix per 8 tokens on its way from one to
 * the other.
 */
#ifndef KV_KERNELS_ATTN_MATH_CUH
#define KV_KERNELS_ATTN_MATH_CUH

#include "kernels/attn_args.cuh"
#include "kernels/attn_merge.cuh"

namespace kv
{

/* A warp's queries and running state of one piece: heads 2t, 2t+1 (+8 n) of lane 4g + t. */
template <int D, int NT> struct Accumulator {
    static constexpr bool Q_KEPT = D * NT <= 256; /* else read again for each tile: registers */
    uint32_t q[Q_KEPT ? NT : 1][Q_KEPT ? D / 16 : 1][2];
    const uint16_t *q_from[NT];
    float m[NT][2], l[NT][2];
    float o[NT][D / 16][4];
};

template <typename T, int D, int NT>
__device__ __forceinline__ void accumulator_begin(const StreamArgs &a, Accumulator<D, NT> &acc,
                                                  int row, int head)
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int h = n * 8 + g;
        const int64_t at = ((int64_t)row * a.kv_heads + head) * a.group + min(h, a.group - 1);
        acc.q_from[n] = static_cast<const uint16_t *>(a.q) + at * D + 2 * t;
        if constexpr (Accumulator<D, NT>::Q_KEPT) {
#pragma unroll
            for (int k = 0; k < D / 16; ++k) {
                acc.q[n][k][0] = *reinterpret_cast<const uint32_t *>(acc.q_from[n] + k * 16);
                acc.q[n][k][1] = *reinterpret_cast<const uint32_t *>(acc.q_from[n] + k * 16 + 8);
            }
        }
        acc.m[n][0] = acc.m[n][1] = -INFINITY;
        acc.l[n][0] = acc.l[n][1] = 0.f;
#pragma unroll
        for (int k = 0; k < D / 16; ++k)
            acc.o[n][k][0] = acc.o[n][k][1] = acc.o[n][k][2] = acc.o[n][k][3] = 0.f;
    }
}

__device__ __forceinline__ uint32_t load_volatile(const uint16_t *p)
{
    uint32_t x;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}

/* s = scores of 16 tokens (rows g, g+8) and heads 2t, 2t+1. */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_scores(const Accumulator<D, NT> &acc, uint32_t stage,
                                            float (&s)[NT][4])
{
    using G = Geometry<D>;
    const int lane = threadIdx.x & 31;
    const uint32_t from =
        stage + ((lane & 7) + ((lane >> 3) & 1) * 8) * G::ROW + (((lane >> 4) ^ (lane & 7)) << 4);
    float odd[NT][4];
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            s[n][i] = odd[n][i] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32_t kf[4];
        ldmatrix_x4(kf, from ^ (k << 5));
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            uint32_t q0, q1;
            if constexpr (Accumulator<D, NT>::Q_KEPT)
                q0 = acc.q[n][k][0], q1 = acc.q[n][k][1];
            else
                q0 = load_volatile(acc.q_from[n] + k * 16),
                q1 = load_volatile(acc.q_from[n] + k * 16 + 8);
            Half<T>::mma((k & 1) && Accumulator<D, NT>::Q_KEPT ? odd[n] : s[n], kf, q0, q1);
        }
    }
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            s[n][i] += odd[n][i];
}

/* Online softmax of one n-tile: scores to weights (packed as the B operand p), state brought along.
 */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_softmax(Accumulator<D, NT> &acc, int n, float (&s)[4],
                                             float scale, uint32_t (&p)[2])
{
    float x0 = fmaxf(s[0], s[2]) * scale, x1 = fmaxf(s[1], s[3]) * scale;
    if (__any_sync(~0u, x0 > acc.m[n][0] || x1 > acc.m[n][1])) {
#pragma unroll
        for (int d = 4; d < 32; d *= 2) {
            x0 = fmaxf(x0, __shfl_xor_sync(~0u, x0, d));
            x1 = fmaxf(x1, __shfl_xor_sync(~0u, x1, d));
        }
        x0 = fmaxf(x0, acc.m[n][0]), x1 = fmaxf(x1, acc.m[n][1]);
        const float f0 = exp2_fast(acc.m[n][0] - finite_or_zero(x0)),
                    f1 = exp2_fast(acc.m[n][1] - finite_or_zero(x1));
        acc.m[n][0] = x0, acc.m[n][1] = x1;
        acc.l[n][0] *= f0, acc.l[n][1] *= f1;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
            acc.o[n][k][0] *= f0, acc.o[n][k][1] *= f1;
            acc.o[n][k][2] *= f0, acc.o[n][k][3] *= f1;
        }
    }
    const float m0 = finite_or_zero(acc.m[n][0]), m1 = finite_or_zero(acc.m[n][1]);
    s[0] = exp2_fast(fmaf(s[0], scale, -m0)), s[1] = exp2_fast(fmaf(s[1], scale, -m1));
    s[2] = exp2_fast(fmaf(s[2], scale, -m0)), s[3] = exp2_fast(fmaf(s[3], scale, -m1));
    acc.l[n][0] += s[0] + s[2], acc.l[n][1] += s[1] + s[3];
    p[0] = movmatrix_trans(Half<T>::pack(s[0], s[1]));
    p[1] = movmatrix_trans(Half<T>::pack(s[2], s[3]));
}

/* Takes in one tile of `valid` entries that lies in `stage`. */
template <typename T, int D, int NT>
__device__ __forceinline__ void tile_consume(const StreamArgs &a, Accumulator<D, NT> &acc,
                                             uint32_t stage, int valid)
{
    using G = Geometry<D>;
    const int lane = threadIdx.x & 31, g = lane >> 2;
    float s[NT][4];
    tile_scores<T, D, NT>(acc, stage, s);
    if (valid < TILE) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            if (g >= valid)
                s[n][0] = s[n][1] = -INFINITY;
            if (g + 8 >= valid)
                s[n][2] = s[n][3] = -INFINITY;
        }
    }
    uint32_t p[NT][2];
#pragma unroll
    for (int n = 0; n < NT; ++n)
        tile_softmax<T, D, NT>(acc, n, s[n], a.scale_log2, p[n]);
    const uint32_t from = stage + G::HALF + ((lane & 7) + (lane >> 4) * 8) * G::ROW +
                          ((((lane >> 3) & 1) ^ (lane & 7)) << 4);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32_t vf[4];
        ldmatrix_x4_trans(vf, from ^ (k << 5));
#pragma unroll
        for (int n = 0; n < NT; ++n)
            Half<T>::mma(acc.o[n][k], vf, p[n][0], p[n][1]);
    }
}

} // namespace kv
#endif
