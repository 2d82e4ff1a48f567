/* Device jobs around the attention kernels. */
#include "kernels/attn_device.h"
#include "kernels/content.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdio.h>

static AttnStatus launched(AttnCudaError *error, const char *what)
{
    const cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess)
        return ATTN_OK;
    if (error != NULL)
        snprintf(error->text, sizeof error->text, "%s: %s", what, cudaGetErrorString(e));
    return ATTN_LAUNCH_FAILED;
}

static __device__ uint32_t pair_bits(float lo, float hi, bool bf16)
{
    if (bf16) {
        __nv_bfloat162 h = __floats2bfloat162_rn(lo, hi);
        return *reinterpret_cast<uint32_t *>(&h);
    }
    __half2 h = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<uint32_t *>(&h);
}

/* Elements 4j .. 4j+3 of an entry. */
static __device__ uint2 content4(uint64_t key, uint32_t j, bool bf16)
{
    const uint64_t lanes = attn_content_lanes(key, j);
    return make_uint2(pair_bits(attn_content_value(lanes, 0), attn_content_value(lanes, 1), bf16),
                      pair_bits(attn_content_value(lanes, 2), attn_content_value(lanes, 3), bf16));
}

struct FillArgs {
    uint16_t *to[2];
    int64_t entries, page_stride;
    int head_stride, token_stride, heads, page_size, quads; /* quads = head_dim / 4 */
    uint64_t seed;
    bool bf16;
};

/* A thread a group of four elements; entries in the order page, head, token. */
static __global__ void fill_pool(FillArgs a)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x, n = a.entries * a.quads;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int64_t entry = i / a.quads;
        const uint32_t j = (uint32_t)(i % a.quads);
        const int token = (int)(entry % a.page_size);
        const int head = (int)(entry / a.page_size % a.heads);
        const int64_t page = entry / a.page_size / a.heads;
        const int64_t at = page * a.page_stride + (int64_t)head * a.head_stride +
                           (int64_t)token * a.token_stride + 4 * j;
        for (int which = 0; which < 2; ++which) {
            const uint64_t key = attn_content_key(a.seed, which, page, head, token);
            *reinterpret_cast<uint2 *>(a.to[which] + at) = content4(key, j, a.bf16);
        }
    }
}

AttnStatus attn_device_fill(const AttnShape *shape, const AttnPool *pool, uint64_t seed,
                            void *stream, AttnCudaError *error)
{
    FillArgs a = {{(uint16_t *)pool->k, (uint16_t *)pool->v},
                  pool->pages * shape->kv_heads * shape->page_size,
                  pool->page_stride,
                  pool->head_stride,
                  pool->token_stride,
                  shape->kv_heads,
                  shape->page_size,
                  shape->head_dim / 4,
                  seed,
                  shape->dtype == ATTN_BF16};
    fill_pool<<<4096, 256, 0, (cudaStream_t)stream>>>(a);
    return launched(error, "filling the pool");
}

static __global__ void fill_queries(uint2 *to, int heads, int quads, int64_t n, const int64_t *keys,
                                    uint64_t seed, bool bf16)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int64_t entry = i / quads;
    const uint64_t key = attn_content_key(seed, 2, keys ? keys[entry / heads] : entry / heads,
                                          (int)(entry % heads), 0);
    to[i] = content4(key, (uint32_t)(i % quads), bf16);
}

AttnStatus attn_device_queries(const AttnShape *shape, void *q, int32_t rows, const int64_t *keys,
                               uint64_t seed, void *stream, AttnCudaError *error)
{
    const int quads = shape->head_dim / 4;
    const int64_t n = (int64_t)rows * shape->q_heads * quads;
    if (n > 0)
        fill_queries<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>(
            (uint2 *)q, shape->q_heads, quads, n, keys, seed, shape->dtype == ATTN_BF16);
    return launched(error, "queries");
}

AttnStatus attn_device_poison(void *to, int64_t count, void *stream, AttnCudaError *error)
{
    cudaMemsetAsync(to, 0xff, 2 * count, (cudaStream_t)stream); /* 0xffff: NaN in both formats */
    return launched(error, "poison");
}

static __global__ void scatter(int32_t *table, const int32_t *where, const int32_t *what, int32_t n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        table[where[i]] = what[i];
}

AttnStatus attn_device_scatter(int32_t *table, const int32_t *where, const int32_t *what, int32_t n,
                               void *stream, AttnCudaError *error)
{
    if (n > 0)
        scatter<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(table, where, what, n);
    return launched(error, "block tables");
}

static __global__ void spin(int64_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((int64_t)(now - begin) < ns);
}

AttnStatus attn_device_spin(int64_t ns, void *stream, AttnCudaError *error)
{
    spin<<<1, 1, 0, (cudaStream_t)stream>>>(ns);
    return launched(error, "spin");
}

static __global__ void empty()
{
}

AttnStatus attn_device_empty(void *stream, AttnCudaError *error)
{
    empty<<<1, 32, 0, (cudaStream_t)stream>>>();
    return launched(error, "empty kernel");
}

template <bool STREAMING> __device__ __forceinline__ uint4 load_once(const uint4 *p)
{
    return STREAMING ? __ldcs(p) : __ldcg(p);
}

template <bool STREAMING>
static __global__ void __launch_bounds__(512) read_all(const uint4 *from, int64_t n, uint4 *sink)
{
    uint4 x = make_uint4(0, 0, 0, 0);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 7 * step < n; i += 8 * step) {
        uint4 y[8];
#pragma unroll
        for (int u = 0; u < 8; ++u)
            y[u] = load_once<STREAMING>(from + i + u * step);
#pragma unroll
        for (int u = 0; u < 8; ++u)
            x.x ^= y[u].x, x.y ^= y[u].y, x.z ^= y[u].z, x.w ^= y[u].w;
    }
    for (; i < n; i += step) {
        const uint4 y = load_once<STREAMING>(from + i);
        x.x ^= y.x, x.y ^= y.y, x.z ^= y.z, x.w ^= y.w;
    }
    if ((x.x ^ x.y ^ x.z ^ x.w) == 0x12345678u && x.x == 0x9abcdef0u)
        *sink = x;
}

AttnStatus attn_device_read(const void *from, int64_t bytes, void *sink, int32_t sms, void *stream,
                            AttnCudaError *error)
{
    read_all<true>
        <<<sms * 2, 512, 0, (cudaStream_t)stream>>>((const uint4 *)from, bytes / 16, (uint4 *)sink);
    return launched(error, "read");
}

AttnStatus attn_device_displace(const void *from, int64_t bytes, void *sink, int32_t sms,
                                void *stream, AttnCudaError *error)
{
    read_all<false>
        <<<sms * 2, 512, 0, (cudaStream_t)stream>>>((const uint4 *)from, bytes / 16, (uint4 *)sink);
    return launched(error, "read");
}
