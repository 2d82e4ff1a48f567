/* The schedulers' verbs: what puts a request into a step, and what takes it out. */
#include "sim/engine.h"

#include <string.h>

guint32 engine_pages_for(const Engine *e, guint64 entries)
{
    return (guint32)((entries + e->page_size - 1) / e->page_size);
}

guint32 engine_computed(const Engine *e, const SimRequest *r)
{
    return r->decoding ? sim_request_length(r, e->tick) - 1 : r->computed;
}

void engine_take_pages(Engine *e, SimRequest *r, guint32 n)
{
    if (r->n_pages + n > r->cap_pages) {
        r->cap_pages = MAX(r->n_pages + n, r->cap_pages + r->cap_pages / 2);
        r->pages = g_renew(guint32, r->pages, r->cap_pages);
    }
    page_pool_take(&e->pool, n, r->pages + r->n_pages);
    r->n_pages += n;
    if (r->decoding)
        r->page_tick += (guint64)n * e->page_size;
}

static void add_entry(Engine *e, SimRequest *r, guint32 tokens, guint32 before, guint32 new_pages,
                      guint32 hits)
{
    PlanEntry entry = {r, tokens, before, new_pages, hits};
    g_array_append_val(e->plan.entries, entry);
    r->sched_tick = e->tick;
    e->tokens += tokens;
}

void engine_plan_decode(Engine *e, SimRequest *r, guint32 new_pages)
{
    StepPlan *p = &e->plan;
    guint32 length = sim_request_length(r, e->tick);
    add_entry(e, r, 1, length - 1, new_pages, 0);
    p->rows++;
    p->sum_length += length;
    p->max_length = MAX(p->max_length, length);
    p->finishing += r->finish_tick == e->tick;
    if (r->irregular)
        g_ptr_array_add(p->irregular, r);
    else
        p->measured_rows += r->measured;
    if (!r->in_batch)
        g_ptr_array_add(p->joins, r);
    else if (new_pages)
        g_ptr_array_add(p->gained, r);
    if (r->paused)
        g_ptr_array_add(p->resumed, r);
}

static guint64 attended(guint64 before, guint64 n)
{
    return n * before + n * (n + 1) / 2;
}

void engine_plan_chunk(Engine *e, SimRequest *r, guint32 n, guint32 new_pages, guint32 hits)
{
    StepPlan *p = &e->plan;
    add_entry(e, r, n, r->computed, new_pages, hits);
    p->chunks++;
    p->chunk_tokens += n;
    p->chunk_attended += attended(r->computed, n);
    if (r->first_scheduled == KV_NS_NONE)
        r->first_scheduled = e->now;
}

guint32 engine_unplan(Engine *e, SimRequest *r)
{
    StepPlan *p = &e->plan;
    guint at = p->entries->len;
    while (at-- > 0 && g_array_index(p->entries, PlanEntry, at).r != r)
        ;
    PlanEntry entry = g_array_index(p->entries, PlanEntry, at);
    g_array_remove_index(p->entries, at);
    r->sched_tick = TICK_NEVER;
    e->tokens -= entry.tokens;
    if (!r->decoding) {
        p->chunks--;
        p->chunk_tokens -= entry.tokens;
        p->chunk_attended -= attended(entry.before, entry.tokens);
        return entry.tokens;
    }
    p->rows--;
    p->sum_length -= entry.before + 1;
    p->finishing -= r->finish_tick == e->tick;
    if (!g_ptr_array_remove(p->irregular, r))
        p->measured_rows -= r->measured;
    g_ptr_array_remove(p->joins, r);
    g_ptr_array_remove(p->gained, r);
    g_ptr_array_remove(p->resumed, r);
    p->max_length = 0;
    for (guint i = 0; i < p->entries->len; i++) {
        const PlanEntry *other = &g_array_index(p->entries, PlanEntry, i);
        if (other->r->decoding)
            p->max_length = MAX(p->max_length, other->before + 1);
    }
    return entry.tokens;
}

SimRequest *engine_admit(Engine *e)
{
    SimRequest *r = wait_queue_pop(&e->waiting);
    e->metrics->waiting_time += (guint64)(e->now - r->enqueued);
    if (e->n_running == e->cap_running) {
        e->cap_running = MAX(64, e->cap_running * 2);
        e->running = g_renew(SimRequest *, e->running, e->cap_running);
    }
    e->running[e->n_running++] = r;
    return r;
}

void engine_restore(Engine *e, SimRequest *r)
{
    r->decoding = TRUE;
    r->irregular = TRUE; /* its last token is from before it was swapped out */
    r->finish_tick = e->tick + ((guint32)r->request.output - r->outputs) - 1;
    r->page_tick = r->finish_tick - r->stored + (guint64)r->n_pages * e->page_size + 1;
    e->tokens += engine_computed(e, r);
}

void engine_preempt(Engine *e, guint i, guint32 planned)
{
    SimRequest *r = e->running[i];
    memmove(e->running + i, e->running + i + 1, (e->n_running - i - 1) * sizeof *e->running);
    e->n_running--;
    guint32 computed = engine_computed(e, r);
    e->tokens -= computed;
    engine_release_pages(e, r, computed + planned, FALSE);
    if (r->decoding) {
        r->outputs = computed + 1 - (guint32)r->request.prompt;
        if (!r->irregular)
            r->last_token = e->now; /* the end of the step before */
    }
    if (r->in_batch)
        g_array_append_val(e->left, r->slot);
    r->decoding = r->in_batch = r->paused = r->irregular = FALSE;
    r->high_water = MAX(r->high_water, computed);
    r->computed = 0;
    r->target = (guint32)r->request.prompt + r->outputs;
    r->preemptions++;
    r->enqueued = e->now;
    e->metrics->result.preemptions++;
    g_ptr_array_add(e->plan.preempted, r);
    wait_queue_push_back(&e->waiting, r);
}
