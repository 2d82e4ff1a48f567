/* vllm-v1: one token budget a step; running requests first, in order of admission, then the line.
 *
 * docs/simulator.md tells the rules. Prompts are cut into chunks of what is left of the budget; a
 * request that finds no page preempts the last admitted one (priority: the least urgent one), which
 * starts over at the head of the line; nobody is admitted in such a step, and admission never
 * preempts.
 */
#include "sim/engine.h"

#include <string.h>

typedef struct Config {
    int compat; /* 0 = 2025, 1 = 2026 */
    gint64 budget, seqs, long_threshold;
    gboolean chunked;
    int full_isl, cache; /* 0 = auto, 1 = no, 2 = yes */
    double watermark;
    int queue;
    gint64 offload, pcie; /* bytes, bytes/s */
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"compat", SPEC_CHOICE, AT(compat), "2026", 0, 0, "2025|2026",
     "rules as of that year: where freed pages go, full_isl's default, watermark"},
    {"budget", SPEC_INT, AT(budget), "2048", 1, 1e9, NULL,
     "tokens a step (max_num_batched_tokens)"},
    {"seqs", SPEC_INT, AT(seqs), "256", 1, 1e6, NULL, "requests that run at most (max_num_seqs)"},
    {"chunked", SPEC_BOOL, AT(chunked), "yes", 0, 0, NULL, "prompts may be cut into chunks"},
    {"long_threshold", SPEC_INT, AT(long_threshold), "0", 0, 1e9, NULL,
     "largest chunk of one prompt (long_prefill_token_threshold); 0 = no limit"},
    {"full_isl", SPEC_CHOICE, AT(full_isl), "auto", 0, 0, "auto|no|yes",
     "admit only when the whole known sequence fits; auto: yes from 2026 on"},
    {"watermark", SPEC_REAL, AT(watermark), "0", 0, 0.99, NULL,
     "share of the pool kept free on admission (2026)"},
    {"cache", SPEC_CHOICE, AT(cache), "auto", 0, 0, "auto|no|yes",
     "prefix cache; auto: when the log has block keys"},
    {"queue", SPEC_CHOICE, AT(queue), "fcfs", 0, 0, WAIT_ORDER_CHOICES, "order of the line"},
    {"offload", SPEC_BYTES, AT(offload), "0", 0, 1e15, NULL,
     "host memory that keeps evicted pages of the prefix cache; 0 = none"},
    {"pcie", SPEC_BYTES, AT(pcie), "16GB", 1, 1e15, NULL,
     "bytes a second back from host memory, added to the step; copies out overlap"},
    {NULL},
};

typedef struct State {
    Config c;
    gboolean full_isl;
    guint32 watermark; /* pages */
    guint32 *hits;     /* room for the longest prefix */
} State;

static SchedulerTraits traits(gconstpointer config)
{
    const Config *c = config;
    return (SchedulerTraits){
        .order = (WaitOrder)c->queue,
        .compat2025 = c->compat == 0,
        .host_bytes = c->offload,
        .cache = c->cache - 1 < 0 ? -1 : c->cache - 1,
    };
}

static gpointer start(const Engine *e)
{
    State *s = g_new0(State, 1);
    s->c = *(const Config *)e->config->scheduler.config;
    s->full_isl = s->c.full_isl == 0 ? s->c.compat == 1 : s->c.full_isl == 2;
    if (s->c.compat == 1) /* vLLM counts its null block too */
        s->watermark = (guint32)(s->c.watermark * ((double)e->pool.n_pages + 1));
    s->hits = g_new(guint32, (gsize)e->pool.n_pages + 1);
    return s;
}

static void stop(gpointer state)
{
    State *s = state;
    if (s)
        g_free(s->hits);
    g_free(s);
}

static const char *refuse(const Engine *e, const SimRequest *r)
{
    const State *s = e->state;
    /* vLLM asks for a budget of a whole context then; it would wait for ever */
    return !s->c.chunked && r->stored > s->c.budget ? "budget" : NULL;
}

/* The order is total: were equal arrivals left equal, two requests could make each other start over
 * for ever. (vLLM compares wall-clock times, which never are.) */
static gboolean less_urgent(const Request *a, const Request *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->arrival != b->arrival)
        return a->arrival > b->arrival;
    return a->id > b->id;
}

/* Index of the running request to give way. */
static guint pick_victim(const Engine *e)
{
    guint worst = e->n_running - 1;
    if (e->traits.order != ORDER_PRIORITY)
        return worst;
    worst = 0;
    for (guint i = 1; i < e->n_running; i++)
        if (less_urgent(&e->running[i]->request, &e->running[worst]->request))
            worst = i;
    return worst;
}

/* Frees pages until running[*i] has the `need` it lacks. FALSE when it had to give way itself. */
static gboolean make_room(Engine *e, guint *i, guint32 need, gint64 *budget)
{
    SimRequest *r = e->running[*i];
    while (e->pool.n_free < need) {
        guint v = pick_victim(e);
        SimRequest *victim = e->running[v];
        guint32 planned = 0;
        if (victim->sched_tick == e->tick) {
            planned = engine_unplan(e, victim);
            *budget += planned;
            (*i)--;
        }
        engine_preempt(e, v, planned);
        if (victim == r)
            return FALSE;
    }
    return TRUE;
}

static guint32 chunk_size(const State *s, guint32 left, gint64 budget)
{
    if (s->c.long_threshold > 0 && left > s->c.long_threshold)
        left = (guint32)s->c.long_threshold;
    return (guint32)MIN((gint64)left, budget);
}

static gboolean schedule_chunk(Engine *e, guint *i, gint64 *budget)
{
    SimRequest *r = e->running[*i];
    guint32 n = chunk_size(e->state, r->target - r->computed, *budget);
    guint32 need = engine_pages_for(e, (guint64)r->computed + n);
    need = need > r->n_pages ? need - r->n_pages : 0;
    if (!make_room(e, i, need, budget))
        return FALSE;
    engine_take_pages(e, r, need);
    engine_name_pages(e, r, r->computed + n);
    engine_plan_chunk(e, r, n, need, 0);
    *budget -= n;
    return TRUE;
}

static void schedule_running(Engine *e, gint64 *budget)
{
    for (guint i = 0; i<e->n_running && * budget> 0; i++) {
        SimRequest *r = e->running[i];
        if (!r->decoding) {
            if (!schedule_chunk(e, &i, budget))
                return;
            continue;
        }
        guint32 need = r->page_tick == e->tick;
        if (need) {
            if (!make_room(e, &i, 1, budget))
                return;
            engine_take_pages(e, r, 1);
        }
        engine_plan_decode(e, r, need);
        (*budget)--;
    }
}

typedef enum { ADMITTED, NO_PAGES, NO_BUDGET } Admission;

/* What admission would begin with: pages of the prefix that are in the pool, how many of these are
 * free ones, pages that the host tier has after them. */
typedef struct Known {
    guint32 hits, unused, hosted;
} Known;

static Known find_known(const Engine *e, const SimRequest *r)
{
    Known k = {0};
    if (!e->pool.caching)
        return k;
    guint32 most = (r->target - 1) / e->page_size; /* one token at least is computed */
    k.hits = engine_find_prefix(e, r, most, ((const State *)e->state)->hits, &k.unused);
    k.hosted = engine_find_hosted(e, r, k.hits, most);
    return k;
}

/* Whether the head of the line fits with a chunk of n, by vLLM's rule of allocate_slots(). */
static gboolean fits(const Engine *e, const SimRequest *r, guint32 n, const Known *k)
{
    const State *s = e->state;
    guint64 free = e->pool.n_free, mark = e->n_running > 0 ? s->watermark : 0;
    guint64 whole = engine_pages_for(e, r->target);
    if (s->full_isl && whole - k->hits + k->unused + mark > free)
        return FALSE;
    guint64 need = engine_pages_for(e, (guint64)(k->hits + k->hosted) * e->page_size + n);
    return need - k->hits + k->unused + mark <= free;
}

static void start_head(Engine *e, const Known *k, guint32 n)
{
    const State *s = e->state;
    SimRequest *r = engine_admit(e);
    if (e->pool.caching)
        engine_take_prefix(e, r, s->hits, k->hits);
    guint32 known = k->hits + k->hosted;
    guint32 need = engine_pages_for(e, (guint64)known * e->page_size + n) - k->hits;
    engine_take_pages(e, r, need);
    if (k->hosted) {
        engine_take_hosted(e, r, k->hosted);
        double bytes = (double)k->hosted * (double)engine_page_bytes(e);
        e->plan.extra += kv_ns_from_seconds(bytes / (double)s->c.pcie);
    }
    engine_name_pages(e, r, r->computed + n);
    engine_plan_chunk(e, r, n, need, known);
}

static Admission admit_head(Engine *e, gint64 *budget)
{
    const State *s = e->state;
    const SimRequest *r = wait_queue_peek(&e->waiting);
    Known k = find_known(e, r);
    guint32 n = chunk_size(s, r->target - (k.hits + k.hosted) * e->page_size, G_MAXINT64);
    if (!s->c.chunked && n > *budget)
        return NO_BUDGET;
    n = (guint32)MIN((gint64)n, *budget);
    if (!fits(e, r, n, &k)) /* hits on free pages may vanish, and less be asked for then */
        return (k.unused > 0 || e->pool.host) && !s->full_isl ? NO_BUDGET : NO_PAGES;
    start_head(e, &k, n);
    *budget -= n;
    return ADMITTED;
}

static void schedule(Engine *e)
{
    const State *s = e->state;
    gint64 budget = s->c.budget;
    Admission got = ADMITTED;
    schedule_running(e, &budget);
    if (e->plan.preempted->len > 0)
        return;
    while (e->waiting.n && budget > 0 && e->n_running < s->c.seqs && got == ADMITTED)
        got = admit_head(e, &budget);
    if (e->n_running >= s->c.seqs)
        e->plan.blocked = BLOCKED_SEQS;
    else if (got == NO_PAGES)
        e->plan.blocked = BLOCKED_HEAD;
}

const SchedulerOps scheduler_vllm_v1 = {
    .info = {"vllm-v1", "running first, one token budget, chunked prefill, preempt by recompute",
             options, sizeof(Config)},
    .traits = traits,
    .start = start,
    .refuse = refuse,
    .schedule = schedule,
    .stop = stop,
};
