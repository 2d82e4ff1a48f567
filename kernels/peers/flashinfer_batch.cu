/* flashinfer-batch: BatchAttention, FlashInfer's persistent kernel for mixed batches.
 *
 * Two CTAs an SM in one cooperative launch; the planner deals out chunks of at most the mean load
 * to the least loaded CTA, and the states are merged behind a grid barrier in the same launch. Its
 * plan is one copy of several MB whatever the batch is.
 *
 * Page offsets are 32-bit products inside: a pool of 2^32 elements a tensor or more is refused
 * here.
 */
#include "kernels/peers/peer_common.cuh"

#include <flashinfer/attention/mask.cuh>
#include <flashinfer/attention/persistent.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variant_helper.cuh>
#include <flashinfer/fastdiv.cuh>
#include <flashinfer/math.cuh>
#include <flashinfer/profiler.cuh>

namespace
{
using namespace kvpeers;
namespace fi = flashinfer;

constexpr size_t INT_BYTES = 8u << 20;     /* what its Python wrapper takes */
constexpr size_t FLOAT_BYTES = 384u << 20; /* likewise */

/* Field names are those that the kernel's template reads. */
struct Params {
    using DTypeQ = half;
    using DTypeKV = half;
    using DTypeO = half;
    using IdType = int32_t;
    half *q, *k, *v, *o, *partial_o;
    float *partial_lse;
    half *final_o;
    float *final_lse;
    int32_t *q_indptr, *kv_indptr, *partial_indptr, *kv_indices, *q_len, *kv_len, *q_start,
        *kv_start, *kv_end, *kv_head_idx_arr, *work_indptr, *len_kv_chunk;
    int32_t *merge_indptr, *merge_o_indices, *num_packed_qo_len;
    uint32_t num_kv_heads;
    fi::uint_fastdiv gqa_group_size, page_size;
    uint32_t q_stride_n, q_stride_h;
    uint32_t k_stride_page, k_stride_h, k_stride_n, v_stride_page, v_stride_h, v_stride_n;
    uint32_t k_sf_stride_page, k_sf_stride_h, k_sf_stride_n, v_sf_stride_page, v_sf_stride_h,
        v_sf_stride_n;
    float sm_scale, logits_soft_cap, v_scale;
};

/* Plain softmax attention; the package's own variant of this name lives in a template for its
 * run-time compiler. */
struct Variant : fi::AttentionVariantBase {
    static constexpr bool use_softmax = true, use_logits_soft_cap = false;
    float sm_scale_log2;
    template <typename P>
    __device__ __host__ Variant(const P &params, uint32_t, uint8_t *)
        : sm_scale_log2(params.sm_scale * fi::math::log2e)
    {
    }
};

struct BatchPeer {
    PeerConfig config;
    Tables tables;
    DeviceBuffer ints, floats;
    PinnedBuffer pinned;
    Fence fence;
    fi::HolisticPlanInfo<2> info;
};

template <typename T> T *at(const DeviceBuffer &buffer, int64_t offset)
{
    return reinterpret_cast<T *>(buffer.as<char>() + offset);
}

void set_task(Params &p, const BatchPeer &self, int i)
{
    const auto &task = self.info.tasks[i];
    p.q_indptr = at<int32_t>(self.ints, task.q_indptr_offset);
    p.kv_indptr = at<int32_t>(self.ints, task.kv_indptr_offset);
    p.partial_indptr = at<int32_t>(self.ints, task.partial_indptr_offset);
    p.q_len = at<int32_t>(self.ints, task.q_len_offset);
    p.kv_len = at<int32_t>(self.ints, task.kv_len_offset);
    p.q_start = at<int32_t>(self.ints, task.q_start_offset);
    p.kv_start = at<int32_t>(self.ints, task.kv_start_offset);
    p.kv_end = at<int32_t>(self.ints, task.kv_end_offset);
    p.kv_head_idx_arr = at<int32_t>(self.ints, task.kv_head_idx_offset);
    p.work_indptr = at<int32_t>(self.ints, task.work_indptr_offset);
    p.len_kv_chunk = at<int32_t>(self.ints, self.info.len_kv_chunk_offset) + i;
    p.merge_indptr = at<int32_t>(self.ints, self.info.merge_indptr_offset);
    p.merge_o_indices = at<int32_t>(self.ints, self.info.merge_o_indices_offset);
    p.num_packed_qo_len = at<int32_t>(self.ints, self.info.num_qo_len_offset);
    p.partial_o = at<half>(self.floats, self.info.partial_o_offset);
    p.partial_lse = at<float>(self.floats, self.info.partial_lse_offset);
}

Params make_params(const BatchPeer &self, int i, const void *q, void *out, float scale)
{
    const AttnShape &s = self.config.shape;
    const AttnPool &pool = self.config.pool;
    Params p{};
    p.q = static_cast<half *>(const_cast<void *>(q));
    p.k = static_cast<half *>(pool.k);
    p.v = static_cast<half *>(pool.v);
    p.final_o = static_cast<half *>(out);
    p.kv_indices = self.tables.ids();
    set_task(p, self, i);
    p.num_kv_heads = (uint32_t)s.kv_heads;
    p.gqa_group_size = fi::uint_fastdiv((uint32_t)attn_group(&s));
    p.page_size = fi::uint_fastdiv((uint32_t)s.page_size);
    p.q_stride_n = (uint32_t)(s.q_heads * s.head_dim);
    p.q_stride_h = (uint32_t)s.head_dim;
    p.k_stride_page = p.v_stride_page = (uint32_t)pool.page_stride;
    p.k_stride_h = p.v_stride_h = (uint32_t)pool.head_stride;
    p.k_stride_n = p.v_stride_n = (uint32_t)pool.token_stride;
    p.sm_scale = scale;
    p.v_scale = 1.f;
    return p;
}

template <uint32_t D>
void run_dim(BatchPeer &self, const void *q, void *out, float scale, cudaStream_t stream)
{
    const cudaError_t err =
        fi::BatchPagedAttentionPersistent<128, 16, D, D, fi::MaskMode::kNone, true, Variant>(
            make_params(self, 0, q, out, scale), make_params(self, 1, q, out, scale),
            (uint32_t)self.info.num_blks_x, (uint32_t)self.info.num_blks_y, stream);
    check(err, "BatchPagedAttentionPersistent");
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    const int64_t elements = config->pool.pages * config->pool.page_stride;
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (s.head_dim != 64 && s.head_dim != 128)
        return refuse(error, "built for head dims 64 and 128, not %lld", s.head_dim);
    if (attn_group(&s) > 16)
        return refuse(error, "built for groups of at most 16, not %lld", attn_group(&s));
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
    if (elements >= ((int64_t)1 << 32))
        return refuse(error,
                      "its page offsets are 32 bits wide: %lld pages x %lld elements >= 2^32",
                      config->pool.pages, config->pool.page_stride);
    if (config->settings.graph)
        return refuse(error, "its plan does not promise the same grid for replay from a graph");
    return ATTN_OK;
}

int64_t workspace(const PeerConfig *config)
{
    return (int64_t)(INT_BYTES + FLOAT_BYTES) + 4 * (config->max_pages + 4 * config->max_rows + 4);
}

AttnStatus create(Peer **ret, const PeerConfig *config, PeerError *error)
{
    BatchPeer *self = nullptr;
    const AttnStatus status = guarded(error, [&] {
        self = new BatchPeer;
        self->config = *config;
        self->tables.create(*config, false);
        self->ints.allocate(INT_BYTES);
        self->floats.allocate(FLOAT_BYTES);
        self->pinned.allocate(INT_BYTES);
    });
    if (status != ATTN_OK)
        delete self;
    else
        *ret = reinterpret_cast<Peer *>(self);
    return status;
}

BatchPeer &of(Peer *self)
{
    return *reinterpret_cast<BatchPeer *>(self);
}

AttnStatus tables(Peer *self, int32_t rows, const int32_t *lens, const int32_t *table,
                  const int32_t *offset, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        of(self).tables.set(rows, lens, table, offset, static_cast<cudaStream_t>(stream));
    });
}

AttnStatus plan(Peer *peer, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        BatchPeer &self = of(peer);
        const AttnShape &s = self.config.shape;
        self.fence.wait();
        check(fi::TwoStageHolisticPlan<int32_t>(
                  self.floats.data, self.floats.bytes, self.ints.data, self.pinned.data,
                  self.ints.bytes, self.info, self.tables.host_qo(), self.tables.host_indptr(),
                  self.tables.host_lens(), (uint32_t)self.tables.rows, (uint32_t)s.q_heads,
                  (uint32_t)s.kv_heads, (uint32_t)s.head_dim, /* causal= */ false,
                  static_cast<cudaStream_t>(stream)),
              "TwoStageHolisticPlan");
        self.fence.mark(static_cast<cudaStream_t>(stream));
    });
}

AttnStatus run(Peer *peer, const void *q, void *out, float scale, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        BatchPeer &self = of(peer);
        if (self.config.shape.head_dim == 64)
            run_dim<64>(self, q, out, scale, static_cast<cudaStream_t>(stream));
        else
            run_dim<128>(self, q, out, scale, static_cast<cudaStream_t>(stream));
    });
}

int32_t launches(const Peer *)
{
    return 1;
}

int64_t plan_bytes(const Peer *peer)
{
    return reinterpret_cast<const BatchPeer *>(peer)->info.num_qo_len_offset + 4;
}

void destroy(Peer *self)
{
    delete reinterpret_cast<BatchPeer *>(self);
}
} // namespace

extern "C" const PeerOps peer_flashinfer_batch = {
    "flashinfer-batch",
    "flashinfer-python 0.7.4",
    "BatchAttention (persistent, cooperative launch)",
    "fp16, d 64 and 128, G 1..16, any page size, HND and NHD; pools below 2^32 elements",
    1,
    nullptr,
    0,
    supports,
    workspace,
    create,
    tables,
    plan,
    run,
    launches,
    plan_bytes,
    destroy,
};
