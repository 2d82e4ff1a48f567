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
#include "kernels/peers/peer_common.cuh"

#include "attention_kernels.cuh"

namespace
{
using namespace kvpeers;

constexpr int THREADS = 128, PARTITION = 512, X = 8; /* X: halves in 16 bytes */
constexpr auto PLAIN = vllm::Fp8KVCacheDataType::kAuto;

struct PagedPeer {
    PeerConfig config;
    bool split = false; /* version 2 */
    Tables tables;
    DeviceBuffer k, v, sums, maxima, partial;
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

template <int D, int PAGE>
void run_shape(PagedPeer &self, const void *q, void *out, float scale, cudaStream_t stream)
{
    auto *in = static_cast<const half *>(q);
    auto *to = static_cast<half *>(out);
    if (self.split)
        run_v2<D, PAGE>(self, in, to, scale, stream);
    else
        run_v1<D, PAGE>(self, in, to, scale, stream);
}

AttnStatus supports_shape(const PeerConfig *config, int arch, PeerError *error)
{
    const AttnShape &s = config->shape;
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (s.head_dim != 64 && s.head_dim != 128)
        return refuse(error, "built for head dims 64 and 128, not %lld", s.head_dim);
    if (s.page_size != 16 && s.page_size != 32)
        return refuse(error, "built for pages of 16 and 32, not %lld", s.page_size);
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
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

AttnStatus create(Peer **ret, const PeerConfig *config, bool split, PeerError *error)
{
    PagedPeer *self = nullptr;
    const AttnStatus status = guarded(error, [&] {
        self = new PagedPeer;
        self->config = *config;
        self->split = split;
        self->tables.create(*config, true);
        self->k.allocate((size_t)pool_bytes(*config));
        self->v.allocate((size_t)pool_bytes(*config));
        if (split) {
            const size_t n = (size_t)state_elements(*config);
            self->sums.allocate(n * sizeof(float));
            self->maxima.allocate(n * sizeof(float));
            self->partial.allocate(n * (size_t)config->shape.head_dim * sizeof(uint16_t));
        }
        const AttnPool &p = config->pool;
        const AttnShape &s = config->shape;
        reorder<<<8 * sm_count(config->device), 256>>>(
            static_cast<const uint16_t *>(p.k), static_cast<const uint16_t *>(p.v),
            self->k.as<uint16_t>(), self->v.as<uint16_t>(), p.pages, s.kv_heads, s.page_size,
            s.head_dim, p.page_stride, p.head_stride, p.token_stride);
        check(cudaGetLastError(), "copy of the pool");
        check(cudaDeviceSynchronize(), "copy of the pool");
    });
    if (status != ATTN_OK)
        delete self;
    else
        *ret = reinterpret_cast<Peer *>(self);
    return status;
}

AttnStatus create_v1(Peer **ret, const PeerConfig *config, PeerError *error)
{
    return create(ret, config, false, error);
}

AttnStatus create_v2(Peer **ret, const PeerConfig *config, PeerError *error)
{
    return create(ret, config, true, error);
}

PagedPeer &of(Peer *self)
{
    return *reinterpret_cast<PagedPeer *>(self);
}

AttnStatus tables(Peer *self, int32_t rows, const int32_t *lens, const int32_t *table,
                  const int32_t *offset, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        of(self).tables.set(rows, lens, table, offset, static_cast<cudaStream_t>(stream));
    });
}

/* Nothing is planned: the grid follows from the rows and the longest of them. */
AttnStatus plan(Peer *, void *, PeerError *)
{
    return ATTN_OK;
}

AttnStatus run(Peer *peer, const void *q, void *out, float scale, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        PagedPeer &self = of(peer);
        const cudaStream_t on = static_cast<cudaStream_t>(stream);
        const AttnShape &s = self.config.shape;
        if (s.head_dim == 64 && s.page_size == 16)
            run_shape<64, 16>(self, q, out, scale, on);
        else if (s.head_dim == 64)
            run_shape<64, 32>(self, q, out, scale, on);
        else if (s.page_size == 16)
            run_shape<128, 16>(self, q, out, scale, on);
        else
            run_shape<128, 32>(self, q, out, scale, on);
    });
}

int32_t launches(const Peer *peer)
{
    return reinterpret_cast<const PagedPeer *>(peer)->split ? 2 : 1;
}

int64_t plan_bytes(const Peer *)
{
    return 0;
}

void destroy(Peer *self)
{
    delete reinterpret_cast<PagedPeer *>(self);
}
} // namespace

extern "C" const PeerOps peer_vllm_pa1 = {
    "vllm-pa1",
    "vllm 0.20.2",
    "paged_attention_v1",
    "fp16, d 64 and 128, any G, pages of 16 and 32; rows as long as shared memory allows",
    1,
    nullptr,
    1,
    supports_v1,
    workspace_v1,
    create_v1,
    tables,
    plan,
    run,
    launches,
    plan_bytes,
    destroy,
};

extern "C" const PeerOps peer_vllm_pa2 = {
    "vllm-pa2",
    "vllm 0.20.2",
    "paged_attention_v2, partitions of 512 tokens",
    "fp16, d 64 and 128, any G, pages of 16 and 32",
    1,
    nullptr,
    1,
    supports_v2,
    workspace_v2,
    create_v2,
    tables,
    plan,
    run,
    launches,
    plan_bytes,
    destroy,
};
