/* Capacity: the highest load that keeps given latency targets, with a confidence interval.
 *
 * Load is whatever the trial makes of the number: requests a second, users, a factor on a log. Each
 * replication has random numbers of its own and is searched by itself: doubling until the targets
 * break, then bisection (geometric) until the bracket is narrower than `precision`. The answers of
 * the replications give mean and 95 % interval (Student's t). A trial must get worse with load;
 * small bumps near the edge cost precision, not termination.
 *
 * Replications run on `threads` threads; the result does not depend on their number.
 */
#ifndef KV_SIM_CAPACITY_H
#define KV_SIM_CAPACITY_H

#include "sim/sim.h"

/* One target, such as ttft.p99 <= 2 s. */
typedef struct CapacityTarget {
    char metric[24]; /* ttft, server_ttft, itl, tpot, e2e, queue_delay */
    char figure[8];  /* mean, p50, p90, p95, p99, max */
    double limit;    /* seconds */
} CapacityTarget;

typedef struct CapacityTargets {
    CapacityTarget items[8];
    guint n;
    double finished; /* share of the requests that must be finished; 1 = no refusals */
} CapacityTargets;

/* "ttft.p99<=2s,itl.p99<=80ms,finished>=0.99". FALSE + USAGE error naming the text. */
gboolean capacity_targets_parse(CapacityTargets *ret, const char *text, GError **error);
/* Whether a run keeps them; a latency without samples keeps its target. */
gboolean capacity_targets_kept(const CapacityTargets *targets, const SimResult *result);

/* Simulates at `load` with the random numbers of `replication`. Called from several threads at
 * once. */
typedef gboolean (*CapacityTrial)(gpointer data, double load, guint32 replication, SimResult *ret,
                                  GError **error);

typedef struct CapacityConfig {
    CapacityTargets targets;
    double start;       /* first load tried, > 0 */
    double largest;     /* never tried above; 0 = start x 2^20 */
    double precision;   /* relative width of the last bracket; 0.01 */
    guint replications; /* >= 1; an interval needs 2 */
    guint threads;      /* 0 = one a processor */
} CapacityConfig;
void capacity_config_init(CapacityConfig *config);

typedef struct CapacityResult {
    double load;      /* mean over the replications; 0 = not even the smallest load was kept */
    double low, high; /* 95 % interval of the mean; NaN with one replication */
    guint replications, trials;
    gboolean unbounded; /* the targets were kept at `largest` in some replication */
    double each[64];    /* by replication */
} CapacityResult;
gboolean capacity_find(const CapacityConfig *config, CapacityTrial trial, gpointer data,
                       const Progress *progress, CapacityResult *ret, GError **error);

#endif
