/* One configuration of XQA. Its two external names get a suffix, since they are the same in every
 * configuration; all else that the source defines for the host is static or the same everywhere.
 *
 * Two things of the source are turned off by macros: at load it asks the driver for the kernel's
 * shared memory (which would start CUDA in every process that has this linked in), and it launches
 * with the answer. Here configure() asks, when the peer is created, and the launch uses that.
 */
#include <cuda_runtime.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/peers/trtllm_xqa_kernel.cuh"

#define BEAM_WIDTH 1
#define USE_INPUT_KV 0
#define USE_CUSTOM_BARRIER 1
#define INPUT_FP16 1
#define CACHE_ELEM_ENUM 0
#define SLIDING_WINDOW 0
#define LOW_PREC_OUTPUT 0
#define SPEC_DEC 0
#define TOKENS_PER_PAGE KV_XQA_PAGE
#define HEAD_ELEMS KV_XQA_D
#define HEAD_GRP_SIZE KV_XQA_G

#define KV_JOIN_(what, d, g, p) what##_d##d##_g##g##_p##p
#define KV_JOIN(what, d, g, p) KV_JOIN_(what, d, g, p)
#define KV_NAME(what) KV_JOIN(what, KV_XQA_D, KV_XQA_G, KV_XQA_PAGE)
#define launchMHA KV_NAME(kv_xqa_launch_mha)
#define launchMHAFlashInfer KV_NAME(kv_xqa_launch)

static uint32_t kv_shared_bytes; /* set by configure() */

static cudaLaunchConfig_t kv_launch_config(dim3 grid, dim3 cta, cudaStream_t stream, bool pdl)
{
    static thread_local cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = pdl ? 1 : 0;
    return cudaLaunchConfig_t{grid, cta, kv_shared_bytes, stream, &attribute, 1};
}

#include "hostUtils.h"
#define makeLaunchConfig(grid, cta, bytes, stream, pdl)                                            \
    ((void)(bytes), kv_launch_config(grid, cta, stream, pdl))
#define cudaMemcpyFromSymbol(to, symbol, bytes) (*(to) = 0, cudaSuccess)
#define cudaFuncSetAttribute(...) cudaSuccess
#include "mha.cu"
#undef cudaFuncSetAttribute
#undef cudaMemcpyFromSymbol
#undef makeLaunchConfig

static void kv_must(cudaError_t err)
{
    if (err != cudaSuccess)
        throw std::runtime_error(std::string("XQA: ") + cudaGetErrorString(err));
}

static void kv_configure()
{
    uint32_t bytes = 0;
    kv_must(cudaMemcpyFromSymbol(&bytes, smemSize, sizeof bytes));
    kv_must(cudaFuncSetAttribute((const void *)kernel_mha,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kv_shared_bytes = bytes;
}

static void kv_launch(const kvpeers::XqaCall &c)
{
    launchMHAFlashInfer(
        c.processors, c.kv_heads, 0, c.q_scale, nullptr, static_cast<OutputHead *>(c.out),
        static_cast<const InputHead *>(c.q), nullptr, static_cast<GMemCacheHead *>(c.k),
        static_cast<GMemCacheHead *>(c.v), c.table, c.max_len, c.lens, c.rows, 1.f, nullptr,
        c.semaphores, c.scratch, c.pdl, c.stride_page, c.stride_token, c.stride_head, c.stream);
}

extern const kvpeers::XqaKernel KV_NAME(kv_xqa);
const kvpeers::XqaKernel KV_NAME(kv_xqa) = {KV_XQA_D, KV_XQA_G, KV_XQA_PAGE, kv_configure,
                                            kv_launch};
