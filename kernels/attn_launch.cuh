/* What the host side of the kernels shares: the instances' table and launching. */
#ifndef KV_KERNELS_ATTN_LAUNCH_CUH
#define KV_KERNELS_ATTN_LAUNCH_CUH

#include "kernels/plan.h"
#include "kernels/attn_stream.cuh"

#include <cuda_runtime.h>

namespace kv
{

struct MergeArgs {
    float *slots;
    const AttnMerge *merges;
    void *out;
    int kv_heads, group;
};

/* Kernels taking StreamArgs by value: one file each; `wide`: groups above 8. */
const void *stream_d64_f16(bool wide);
const void *stream_d64_bf16(bool wide);
const void *stream_d128_f16(bool wide);
const void *stream_d128_bf16(bool wide);
const void *stream_d256_f16(bool wide);
const void *stream_d256_bf16(bool wide);

/* The kernel taking MergeArgs by value. */
const void *merge_kernel(const AttnShape &shape);

} // namespace kv
#endif
