/* sarathi: decodes first, then prompt chunks up to the chunk size: no decode ever waits for a
 * prompt.
 *
 * After Sarathi-Serve (Agrawal and others, OSDI'24): a step holds every decode row and at most
 * `chunk` tokens in all; what the rows leave goes to the prompt under way, then to new ones. A
 * prompt gets the pages for all of it on admission, above a watermark; a row that finds no page
 * preempts the last admitted request, by recomputation. */
#include "sim/engine.h"

typedef struct Config {
    gint64 chunk, seqs;
    double watermark;
    int queue;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"chunk", SPEC_INT, AT(chunk), "512", 1, 1e9, NULL, "tokens a step, decode rows included"},
    {"seqs", SPEC_INT, AT(seqs), "128", 1, 1e6, NULL, "requests that run at most"},
    {"watermark", SPEC_REAL, AT(watermark), "0.01", 0, 0.99, NULL,
     "share of the pool kept free on admission"},
    {"queue", SPEC_CHOICE, AT(queue), "fcfs", 0, 0, WAIT_ORDER_CHOICES, "order of the line"},
    {NULL},
};

static const Config *config_of(const Engine *e)
{
    return e->config->scheduler.config;
}

static SchedulerTraits traits(gconstpointer config)
{
    return (SchedulerTraits){.order = (WaitOrder)((const Config *)config)->queue, .cache = 0};
}

static guint32 watermark(const Engine *e)
{
    return (guint32)(config_of(e)->watermark * e->pool.n_pages);
}

static const char *refuse(const Engine *e, const SimRequest *r)
{
    return engine_pages_for(e, r->stored) + watermark(e) > e->pool.n_pages ? "watermark" : NULL;
}

/* One token of every row, even where there are more rows than the chunk size. */
static void decode_all(Engine *e)
{
    for (guint i = 0; i < e->n_running; i++) {
        SimRequest *r = e->running[i];
        if (!r->decoding)
            continue;
        guint32 need = r->page_tick == e->tick;
        while (need && e->pool.n_free == 0 && e->n_running > i)
            engine_preempt(e, e->n_running - 1, 0);
        if (e->n_running <= i)
            return;
        if (need)
            engine_take_pages(e, r, 1);
        engine_plan_decode(e, r, need);
    }
}

static void plan_part(Engine *e, SimRequest *r, guint32 new_pages, gint64 *left)
{
    guint32 n = (guint32)MIN((gint64)(r->target - r->computed), *left);
    engine_plan_chunk(e, r, n, new_pages, 0);
    *left -= n;
}

static Blocked admit(Engine *e, gint64 *left)
{
    while (e->waiting.n && *left > 0) {
        SimRequest *r = wait_queue_peek(&e->waiting);
        if (e->n_running >= config_of(e)->seqs)
            return BLOCKED_SEQS;
        guint32 need = engine_pages_for(e, r->target);
        if (need + watermark(e) > e->pool.n_free)
            return BLOCKED_HEAD;
        engine_admit(e);
        engine_take_pages(e, r, need);
        plan_part(e, r, need, left);
    }
    return BLOCKED_NO;
}

static void schedule(Engine *e)
{
    decode_all(e);
    gint64 left = config_of(e)->chunk - (gint64)e->plan.rows;
    gboolean under_way = FALSE;
    for (guint i = 0; i < e->n_running && left > 0; i++) {
        SimRequest *r = e->running[i];
        if (r->decoding)
            continue;
        plan_part(e, r, 0, &left);
        under_way = TRUE;
    }
    if (e->plan.preempted->len > 0)
        return;
    e->plan.blocked = admit(e, &left);
    if (under_way && e->plan.blocked != BLOCKED_SEQS)
        e->plan.blocked = BLOCKED_NO;
}

const SchedulerOps scheduler_sarathi = {
    .info = {"sarathi", "decodes first, then prompt chunks up to the chunk size", options,
             sizeof(Config)},
    .traits = traits,
    .refuse = refuse,
    .schedule = schedule,
};
