/* Arrival processes: when generated requests come.
 *
 * A process gives the times of arrival one after the other, never decreasing, as cumulative sums
 * that are computed once: no drift, and the same seed gives the same times whatever the lengths
 * are. Its first arrival is at 0. Gaps are drawn in double precision and rounded to the nanosecond
 * once, from the running sum.
 *
 * A process that is `closed` gives no times: its users ask for their next request when the one
 * before has finished (closed_loop()).
 */
#ifndef KV_WORKLOADS_ARRIVALS_H
#define KV_WORKLOADS_ARRIVALS_H

#include "base/ns.h"
#include "base/rng.h"
#include "base/spec.h"

typedef struct ArrivalProcess ArrivalProcess;

typedef struct ArrivalOps {
    PluginInfo info;
    /* NULL + error (USAGE) when the options do not go together. `config` outlives the process. */
    ArrivalProcess *(*open)(gconstpointer config, guint64 seed, guint32 replication,
                            GError **error);
    /* 1 = a time, 0 = the process has ended (a table used up), -1 = error. */
    int (*next)(ArrivalProcess *self, kv_ns *ret, GError **error);
    void (*free)(ArrivalProcess *self); /* NULL = g_free */
    gboolean closed;                    /* a closed loop of users: see closed_users() */
} ArrivalOps;

/* Every process embeds this first. */
struct ArrivalProcess {
    const ArrivalOps *ops;
    RngStream rng;
    double clock; /* seconds since the first arrival, for processes that sum gaps */
    gboolean begun;
};

extern const PluginInfo *const arrivals[]; /* of ArrivalOps */

void arrival_process_free(ArrivalProcess *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ArrivalProcess, arrival_process_free)
static inline int arrival_process_next(ArrivalProcess *self, kv_ns *ret, GError **error)
{
    return self->ops->next(self, ret, error);
}

/* For the processes: base part set up with its stream; a step of the summed clock (first call: 0).
 */
void arrival_process_init(ArrivalProcess *self, const ArrivalOps *ops, guint64 seed,
                          guint32 replication);
/* Adds `gap` seconds to the clock, except on the first call; FALSE past the range of kv_ns. */
gboolean arrival_process_step(ArrivalProcess *self, double gap, kv_ns *ret);

#endif
