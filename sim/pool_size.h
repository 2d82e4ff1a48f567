/* How many pages a GPU has room for, as arithmetic that can be shown.
 *
 *   budget = memory x utilization;  pool = budget - weights / tp - reserve;  page = entries x entry
 * bytes per GPU of a tensor-parallel group (KV heads are split as far as there are any, then
 * copied). GiB = 2^30.
 */
#ifndef KV_SIM_POOL_SIZE_H
#define KV_SIM_POOL_SIZE_H

#include "sim/gpus.h"
#include "sim/model_info.h"

typedef struct PoolSizeConfig {
    double memory_gib;  /* of one GPU */
    double utilization; /* share that the engine may use; vLLM's default is 0.9 */
    double reserve_gib; /* activations, CUDA context and graphs */
    NumberType weights, kv;
    guint tp;        /* GPUs of the group, >= 1 */
    guint page_size; /* entries */
} PoolSizeConfig;
void pool_size_config_init(PoolSizeConfig *config, double memory_gib);

typedef struct PoolSize {
    double budget, weights, reserve, left; /* bytes of one GPU; left may be negative */
    double entry_bytes, page_bytes;        /* of one GPU */
    guint64 pages, entries;                /* 0 when nothing is left */
} PoolSize;
PoolSize pool_size(const PoolSizeConfig *config, const ModelInfo *model);
/* The arithmetic, a line a term. Free it. */
char *pool_size_text(const PoolSizeConfig *config, const ModelInfo *model);

#endif
