/* The peers that are built, in the order of the twin (peers_none.c). */
#include "kernels/peers/peer_common.cuh"

extern "C" {
extern const PeerOps peer_flashinfer, peer_flashinfer_tc, peer_flashinfer_batch, peer_vllm_pa1,
    peer_vllm_pa2, peer_trtllm_xqa, peer_flashinfer_025, peer_flashinfer_tc_025;
extern const PeerOps *const peers[];

const PeerOps *const peers[] = {
    &peer_flashinfer, &peer_flashinfer_tc,  &peer_flashinfer_batch,  &peer_vllm_pa1, &peer_vllm_pa2,
    &peer_trtllm_xqa, &peer_flashinfer_025, &peer_flashinfer_tc_025, nullptr};

AttnStatus peer_supports(const PeerOps *ops, const PeerConfig *config, PeerError *error)
{
    int major = 0, minor = 0, shared = 0;
    const AttnStatus status = kvpeers::guarded(error, [&] {
        kvpeers::check(
            cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, config->device),
            "device");
        kvpeers::check(
            cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, config->device),
            "device");
        kvpeers::check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                              config->device),
                       "device");
    });
    return status != ATTN_OK ? status : ops->supports(config, 10 * major + minor, shared, error);
}
}
