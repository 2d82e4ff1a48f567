/* flashinfer-tc: the FA2 prefill kernel with one query a row, on tensor cores.
 *
 * It is what FlashInfer's decode wrapper runs with use_tensor_cores (and what serving engines that
 * use it set for groups of 4 and more). The G query heads of a KV head are packed into a tile
 * of 16. One chunk length for the batch: the smallest whose tiles fit into two CTAs an SM, or, with
 * settings.split_tokens, the given one (its fixed_split_size).
 * Compiled a second time against release 0.2.5 (KV_FLASHINFER_LEGACY), without fixed chunks.
 */
#include "kernels/peers/peer_common.cuh"

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

struct PrefillPeer {
    PeerConfig config;
    bool pdl = false;
    Tables tables;
    DeviceBuffer ints, floats;
    PinnedBuffer pinned;
    Fence fence;
    fi::PrefillPlanInfo info;
};

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

template <typename T> T *at(const DeviceBuffer &buffer, int64_t offset)
{
    return reinterpret_cast<T *>(buffer.as<char>() + offset);
}

Params make_params(const PrefillPeer &self, const void *q, void *out, float scale)
{
    const AttnShape &s = self.config.shape;
    const fi::PrefillPlanInfo &info = self.info;
    const auto layout = s.layout == ATTN_HND ? fi::QKVLayout::kHND : fi::QKVLayout::kNHD;
    fi::paged_kv_t<half, int32_t> kv((uint32_t)s.kv_heads, (uint32_t)s.page_size,
                                     (uint32_t)s.head_dim, (uint32_t)self.tables.rows, layout,
                                     static_cast<half *>(self.config.pool.k),
                                     static_cast<half *>(self.config.pool.v), self.tables.ids(),
                                     self.tables.indptr(), self.tables.last());
    Params params(static_cast<half *>(const_cast<void *>(q)), kv, nullptr, self.tables.qo(),
                  nullptr, nullptr, static_cast<half *>(out), nullptr, nullptr, (uint32_t)s.q_heads,
                  s.q_heads * s.head_dim, s.head_dim, -1, 0.f, scale, 1.f, 1e4f);
    params.request_indices = at<int32_t>(self.ints, info.request_indices_offset);
    params.qo_tile_indices = at<int32_t>(self.ints, info.qo_tile_indices_offset);
    params.kv_tile_indices = at<int32_t>(self.ints, info.kv_tile_indices_offset);
    params.o_indptr = at<int32_t>(self.ints, info.o_indptr_offset);
    params.kv_chunk_size_ptr = at<int32_t>(self.ints, info.kv_chunk_size_ptr_offset);
    if (info.split_kv)
        params.merge_indptr = at<int32_t>(self.ints, info.merge_indptr_offset);
    if (info.enable_cuda_graph) {
        params.block_valid_mask = at<bool>(self.ints, info.block_valid_mask_offset);
        params.total_num_rows = at<uint32_t>(self.ints, info.total_num_rows_offset);
    }
    params.padded_batch_size = (uint32_t)info.padded_batch_size;
    params.max_total_num_rows = (uint32_t)info.total_num_rows;
    return params;
}

template <uint32_t D>
void run_dim(PrefillPeer &self, const void *q, void *out, float scale, cudaStream_t stream)
{
    half *tmp_v = nullptr;
    float *tmp_s = nullptr;
    if (self.info.split_kv) {
        tmp_v = at<half>(self.floats, self.info.v_offset);
        tmp_s = at<float>(self.floats, self.info.s_offset);
    }
    check(kv_prefill_dispatch<D, Variant>(make_params(self, q, out, scale), tmp_v, tmp_s, self.pdl,
                                          stream),
          "BatchPrefillWithPagedKVCache");
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (s.head_dim != 64 && s.head_dim != 128)
        return refuse(error, "built for head dims 64 and 128, not %lld", s.head_dim);
    if (attn_group(&s) > TILE_Q)
        return refuse(error, "built for groups of at most 16, not %lld", attn_group(&s));
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
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

AttnStatus create(Peer **ret, const PeerConfig *config, PeerError *error)
{
    PrefillPeer *self = nullptr;
    const AttnStatus status = guarded(error, [&] {
        self = new PrefillPeer;
        self->config = *config;
        self->pdl = wants_pdl(*config);
        self->tables.create(*config, false);
        self->ints.allocate(INT_BYTES);
        self->floats.allocate((size_t)float_bytes(*config, sm_count(config->device)));
        self->pinned.allocate(INT_BYTES);
    });
    if (status != ATTN_OK)
        delete self;
    else
        *ret = reinterpret_cast<Peer *>(self);
    return status;
}

PrefillPeer &of(Peer *self)
{
    return *reinterpret_cast<PrefillPeer *>(self);
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
        PrefillPeer &self = of(peer);
        const AttnShape &s = self.config.shape;
        self.fence.wait();
        check(kv_prefill_plan(self.floats.data, self.floats.bytes, self.ints.data, self.pinned.data,
                              self.ints.bytes, self.info, self.tables.host_qo(),
                              self.tables.host_indptr(), (uint32_t)self.tables.rows,
                              (uint32_t)s.q_heads, (uint32_t)s.kv_heads, (uint32_t)s.head_dim,
                              (uint32_t)s.page_size, self.config.settings.graph != 0,
                              self.config.settings.split_tokens / s.page_size,
                              static_cast<cudaStream_t>(stream)),
              "PrefillPlan");
        if (self.info.cta_tile_q != TILE_Q)
            throw Fault(ATTN_UNSUPPORTED_SHAPE, "the planner picked a tile that is not built");
        self.fence.mark(static_cast<cudaStream_t>(stream));
    });
}

AttnStatus run(Peer *peer, const void *q, void *out, float scale, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        PrefillPeer &self = of(peer);
        if (self.config.shape.head_dim == 64)
            run_dim<64>(self, q, out, scale, static_cast<cudaStream_t>(stream));
        else
            run_dim<128>(self, q, out, scale, static_cast<cudaStream_t>(stream));
    });
}

int32_t launches(const Peer *peer)
{
    return reinterpret_cast<const PrefillPeer *>(peer)->info.split_kv ? 2 : 1;
}

/* The arrays lie in the order of the plan's offsets; the last one ends the copy. */
int64_t plan_bytes(const Peer *peer)
{
    const PrefillPeer &self = *reinterpret_cast<const PrefillPeer *>(peer);
    const fi::PrefillPlanInfo &i = self.info;
    if (i.enable_cuda_graph)
        return i.block_valid_mask_offset + i.padded_batch_size;
    return i.split_kv ? i.merge_indptr_offset + 4 * (i.total_num_rows + 1)
                      : i.kv_chunk_size_ptr_offset + 4;
}

void destroy(Peer *self)
{
    delete reinterpret_cast<PrefillPeer *>(self);
}
} // namespace

extern "C" const PeerOps KV_PEER_SYMBOL(flashinfer_tc) = {
    KV_PEER_NAME("flashinfer-tc"),
    KV_PEER_PACKAGE,
    "BatchPrefillWithPagedKVCache, FA2, one query a row (use_tensor_cores)",
    "fp16, d 64 and 128, G 1..16, any page size, HND and NHD",
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
