/* flashinfer: BatchDecodeWithPagedKVCache, the decode kernel for CUDA cores.
 *
 * It is what FlashInfer's decode wrapper runs without use_tensor_cores. The planner picks one chunk
 * length for the whole batch by binary search; a second kernel merges where rows were split.
 * Compiled a second time against release 0.2.5 (KV_FLASHINFER_LEGACY), in a namespace of its own.
 */
#include "kernels/peers/peer_frame.cuh"

#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <flashinfer/page.cuh>

#include "kernels/peers/flashinfer_release.cuh"

namespace
{
using namespace kvpeers;
namespace fi = flashinfer;

using Params = fi::BatchDecodeParams<half, half, half, int32_t>;
using Variant = fi::DefaultAttention<false, false, false, false>;
constexpr auto NO_ROPE = fi::PosEncodingMode::kNone;

constexpr size_t INT_BYTES = 8u << 20;     /* what its Python wrapper takes */
constexpr size_t FLOAT_BYTES = 128u << 20; /* likewise: split states of at most a full grid */

struct DecodePeer {
    PeerConfig config;
    bool pdl = false;
    Tables tables;
    DeviceBuffer ints, floats;
    PinnedBuffer pinned;
    Fence fence;
    fi::DecodePlanInfo info;

    explicit DecodePeer(const PeerConfig &c) : config(c), pdl(wants_pdl(c))
    {
        tables.create(c, false);
        ints.allocate(INT_BYTES);
        floats.allocate(FLOAT_BYTES);
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
        return info.split_kv ? info.block_valid_mask_offset + info.padded_batch_size
                             : info.kv_chunk_size_ptr_offset + (int64_t)sizeof(int32_t);
    }
};

template <uint32_t D, uint32_t G> void plan_group(DecodePeer &self, cudaStream_t stream)
{
    auto estimate =
        fi::BatchDecodeWithPagedKVCacheWorkEstimationDispatched<G, D, NO_ROPE, Variant, Params>;
    cudaError_t err = fi::DecodePlan<D, NO_ROPE, Variant, Params>(
        self.floats.data, self.floats.bytes, self.ints.data, self.pinned.data, self.ints.bytes,
        self.info, self.tables.host_indptr(), (uint32_t)self.tables.rows,
        (uint32_t)self.config.shape.q_heads, (uint32_t)self.config.shape.page_size,
        self.config.settings.graph != 0, stream, estimate);
    check(err, "DecodePlan");
}

template <uint32_t D> void plan_dim(DecodePeer &self, cudaStream_t stream)
{
    switch (attn_group(&self.config.shape)) {
    case 1:
        return plan_group<D, 1>(self, stream);
    case 2:
        return plan_group<D, 2>(self, stream);
    case 3:
        return plan_group<D, 3>(self, stream);
    case 4:
        return plan_group<D, 4>(self, stream);
    case 8:
        return plan_group<D, 8>(self, stream);
    default:
        throw Fault(ATTN_UNSUPPORTED_SHAPE, "no such group size");
    }
}

Params make_params(const DecodePeer &self, const Call &call)
{
    const AttnShape &s = self.config.shape;
    const auto layout = s.layout == ATTN_HND ? fi::QKVLayout::kHND : fi::QKVLayout::kNHD;
    fi::paged_kv_t<half, int32_t> kv((uint32_t)s.kv_heads, (uint32_t)s.page_size,
                                     (uint32_t)s.head_dim, (uint32_t)self.tables.rows, layout,
                                     static_cast<half *>(call.pool.k),
                                     static_cast<half *>(call.pool.v), self.tables.ids(),
                                     self.tables.indptr(), self.tables.last());
    Params params(static_cast<half *>(const_cast<void *>(call.q)), nullptr, kv,
                  static_cast<half *>(call.out), nullptr, nullptr, (uint32_t)s.q_heads,
                  s.q_heads * s.head_dim, s.head_dim, -1, 0.f, call.scale, 1.f, 1e4f);
    params.padded_batch_size = (uint32_t)self.info.padded_batch_size;
    params.request_indices = self.ints.at<int32_t>(self.info.request_indices_offset);
    params.kv_tile_indices = self.ints.at<int32_t>(self.info.kv_tile_indices_offset);
    params.o_indptr = self.ints.at<int32_t>(self.info.o_indptr_offset);
    params.kv_chunk_size_ptr = self.ints.at<int32_t>(self.info.kv_chunk_size_ptr_offset);
    if (self.info.split_kv && self.info.enable_cuda_graph)
        params.block_valid_mask = self.ints.at<bool>(self.info.block_valid_mask_offset);
    return params;
}

template <uint32_t D> void run_dim(DecodePeer &self, const Call &call)
{
    half *tmp_v = nullptr;
    float *tmp_s = nullptr;
    if (self.info.split_kv) {
        tmp_v = self.floats.at<half>(self.info.v_offset);
        tmp_s = self.floats.at<float>(self.info.s_offset);
    }
    check(kv_decode_dispatch<D, NO_ROPE, Variant>(make_params(self, call), tmp_v, tmp_s, self.pdl,
                                                  call.stream),
          "BatchDecodeWithPagedKVCache");
}

void DecodePeer::plan(cudaStream_t stream)
{
    fence.wait();
    with_dim(config.shape.head_dim, [&](auto d) { plan_dim<d>(*this, stream); });
    fence.mark(stream);
}

void DecodePeer::run(const Call &call)
{
    with_dim(config.shape.head_dim, [&](auto d) { run_dim<d>(*this, call); });
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    const int32_t g = attn_group(&s);
    const AttnStatus status = plain_shape(s, arch, error);
    if (status != ATTN_OK)
        return status;
    if (g != 1 && g != 2 && g != 3 && g != 4 && g != 8)
        return refuse(error, "has kernels for groups of 1, 2, 3, 4 and 8, not %lld", g);
    if (!plain_strides(config->pool, s))
        return refuse(error, "reads pools with plain strides only");
    return ATTN_OK;
}

int64_t workspace(const PeerConfig *config)
{
    return (int64_t)(INT_BYTES + FLOAT_BYTES) + 4 * (config->max_pages + 4 * config->max_rows + 4);
}

constexpr PeerText TEXT = {KV_PEER_NAME("flashinfer"), KV_PEER_PACKAGE,
                           "BatchDecodeWithPagedKVCache (CUDA cores)",
                           "fp16, d 64 and 128, G 1 2 3 4 8, any page size, HND and NHD"};
} // namespace

extern "C" const PeerOps KV_PEER_SYMBOL(flashinfer) = peer_ops<DecodePeer>(TEXT, supports,
                                                                           workspace);
