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

static SimRequest *new_request(Engine *e, const Request *from)
{
    SimRequest *r = e->free_requests;
    if (r)
        e->free_requests = r->next_free;
    else
        r = g_new0(SimRequest, 1);
    *r = (SimRequest){
        .pages = r->pages,
        .cap_pages = r->cap_pages,
        .keys = r->keys,
        .cap_keys = r->cap_keys,
        .request = *from,
        .asked_output = from->output,
        .sched_tick = TICK_NEVER,
        .first_scheduled = KV_NS_NONE,
        .first_token = KV_NS_NONE,
        .last_token = KV_NS_NONE,
    };
    engine_make_keys(e, r, from);
    r->request.blocks = NULL;
    r->request.n_blocks = 0;
    return r;
}

void engine_recycle(Engine *e, SimRequest *r)
{
    r->next_free = e->free_requests;
    e->free_requests = r;
}

static void free_request(SimRequest *r)
{
    g_free(r->pages);
    g_free(r->keys);
    g_free(r);
}

static void note_next_arrival(Engine *e)
{
    kv_ns queued = event_queue_next(&e->events);
    e->next_arrival = e->ahead ? MIN(queued, e->ahead->request.arrival) : queued;
}

static gboolean look_ahead(Engine *e, GError **error)
{
    Request q;
    e->ahead = NULL;
    if (!e->source_ended) {
        int got = request_source_next(e->run->source, &q, error);
        if (got < 0)
            return FALSE;
        if (got > 0)
            e->ahead = new_request(e, &q);
        else
            e->source_ended = TRUE;
    }
    note_next_arrival(e);
    return TRUE;
}

/* Largest number of entries it may store; sets the reason that a larger one is refused for. */
static gint64 entry_limit(const Engine *e, const Request *q, const char **ret_reason)
{
    gint64 limit = (gint64)e->pool.n_pages * e->page_size;
    *ret_reason = "pool";
    if (e->config->context_limit > 0 && e->config->context_limit < limit) {
        limit = e->config->context_limit;
        *ret_reason = "context_limit";
    }
    if (e->config->max_model_len > 0 && e->config->max_model_len - 1 < limit) {
        limit = e->config->max_model_len - 1;
        *ret_reason = "max_model_len";
    }
    return limit;
}

static const char *refusal(Engine *e, SimRequest *r)
{
    const char *reason;
    Request *q = &r->request;
    gint64 stored = (gint64)q->prompt + q->output - 1, limit = entry_limit(e, q, &reason);
    if (q->prompt < 1 || q->output < 1)
        return "no_tokens";
    if (stored > limit && (!e->config->clip || q->prompt > limit))
        return reason;
    if (stored > limit) {
        q->output = (gint32)(limit - q->prompt + 1);
        r->clipped = TRUE;
    }
    r->stored = (guint32)q->prompt + (guint32)q->output - 1;
    return e->ops->refuse ? e->ops->refuse(e, r) : NULL;
}

static gboolean refuse(Engine *e, SimRequest *r, const char *reason, GError **error)
{
    metrics_refused(e->metrics, &r->request, reason);
    RequestRecord record = {
        .request = r->request,
        .replica = e->config->replica,
        .first_scheduled = KV_NS_NONE,
        .first_token = KV_NS_NONE,
        .finish = KV_NS_NONE,
        .status = REQUEST_REFUSED,
        .reason = reason,
    };
    engine_recycle(e, r);
    if (e->run->requests && !e->run->requests->request(e->run->requests, &record, error))
        return FALSE;
    return engine_follow_up(e, &record.request, error);
}

gboolean engine_follow_up(Engine *e, const Request *done, GError **error)
{
    Request q;
    kv_ns now = MAX(e->now, request_entry_time(done));
    int got = request_source_next_turn(e->run->source, done, now, &q, error);
    if (got <= 0)
        return got == 0;
    event_queue_push(&e->events, request_entry_time(&q), 1, new_request(e, &q));
    note_next_arrival(e);
    return TRUE;
}

static gboolean take_arrival(Engine *e, SimRequest *r, GError **error)
{
    metrics_arrived(e->metrics, &r->request);
    const char *reason = refusal(e, r);
    if (reason)
        return refuse(e, r, reason, error);
    r->measured = r->request.arrival >= e->config->warmup;
    r->target = (guint32)r->request.prompt;
    r->enqueued = request_entry_time(&r->request);
    wait_queue_push(&e->waiting, r);
    return TRUE;
}

gboolean engine_idle(const Engine *e)
{
    return e->n_running == 0 && e->waiting.n == 0;
}

gboolean engine_take_arrivals(Engine *e, GError **error)
{
    while (e->next_arrival <= e->now) {
        SimRequest *r;
        if (event_queue_next(&e->events) == e->next_arrival) {
            r = event_queue_pop(&e->events);
            note_next_arrival(e);
        } else {
            r = e->ahead;
            if (!look_ahead(e, error))
                return FALSE;
            if (request_entry_time(&r->request) >
                r->request.arrival) { /* gets in line by its sending */
                event_queue_push(&e->events, request_entry_time(&r->request), 0, r);
                note_next_arrival(e);
                continue;
            }
        }
        if (!take_arrival(e, r, error))
            return FALSE;
    }
    return TRUE;
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
    if (got)
        e->ahead = new_request(e, &first);
    note_next_arrival(e);
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

void engine_offer(Engine *e, const Request *request)
{
    event_queue_push(&e->events, request_entry_time(request), 0, new_request(e, request));
    note_next_arrival(e);
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
