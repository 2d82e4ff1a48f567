/* Arrivals: from the source and from whoever follows a finished request, in order of time, into the
 * line, or refused. */
#include "sim/engine.h"

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

void engine_offer(Engine *e, const Request *request)
{
    event_queue_push(&e->events, request_entry_time(request), 0, new_request(e, request));
    note_next_arrival(e);
}

void engine_begin_arrivals(Engine *e, const Request *first)
{
    if (first)
        e->ahead = new_request(e, first);
    note_next_arrival(e);
}
