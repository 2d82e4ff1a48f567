/* One compiled configuration of TensorRT-LLM's decode kernel (XQA), as the shim sees it. The
 * package makes a configuration by macros: KV_XQA_D, KV_XQA_G and KV_XQA_PAGE name it here, one
 * translation unit each (trtllm_xqa_kernel.cu).
 */
#ifndef KV_KERNELS_PEERS_TRTLLM_XQA_KERNEL_CUH
#define KV_KERNELS_PEERS_TRTLLM_XQA_KERNEL_CUH

#include <cuda_runtime.h>

#include "kernels/attn.h"

namespace kvpeers
{

struct XqaCall {
    uint32_t processors; /* what the kernel takes for the number of SMs: its split count */
    uint32_t kv_heads, rows, max_len;
    float q_scale; /* times 1/sqrt(d), which the kernel applies itself */
    const void *q;
    void *out, *k, *v;
    const int32_t *table; /* [rows][max_len / page] */
    const uint32_t *lens; /* [rows] */
    uint32_t *semaphores; /* [rows * kv_heads], zero; left zero */
    void *scratch;
    bool pdl;
    uint64_t stride_page, stride_token, stride_head; /* elements */
    cudaStream_t stream;
};

struct XqaKernel {
    int32_t d, group, page;
    void (*configure)(); /* on the current device, once; throws */
    void (*launch)(const XqaCall &call);
};

} // namespace kvpeers

#endif
