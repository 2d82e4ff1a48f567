/* The loads of the persistent kernel alone: what a page gather costs with no arithmetic and no
 * merge. */
#include "kernels/attn_launch.cuh"

extern "C" {
#include "lab.h"
}

using namespace kv;

static __global__ void __launch_bounds__(256, 1) gather(const __grid_constant__ StreamArgs a)
{
    extern __shared__ __align__(1024) unsigned char smem[];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int ring = a.stages * Geometry<128>::STAGE;
    Smem sm = {};
    sm.policy = evict_first_policy();
    sm.ring = smem_address(smem) + warp * ring;
    sm.scan = reinterpret_cast<int *>(smem + warps * ring);
    sm.units = sm.scan + 32;
    sm.tiles = sm.units + a.rows + 1;
    sm.len = sm.tiles + a.rows + 1;
    sm.off = sm.len + a.rows;
    plan_prefix(a, sm);
    const Range range = plan_range(a, sm);
    if (range.cta >= range.ctas || range.g0 >= range.g1)
        return;
    const StreamTask none = {};
    Loader ld = {range.g0 + warp, 0, 0, 0, 0, 0};
    fill_ring<128>(a, sm, range, none, ld);
    int at = 0;
    for (int mine = range.g0 + warp; mine < range.g1; mine += warps) {
        wait_stage(a.stages);
        load_next<128>(a, sm, range, none, ld, sm.ring + at * Geometry<128>::STAGE);
        at = at + 1 == a.stages ? 0 : at + 1;
    }
}

void gather_run(const AttnCuda *cuda, const AttnPool *pool, const AttnBatch *batch,
                const AttnPlan *plan, const AttnShape *shape, void *stream)
{
    const AttnCudaTuning t = attn_cuda_tuning(cuda, ATTN_PERSISTENT, plan->config.workers);
    StreamArgs a = {};
    a.k = (const char *)pool->k, a.v = (const char *)pool->v;
    a.page_bytes = 2 * pool->page_stride;
    a.head_bytes = 2 * pool->head_stride, a.token_bytes = 2 * pool->token_stride;
    while (1 << a.page_shift < shape->page_size)
        ++a.page_shift;
    a.rows = batch->rows, a.kv_heads = shape->kv_heads, a.group = attn_group(shape);
    a.lens = batch->lens, a.table = batch->table, a.offset = batch->offset;
    a.c0 = plan->config.c0_tiles, a.min_units = 4;
    a.stages = t.stages, a.rounds = -1;
    const int smem = t.warps * t.stages * Geometry<128>::STAGE + plan_bytes(batch->rows);
    CUDA(cudaFuncSetAttribute(gather, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    gather<<<plan->config.workers, 32 * t.warps, smem, (cudaStream_t)stream>>>(a);
    CUDA(cudaGetLastError());
}
