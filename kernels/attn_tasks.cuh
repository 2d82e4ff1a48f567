/* A plan as the kernels read it: its tasks, and what `persistent` plans by. Host only. */
#ifndef KV_KERNELS_ATTN_TASKS_CUH
#define KV_KERNELS_ATTN_TASKS_CUH

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attn_args.cuh"
#include "kernels/plan.h"

namespace kv
{

/* A StreamTask begins as an AttnTask does, so that all of that is copied at once. */
static_assert(offsetof(StreamTask, row) == offsetof(AttnTask, row) &&
                  offsetof(StreamTask, head) == offsetof(AttnTask, kv_head) &&
                  offsetof(StreamTask, begin) == offsetof(AttnTask, begin) &&
                  offsetof(StreamTask, end) == offsetof(AttnTask, end) &&
                  offsetof(StreamTask, slot) == offsetof(AttnTask, slot) &&
                  offsetof(StreamTask, first_slot) == sizeof(AttnTask),
              "one layout");

/* The plan's tasks with what the fused merge needs to know; the merges are in the order of their
 * slots, and so are the tasks that have one. `to` has room for plan->n_tasks. */
inline void fill_tasks(const AttnPlan *plan, StreamTask *__restrict to)
{
    const bool fused = plan->n_launches > 0 && plan->launches[0].kind == ATTN_LAUNCH_FUSED;
    const AttnMerge *next = plan->merges;
    int first = 0, n = 0, slots = fused ? 0 : INT32_MAX; /* `slots`: where the next merge begins */
    for (int i = 0; i < plan->n_tasks; ++i) {
        const AttnTask *t = &plan->tasks[i];
        if (t->slot >= slots)
            first = next->first_slot, n = next->n_slots, slots = first + n, ++next;
        memcpy(&to[i], t, sizeof *t);
        to[i].first_slot = t->slot < 0 ? 0 : first;
        to[i].n_slots = t->slot < 0 ? 0 : n;
    }
}

/* What every CTA of `persistent` plans by; a.kv_heads is set. */
inline void plan_args(StreamArgs &a, const AttnPlanConfig &config)
{
    a.c0 = config.c0_tiles;
    a.min_units = config.min_tokens > TILE ? (config.min_tokens + TILE - 1) / TILE : 1;
    a.part_budget = config.workers / a.kv_heads;
    a.part_rows = a.part_budget < ATTN_PART_ROWS ? a.part_budget : ATTN_PART_ROWS;
    if (a.part_budget > 0)
        a.part_scale = attn_plan_part_scale(config.workers, a.kv_heads);
}

} // namespace kv
#endif
