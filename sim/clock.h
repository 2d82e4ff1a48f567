/* How long a step takes: the clock's ops struct, all that sim/ knows of time costs.
 *
 * Linear clocks say so, and a stretch of steps in which only lengths grow is then advanced at once.
 * The `measured` clock is plugged in by cli/ (the replay engine behind the same ops).
 */
#ifndef KV_SIM_CLOCK_H
#define KV_SIM_CLOCK_H

#include "base/spec.h"
#include "sim/step.h"

/* What a step asks of the machine. */
typedef struct StepLoad {
    guint32 rows;       /* decode rows */
    guint64 sum_length; /* of the decode rows */
    guint32 max_length;
    guint32 prefill_rows;
    guint64 prefill_tokens;
    guint64 prefill_attended; /* sum over chunks of the entries each chunk token attends to */
    const Step *step;         /* the whole step; only where wants_step */
} StepLoad;

typedef struct StepClock StepClock;

typedef struct StepClockOps {
    PluginInfo info;
    StepClock *(*create)(gconstpointer config, GError **error);
    /* >= 1 ns. KV_NS_NONE + error on failure (a lost GPU). */
    kv_ns (*length)(StepClock *self, const StepLoad *load, GError **error);
    /* TRUE: for a fixed batch and no prefill, length(sum_length + k) - length(sum_length) = k *
     * *ret exactly, for all k. FALSE: the clock must be asked each step. NULL = FALSE. */
    gboolean (*slope)(const StepClock *self, kv_ns *ret_per_entry);
    gboolean wants_step;
    void (*free)(StepClock *self);
} StepClockOps;

struct StepClock {
    const StepClockOps *ops;
};

extern const PluginInfo *const step_clocks[]; /* each is a StepClockOps */
StepClock *step_clock_new(const PluginChoice *choice, GError **error);
void step_clock_free(StepClock *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StepClock, step_clock_free)

#endif
