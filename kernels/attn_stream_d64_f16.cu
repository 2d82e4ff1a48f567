/* Instances of the decode kernel: d 64, f16, groups up to 8 and up to 16. */
#include "kernels/attn_launch.cuh"

const void *kv::stream_d64_f16(bool wide)
{
    return wide ? (const void *)attn_stream<__half, 64, 2>
                : (const void *)attn_stream<__half, 64, 1>;
}
