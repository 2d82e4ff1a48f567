/* The engine: requests in, steps out. Shared by all schedulers but `paper`.
 *
 * One turn of the main loop (sim/engine.c): take the arrivals that are due, let the scheduler fill
 * the plan, ask the clock how long the step takes, tell the sinks, apply the effects at its end
 * (sim/engine_step.c). While nothing can happen but growth, sim/engine_quiet.c advances steps in a
 * loop that touches no rows. Both ways give the same bytes.
 *
 * Cost: a full step O(rows), a quiet one O(pages appended). Private to sim/.
 */
#ifndef KV_SIM_ENGINE_H
#define KV_SIM_ENGINE_H

#include "sim/event_queue.h"
#include "sim/metrics.h"
#include "sim/page_pool.h"
#include "sim/scheduler.h"

typedef enum {
    BLOCKED_NO,   /* not known: look again in the next step */
    BLOCKED_SEQS, /* as many run as may: nothing is admitted before one finishes */
    BLOCKED_HEAD, /* the head of the line lacks pages, and will until one finishes */
} Blocked;

typedef struct PlanEntry {
    SimRequest *r;
    guint32 tokens;    /* scheduled */
    guint32 before;    /* entries computed before (hits of an admission included) */
    guint32 new_pages; /* the last ones of the table */
    guint32 hits;      /* pages taken from the cache; on admission */
} PlanEntry;

typedef struct StepPlan {
    GArray *entries;    /* PlanEntry, in order of scheduling */
    GPtrArray *joins;   /* SimRequest *: decode rows new to the batch */
    GPtrArray *resumed; /* SimRequest *: paused rows that go on */
    GPtrArray *gained;  /* SimRequest *: rows of the batch that took a page */
    GPtrArray *preempted;
    GPtrArray *irregular; /* SimRequest *: scheduled rows whose last token is not one step old */
    guint32 rows, measured_rows, finishing;
    guint32 max_length;
    guint64 sum_length;
    guint32 chunks; /* prefill entries */
    guint64 chunk_tokens, chunk_attended;
    kv_ns extra; /* added to the clock's length: swapping */
    Blocked blocked;
} StepPlan;

struct Engine {
    const SimRun *run;
    const SimConfig *config;
    const SchedulerOps *ops;
    gpointer state; /* the scheduler's */
    SchedulerTraits traits;
    guint32 page_size;
    PagePool pool;
    SimMetrics *metrics;

    kv_ns now;
    kv_ns horizon; /* no step begins from here on, for now */
    guint64 tick;
    SimRequest *ahead; /* next one of the source, not yet due */
    EventQueue events; /* SimRequest *: arrivals that do not come in the source's order */
    kv_ns next_arrival;
    gboolean source_ended;
    SimRequest *free_requests;

    WaitQueue waiting;
    SimRequest **running; /* in order of admission */
    guint n_running, cap_running;
    guint n_alive; /* of the running ones, while a step's requests are being finished */
    StepPlan plan;
    guint64 last_tokens, idle_steps; /* full steps since a token came out */
    guint64 tokens;                  /* entries held, shared ones counted as often as held */

    /* slots of the batch, kept only when somebody looks at the steps */
    gboolean wants_steps;
    GArray *left;       /* guint32: slots of rows gone since the last step */
    GArray *free_slots; /* guint32, a stack */
    guint32 n_slots;

    guint32 *rest_begin; /* [page_size + 1], and rows: engine_quiet.c's own */
    SimRequest **rest_rows;
    guint rest_cap;

    GArray *finished_ids; /* guint64, of the step in hand; for the ledger */
    GArray *paused_slots, *resumed_slots, *joined, *appended, *prefill; /* of the step in hand */
};

/* engine.c */
gboolean engine_run(const SimRun *run, SimResult *ret, GError **error);
/* The same in parts, for several engines side by side. stop() after start(), failed or not. */
gboolean engine_start(Engine *e, const SimRun *run, GError **error);
/* Makes all steps that begin before `horizon`. */
gboolean engine_advance(Engine *e, kv_ns horizon, GError **error);
void engine_offer(Engine *e,
                  const Request *request); /* an arrival, not before the last step's begin */
gboolean engine_idle(const Engine *e);     /* nobody waits or runs */
gboolean engine_close(Engine *e, SimResult *ret, GError **error);
void engine_stop(Engine *e);
/* engine_arrivals.c */
void engine_begin_arrivals(Engine *e, const Request *first); /* the source's first one, or NULL */
/* Puts what has arrived by `now` in line (or refuses it). */
gboolean engine_take_arrivals(Engine *e, GError **error);
/* Asks for the request that follows a finished or refused one. */
gboolean engine_follow_up(Engine *e, const Request *done, GError **error);
void engine_recycle(Engine *e, SimRequest *r);
/* Recounts everything; NULL when sound. */
const char *engine_check(const Engine *e);

/* engine_plan.c: the schedulers' verbs */
/* Pages that `entries` need beyond those that r has. */
guint32 engine_pages_for(const Engine *e, guint64 entries);
void engine_take_pages(Engine *e, SimRequest *r, guint32 n);
/* Schedules a decode row, whose page is in place; new_pages = those just taken for it. */
void engine_plan_decode(Engine *e, SimRequest *r, guint32 new_pages);
/* Schedules n tokens of prompt or recomputation after r->computed. */
void engine_plan_chunk(Engine *e, SimRequest *r, guint32 n, guint32 new_pages, guint32 hits);
/* Takes r back out of this step's plan. */
guint32 engine_unplan(Engine *e, SimRequest *r);
/* Entries computed before this step. */
guint32 engine_computed(const Engine *e, const SimRequest *r);
/* Moves the head of the line to the end of the running list. */
SimRequest *engine_admit(Engine *e);
/* An admitted request, whose pages are taken, whose entries were kept elsewhere: it decodes at
 * once. */
void engine_restore(Engine *e, SimRequest *r);
/* Out of the running list at index i, pages given back, back in line. `planned` = tokens that this
 * step's plan held for it (engine_unplan): its full pages were named with them. */
void engine_preempt(Engine *e, guint i, guint32 planned);

/* engine_step.c */
gboolean engine_finish_step(Engine *e, GError **error);
/* Gives a request's pages back, with their names where they have them. */
void engine_release_pages(Engine *e, SimRequest *r, guint32 computed, gboolean finished);

/* engine_quiet.c */
gboolean engine_may_rest(const Engine *e);
gboolean engine_rest(Engine *e, GError **error);

/* engine_cache.c: the prefix cache over the pool */
void engine_make_keys(const Engine *e, SimRequest *r, const Request *from);
guint64 engine_page_key(const SimRequest *r, guint32 page);
gint64 engine_page_bytes(const Engine *e); /* of a page, all layers */
/* Pages from number `from` on that the host tier has, without a gap, below `max_pages`. */
guint32 engine_find_hosted(const Engine *e, const SimRequest *r, guint32 from, guint32 max_pages);
/* Brings n pages back into the table, whose pages are taken already. */
void engine_take_hosted(Engine *e, SimRequest *r, guint32 n);
/* Longest known prefix, at most `max_pages`; hits[] has room for it. Counts those that are free. */
guint32 engine_find_prefix(const Engine *e, const SimRequest *r, guint32 max_pages, guint32 *hits,
                           guint32 *ret_free);
void engine_take_prefix(Engine *e, SimRequest *r, const guint32 *hits, guint32 n);
/* Names the pages that `computed` entries fill. */
void engine_name_pages(Engine *e, SimRequest *r, guint32 computed);

#endif
