/* The kernels of a layer beside its GEMMs and its attention. */
#include "kernels/layer_device.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdio.h>

namespace
{

/* Eight halves, the unit of all loads and stores here. */
struct alignas(16) Pack {
    uint32_t word[4];
};

template <bool BF16> __device__ float2 unpack(uint32_t w)
{
    if (BF16)
        return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162 *>(&w));
    return __half22float2(*reinterpret_cast<__half2 *>(&w));
}

template <bool BF16> __device__ uint32_t pack(float lo, float hi)
{
    if (BF16) {
        __nv_bfloat162 h = __floats2bfloat162_rn(lo, hi);
        return *reinterpret_cast<uint32_t *>(&h);
    }
    __half2 h = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<uint32_t *>(&h);
}

template <bool BF16> __device__ float get(const uint16_t *p)
{
    return unpack<BF16>(*p).x;
}

template <bool BF16> __device__ uint16_t put(float x)
{
    return (uint16_t)pack<BF16>(x, 0.f);
}

/* --- weights and angles --- */

template <bool BF16>
__global__ void fill_weights(uint2 *to, int rows, int quads, int64_t id, uint64_t seed, float scale)
{
    const int64_t n = (int64_t)rows * quads, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const uint64_t key = attn_content_key(seed, 3, id, (int)(i / quads), 0);
        const uint64_t lanes = attn_content_lanes(key, (uint32_t)(i % quads));
        to[i] = make_uint2(
            pack<BF16>(scale * attn_content_value(lanes, 0), scale * attn_content_value(lanes, 1)),
            pack<BF16>(scale * attn_content_value(lanes, 2), scale * attn_content_value(lanes, 3)));
    }
}

__global__ void fill_angles(float2 *to, int positions, int half, double theta)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)positions * half)
        return;
    const double angle = (double)(i / half) * pow(theta, -(double)(i % half) / half);
    to[i] = make_float2((float)cos(angle), (float)sin(angle));
}

/* --- embedding and norm: a CTA a row --- */

template <bool BF16>
__global__ void embed(Pack *residual, const Pack *weights, unsigned long long *best, int packs,
                      int vocabulary)
{
    const int row = blockIdx.x;
    const unsigned long long chosen = best[row];
    const uint32_t index = chosen == 0 ? 0 : ~(uint32_t)chosen;
    const int64_t token = index < (uint32_t)vocabulary ? index : 0;
    __syncthreads(); /* all have read it */
    if (threadIdx.x == 0)
        best[row] = 0;
    for (int i = threadIdx.x; i < packs; i += blockDim.x)
        residual[(int64_t)row * packs + i] = weights[token * packs + i];
}

__device__ float sum_over_block(float x)
{
    __shared__ float part[32];
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.f;
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

template <bool BF16> __global__ void norm(Pack *out, Pack *residual, const Pack *delta, int packs)
{
    const int64_t at = (int64_t)blockIdx.x * packs;
    float squares = 0.f;
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
        Pack x = residual[at + i];
        const Pack y = delta != NULL ? delta[at + i] : Pack{{0, 0, 0, 0}};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float2 a = unpack<BF16>(x.word[w]);
            if (delta != NULL) {
                const float2 b = unpack<BF16>(y.word[w]);
                x.word[w] = pack<BF16>(a.x + b.x, a.y + b.y);
                a = unpack<BF16>(x.word[w]);
            }
            squares += a.x * a.x + a.y * a.y;
        }
        if (delta != NULL)
            residual[at + i] = x;
    }
    const float factor = rsqrtf(sum_over_block(squares) / (float)(8 * packs) + 1e-5f);
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
        Pack x = residual[at + i]; /* what this very thread stored */
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const float2 a = unpack<BF16>(x.word[w]);
            x.word[w] = pack<BF16>(a.x * factor, a.y * factor);
        }
        out[at + i] = x;
    }
}

/* --- rotary positions and the new entry --- */

struct RopeArgs {
    const uint16_t *qkv;
    uint16_t *q, *k, *v;
    const float2 *angles;
    const int *lens, *table, *offset;
    int q_heads, kv_heads, half, page_size;
    int64_t page_stride;
    int head_stride, token_stride;
};

/* blockIdx.x = row; a warp takes a head at a time. */
template <bool BF16> __global__ void rope(RopeArgs a)
{
    const int row = blockIdx.x, d = 2 * a.half, heads = a.q_heads + 2 * a.kv_heads;
    const int position = a.lens[row] - 1;
    const float2 *angle = a.angles + (int64_t)max(position, 0) * a.half;
    const uint16_t *from = a.qkv + (int64_t)row * heads * d;
    int64_t entry = 0;
    if (position >= 0)
        entry = a.table[a.offset[row] + position / a.page_size] * a.page_stride +
                (int64_t)(position % a.page_size) * a.token_stride;
    for (int head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; head < heads;
         head += gridDim.y * (blockDim.x / 32)) {
        const int kv = head - a.q_heads, which = kv < 0 ? 0 : kv < a.kv_heads ? 1 : 2;
        if (which > 0 && position < 0)
            continue;
        uint16_t *to = which == 0   ? a.q + ((int64_t)row * a.q_heads + head) * d
                       : which == 1 ? a.k + entry + (int64_t)kv * a.head_stride
                                    : a.v + entry + (int64_t)(kv - a.kv_heads) * a.head_stride;
        for (int i = threadIdx.x % 32; i < a.half; i += 32) {
            float x = get<BF16>(from + head * d + i), y = get<BF16>(from + head * d + a.half + i);
            if (which < 2) {
                const float2 t = angle[i];
                const float turned = x * t.x - y * t.y;
                y = y * t.x + x * t.y;
                x = turned;
            }
            to[i] = put<BF16>(x);
            to[a.half + i] = put<BF16>(y);
        }
    }
}

/* --- the gate --- */

__device__ float silu(float x)
{
    return x / (1.f + __expf(-x));
}

template <bool BF16> __global__ void gate(Pack *out, const Pack *in, int packs, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int64_t row = i / packs, at = row * 2 * packs + i % packs;
    Pack x = in[at];
    const Pack y = in[at + packs];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const float2 a = unpack<BF16>(x.word[w]), b = unpack<BF16>(y.word[w]);
        x.word[w] = pack<BF16>(silu(a.x) * b.x, silu(a.y) * b.y);
    }
    out[i] = x;
}

/* --- choosing a token --- */

/* Orders as the floats do; NaN comes last, so that it shows. */
__device__ uint64_t ranked(float x, uint32_t index)
{
    const uint32_t u = __float_as_uint(x);
    const uint32_t order = (u & 0x80000000u) ? ~u : u | 0x80000000u;
    return (uint64_t)order << 32 | (uint32_t)~index;
}

__device__ float gumbel_noise(uint64_t bits)
{
    const float u = ((float)(uint32_t)(bits >> 41) + 0.5f) * 0x1p-23f; /* never 0 or 1 */
    return -logf(-logf(u));
}

enum { SAMPLE_THREADS = 256, SAMPLE_PACKS = 2 };

/* grid: pieces of the vocabulary, rows. */
template <bool BF16>
__global__ void sample(unsigned long long *best, const Pack *logits, int packs, bool gumbel,
                       uint64_t seed, const int *lens)
{
    const int row = blockIdx.y;
    uint64_t top = 0;
    for (int k = 0; k < SAMPLE_PACKS; ++k) {
        const int i = (blockIdx.x * SAMPLE_PACKS + k) * SAMPLE_THREADS + threadIdx.x;
        if (i >= packs)
            break;
        const Pack x = logits[(int64_t)row * packs + i];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float2 a = unpack<BF16>(x.word[w]);
            const int index = 8 * i + 2 * w;
            if (gumbel) {
                a.x += gumbel_noise(layer_noise_bits(seed, row, lens[row], index));
                a.y += gumbel_noise(layer_noise_bits(seed, row, lens[row], index + 1));
            }
            top = max(top, max(ranked(a.x, index), ranked(a.y, index + 1)));
        }
    }
    __shared__ uint64_t part[SAMPLE_THREADS / 32];
    for (int d = 16; d > 0; d /= 2)
        top = max(top, (uint64_t)__shfl_xor_sync(0xffffffffu, (unsigned long long)top, d));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = top;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < SAMPLE_THREADS / 32; ++w)
            top = max(top, part[w]);
        atomicMax(best + row, (unsigned long long)top);
    }
}

AttnStatus launched(AttnCudaError *error, const char *what)
{
    const cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess)
        return ATTN_OK;
    if (error != NULL)
        snprintf(error->text, sizeof error->text, "%s: %s", what, cudaGetErrorString(e));
    return ATTN_LAUNCH_FAILED;
}

int threads_for(int packs)
{
    return packs >= 512 ? 512 : packs >= 256 ? 256 : packs >= 128 ? 128 : 64;
}

} // namespace

/* KERNEL<bf16> with a launch's settings and arguments. */
#define LAUNCH(kernel, grid, threads, ...)                                                         \
    do {                                                                                           \
        cudaStream_t on = (cudaStream_t)stream;                                                    \
        if (dtype == ATTN_BF16)                                                                    \
            kernel<true><<<grid, threads, 0, on>>>(__VA_ARGS__);                                   \
        else                                                                                       \
            kernel<false><<<grid, threads, 0, on>>>(__VA_ARGS__);                                  \
    } while (0)

AttnStatus layer_device_weights(AttnDtype dtype, void *w, int32_t rows, int32_t columns, int64_t id,
                                uint64_t seed, void *stream, AttnCudaError *error)
{
    const float scale = 1.f / sqrtf((float)columns);
    LAUNCH(fill_weights, 2048, 256, (uint2 *)w, rows, columns / 4, id, seed, scale);
    return launched(error, "weights");
}

AttnStatus layer_device_angles(float *table, int32_t positions, int32_t half, double theta,
                               void *stream, AttnCudaError *error)
{
    const int64_t n = (int64_t)positions * half;
    fill_angles<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>(
        (float2 *)table, positions, half, theta);
    return launched(error, "rotary table");
}

AttnStatus layer_device_embed(AttnDtype dtype, void *residual, const void *weights, uint64_t *best,
                              int32_t rows, int32_t hidden, int32_t vocabulary, void *stream,
                              AttnCudaError *error)
{
    LAUNCH(embed, rows, threads_for(hidden / 8), (Pack *)residual, (const Pack *)weights,
           (unsigned long long *)best, hidden / 8, vocabulary);
    return launched(error, "embedding");
}

AttnStatus layer_device_norm(AttnDtype dtype, void *out, void *residual, const void *delta,
                             int32_t rows, int32_t hidden, void *stream, AttnCudaError *error)
{
    LAUNCH(norm, rows, threads_for(hidden / 8), (Pack *)out, (Pack *)residual, (const Pack *)delta,
           hidden / 8);
    return launched(error, "norm");
}

AttnStatus layer_device_rope(const AttnShape *shape, const AttnPool *pool, const AttnBatch *batch,
                             const void *qkv, void *q, const float *angles, void *stream,
                             AttnCudaError *error)
{
    const AttnDtype dtype = shape->dtype;
    const int heads = shape->q_heads + 2 * shape->kv_heads;
    const RopeArgs a = {(const uint16_t *)qkv, (uint16_t *)q,          (uint16_t *)pool->k,
                        (uint16_t *)pool->v,   (const float2 *)angles, batch->lens,
                        batch->table,          batch->offset,          shape->q_heads,
                        shape->kv_heads,       shape->head_dim / 2,    shape->page_size,
                        pool->page_stride,     pool->head_stride,      pool->token_stride};
    LAUNCH(rope, dim3((unsigned)batch->rows, (unsigned)((heads + 3) / 4)), 128, a);
    return launched(error, "rotary positions");
}

AttnStatus layer_device_silu(AttnDtype dtype, void *out, const void *in, int32_t rows,
                             int32_t width, void *stream, AttnCudaError *error)
{
    const int64_t n = (int64_t)rows * (width / 8);
    LAUNCH(gate, (unsigned)((n + 127) / 128), 128, (Pack *)out, (const Pack *)in, width / 8, n);
    return launched(error, "gate");
}

AttnStatus layer_device_sample(AttnDtype dtype, uint64_t *best, const void *logits, int32_t rows,
                               int32_t vocabulary, int gumbel, uint64_t seed, const int32_t *lens,
                               void *stream, AttnCudaError *error)
{
    const int packs = vocabulary / 8, each = SAMPLE_THREADS * SAMPLE_PACKS;
    LAUNCH(sample, dim3((unsigned)((packs + each - 1) / each), (unsigned)rows), SAMPLE_THREADS,
           (unsigned long long *)best, (const Pack *)logits, packs, gumbel != 0, seed, lens);
    return launched(error, "sampling");
}
