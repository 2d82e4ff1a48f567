/* The one place that knows how FlashInfer's entry points changed between the releases that are
 * compiled: the current one, and 0.2.5 (KV_FLASHINFER_LEGACY; built with -Dflashinfer=..., so that
 * its namespace is its own). The pinned versions are those of tools/get-peers.
 */
#ifndef KV_KERNELS_PEERS_FLASHINFER_RELEASE_CUH
#define KV_KERNELS_PEERS_FLASHINFER_RELEASE_CUH

#ifdef KV_FLASHINFER_LEGACY
#define KV_PEER_SYMBOL(name) peer_##name##_025
#define KV_PEER_NAME(name) name "-0.2.5"
#define KV_PEER_PACKAGE "flashinfer-python 0.2.5"
#else
#define KV_PEER_SYMBOL(name) peer_##name
#define KV_PEER_NAME(name) name
#define KV_PEER_PACKAGE "flashinfer-python 0.7.4"
#endif

namespace
{
namespace kv_fi = flashinfer;

#ifdef FLASHINFER_DECODE_CUH_
template <uint32_t D, kv_fi::PosEncodingMode ROPE, typename Variant, typename Params>
cudaError_t kv_decode_dispatch(Params params, half *tmp_v, float *tmp_s, bool pdl,
                               cudaStream_t stream)
{
#ifdef KV_FLASHINFER_LEGACY
    (void)pdl;
    return kv_fi::BatchDecodeWithPagedKVCacheDispatched<D, ROPE, Variant>(params, tmp_v, tmp_s,
                                                                          stream);
#else
    return kv_fi::BatchDecodeWithPagedKVCacheDispatched<D, ROPE, Variant>(params, tmp_v, tmp_s, pdl,
                                                                          stream);
#endif
}
#endif

#ifdef FLASHINFER_PREFILL_CUH_
template <uint32_t D, typename Variant, typename Params>
cudaError_t kv_prefill_dispatch(Params params, half *tmp_v, float *tmp_s, bool pdl,
                                cudaStream_t stream)
{
    constexpr auto ROPE = kv_fi::PosEncodingMode::kNone;
    constexpr auto MASK = kv_fi::MaskMode::kNone;
#ifdef KV_FLASHINFER_LEGACY
    (void)pdl;
    return kv_fi::BatchPrefillWithPagedKVCacheDispatched<16, D, D, ROPE, false, MASK, Variant>(
        params, tmp_v, tmp_s, stream);
#else
    return kv_fi::BatchPrefillWithPagedKVCacheDispatched<true, 16, D, D, ROPE, false, MASK, false,
                                                         Variant>(params, tmp_v, tmp_s, pdl,
                                                                  stream);
#endif
}

/* One query a row. `split_pages` 0: the planner's own chunk. */
inline cudaError_t kv_prefill_plan(void *floats, size_t float_bytes, void *ints, void *pinned,
                                   size_t int_bytes, kv_fi::PrefillPlanInfo &info, int32_t *qo,
                                   int32_t *kv, uint32_t rows, uint32_t q_heads, uint32_t kv_heads,
                                   uint32_t d, uint32_t page, bool graph, int32_t split_pages,
                                   cudaStream_t stream)
{
#ifdef KV_FLASHINFER_LEGACY
    (void)split_pages;
    return kv_fi::PrefillPlan<int32_t>(floats, float_bytes, ints, pinned, int_bytes, info, qo, kv,
                                       rows, rows, q_heads, kv_heads, d, d, page, graph,
                                       sizeof(half), stream);
#else
    return kv_fi::PrefillPlan<int32_t>(
        floats, float_bytes, ints, pinned, int_bytes, info, qo, kv, rows, rows, q_heads, kv_heads,
        d, d, page, graph, sizeof(half), /* window= */ -1, split_pages > 0 ? split_pages : -1,
        /* disable_split_kv= */ false, /* num_colocated_ctas= */ 0, /* uniform_q_len= */ 1,
        /* fixed_uniform_q_len= */ true, stream, sizeof(half));
#endif
}
#endif

} // namespace

#endif
