/* static: a batch is formed of what waits, its prompts are computed in one step, and it runs until
 * its longest request has ended; only then comes the next.
 *
 * A request's tokens go out as they are made, but its pages stay with the batch to the end: that is
 * what static batching wastes. Pages for the whole request are set aside when the batch is formed.
 */
#include "sim/engine.h"

typedef struct Config {
    gint64 batch;
    int queue;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"batch", SPEC_INT, AT(batch), "8", 1, 1e6, NULL, "requests of a batch at most"},
    {"queue", SPEC_CHOICE, AT(queue), "fcfs", 0, 0, WAIT_ORDER_CHOICES, "order of the line"},
    {NULL},
};

/* Pages of requests that have ended before their batch. */
typedef struct State {
    GArray *held; /* guint32 */
} State;

static SchedulerTraits traits(gconstpointer config)
{
    return (SchedulerTraits){.order = (WaitOrder)((const Config *)config)->queue, .cache = 0};
}

static gpointer start(const Engine *e)
{
    State *s = g_new0(State, 1);
    s->held = g_array_new(FALSE, FALSE, sizeof(guint32));
    return s;
}

static void stop(gpointer state)
{
    State *s = state;
    if (s)
        g_array_unref(s->held);
    g_free(s);
}

static void hold(const Engine *e, guint32 *holders)
{
    const State *s = e->state;
    for (guint i = 0; i < s->held->len; i++)
        holders[g_array_index(s->held, guint32, i)]++;
}

static gboolean keep_pages(Engine *e, SimRequest *r)
{
    State *s = e->state;
    if (e->n_alive == 1) { /* the last of the batch */
        page_pool_give(&e->pool, (const guint32 *)(gpointer)s->held->data, s->held->len);
        g_array_set_size(s->held, 0);
        return FALSE;
    }
    g_array_append_vals(s->held, r->pages, r->n_pages);
    r->n_pages = 0;
    return TRUE;
}

static void form_batch(Engine *e)
{
    const Config *c = e->config->scheduler.config;
    while (e->waiting.n && e->n_running < c->batch) {
        SimRequest *r = wait_queue_peek(&e->waiting);
        guint32 need = engine_pages_for(e, r->stored);
        if (need > e->pool.n_free)
            return;
        engine_admit(e);
        engine_take_pages(e, r, need);
        engine_plan_chunk(e, r, r->target, need, 0);
    }
}

static void schedule(Engine *e)
{
    for (guint i = 0; i < e->n_running; i++)
        engine_plan_decode(e, e->running[i], 0);
    if (e->n_running == 0)
        form_batch(e);
    e->plan.blocked = BLOCKED_SEQS;
}

const SchedulerOps scheduler_static = {
    .info = {"static", "a batch runs until its longest request ends", options, sizeof(Config)},
    .traits = traits,
    .start = start,
    .schedule = schedule,
    .keep_pages = keep_pages,
    .hold = hold,
    .stop = stop,
};
