/* flashinfer-batch: BatchAttention, FlashInfer's persistent kernel for mixed batches.
 *
 * Two CTAs an SM in one cooperative launch; the planner deals out chunks of at most the mean load
 * to the least loaded CTA, and the states are merged behind a grid barrier in the same launch. Its
 * plan is one copy of several MB whatever the batch is.
 *
 * Page offsets are 32-bit products inside: a pool of 2^32 elements a tensor or more is refused
 * here. So is a shape whose states do not fit the work space that the public class allocates.
 */
#include "kernels/peers/peer_frame.cuh"

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

/* What the package's class allocates, without a parameter for more: BatchAttention.__init__ in
 * flashinfer/attention/_core.py. */
constexpr size_t INT_BYTES = 8u << 20;
constexpr size_t FLOAT_BYTES = 384u << 20;

/* What its planner asks of the second, whatever the batch: 4 x CTAs x (128 + 16) rows of partial
 * outputs in fp16 and of sums in fp32, for every KV head (TwoStageHolisticPlan in scheduler.cuh).
 */
int64_t state_bytes(const AttnShape &s, int64_t sms)
{
    return 4 * (2 * sms) * (128 + 16) * (int64_t)s.kv_heads * (2 * s.head_dim + 4);
}

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

    explicit BatchPeer(const PeerConfig &c) : config(c)
    {
        const int64_t states = state_bytes(c.shape, sm_count(c.device));
        if (states > (int64_t)FLOAT_BYTES)
            throw Fault(ATTN_UNSUPPORTED_SHAPE,
                        "its planner wants " + std::to_string(states >> 20) +
                            " MiB for the states of " + std::to_string(c.shape.kv_heads) +
                            " KV heads; its class BatchAttention allocates " +
                            std::to_string(FLOAT_BYTES >> 20) + " MiB and takes no other size");
        tables.create(c, false);
        ints.allocate(INT_BYTES);
        floats.allocate(FLOAT_BYTES);
        pinned.allocate(INT_BYTES);
    }
    void plan(cudaStream_t stream);
    void run(const Call &call);
    int32_t launches() const
    {
        return 1;
    }
    int64_t plan_bytes() const
    {
        return info.num_qo_len_offset + 4;
    }
};

void set_task(Params &p, const BatchPeer &self, int i)
{
    const auto &task = self.info.tasks[i];
    p.q_indptr = self.ints.at<int32_t>(task.q_indptr_offset);
    p.kv_indptr = self.ints.at<int32_t>(task.kv_indptr_offset);
    p.partial_indptr = self.ints.at<int32_t>(task.partial_indptr_offset);
    p.q_len = self.ints.at<int32_t>(task.q_len_offset);
    p.kv_len = self.ints.at<int32_t>(task.kv_len_offset);
    p.q_start = self.ints.at<int32_t>(task.q_start_offset);
    p.kv_start = self.ints.at<int32_t>(task.kv_start_offset);
    p.kv_end = self.ints.at<int32_t>(task.kv_end_offset);
    p.kv_head_idx_arr = self.ints.at<int32_t>(task.kv_head_idx_offset);
    p.work_indptr = self.ints.at<int32_t>(task.work_indptr_offset);
    p.len_kv_chunk = self.ints.at<int32_t>(self.info.len_kv_chunk_offset) + i;
    p.merge_indptr = self.ints.at<int32_t>(self.info.merge_indptr_offset);
    p.merge_o_indices = self.ints.at<int32_t>(self.info.merge_o_indices_offset);
    p.num_packed_qo_len = self.ints.at<int32_t>(self.info.num_qo_len_offset);
    p.partial_o = self.floats.at<half>(self.info.partial_o_offset);
    p.partial_lse = self.floats.at<float>(self.info.partial_lse_offset);
}

Params make_params(const BatchPeer &self, int i, const Call &call)
{
    const AttnShape &s = self.config.shape;
    const AttnPool &pool = call.pool;
    Params p{};
    p.q = static_cast<half *>(const_cast<void *>(call.q));
    p.k = static_cast<half *>(pool.k);
    p.v = static_cast<half *>(pool.v);
    p.final_o = static_cast<half *>(call.out);
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
    p.sm_scale = call.scale;
    p.v_scale = 1.f;
    return p;
}

template <uint32_t D> void run_dim(BatchPeer &self, const Call &call)
{
    const cudaError_t err =
        fi::BatchPagedAttentionPersistent<128, 16, D, D, fi::MaskMode::kNone, true, Variant>(
            make_params(self, 0, call), make_params(self, 1, call), (uint32_t)self.info.num_blks_x,
            (uint32_t)self.info.num_blks_y, call.stream);
    check(err, "BatchPagedAttentionPersistent");
}

void BatchPeer::plan(cudaStream_t stream)
{
    const AttnShape &s = config.shape;
    fence.wait();
    check(fi::TwoStageHolisticPlan<int32_t>(
              floats.data, floats.bytes, ints.data, pinned.data, ints.bytes, info, tables.host_qo(),
              tables.host_indptr(), tables.host_lens(), (uint32_t)tables.rows, (uint32_t)s.q_heads,
              (uint32_t)s.kv_heads, (uint32_t)s.head_dim, /* causal= */ false, stream),
          "TwoStageHolisticPlan");
    fence.mark(stream);
}

void BatchPeer::run(const Call &call)
{
    with_dim(config.shape.head_dim, [&](auto d) { run_dim<d>(*this, call); });
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    const int64_t elements = config->pool.pages * config->pool.page_stride;
    const AttnStatus status = plain_shape(s, arch, error);
    if (status != ATTN_OK)
        return status;
    if (attn_group(&s) > 16)
        return refuse(error, "built for groups of at most 16, not %lld", attn_group(&s));
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

constexpr PeerText TEXT = {
    "flashinfer-batch", "flashinfer-python 0.7.4",
    "BatchAttention (persistent, cooperative launch)",
    "fp16, d 64 and 128, G 1..16, any page size, HND and NHD; pools below 2^32 elements"};
} // namespace

extern "C" const PeerOps peer_flashinfer_batch = peer_ops<BatchPeer>(TEXT, supports, workspace);
