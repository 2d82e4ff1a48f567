/* flashinfer-tc: the FA2 prefill kernel with one query a row, on tensor cores.
 *
 * It is what FlashInfer's decode wrapper runs with use_tensor_cores (and what serving engines that
 * use it set for groups of 4 and more). The G query heads of a KV head are packed into a tile
 * of 16. One chunk length for the batch: the smallest whose tiles fit into two CTAs an SM, or, with
 * settings.split_tokens, the given one (its fixed_split_size).
 * Compiled a second time against release 0.2.5 (KV_FLASHINFER_LEGACY), without fixed chunks.
 */
#include "kernels/peers/peer_frame.cuh"

#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/mask.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <flashinfer/page.cuh>

#include "kernels/peers/flashinfer_release.cuh"

namespace
{
using namespace kvpeers;
namespace fi = flashinfer;

using Params = fi::BatchPrefillPagedParams<half, half, half, int32_t>;
using Variant = fi::DefaultAttention<false, false, false, false>;

constexpr size_t INT_BYTES = 8u << 20;
constexpr int64_t TILE_Q = 16; /* the tile that the planner picks for G <= 16 and one query */

/* Split states: Hq x ceil(tiles x 16 / G) rows of (d + 1) floats; tiles is at most two CTAs an SM
 * over the KV heads, or, with a fixed chunk, the chunks of the longest batch. (The older release
 * keeps 16 rows a tile whatever G is.) */
int64_t float_bytes(const PeerConfig &config, int64_t sms)
{
    const AttnShape &s = config.shape;
    int64_t tiles = 2 * sms / s.kv_heads + config.max_rows;
    if (config.settings.split_tokens > 0)
        tiles += config.max_pages * s.page_size / config.settings.split_tokens + config.max_rows;
    const int64_t rows = tiles * TILE_Q;
    return (int64_t)s.q_heads * rows * (s.head_dim + 1) * 4 + (16 << 20);
}

struct PrefillPeer {
    PeerConfig config;
    bool pdl = false;
    Tables tables;
    DeviceBuffer ints, floats;
    PinnedBuffer pinned;
    Fence fence;
    fi::PrefillPlanInfo info;

    explicit PrefillPeer(const PeerConfig &c) : config(c), pdl(wants_pdl(c))
    {
        tables.create(c, false);
        ints.allocate(INT_BYTES);
        floats.allocate((size_t)float_bytes(c, sm_count(c.device)));
        pinned.allocate(INT_BYTES);
    }
    void plan(cudaStream_t stream);
    void run(const Call &call);
    int32_t launches() const
    {
        return info.split_kv ? 2 : 1;
    }
    /* The arrays lie in the order of the plan's offsets; the last one ends the copy. */
    int64_t plan_bytes() const
    {
        if (info.enable_cuda_graph)
            return info.block_valid_mask_offset + info.padded_batch_size;
        return info.split_kv ? info.merge_indptr_offset + 4 * (info.total_num_rows + 1)
                             : info.kv_chunk_size_ptr_offset + 4;
    }
};

Params make_params(const PrefillPeer &self, const Call &call)
{
    const AttnShape &s = self.config.shape;
    const fi::PrefillPlanInfo &info = self.info;
    const auto layout = s.layout == ATTN_HND ? fi::QKVLayout::kHND : fi::QKVLayout::kNHD;
    fi::paged_kv_t<half, int32_t> kv((uint32_t)s.kv_heads, (uint32_t)s.page_size,
                                     (uint32_t)s.head_dim, (uint32_t)self.tables.rows, layout,
                                     static_cast<half *>(call.pool.k),
                                     static_cast<half *>(call.pool.v), self.tables.ids(),
                                     self.tables.indptr(), self.tables.last());
    Params params(static_cast<half *>(const_cast<void *>(call.q)), kv, nullptr, self.tables.qo(),
                  nullptr, nullptr, static_cast<half *>(call.out), nullptr, nullptr,
                  (uint32_t)s.q_heads, s.q_heads * s.head_dim, s.head_dim, -1, 0.f, call.scale, 1.f,
                  1e4f);
    params.request_indices = self.ints.at<int32_t>(info.request_indices_offset);
    params.qo_tile_indices = self.ints.at<int32_t>(info.qo_tile_indices_offset);
    params.kv_tile_indices = self.ints.at<int32_t>(info.kv_tile_indices_offset);
    params.o_indptr = self.ints.at<int32_t>(info.o_indptr_offset);
    params.kv_chunk_size_ptr = self.ints.at<int32_t>(info.kv_chunk_size_ptr_offset);
    if (info.split_kv)
        params.merge_indptr = self.ints.at<int32_t>(info.merge_indptr_offset);
    if (info.enable_cuda_graph) {
        params.block_valid_mask = self.ints.at<bool>(info.block_valid_mask_offset);
        params.total_num_rows = self.ints.at<uint32_t>(info.total_num_rows_offset);
    }
    params.padded_batch_size = (uint32_t)info.padded_batch_size;
    params.max_total_num_rows = (uint32_t)info.total_num_rows;
    return params;
}

template <uint32_t D> void run_dim(PrefillPeer &self, const Call &call)
{
    half *tmp_v = nullptr;
    float *tmp_s = nullptr;
    if (self.info.split_kv) {
        tmp_v = self.floats.at<half>(self.info.v_offset);
        tmp_s = self.floats.at<float>(self.info.s_offset);
    }
    check(kv_prefill_dispatch<D, Variant>(make_params(self, call), tmp_v, tmp_s, self.pdl,
                                          call.stream),
          "BatchPrefillWithPagedKVCache");
}

void PrefillPeer::plan(cudaStream_t stream)
{
    const AttnShape &s = config.shape;
    fence.wait();
    check(kv_prefill_plan(floats.data, floats.bytes, ints.data, pinned.data, ints.bytes, info,
                          tables.host_qo(), tables.host_indptr(), (uint32_t)tables.rows,
                          (uint32_t)s.q_heads, (uint32_t)s.kv_heads, (uint32_t)s.head_dim,
                          (uint32_t)s.page_size, config.settings.graph != 0,
                          config.settings.split_tokens / s.page_size, stream),
          "PrefillPlan");
    if (info.cta_tile_q != TILE_Q)
        throw Fault(ATTN_UNSUPPORTED_SHAPE, "the planner picked a tile that is not built");
    fence.mark(stream);
}

void PrefillPeer::run(const Call &call)
{
    with_dim(config.shape.head_dim, [&](auto d) { run_dim<d>(*this, call); });
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    const AttnStatus status = plain_shape(s, arch, error);
    if (status != ATTN_OK)
        return status;
    if (attn_group(&s) > TILE_Q)
        return refuse(error, "built for groups of at most 16, not %lld", attn_group(&s));
    if (!plain_strides(config->pool, s))
        return refuse(error, "reads pools with plain strides only");
    if (config->settings.split_tokens % s.page_size != 0)
        return refuse(error, "split_tokens=%lld is no multiple of the page size %lld",
                      config->settings.split_tokens, s.page_size);
    if (config->settings.split_tokens > 0 && config->settings.graph)
        return refuse(error, "refuses fixed chunks under CUDA graphs beyond 2 x SMs / Hkv tiles");
#ifdef KV_FLASHINFER_LEGACY
    if (config->settings.split_tokens > 0)
        return refuse(error, "this release has no fixed_split_size");
#endif
    return ATTN_OK;
}

int64_t workspace(const PeerConfig *config)
{
    return (int64_t)INT_BYTES + float_bytes(*config, 256) +
           4 * (config->max_pages + 4 * config->max_rows + 4);
}

constexpr PeerText TEXT = {KV_PEER_NAME("flashinfer-tc"), KV_PEER_PACKAGE,
                           "BatchPrefillWithPagedKVCache, FA2, one query a row (use_tensor_cores)",
                           "fp16, d 64 and 128, G 1..16, any page size, HND and NHD"};
} // namespace

extern "C" const PeerOps KV_PEER_SYMBOL(flashinfer_tc) = peer_ops<PrefillPeer>(TEXT, supports,
                                                                               workspace);
