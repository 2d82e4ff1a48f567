/* The segmented merge: a CTA a (row, KV head), its slots in order. */
#include "kernels/attn_launch.cuh"

namespace kv
{

template <typename T, int D>
__global__ void __launch_bounds__(256) attn_merge(const __grid_constant__ MergeArgs a)
{
    const AttnMerge m = a.merges[blockIdx.x];
    merge_alone<T, D>(a.slots + (int64_t)m.first_slot * slot_floats(a.group, D), m.n_slots, a.group,
                      static_cast<T *>(a.out) +
                          ((int64_t)m.row * a.kv_heads + m.kv_head) * a.group * D);
}

const void *merge_kernel(const AttnShape &shape)
{
    static const void *const table[3][2] = {
        {(const void *)attn_merge<__half, 64>, (const void *)attn_merge<__nv_bfloat16, 64>},
        {(const void *)attn_merge<__half, 128>, (const void *)attn_merge<__nv_bfloat16, 128>},
        {(const void *)attn_merge<__half, 256>, (const void *)attn_merge<__nv_bfloat16, 256>},
    };
    const int d = shape.head_dim == 64 ? 0 : shape.head_dim == 128 ? 1 : 2;
    return table[d][shape.dtype == ATTN_BF16];
}

} // namespace kv
