/* vllm-pa1, vllm-pa2: vLLM's paged attention kernels, versions 1 and 2.
 *
 * v1: one CTA per (row, query head), all scores of the row in shared memory, so the longest row is
 * bounded by it. v2: partitions of 512 tokens in a rectangular grid, then a reduction. Every query
 * head reads K and V for itself. vLLM used v1 where the longest row has at most 8192 tokens and the
 * grid is large (rows x heads > 512, or one partition), else v2; here both are routes.
 *
 * Order inside a page: K [kv_head][d / 8][token][8], V [kv_head][d][token]. The shim keeps a copy
 * of the pool in that order (same page ids), made once by create().
 *
 * The package's kernel header includes PyTorch's, which the kernels do not use: standin/ has empty
 * files of those names.
 */
#include "kernels/peers/peer_frame.cuh"

#include "attention_kernels.cuh"

namespace
{
using namespace kvpeers;

constexpr int THREADS = 128, PARTITION = 512, X = 8; /* X: halves in 16 bytes */
constexpr auto PLAIN = vllm::Fp8KVCacheDataType::kAuto;

/* What both versions have; `split`: version 2. */
struct PagedPeer {
    PeerConfig config;
    Tables tables;
    DeviceBuffer k, v, sums, maxima, partial;

    PagedPeer(const PeerConfig &c, bool split);
    /* Nothing is planned: the grid follows from the rows and the longest of them. */
    void plan(cudaStream_t)
    {
    }
    int64_t plan_bytes() const
    {
        return 0;
    }
};

__global__ void reorder(const uint16_t *k, const uint16_t *v, uint16_t *to_k, uint16_t *to_v,
                        int64_t pages, int32_t heads, int32_t page, int32_t d, int64_t page_stride,
                        int32_t head_stride, int32_t token_stride)
{
    const int64_t per_page = (int64_t)heads * page * d, n = pages * per_page;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t p = i / per_page, rest = i % per_page;
        const int32_t h = (int32_t)(rest / (page * d)), in = (int32_t)(rest % (page * d));
        const int32_t kt = in / X % page, kd = in / (X * page) * X + in % X; /* K's order */
        const int32_t vt = in % page, vd = in / page;                        /* V's order */
        const int64_t base = p * page_stride + (int64_t)h * head_stride;
        to_k[i] = k[base + (int64_t)kt * token_stride + kd];
        to_v[i] = v[base + (int64_t)vt * token_stride + vd];
    }
}

int64_t partitions(int32_t len)
{
    return (len + PARTITION - 1) / PARTITION;
}

int64_t pool_bytes(const PeerConfig &config)
{
    return attn_pool_bytes(&config.shape, config.pool.pages);
}

int64_t state_elements(const PeerConfig &config)
{
    return (int64_t)config.max_rows * config.shape.q_heads * partitions(config.max_len);
}

/* Scores of the whole row, v1; of a partition, v2. Half the warps' outputs share the room. */
int64_t shared_bytes(const AttnShape &s, int64_t tokens)
{
    const int64_t padded = (tokens + s.page_size - 1) / s.page_size * s.page_size;
    const int64_t outputs = (THREADS / 32 / 2) * s.head_dim;
    return (padded > outputs ? padded : outputs) * (int64_t)sizeof(float);
}

template <int D, int PAGE>
void run_v1(PagedPeer &self, const half *q, half *out, float scale, cudaStream_t stream)
{
    using T = uint16_t;
    const AttnShape &s = self.config.shape;
    const size_t shared = (size_t)shared_bytes(s, self.tables.longest);
    auto kernel = vllm::paged_attention_v1_kernel<T, T, D, PAGE, THREADS, PLAIN, false>;
    check(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)shared),
          "shared memory of paged_attention_v1");
    kernel<<<dim3((unsigned)s.q_heads, (unsigned)self.tables.rows), THREADS, shared, stream>>>(
        (T *)out, (const T *)q, self.k.as<T>(), self.v.as<T>(), s.kv_heads, scale,
        self.tables.ids(), self.tables.lens(), self.tables.width, nullptr, s.q_heads * D,
        s.kv_heads * PAGE * D, PAGE * D, nullptr, nullptr, 0, 0, 0, 0, 0);
    check(cudaGetLastError(), "paged_attention_v1");
}

template <int D, int PAGE>
void run_v2(PagedPeer &self, const half *q, half *out, float scale, cudaStream_t stream)
{
    using T = uint16_t;
    const AttnShape &s = self.config.shape;
    const unsigned parts = (unsigned)partitions(self.tables.longest);
    const size_t shared = (size_t)shared_bytes(s, PARTITION);
    auto kernel = vllm::paged_attention_v2_kernel<T, T, D, PAGE, THREADS, PLAIN, false, PARTITION>;
    kernel<<<dim3((unsigned)s.q_heads, (unsigned)self.tables.rows, parts), THREADS, shared,
             stream>>>(self.sums.as<float>(), self.maxima.as<float>(), self.partial.as<T>(),
                       (const T *)q, self.k.as<T>(), self.v.as<T>(), s.kv_heads, scale,
                       self.tables.ids(), self.tables.lens(), self.tables.width, nullptr,
                       s.q_heads * D, s.kv_heads * PAGE * D, PAGE * D, nullptr, nullptr, 0, 0, 0, 0,
                       0);
    check(cudaGetLastError(), "paged_attention_v2");
    vllm::paged_attention_v2_reduce_kernel<T, D, THREADS, PARTITION>
        <<<dim3((unsigned)s.q_heads, (unsigned)self.tables.rows), THREADS,
           2 * parts * sizeof(float), stream>>>((T *)out, self.sums.as<float>(),
                                                self.maxima.as<float>(), self.partial.as<T>(),
                                                self.tables.lens(), (int)parts);
    check(cudaGetLastError(), "paged_attention_v2_reduce");
}

template <bool SPLIT, int D, int PAGE> void run_shape(PagedPeer &self, const Call &call)
{
    auto *in = static_cast<const half *>(call.q);
    auto *to = static_cast<half *>(call.out);
    if (SPLIT)
        run_v2<D, PAGE>(self, in, to, call.scale, call.stream);
    else
        run_v1<D, PAGE>(self, in, to, call.scale, call.stream);
}

template <bool SPLIT> struct Version : PagedPeer {
    explicit Version(const PeerConfig &c) : PagedPeer(c, SPLIT)
    {
    }
    void run(const Call &call)
    {
        with_dim(config.shape.head_dim, [&](auto d) {
            if (config.shape.page_size == 16)
                run_shape<SPLIT, d, 16>(*this, call);
            else
                run_shape<SPLIT, d, 32>(*this, call);
        });
    }
    int32_t launches() const
    {
        return SPLIT ? 2 : 1;
    }
};

PagedPeer::PagedPeer(const PeerConfig &c, bool split) : config(c)
{
    const AttnPool &p = c.pool;
    const AttnShape &s = c.shape;
    tables.create(c, true);
    k.allocate((size_t)pool_bytes(c));
    v.allocate((size_t)pool_bytes(c));
    if (split) {
        const size_t n = (size_t)state_elements(c);
        sums.allocate(n * sizeof(float));
        maxima.allocate(n * sizeof(float));
        partial.allocate(n * (size_t)s.head_dim * sizeof(uint16_t));
    }
    reorder<<<8 * sm_count(c.device), 256>>>(
        static_cast<const uint16_t *>(p.k), static_cast<const uint16_t *>(p.v), k.as<uint16_t>(),
        v.as<uint16_t>(), p.pages, s.kv_heads, s.page_size, s.head_dim, p.page_stride,
        p.head_stride, p.token_stride);
    check(cudaGetLastError(), "copy of the pool");
    check(cudaDeviceSynchronize(), "copy of the pool");
}

AttnStatus supports_shape(const PeerConfig *config, int arch, PeerError *error)
{
    const AttnShape &s = config->shape;
    const AttnStatus status = plain_shape(s, arch, error);
    if (status != ATTN_OK)
        return status;
    if (s.page_size != 16 && s.page_size != 32)
        return refuse(error, "built for pages of 16 and 32, not %lld", s.page_size);
    return ATTN_OK;
}

AttnStatus supports_v1(const PeerConfig *config, int arch, int64_t shared, PeerError *error)
{
    const AttnStatus status = supports_shape(config, arch, error);
    if (status != ATTN_OK)
        return status;
    const int64_t need = shared_bytes(config->shape, config->max_len);
    if (need > shared)
        return refuse(error, "keeps all scores of a row in shared memory: %lld x 4 B > %lld B",
                      config->max_len, shared);
    return ATTN_OK;
}

AttnStatus supports_v2(const PeerConfig *config, int arch, int64_t shared, PeerError *error)
{
    (void)shared;
    return supports_shape(config, arch, error);
}

int64_t table_bytes(const PeerConfig *config)
{
    const int64_t width = (config->max_len + config->shape.page_size - 1) / config->shape.page_size;
    return 4 * (config->max_rows * width + 4 * config->max_rows + 4);
}

int64_t workspace_v1(const PeerConfig *config)
{
    return 2 * pool_bytes(*config) + table_bytes(config);
}

int64_t workspace_v2(const PeerConfig *config)
{
    return workspace_v1(config) +
           state_elements(*config) * (8 + 2 * (int64_t)config->shape.head_dim);
}

constexpr PeerText TEXT_V1 = {
    "vllm-pa1", "vllm 0.20.2", "paged_attention_v1",
    "fp16, d 64 and 128, any G, pages of 16 and 32; rows as long as shared memory allows"};
constexpr PeerText TEXT_V2 = {"vllm-pa2", "vllm 0.20.2",
                              "paged_attention_v2, partitions of 512 tokens",
                              "fp16, d 64 and 128, any G, pages of 16 and 32"};
} // namespace

extern "C" const PeerOps peer_vllm_pa1 =
    peer_ops<Version<false>>(TEXT_V1, supports_v1, workspace_v1, true);
extern "C" const PeerOps peer_vllm_pa2 =
    peer_ops<Version<true>>(TEXT_V2, supports_v2, workspace_v2, true);
