/* What a scheduler is: the policy half of a step.
 *
 * The engine (sim/engine.h) owns queue, running list, pool and plan; a scheduler's schedule() fills
 * the plan for the step `engine->tick` through the engine's verbs and says whether what is still
 * waiting could be admitted in a later step without anything finishing (plan.blocked). One file a
 * scheduler, one line in the registry (sim/schedulers.c).
 */
#ifndef KV_SIM_SCHEDULER_H
#define KV_SIM_SCHEDULER_H

#include "sim/sim.h"
#include "sim/sim_request.h"
#include "sim/wait_queue.h"

typedef struct Engine Engine;

typedef struct SchedulerTraits {
    WaitOrder order;
    gboolean compat2025;
    gint64 host_bytes; /* host memory for evicted pages; 0 = none */
    int cache;         /* -1 = as SimConfig.prefix_cache says, 0 never, 1 always */
} SchedulerTraits;

/* The arguments of sim_run(). */
typedef struct SimRun {
    const SimConfig *config;
    RequestSource *source;
    StepClock *clock;
    StepSink *steps;
    RequestSink *requests;
    Progress *progress;
    struct SimLedger *ledger;
} SimRun;

typedef struct SchedulerOps {
    PluginInfo info;
    SchedulerTraits (*traits)(gconstpointer config);
    /* Private state of a run; NULL = none. */
    gpointer (*start)(const Engine *engine);
    /* Static reason why the request could never be served, or NULL. Limits, and a request that is
     * larger than the pool, are the engine's to refuse. */
    const char *(*refuse)(const Engine *engine, const SimRequest *r);
    void (*schedule)(Engine *engine);
    /* A request finishes: TRUE when the scheduler took over its pages (r->n_pages is then 0). NULL
     * = they are always given back. */
    gboolean (*keep_pages)(Engine *engine, SimRequest *r);
    /* Counts pages held by no running request (a finished one of a static batch); NULL = none. */
    void (*hold)(const Engine *engine, guint32 *holders);
    void (*stop)(gpointer state);
    /* Runs the whole simulation by itself, instead of all of the above. */
    gboolean (*run)(const SimRun *run, SimResult *ret, GError **error);
} SchedulerOps;

extern const SchedulerOps scheduler_vllm_v1, scheduler_vllm_v0, scheduler_sarathi, scheduler_orca,
    scheduler_static, scheduler_paper;

#endif
