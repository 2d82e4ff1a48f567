/* A full step: from the plan to the clock, the sinks, and the effects at its end. */
#include "sim/engine.h"
#include "base/error.h"

#include <string.h>

/* Rows of the running list that the plan left out sit this step out. */
static void pause_the_rest(Engine *e)
{
    g_array_set_size(e->paused_slots, 0);
    if (e->plan.entries->len == e->n_running)
        return;
    for (guint i = 0; i < e->n_running; i++) {
        SimRequest *r = e->running[i];
        if (!r->decoding || r->sched_tick == e->tick)
            continue;
        r->finish_tick++;
        r->page_tick++;
        if (!r->irregular) {
            r->irregular = TRUE;
            r->last_token = e->now;
        }
        if (r->in_batch && !r->paused) {
            r->paused = TRUE;
            g_array_append_val(e->paused_slots, r->slot);
        }
    }
}

static guint32 take_slot(Engine *e)
{
    guint n = e->free_slots->len;
    if (n == 0)
        return e->n_slots++;
    guint32 slot = g_array_index(e->free_slots, guint32, n - 1);
    g_array_set_size(e->free_slots, n - 1);
    return slot;
}

static void list_joined(Engine *e)
{
    g_array_set_size(e->joined, 0);
    for (guint i = 0; i < e->plan.joins->len; i++) {
        SimRequest *r = e->plan.joins->pdata[i];
        r->slot = take_slot(e);
        StepJoin j = {r->request.id, r->slot, sim_request_length(r, e->tick), r->n_pages, r->pages};
        g_array_append_val(e->joined, j);
    }
}

static void list_appended(Engine *e)
{
    g_array_set_size(e->appended, 0);
    for (guint i = 0; i < e->plan.gained->len; i++) {
        const SimRequest *r = e->plan.gained->pdata[i];
        StepAppend a = {r->slot, r->pages[r->n_pages - 1]};
        g_array_append_val(e->appended, a);
    }
    g_array_set_size(e->resumed_slots, 0);
    for (guint i = 0; i < e->plan.resumed->len; i++) {
        const SimRequest *r = e->plan.resumed->pdata[i];
        g_array_append_val(e->resumed_slots, r->slot);
    }
}

static void list_prefill(Engine *e)
{
    g_array_set_size(e->prefill, 0);
    if (e->plan.chunks == 0)
        return;
    for (guint i = 0; i < e->plan.entries->len; i++) {
        const PlanEntry *entry = &g_array_index(e->plan.entries, PlanEntry, i);
        if (entry->r->decoding)
            continue;
        StepPrefill p = {entry->r->request.id, entry->before, entry->tokens,
                         entry->hits * e->page_size};
        g_array_append_val(e->prefill, p);
    }
}

/* Puts a pointer and a length of the arrays into the step. */
static void list_changes(Engine *e, Step *s)
{
    g_array_append_vals(e->free_slots, e->left->data, e->left->len);
    list_joined(e);
    list_appended(e);
    list_prefill(e);
    s->n_left = e->left->len;
    s->left = (const guint32 *)(gpointer)e->left->data;
    s->n_paused = e->paused_slots->len;
    s->paused = (const guint32 *)(gpointer)e->paused_slots->data;
    s->n_resumed = e->resumed_slots->len;
    s->resumed = (const guint32 *)(gpointer)e->resumed_slots->data;
    s->n_joined = e->joined->len;
    s->joined = (const StepJoin *)(gpointer)e->joined->data;
    s->n_appended = e->appended->len;
    s->appended = (const StepAppend *)(gpointer)e->appended->data;
    s->n_prefill = e->prefill->len;
    s->prefill = (const StepPrefill *)(gpointer)e->prefill->data;
}

static void settle_batch(Engine *e)
{
    for (guint i = 0; i < e->plan.joins->len; i++)
        ((SimRequest *)e->plan.joins->pdata[i])->in_batch = TRUE;
    for (guint i = 0; i < e->plan.resumed->len; i++)
        ((SimRequest *)e->plan.resumed->pdata[i])->paused = FALSE;
    g_array_set_size(e->left, 0);
}

void engine_release_pages(Engine *e, SimRequest *r, guint32 computed, gboolean finished)
{
    if (e->pool.caching) {
        guint32 full = MIN(computed / e->page_size, r->n_pages);
        for (guint32 i = r->n_named; i < full; i++)
            page_pool_name(&e->pool, r->pages[i],
                           finished && i >= r->n_keys ? PAGE_KEY_DEAD : engine_page_key(r, i));
    }
    page_pool_give(&e->pool, r->pages, r->n_pages);
    r->n_pages = 0;
    r->n_named = 0;
}

static gboolean finish_request(Engine *e, SimRequest *r, GError **error)
{
    e->tokens -= r->stored;
    if (e->ops->keep_pages == NULL || !e->ops->keep_pages(e, r))
        engine_release_pages(e, r, r->stored, TRUE);
    e->n_alive--;
    if (r->in_batch)
        g_array_append_val(e->left, r->slot);
    RequestRecord record = {
        .request = r->request,
        .replica = e->config->replica,
        .first_scheduled = r->first_scheduled,
        .first_token = r->first_token,
        .finish = e->now,
        .cached_tokens = r->cached_tokens,
        .recomputed_tokens = r->recomputed_tokens,
        .preemptions = r->preemptions,
        .status = r->clipped ? REQUEST_CUT : REQUEST_FINISHED,
        .reason = r->clipped ? "clipped" : NULL,
    };
    metrics_finished(e->metrics, &record, r->measured);
    if (e->run->ledger)
        g_array_append_val(e->finished_ids, r->request.id);
    r->target = 0; /* marks it for compaction */
    RequestSink *sink = e->run->requests;
    if (sink && !sink->request(sink, &record, error))
        return FALSE;
    return engine_follow_up(e, &record.request, error);
}

/* The chunk reached everything known: a token comes out. TRUE when it was the last one. */
static gboolean prefill_done(Engine *e, SimRequest *r)
{
    r->outputs++;
    e->metrics->result.output_tokens++;
    if (r->outputs == 1)
        r->first_token = e->now;
    else if (r->measured)
        log_hist_add(e->metrics->itl, e->now - r->last_token, 1);
    if (r->outputs == (guint32)r->request.output)
        return TRUE;
    r->decoding = TRUE;
    r->finish_tick = e->tick + ((guint32)r->request.output - r->outputs);
    r->page_tick = r->finish_tick - r->stored + (guint64)r->n_pages * e->page_size + 1;
    return FALSE;
}

static gboolean chunk_done(Engine *e, const PlanEntry *entry)
{
    SimRequest *r = entry->r;
    guint32 end = entry->before + entry->tokens;
    if (entry->before < r->high_water)
        r->recomputed_tokens += MIN(end, r->high_water) - entry->before;
    r->computed = end;
    return end == r->target && prefill_done(e, r);
}

static gboolean finish_entries(Engine *e, GError **error)
{
    gboolean any = FALSE;
    e->n_alive = e->n_running;
    for (guint i = 0; i < e->plan.entries->len; i++) {
        const PlanEntry *entry = &g_array_index(e->plan.entries, PlanEntry, i);
        SimRequest *r = entry->r;
        if (r->decoding ? r->finish_tick != e->tick : !chunk_done(e, entry))
            continue;
        any = TRUE;
        if (!finish_request(e, r, error))
            return FALSE;
    }
    if (!any)
        return TRUE;
    guint kept = 0;
    for (guint i = 0; i < e->n_running; i++) {
        if (e->running[i]->target == 0)
            engine_recycle(e, e->running[i]);
        else
            e->running[kept++] = e->running[i];
    }
    e->n_running = kept;
    return TRUE;
}

static void give_tokens(Engine *e, kv_ns duration)
{
    StepPlan *p = &e->plan;
    e->metrics->result.output_tokens += p->rows;
    log_hist_add(e->metrics->itl, duration, p->measured_rows);
    for (guint i = 0; i < p->irregular->len; i++) {
        SimRequest *r = p->irregular->pdata[i];
        if (r->measured)
            log_hist_add(e->metrics->itl, e->now - r->last_token, 1);
        r->irregular = FALSE;
    }
}

static kv_ns ask_clock(Engine *e, const Step *step, GError **error)
{
    const StepPlan *p = &e->plan;
    StepLoad load = {
        .rows = p->rows,
        .sum_length = p->sum_length,
        .max_length = p->max_length,
        .prefill_rows = p->chunks,
        .prefill_tokens = p->chunk_tokens,
        .prefill_attended = p->chunk_attended,
        .step = step,
    };
    kv_ns length = e->run->clock->ops->length(e->run->clock, &load, error);
    return length == KV_NS_NONE ? length : length + p->extra;
}

gboolean engine_finish_step(Engine *e, GError **error)
{
    const StepPlan *p = &e->plan;
    pause_the_rest(e);
    Step step = {
        .index = e->tick,
        .start = e->now,
        .waiting = (guint32)e->waiting.n,
        .pages_used = e->pool.n_pages - e->pool.n_free,
        .tokens_held = e->tokens - e->pool.shared * e->page_size,
        .rows = p->rows,
        .max_length = p->max_length,
        .sum_length = p->sum_length,
    };
    if (e->wants_steps)
        list_changes(e, &step);
    settle_batch(e);
    step.duration = ask_clock(e, &step, error);
    if (step.duration == KV_NS_NONE)
        return FALSE;
    g_assert(step.duration > 0);
    StepSink *sink = e->run->steps;
    if (sink && !sink->step(sink, &step, error))
        return FALSE;
    metrics_step(e->metrics, p->rows, step.pages_used, step.tokens_held, step.duration);
    e->metrics->result.prefill_tokens += p->chunk_tokens;
    e->metrics->result.waiting_peak = MAX(e->metrics->result.waiting_peak, step.waiting);
    e->now += step.duration;
    give_tokens(e, step.duration);
    if ((p->chunks || p->finishing) && !finish_entries(e, error))
        return FALSE;
    e->tick++;
    return TRUE;
}
