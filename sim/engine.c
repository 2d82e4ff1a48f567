#include "sim/engine.h"
#include "sim/ledger.h"
#include "base/error.h"

#include <string.h>

static GArray *array_of(guint size)
{
    return g_array_new(FALSE, FALSE, size);
}

static void plan_init(StepPlan *p)
{
    p->entries = array_of(sizeof(PlanEntry));
    p->joins = g_ptr_array_new();
    p->resumed = g_ptr_array_new();
    p->gained = g_ptr_array_new();
    p->preempted = g_ptr_array_new();
    p->irregular = g_ptr_array_new();
}

static void plan_reset(StepPlan *p)
{
    g_array_set_size(p->entries, 0);
    GPtrArray *const lists[] = {p->joins, p->resumed, p->gained, p->preempted, p->irregular};
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        if (lists[i]->len)
            g_ptr_array_set_size(lists[i], 0);
    p->rows = p->measured_rows = p->finishing = p->max_length = p->chunks = 0;
    p->sum_length = p->chunk_tokens = p->chunk_attended = 0;
    p->extra = 0;
    p->blocked = BLOCKED_NO;
}

static void plan_clear(StepPlan *p)
{
    g_array_unref(p->entries);
    GPtrArray *const lists[] = {p->joins, p->resumed, p->gained, p->preempted, p->irregular};
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        g_ptr_array_unref(lists[i]);
}

static void free_request(SimRequest *r)
{
    g_free(r->pages);
    g_free(r->keys);
    g_free(r);
}

/* `by_log`: the log has block keys. */
static gboolean decide_cache(const Engine *e, gboolean by_log)
{
    if (e->traits.cache >= 0)
        return e->traits.cache;
    return e->config->prefix_cache >= 0 ? e->config->prefix_cache : by_log;
}

gboolean engine_start(Engine *e, const SimRun *run, GError **error)
{
    const SimConfig *c = run->config;
    *e = (Engine){.run = run, .config = c, .horizon = KV_NS_MAX};
    e->ops = (const SchedulerOps *)c->scheduler.info;
    e->traits = e->ops->traits(c->scheduler.config);
    e->page_size = c->page_size;
    wait_queue_init(&e->waiting, e->traits.order);
    event_queue_init(&e->events);
    plan_init(&e->plan);
    e->left = array_of(sizeof(guint32));
    e->free_slots = array_of(sizeof(guint32));
    e->paused_slots = array_of(sizeof(guint32));
    e->resumed_slots = array_of(sizeof(guint32));
    e->joined = array_of(sizeof(StepJoin));
    e->appended = array_of(sizeof(StepAppend));
    e->prefill = array_of(sizeof(StepPrefill));
    e->finished_ids = array_of(sizeof(guint64));
    e->rest_begin = g_new0(guint32, (gsize)e->page_size + 1);
    e->metrics = metrics_new(c);
    e->wants_steps = e->run->steps || e->run->clock->ops->wants_step;
    Request first;
    int got = request_source_next(e->run->source, &first, error);
    if (got < 0)
        return FALSE;
    e->source_ended = got == 0;
    gboolean caching = decide_cache(e, got && first.block_tokens > 0);
    if (!page_pool_init(&e->pool, c->pool_pages, caching, e->traits.compat2025, c->pool_layout,
                        c->seed, error))
        return FALSE;
    if (caching && e->traits.host_bytes > 0)
        e->pool.host = host_tier_new((guint64)(e->traits.host_bytes / engine_page_bytes(e)));
    engine_begin_arrivals(e, got ? &first : NULL);
    e->state = e->ops->start ? e->ops->start(e) : NULL;
    StepSink *sink = e->run->steps;
    return sink == NULL || sink->begin == NULL || sink->begin(sink, e->pool.id_limit, error);
}

void engine_stop(Engine *e)
{
    if (e->ops->stop)
        e->ops->stop(e->state);
    while (e->events.n)
        free_request(event_queue_pop(&e->events));
    while (e->waiting.n)
        free_request(wait_queue_pop(&e->waiting));
    for (guint i = 0; i < e->n_running; i++)
        free_request(e->running[i]);
    if (e->ahead)
        free_request(e->ahead);
    for (SimRequest *r = e->free_requests, *next; r; r = next) {
        next = r->next_free;
        free_request(r);
    }
    GArray *const arrays[] = {e->left,   e->free_slots, e->paused_slots, e->resumed_slots,
                              e->joined, e->appended,   e->prefill,      e->finished_ids};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    plan_clear(&e->plan);
    event_queue_clear(&e->events);
    wait_queue_clear(&e->waiting);
    page_pool_clear(&e->pool);
    metrics_free(e->metrics);
    g_free(e->running);
    g_free(e->rest_begin);
    g_free(e->rest_rows);
}

const char *engine_check(const Engine *e)
{
    g_autofree guint32 *holders = g_new0(guint32, (gsize)e->pool.id_limit + 1);
    guint64 tokens = 0;
    for (guint i = 0; i < e->n_running; i++) {
        const SimRequest *r = e->running[i];
        guint32 computed = engine_computed(e, r);
        tokens += computed;
        if (r->n_pages < engine_pages_for(e, computed))
            return "a table is shorter than its entries";
        if (r->decoding && r->finish_tick < e->tick)
            return "a row has missed its end";
        for (guint32 k = 0; k < r->n_pages; k++)
            holders[r->pages[k]]++;
    }
    if (tokens != e->tokens)
        return "entries held are not the sum over the running requests";
    if (e->ops->hold)
        e->ops->hold(e, holders);
    const SimResult *m = &e->metrics->result;
    if (m->requests != m->finished + m->refused + e->waiting.n + e->n_running)
        return "arrived is not finished + refused + waiting + running";
    return page_pool_check(&e->pool, holders);
}

/* A bug, or a scheduler that cannot serve what it let in: said, not looped over. */
static gboolean stuck(const Engine *e, GError **error)
{
    const SimRequest *head = wait_queue_peek(&e->waiting);
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "simulator: nothing gets on at %" G_GINT64_FORMAT " ns although %" G_GSIZE_FORMAT
                " requests wait and %u run (scheduler %s; first in line: request %" G_GINT64_FORMAT
                ", %d+%d tokens; %u of %u pages free): please report this",
                e->now, e->waiting.n, e->n_running, e->ops->info.name,
                head ? (gint64)head->request.id : -1, head ? head->request.prompt : 0,
                head ? head->request.output : 0, e->pool.n_free, e->pool.n_pages);
    return FALSE;
}

/* Every scheduler is built so that somebody always gets on; this notices if one does not. No run of
 * chunks between two tokens is longer than a few pools full. */
static gboolean gets_on(Engine *e)
{
    guint64 tokens = e->metrics->result.output_tokens;
    if (tokens != e->last_tokens) {
        e->last_tokens = tokens;
        e->idle_steps = 0;
    }
    return e->idle_steps++ < 65536 + 16 * (guint64)e->pool.n_pages * e->page_size;
}

static gboolean full_step(Engine *e, GError **error)
{
    plan_reset(&e->plan);
    if (!gets_on(e))
        return stuck(e, error);
    g_array_set_size(e->finished_ids, 0);
    e->ops->schedule(e);
    if (e->plan.entries->len == 0 && e->plan.preempted->len == 0)
        return stuck(e, error);
    if (e->run->ledger)
        ledger_scheduled(e->run->ledger, e);
    /* By priority the first row may give way itself, and end its step before it began: no step, no
     * time; the next one finds its pages free. */
    if (e->plan.entries->len > 0 && !engine_finish_step(e, error))
        return FALSE;
    if (e->run->ledger)
        ledger_finished(e->run->ledger, e);
    if (e->config->check) {
        const char *problem = engine_check(e);
        g_assert_cmpstr(problem, ==, NULL);
    }
    return TRUE;
}

gboolean engine_idle(const Engine *e)
{
    return e->n_running == 0 && e->waiting.n == 0;
}

gboolean engine_advance(Engine *e, kv_ns horizon, GError **error)
{
    e->horizon = horizon;
    for (;;) {
        if (!progress_check(e->run->progress, error) || !engine_take_arrivals(e, error))
            return FALSE;
        if (engine_idle(e)) {
            if (e->next_arrival == KV_NS_MAX || e->next_arrival >= horizon)
                return TRUE;
            e->now = e->next_arrival;
            continue;
        }
        if (e->now >= horizon)
            return TRUE;
        if (!full_step(e, error))
            return FALSE;
        if (engine_may_rest(e) && e->run->ledger == NULL && !engine_rest(e, error))
            return FALSE;
        progress_tick(e->run->progress, e->metrics->result.finished);
    }
}

gboolean engine_close(Engine *e, SimResult *ret, GError **error)
{
    e->metrics->result.host_bytes_out = e->pool.host_writes * (guint64)engine_page_bytes(e);
    metrics_close(e->metrics, e->page_size, e->pool.n_pages - e->pool.n_free, ret);
    const char *problem = metrics_check(e->metrics);
    if (problem)
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "simulator: %s: please report this",
                    problem);
    return problem == NULL;
}

gboolean engine_run(const SimRun *run, SimResult *ret, GError **error)
{
    Engine e;
    gboolean ok = engine_start(&e, run, error) && engine_advance(&e, KV_NS_MAX, error) &&
                  engine_close(&e, ret, error);
    engine_stop(&e);
    return ok;
}
