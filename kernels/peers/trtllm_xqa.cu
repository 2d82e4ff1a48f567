/* trtllm-xqa: TensorRT-LLM's decode kernel (XQA), from the copy that FlashInfer's package carries.
 *
 * One launch on a (split, KV head, row) grid; the last CTA of a (row, KV head) to finish merges.
 * All rows get the same number of splits: processors / (rows x KV heads), at least 1. What it is
 * told as the processor count is therefore its one setting (sm_factor); its own callers pass the
 * true count. Reads a dense table. Configurations are compiled one by one (trtllm_xqa_kernel.cu).
 */
#include <cmath>

#include "kernels/peers/peer_frame.cuh"
#include "kernels/peers/trtllm_xqa_kernel.cuh"

extern const kvpeers::XqaKernel kv_xqa_d128_g4_p16, kv_xqa_d128_g1_p16, kv_xqa_d128_g8_p16,
    kv_xqa_d64_g4_p16;

namespace
{
using namespace kvpeers;

const XqaKernel *const kernels[] = {&kv_xqa_d128_g4_p16, &kv_xqa_d128_g1_p16, &kv_xqa_d128_g8_p16,
                                    &kv_xqa_d64_g4_p16};

const XqaKernel *find(const AttnShape &s)
{
    for (const XqaKernel *k : kernels)
        if (k->d == s.head_dim && k->group == attn_group(&s) && k->page == s.page_size)
            return k;
    return nullptr;
}

int32_t factor(const PeerConfig &config)
{
    return config.settings.sm_factor > 0 ? config.settings.sm_factor : 1;
}

/* A split's state: maximum and sum of a padded tile of rows, and the G outputs in fp16, each
 * segment rounded up. At most max(processors, rows x KV heads) splits are alive. */
int64_t scratch_bytes(const PeerConfig &config, int64_t sms)
{
    const AttnShape &s = config.shape;
    const int64_t pairs = (int64_t)config.max_rows * s.kv_heads, p = sms * factor(config);
    return (pairs > p ? pairs : p) * (2048 + 2 * (int64_t)attn_group(&s) * s.head_dim) + (1 << 20);
}

struct XqaPeer {
    PeerConfig config;
    const XqaKernel *kernel;
    bool pdl = false;
    uint32_t processors = 0;
    Tables tables;
    DeviceBuffer semaphores, scratch;

    explicit XqaPeer(const PeerConfig &c) : config(c), kernel(find(c.shape)), pdl(wants_pdl(c))
    {
        const int32_t sms = sm_count(c.device);
        if (!kernel)
            throw Fault(ATTN_UNSUPPORTED_SHAPE, "no such configuration of XQA is compiled");
        kernel->configure();
        processors = (uint32_t)(sms * factor(c));
        tables.create(c, true);
        semaphores.allocate(sizeof(uint32_t) * (size_t)c.max_rows * (size_t)c.shape.kv_heads);
        check(cudaMemset(semaphores.data, 0, semaphores.bytes), "semaphores");
        scratch.allocate((size_t)scratch_bytes(c, sms));
    }
    /* Nothing is planned: the grid follows from the rows and the processor count. */
    void plan(cudaStream_t)
    {
    }
    void run(const Call &on);
    int32_t launches() const
    {
        return 1;
    }
    int64_t plan_bytes() const
    {
        return 0;
    }
};

void XqaPeer::run(const Call &on)
{
    const AttnPool &pool = on.pool;
    XqaCall call{};
    call.processors = processors;
    call.kv_heads = (uint32_t)config.shape.kv_heads;
    call.rows = (uint32_t)tables.rows;
    call.max_len = (uint32_t)(tables.width * config.shape.page_size);
    call.q_scale = on.scale * sqrtf((float)config.shape.head_dim);
    call.q = on.q;
    call.out = on.out;
    call.k = pool.k;
    call.v = pool.v;
    call.table = tables.ids();
    call.lens = reinterpret_cast<const uint32_t *>(tables.lens());
    call.semaphores = semaphores.as<uint32_t>();
    call.scratch = scratch.data;
    call.pdl = pdl;
    call.stride_page = (uint64_t)pool.page_stride;
    call.stride_token = (uint64_t)pool.token_stride;
    call.stride_head = (uint64_t)pool.head_stride;
    call.stream = on.stream;
    kernel->launch(call);
}

AttnStatus supports(const PeerConfig *config, int arch, int64_t shared, PeerError *error)
{
    const AttnShape &s = config->shape;
    (void)shared;
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (!find(s))
        return refuse(error,
                      "built for pages of 16 with d 128 G 1 4 8 and d 64 G 4, not d %lld G "
                      "%lld page %lld",
                      s.head_dim, attn_group(&s), s.page_size);
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
    if (config->max_rows > 65535)
        return refuse(error, "takes at most 65535 rows, not %lld", config->max_rows);
    return ATTN_OK;
}

int64_t workspace(const PeerConfig *config)
{
    const int64_t width = (config->max_len + config->shape.page_size - 1) / config->shape.page_size;
    return scratch_bytes(*config, 256) + 4 * (int64_t)config->max_rows * config->shape.kv_heads +
           4 * (config->max_rows * width + 4 * config->max_rows + 4);
}

constexpr PeerText TEXT = {"trtllm-xqa", "flashinfer-python 0.7.4 (csrc/xqa of TensorRT-LLM)",
                           "XQA, multi-block, one launch",
                           "fp16, pages of 16; d 128 with G 1 4 8, d 64 with G 4; HND and NHD"};
} // namespace

extern "C" const PeerOps peer_trtllm_xqa = peer_ops<XqaPeer>(TEXT, supports, workspace);
