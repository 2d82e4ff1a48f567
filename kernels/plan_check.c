/* The auditor: recounts a plan from its lists, without the arithmetic that made them. */
#include "kernels/plan.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct Pair { /* what was seen of one (row, KV head) */
    int32_t end;      /* tokens covered so far */
    int32_t tasks;
    int32_t first_slot, last_slot;
    int32_t merged;
} Pair;

typedef struct Audit {
    const AttnPlan *plan;
    const AttnShape *shape;
    const int32_t *lens;
    Pair *pairs;
    int32_t *launch_of_pair; /* 1 + the launch that holds a pair's tasks; 0 = none yet */
    int64_t nonempty, slots;
} Audit;

static const char *check_tasks(Audit *a)
{
    int32_t next_slot = 0;
    for (int32_t i = 0; i < a->plan->n_tasks; i++) {
        const AttnTask *t = &a->plan->tasks[i];
        if (t->row < 0 || t->row >= a->plan->rows || t->kv_head < 0 ||
            t->kv_head >= a->shape->kv_heads)
            return "a task's row or KV head is out of range";
        Pair *p = &a->pairs[(int64_t)t->row * a->shape->kv_heads + t->kv_head];
        const int32_t len = a->lens[t->row];
        if (t->begin < 0 || t->begin > t->end || t->end > len)
            return "a task's token range is not within its row";
        if (t->begin == t->end && len > 0 && a->plan->config.route != ATTN_MASKED)
            return "an empty task";
        if (t->begin != p->end)
            return "tasks of a row are out of order, overlap or leave a gap";
        if (t->slot < 0 && (t->end != len || p->tasks > 0))
            return "a task writes the output but does not cover its row";
        if (t->slot >= 0 && t->slot != next_slot++)
            return "slots are not consecutive in task order";
        if (p->tasks > 0 && t->slot != p->last_slot + 1)
            return "the slots of a row are not consecutive";
        if (p->tasks++ == 0)
            p->first_slot = t->slot;
        p->last_slot = t->slot;
        p->end = t->end;
        a->nonempty += t->begin < t->end;
    }
    a->slots = next_slot;
    return NULL;
}

static const char *check_merges(Audit *a)
{
    for (int32_t i = 0; i < a->plan->n_merges; i++) {
        const AttnMerge *m = &a->plan->merges[i];
        if (m->row < 0 || m->row >= a->plan->rows || m->kv_head < 0 ||
            m->kv_head >= a->shape->kv_heads)
            return "a merge's row or KV head is out of range";
        Pair *p = &a->pairs[(int64_t)m->row * a->shape->kv_heads + m->kv_head];
        if (p->merged++ != 0)
            return "a row is merged twice";
        if (m->first_slot != p->first_slot || m->n_slots != p->tasks || m->first_slot < 0)
            return "a merge does not cover just its row's slots";
    }
    for (int64_t i = 0; i < (int64_t)a->plan->rows * a->shape->kv_heads; i++) {
        const Pair *p = &a->pairs[i];
        if (p->tasks == 0 || p->end != a->lens[i / a->shape->kv_heads])
            return "a row is not covered to its end";
        if (p->merged != (p->first_slot >= 0))
            return "a row with partial states has no merge, or one without has one";
    }
    return NULL;
}

static const char *check_launches(const Audit *a)
{
    const AttnPlan *plan = a->plan;
    const int32_t heads = a->shape->kv_heads;
    int32_t tasks = 0, merges = 0, merge_launches = 0;
    bool fused = false;
    for (int32_t i = 0; i < plan->n_launches; i++) {
        const AttnLaunch *l = &plan->launches[i];
        if (l->count < 1)
            return "an empty launch";
        if (l->first != (l->kind == ATTN_LAUNCH_MERGE ? merges : tasks))
            return "launches do not follow one another";
        if (l->kind != ATTN_LAUNCH_MERGE) {
            tasks += l->count;
            fused |= l->kind == ATTN_LAUNCH_FUSED;
            for (int32_t t = l->first; t < tasks && t < plan->n_tasks; t++)
                a->launch_of_pair[(int64_t)plan->tasks[t].row * heads + plan->tasks[t].kv_head] =
                    i + 1;
            continue;
        }
        merge_launches++;
        merges += l->count;
        for (int32_t m = l->first; m < merges && m < plan->n_merges; m++)
            if (a->launch_of_pair[(int64_t)plan->merges[m].row * heads + plan->merges[m].kv_head] ==
                0)
                return "a merge runs before its tasks";
    }
    if (tasks != plan->n_tasks || (!fused && merges != plan->n_merges))
        return "launches do not cover the tasks and merges";
    if (plan->n_launches != plan->counts.launches || merge_launches != plan->counts.merge_launches)
        return "the launch counters differ from the launches";
    return NULL;
}

static const char *check_counts(const Audit *a)
{
    const AttnPlan *plan = a->plan;
    const AttnCounts *c = &plan->counts;
    int64_t bytes = 0;
    int64_t longest = 0;
    for (int32_t i = 0; i < plan->n_launches; i++) {
        int32_t most = 0;
        for (int32_t t = 0; t < plan->launches[i].count; t++) {
            if (plan->launches[i].kind == ATTN_LAUNCH_MERGE)
                break;
            const AttnTask *task = &plan->tasks[plan->launches[i].first + t];
            most = task->end - task->begin > most ? task->end - task->begin : most;
        }
        longest += most;
    }
    if (c->longest_tokens < longest)
        return "a task is longer than the counter says";
    for (int32_t i = 0; i < plan->n_tasks; i++)
        bytes += 4 * (int64_t)a->shape->head_dim * (plan->tasks[i].end - plan->tasks[i].begin);
    if (c->tasks != a->nonempty || c->grid_tasks != plan->n_tasks)
        return "the task counters differ from the tasks";
    if (c->partial_slots != a->slots ||
        c->merge_state_bytes != a->slots * attn_group(a->shape) * (2 + a->shape->head_dim) * 4)
        return "the merge-state counters differ from the slots";
    if (c->kv_bytes != bytes || c->kv_bytes_touched < bytes)
        return "the byte counters differ from the tasks";
    return NULL;
}

const char *attn_plan_check(const AttnPlan *plan, const AttnShape *shape, int32_t rows,
                            const int32_t *lens)
{
    if (plan->rows != rows)
        return "the plan has another number of rows";
    if (rows == 0)
        return plan->n_tasks + plan->n_merges + plan->n_launches != 0 ? "work without rows" : NULL;
    const size_t pairs = (size_t)rows * (size_t)shape->kv_heads;
    Audit a = {.plan = plan, .shape = shape, .lens = lens};
    a.pairs = calloc(pairs, sizeof *a.pairs);
    a.launch_of_pair = calloc(pairs, sizeof *a.launch_of_pair);
    const char *wrong = "out of memory";
    if (a.pairs != NULL && a.launch_of_pair != NULL) {
        wrong = check_tasks(&a);
        if (wrong == NULL)
            wrong = check_merges(&a);
        if (wrong == NULL)
            wrong = check_launches(&a);
        if (wrong == NULL)
            wrong = check_counts(&a);
    }
    free(a.launch_of_pair);
    free(a.pairs);
    return wrong;
}
