/* vllm-v0: prompts first. If anybody in line can be admitted, the step is prompts only, whole ones;
 * else every running request decodes one token.
 *
 * A prompt is admitted when its pages leave `watermark` of the pool free and it fits what is left
 * of the token budget (padded=yes counts each prompt as long as the longest). A decode row that
 * finds no page preempts the last admitted request: by recomputation, or, with swap=yes, its pages
 * go to host memory and come back when there is room, which takes their bytes / pcie, added to the
 * step. */
#include "sim/engine.h"

typedef struct Config {
    gint64 budget, seqs;
    double watermark;
    gboolean padded, swap;
    gint64 pcie; /* bytes/s */
    int queue;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"budget", SPEC_INT, AT(budget), "16384", 1, 1e9, NULL,
     "prompt tokens a step (max_num_batched_tokens)"},
    {"seqs", SPEC_INT, AT(seqs), "256", 1, 1e6, NULL, "requests that run at most"},
    {"watermark", SPEC_REAL, AT(watermark), "0.01", 0, 0.99, NULL,
     "share of the pool kept free on admission"},
    {"padded", SPEC_BOOL, AT(padded), "no", 0, 0, NULL, "prompts of a step count as the longest"},
    {"swap", SPEC_BOOL, AT(swap), "no", 0, 0, NULL, "preempt to host memory, not by recomputation"},
    {"pcie", SPEC_BYTES, AT(pcie), "16GB", 1, 1e15, NULL, "bytes a second to and from host memory"},
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
    if (r->stored > config_of(e)->budget) /* recomputation takes up to that many in one step */
        return "budget";
    /* vLLM 0 ignores a prompt above this; grown ones must come back too */
    return engine_pages_for(e, r->stored) + watermark(e) > e->pool.n_pages ? "watermark" : NULL;
}

static kv_ns swap_time(const Engine *e, guint32 entries)
{
    double bytes = (double)entries * (double)e->config->entry_bytes;
    return kv_ns_from_seconds(bytes / (double)config_of(e)->pcie);
}

typedef struct Prompts {
    gint64 tokens, longest, count;
} Prompts;

static gboolean within_budget(const Config *c, const Prompts *p, gint64 n)
{
    if (c->padded)
        return (p->count + 1) * MAX(p->longest, n) <= c->budget;
    return p->tokens + n <= c->budget;
}

static Blocked admit_prompts(Engine *e)
{
    const Config *c = config_of(e);
    Prompts p = {0};
    while (e->waiting.n) {
        SimRequest *r = wait_queue_peek(&e->waiting);
        if (e->n_running >= c->seqs)
            return BLOCKED_SEQS;
        guint32 need = engine_pages_for(e, r->target);
        if (need + watermark(e) > e->pool.n_free)
            return BLOCKED_HEAD;
        if (r->swapped || !within_budget(c, &p, r->target))
            return BLOCKED_NO;
        engine_admit(e);
        engine_take_pages(e, r, need);
        engine_plan_chunk(e, r, r->target, need, 0);
        p.tokens += r->target;
        p.longest = MAX(p.longest, (gint64)r->target);
        p.count++;
    }
    return BLOCKED_NO;
}

/* Requests in host memory come back as decode rows, head of the line first. */
static void swap_in(Engine *e)
{
    while (e->waiting.n && e->n_running < config_of(e)->seqs) {
        SimRequest *r = wait_queue_peek(&e->waiting);
        guint32 need = engine_pages_for(e, r->target);
        if (!r->swapped || need + watermark(e) > e->pool.n_free)
            return;
        engine_admit(e);
        engine_take_pages(e, r, need);
        engine_restore(e, r);
        e->plan.extra += swap_time(e, r->swapped);
        r->swapped = 0;
    }
}

static void give_way(Engine *e)
{
    guint last = e->n_running - 1;
    SimRequest *r = e->running[last];
    guint32 computed = engine_computed(e, r);
    engine_preempt(e, last, 0);
    if (config_of(e)->swap) {
        r->swapped = computed;
        e->plan.extra += swap_time(e, computed);
    }
}

static void decode_all(Engine *e)
{
    for (guint i = 0; i < e->n_running; i++) {
        SimRequest *r = e->running[i];
        guint32 need = r->page_tick <= e->tick;
        while (need && e->pool.n_free == 0 && e->n_running > i)
            give_way(e);
        if (e->n_running <= i)
            return; /* it gave way itself */
        if (need)
            engine_take_pages(e, r, 1);
        engine_plan_decode(e, r, need);
    }
}

static void schedule(Engine *e)
{
    Blocked blocked = admit_prompts(e);
    if (e->plan.entries->len == 0) {
        swap_in(e);
        decode_all(e);
    }
    if (e->plan.preempted->len == 0)
        e->plan.blocked = blocked;
}

const SchedulerOps scheduler_vllm_v0 = {
    .info = {"vllm-v0", "prompts first and whole, watermark, preempt by recompute or swap", options,
             sizeof(Config)},
    .traits = traits,
    .refuse = refuse,
    .schedule = schedule,
};
