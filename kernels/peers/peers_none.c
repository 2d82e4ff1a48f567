/* The twin: every peer by name, none built, and what to do about it. */
#include "kernels/peers/peers.h"

#include <stdio.h>

#define PEER_NONE(ident, peer_name, from)                                                          \
    static const PeerOps ident = {.name = peer_name,                                               \
                                  .package = from,                                                 \
                                  .why_not = "not built: run tools/get-peers, then configure the " \
                                             "build again (needs the CUDA toolkit)"}

PEER_NONE(decode, "flashinfer", "flashinfer-python 0.7.4");
PEER_NONE(prefill, "flashinfer-tc", "flashinfer-python 0.7.4");
PEER_NONE(batch, "flashinfer-batch", "flashinfer-python 0.7.4");
PEER_NONE(pa1, "vllm-pa1", "vllm 0.20.2");
PEER_NONE(pa2, "vllm-pa2", "vllm 0.20.2");
PEER_NONE(xqa, "trtllm-xqa", "flashinfer-python 0.7.4 (csrc/xqa of TensorRT-LLM)");
PEER_NONE(decode_025, "flashinfer-0.2.5", "flashinfer-python 0.2.5");
PEER_NONE(prefill_025, "flashinfer-tc-0.2.5", "flashinfer-python 0.2.5");

const PeerOps *const peers[] = {&decode, &prefill,    &batch,       &pa1, &pa2,
                                &xqa,    &decode_025, &prefill_025, NULL};

AttnStatus peer_supports(const PeerOps *ops, const PeerConfig *config, PeerError *error)
{
    (void)config;
    if (error)
        snprintf(error->text, sizeof error->text, "%s", ops->why_not);
    return ATTN_UNSUPPORTED_SHAPE;
}
