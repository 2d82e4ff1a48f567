/* Instances of the decode kernel: d 128, fp16, groups up to 8 and up to 16. */
#include "kernels/attn_stream.cuh"

template __global__ void kv::attn_stream<__half, 128, 1>(const __grid_constant__ kv::StreamArgs);
template __global__ void kv::attn_stream<__half, 128, 2>(const __grid_constant__ kv::StreamArgs);
