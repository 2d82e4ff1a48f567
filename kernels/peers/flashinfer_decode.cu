/* flashinfer: BatchDecodeWithPagedKVCache, the decode kernel for CUDA cores.
 *
 * It is what FlashInfer's decode wrapper runs without use_tensor_cores. The planner picks one chunk
 * length for the whole batch by binary search; a second kernel merges where rows were split.
 * Compiled a second time against release 0.2.5 (KV_FLASHINFER_LEGACY), in a namespace of its own.
 */
#include "kernels/peers/peer_common.cuh"

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

template <typename T> T *at(const DeviceBuffer &buffer, int64_t offset)
{
    return reinterpret_cast<T *>(buffer.as<char>() + offset);
}

Params make_params(const DecodePeer &self, const void *q, void *out, float scale)
{
    const AttnShape &s = self.config.shape;
    const auto layout = s.layout == ATTN_HND ? fi::QKVLayout::kHND : fi::QKVLayout::kNHD;
    fi::paged_kv_t<half, int32_t> kv((uint32_t)s.kv_heads, (uint32_t)s.page_size,
                                     (uint32_t)s.head_dim, (uint32_t)self.tables.rows, layout,
                                     static_cast<half *>(self.config.pool.k),
                                     static_cast<half *>(self.config.pool.v), self.tables.ids(),
                                     self.tables.indptr(), self.tables.last());
    Params params(static_cast<half *>(const_cast<void *>(q)), nullptr, kv, static_cast<half *>(out),
                  nullptr, nullptr, (uint32_t)s.q_heads, s.q_heads * s.head_dim, s.head_dim, -1,
                  0.f, scale, 1.f, 1e4f);
    params.padded_batch_size = (uint32_t)self.info.padded_batch_size;
    params.request_indices = at<int32_t>(self.ints, self.info.request_indices_offset);
    params.kv_tile_indices = at<int32_t>(self.ints, self.info.kv_tile_indices_offset);
    params.o_indptr = at<int32_t>(self.ints, self.info.o_indptr_offset);
    params.kv_chunk_size_ptr = at<int32_t>(self.ints, self.info.kv_chunk_size_ptr_offset);
    if (self.info.split_kv && self.info.enable_cuda_graph)
        params.block_valid_mask = at<bool>(self.ints, self.info.block_valid_mask_offset);
    return params;
}

template <uint32_t D>
void run_dim(DecodePeer &self, const void *q, void *out, float scale, cudaStream_t stream)
{
    half *tmp_v = nullptr;
    float *tmp_s = nullptr;
    if (self.info.split_kv) {
        tmp_v = at<half>(self.floats, self.info.v_offset);
        tmp_s = at<float>(self.floats, self.info.s_offset);
    }
    check(kv_decode_dispatch<D, NO_ROPE, Variant>(make_params(self, q, out, scale), tmp_v, tmp_s,
                                                  self.pdl, stream),
          "BatchDecodeWithPagedKVCache");
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t, PeerError *error)
{
    const AttnShape &s = config->shape;
    const int32_t g = attn_group(&s);
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (s.head_dim != 64 && s.head_dim != 128)
        return refuse(error, "built for head dims 64 and 128, not %lld", s.head_dim);
    if (g != 1 && g != 2 && g != 3 && g != 4 && g != 8)
        return refuse(error, "has kernels for groups of 1, 2, 3, 4 and 8, not %lld", g);
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
    if (!plain_strides(config->pool, s))
        return refuse(error, "reads pools with plain strides only");
    return ATTN_OK;
}

int64_t workspace(const PeerConfig *config)
{
    return (int64_t)(INT_BYTES + FLOAT_BYTES) + 4 * (config->max_pages + 4 * config->max_rows + 4);
}

AttnStatus create(Peer **ret, const PeerConfig *config, PeerError *error)
{
    DecodePeer *self = nullptr;
    const AttnStatus status = guarded(error, [&] {
        self = new DecodePeer;
        self->config = *config;
        self->pdl = wants_pdl(*config);
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

DecodePeer &of(Peer *self)
{
    return *reinterpret_cast<DecodePeer *>(self);
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
        DecodePeer &self = of(peer);
        self.fence.wait();
        if (self.config.shape.head_dim == 64)
            plan_dim<64>(self, static_cast<cudaStream_t>(stream));
        else
            plan_dim<128>(self, static_cast<cudaStream_t>(stream));
        self.fence.mark(static_cast<cudaStream_t>(stream));
    });
}

AttnStatus run(Peer *peer, const void *q, void *out, float scale, void *stream, PeerError *error)
{
    return guarded(error, [&] {
        DecodePeer &self = of(peer);
        if (self.config.shape.head_dim == 64)
            run_dim<64>(self, q, out, scale, static_cast<cudaStream_t>(stream));
        else
            run_dim<128>(self, q, out, scale, static_cast<cudaStream_t>(stream));
    });
}

int32_t launches(const Peer *peer)
{
    return reinterpret_cast<const DecodePeer *>(peer)->info.split_kv ? 2 : 1;
}

/* The arrays lie in the order of the plan's offsets; the last one ends the copy. */
int64_t plan_bytes(const Peer *peer)
{
    const fi::DecodePlanInfo &i = reinterpret_cast<const DecodePeer *>(peer)->info;
    return i.split_kv ? i.block_valid_mask_offset + i.padded_batch_size
                      : i.kv_chunk_size_ptr_offset + (int64_t)sizeof(int32_t);
}

void destroy(Peer *self)
{
    delete reinterpret_cast<DecodePeer *>(self);
}
} // namespace

extern "C" const PeerOps KV_PEER_SYMBOL(flashinfer) = {
    KV_PEER_NAME("flashinfer"),
    KV_PEER_PACKAGE,
    "BatchDecodeWithPagedKVCache (CUDA cores)",
    "fp16, d 64 and 128, G 1 2 3 4 8, any page size, HND and NHD",
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
