/* orca: requests join and leave at every step, whole prompts beside decode rows, and nobody is ever
 * preempted, because each has pages for its largest length set aside on admission.
 *
 * After Orca (Yu and others, OSDI'22). The largest length is prompt + max_output where given, else
 * what the request will really need (an oracle's reservation). */
#include "sim/engine.h"

typedef struct Config {
    gint64 seqs, max_output;
    int queue;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"seqs", SPEC_INT, AT(seqs), "32", 1, 1e6, NULL, "requests that run at most"},
    {"max_output", SPEC_INT, AT(max_output), "0", 0, 1e9, NULL,
     "output tokens that pages are set aside for; 0 = the recorded ones"},
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

static guint32 reservation(const Engine *e, const SimRequest *r)
{
    guint64 most = (guint64)r->request.prompt + (guint64)config_of(e)->max_output;
    return engine_pages_for(e, MAX(most, (guint64)r->stored));
}

static const char *refuse(const Engine *e, const SimRequest *r)
{
    return reservation(e, r) > e->pool.n_pages ? "pool" : NULL;
}

static void schedule(Engine *e)
{
    for (guint i = 0; i < e->n_running; i++)
        engine_plan_decode(e, e->running[i], 0);
    while (e->waiting.n) {
        SimRequest *r = wait_queue_peek(&e->waiting);
        guint32 need = reservation(e, r);
        if (e->n_running >= config_of(e)->seqs || need > e->pool.n_free) {
            e->plan.blocked = e->n_running >= config_of(e)->seqs ? BLOCKED_SEQS : BLOCKED_HEAD;
            return;
        }
        engine_admit(e);
        engine_take_pages(e, r, need);
        engine_plan_chunk(e, r, r->target, need, 0);
    }
    if (e->n_running >= config_of(e)->seqs)
        e->plan.blocked = BLOCKED_SEQS;
}

const SchedulerOps scheduler_orca = {
    .info = {"orca", "joins and leaves at every step, whole largest length set aside", options,
             sizeof(Config)},
    .traits = traits,
    .refuse = refuse,
    .schedule = schedule,
};
