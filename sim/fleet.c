#include "sim/fleet.h"
#include "sim/engine.h"
#include "base/error.h"

typedef struct Fleet Fleet;

/* A replica, and the source it sees: nothing of its own; follow-ups go to the router. */
typedef struct Replica {
    RequestSource source;
    Fleet *fleet;
    SimConfig config;
    SimRun run;
    Engine engine;
} Replica;

typedef struct Coming {
    Request request;
    guint64 *blocks;
} Coming;

struct Fleet {
    RequestSource *source;
    Replica *replicas;
    ReplicaView *views;
    guint n;
    Router *router;
    Coming *ahead;     /* next one of the source */
    EventQueue events; /* Coming *, by the time that the server gets them */
    gboolean closed;   /* requests may follow from others' ends */
};

static Coming *keep(const Request *q)
{
    Coming *c = g_new0(Coming, 1);
    c->request = *q;
    if (q->n_blocks)
        c->request.blocks = c->blocks = g_memdup2(q->blocks, q->n_blocks * sizeof *q->blocks);
    return c;
}

static void forget(Coming *c)
{
    if (c)
        g_free(c->blocks);
    g_free(c);
}

static int no_request(RequestSource *self, Request *ret, GError **error)
{
    return 0;
}

static int follow(RequestSource *self, const Request *finished, kv_ns now, Request *ret,
                  GError **error)
{
    Fleet *fleet = ((Replica *)self)->fleet;
    Request q;
    int got = request_source_next_turn(fleet->source, finished, now, &q, error);
    if (got < 0)
        return -1;
    if (got > 0)
        event_queue_push(&fleet->events, request_entry_time(&q), 1, keep(&q));
    return 0;
}

static const RequestSourceOps replica_ops = {"replica", no_request, follow, NULL};

static gboolean look_ahead(Fleet *f, GError **error)
{
    Request q;
    f->ahead = NULL;
    int got = request_source_next(f->source, &q, error);
    if (got > 0)
        f->ahead = keep(&q);
    return got >= 0;
}

/* Moves what is sent later than it was meant to into the event queue. */
static kv_ns next_entry(Fleet *f, GError **error)
{
    while (f->ahead && f->ahead->request.arrival < event_queue_next(&f->events)) {
        Coming *c = f->ahead;
        if (request_entry_time(&c->request) == c->request.arrival)
            return c->request.arrival;
        event_queue_push(&f->events, request_entry_time(&c->request), 0, c);
        if (!look_ahead(f, error))
            return KV_NS_NONE;
    }
    return event_queue_next(&f->events);
}

static gboolean route_next(Fleet *f, GError **error)
{
    Coming *c = f->ahead;
    if (c && c->request.arrival < event_queue_next(&f->events)) {
        if (!look_ahead(f, error))
            return FALSE;
    } else {
        c = event_queue_pop(&f->events);
    }
    for (guint i = 0; i < f->n; i++) {
        const Engine *e = &f->replicas[i].engine;
        f->views[i].outstanding = e->waiting.n + e->n_running + e->events.n;
        f->views[i].pages_used = e->pool.n_pages - e->pool.n_free;
    }
    guint to = f->router->ops->pick(f->router, &c->request, f->views, f->n);
    f->router->routed++;
    g_assert(to < f->n);
    engine_offer(&f->replicas[to].engine, &c->request);
    forget(c);
    return TRUE;
}

/* Open loop: everybody up to the next arrival. */
static gboolean advance_all(Fleet *f, kv_ns horizon, GError **error)
{
    for (guint i = 0; i < f->n; i++)
        if (!engine_advance(&f->replicas[i].engine, horizon, error))
            return FALSE;
    return TRUE;
}

/* When a replica's next step begins. */
static kv_ns next_begin(const Engine *e)
{
    return engine_idle(e) ? MAX(e->next_arrival, e->now) : e->now;
}

/* Closed loop: one step of the replica that is furthest behind. FALSE in *ret_any: none before. */
static gboolean advance_one(Fleet *f, kv_ns horizon, gboolean *ret_any, GError **error)
{
    Engine *first = NULL;
    for (guint i = 0; i < f->n; i++) {
        Engine *e = &f->replicas[i].engine;
        if ((!engine_idle(e) || e->next_arrival < KV_NS_MAX) && next_begin(e) < horizon &&
            (first == NULL || next_begin(e) < next_begin(first)))
            first = e;
    }
    *ret_any = first != NULL;
    return first == NULL || engine_advance(first, next_begin(first) + 1, error);
}

static gboolean run_fleet(Fleet *f, GError **error)
{
    for (;;) {
        kv_ns next = next_entry(f, error);
        if (next == KV_NS_NONE)
            return FALSE;
        gboolean any = FALSE;
        if (f->closed && !advance_one(f, next, &any, error))
            return FALSE;
        if (any)
            continue;
        if (!f->closed && !advance_all(f, next, error))
            return FALSE;
        if (next == KV_NS_MAX)
            return TRUE;
        if (!route_next(f, error))
            return FALSE;
    }
}

static gboolean start_fleet(Fleet *f, const SimConfig *config, StepClock *const *clocks,
                            StepSink *const *steps, RequestSink *requests, Progress *progress,
                            GError **error)
{
    if (!look_ahead(f, error))
        return FALSE;
    gboolean keys = f->ahead && f->ahead->request.block_tokens > 0;
    for (guint i = 0; i < f->n; i++) {
        Replica *r = &f->replicas[i];
        r->source.ops = &replica_ops;
        r->fleet = f;
        r->config = *config;
        r->config.replica = i;
        if (config->prefix_cache < 0)
            r->config.prefix_cache = keys;
        r->run = (SimRun){&r->config, &r->source, clocks[i], steps ? steps[i] : NULL,
                          requests,   progress,   NULL};
    }
    gboolean ok = TRUE;
    for (guint i = 0; i < f->n; i++) /* all, so that all can be stopped */
        ok = engine_start(&f->replicas[i].engine, &f->replicas[i].run, ok ? error : NULL) && ok;
    return ok;
}

static gboolean close_fleet(Fleet *f, guint32 page_size, SimResult *ret_total, SimResult *ret_each,
                            GError **error)
{
    SimMetrics *total = metrics_new(&f->replicas[0].config);
    gboolean ok = TRUE;
    for (guint i = 0; i < f->n && ok; i++) {
        SimResult one;
        Engine *e = &f->replicas[i].engine;
        ok = engine_close(e, &one, error);
        metrics_merge(total, e->metrics);
        if (ret_each)
            ret_each[i] = one;
    }
    if (ok)
        metrics_close(total, page_size, total->result.pages_end, ret_total);
    metrics_free(total);
    return ok;
}

gboolean sim_fleet_run(const SimConfig *config, const FleetConfig *fleet, RequestSource *source,
                       StepClock *const *clocks, StepSink *const *steps, RequestSink *requests,
                       Progress *progress, SimResult *ret_total, SimResult *ret_each,
                       GError **error)
{
    if (((const SchedulerOps *)config->scheduler.info)->run || fleet->replicas < 1) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "a fleet needs at least one replica and a scheduler other than '%s'",
                    config->scheduler.info->name);
        return FALSE;
    }
    const RouterOps *ops = (const RouterOps *)fleet->router.info;
    Fleet f = {.source = source, .n = fleet->replicas, .closed = source->ops->next_turn != NULL};
    f.router = ops->create ? ops->create(fleet->router.config) : g_new0(Router, 1);
    f.router->ops = ops;
    f.router->seed = config->seed;
    f.replicas = g_new0(Replica, f.n);
    f.views = g_new0(ReplicaView, f.n);
    event_queue_init(&f.events);
    gboolean started = start_fleet(&f, config, clocks, steps, requests, progress, error);
    gboolean ok = started && run_fleet(&f, error) &&
                  close_fleet(&f, config->page_size, ret_total, ret_each, error);
    for (guint i = 0; i < f.n && f.replicas[i].run.config; i++)
        engine_stop(&f.replicas[i].engine);
    while (f.events.n)
        forget(event_queue_pop(&f.events));
    event_queue_clear(&f.events);
    forget(f.ahead);
    g_free(f.router);
    g_free(f.replicas);
    g_free(f.views);
    return ok;
}
