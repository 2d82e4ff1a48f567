/* Decode attention on a GPU: sets up once, then runs plans on a stream. Pure C; no CUDA header
 * needed.
 *
 * attn_cuda_new() reads the device's limits and chooses warps, ring depth and CTAs per SM from them
 * (never from a model's name), and allocates everything: partial slots, room for task
 * lists. attn_cuda_upload() brings a plan's task list to the device (one copy; nothing for
 * `persistent`, whose plan is made on the device by the same rule, so that only plan->config is
 * looked at), attn_cuda_run() queues its launches. Neither synchronises nor allocates, so both can
 * be captured in a CUDA graph; a captured `persistent` run serves any lengths, because it reads
 * lens, table and offset when it runs (rows, and the pointers, stay those of the capture).
 *
 * All pointers in AttnPool and AttnBatch are device pointers here. A stream is a cudaStream_t. Two
 * runs of one AttnCuda must not overlap in time: they share slots.
 *
 * Errors: a status, and one line of text in AttnCudaError (may be NULL). The sticky CUDA error is
 * cleared where it can be.
 */
#ifndef KV_KERNELS_ATTN_CUDA_H
#define KV_KERNELS_ATTN_CUDA_H

#include "kernels/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AttnCudaError {
    char text[256];
} AttnCudaError;

/* Numbers of the launch; 0 = chosen from the device and shape. */
typedef struct AttnCudaTuning {
    int32_t warps;       /* per CTA, 1..8 */
    int32_t stages;      /* tiles a warp holds, 2..4 */
    int32_t ctas_per_sm; /* persistent grid = SMs x this */
    int32_t buffers;     /* merge buffers, 1..2 */
    int32_t rounds;      /* tiles a warp takes between waiting for the others; -1 = never */
} AttnCudaTuning;

typedef struct AttnCudaConfig {
    AttnShape shape;
    int32_t device;               /* ordinal */
    int32_t max_rows;             /* of a batch, >= 1 */
    int64_t max_tasks, max_slots; /* of a task list; 0 = only `persistent` will be run */
    int32_t sms;                  /* use this many SMs, one CTA each; 0 = all */
    AttnCudaTuning persistent, tasks;
    uint32_t delay_seed; /* tests: random waits in the protocols; 0 = none */
} AttnCudaConfig;

typedef struct AttnCuda AttnCuda;
AttnStatus attn_cuda_new(AttnCuda **ret, const AttnCudaConfig *config, AttnCudaError *error);
void attn_cuda_free(AttnCuda *self);

/* CTAs that run at once: what a plan for `route` should be told as `workers`. */
int32_t attn_cuda_workers(const AttnCuda *self, AttnRoute route);
/* Sets workers and c0_tiles of `config` (route, rule and tokens a task stay) for a batch: CTAs are
 * wide, one an SM, where the work of a (row, KV head) is long and a CTA has few of them
 * (`persistent`) or where one task a CTA comes out even (task lists); else narrow, two or more an
 * SM. `persistent`: no more workers than parts, where the batch is cut into parts (plan.h). lens:
 * host. O(rows log). */
void attn_cuda_fit_plan(const AttnCuda *self, AttnPlanConfig *config, int32_t rows,
                        const int32_t *lens);
/* What was chosen for plans of so many workers, for the record. */
AttnCudaTuning attn_cuda_tuning(const AttnCuda *self, AttnRoute route, int32_t workers);
int64_t attn_cuda_workspace_bytes(const AttnCuda *self);

/* ret_bytes (may be NULL): bytes copied; 0 = no copy was needed. */
AttnStatus attn_cuda_upload(AttnCuda *self, const AttnPlan *plan, void *stream, int64_t *ret_bytes,
                            AttnCudaError *error);
AttnStatus attn_cuda_run(AttnCuda *self, const AttnPool *pool, const AttnBatch *batch,
                         const AttnPlan *plan, void *stream, AttnCudaError *error);
/* Words of slots that are not as every finished launch leaves them, -1 = could not be read: for
 * tests. Synchronous. */
int64_t attn_cuda_slots_left(const AttnCuda *self);
/* After a failed or aborted launch: slots as they were set up. Synchronous. */
AttnStatus attn_cuda_reset(AttnCuda *self, AttnCudaError *error);

#ifdef __cplusplus
}
#endif
#endif
