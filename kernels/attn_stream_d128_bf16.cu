/* Instances of the decode kernel: d 128, bf16, groups up to 8 and up to 16. */
#include "kernels/attn_launch.cuh"

const void *kv::stream_d128_bf16(bool wide)
{
    return wide ? (const void *)attn_stream<__nv_bfloat16, 128, 2>
                : (const void *)attn_stream<__nv_bfloat16, 128, 1>;
}
