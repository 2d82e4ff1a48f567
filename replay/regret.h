/* Regret: what a policy's choices cost beside the best measured route of each step, with intervals.
 *
 * Over the steps that every route executed: regret of a step = chosen / best - 1 (0 = the best was
 * taken); `ratio` to a fixed route = sum of its times / sum of the chosen ones (above 1: the policy
 * is faster). Intervals: 95 %, percentile bootstrap over steps (1000 resamples, fewer for long
 * runs, one seeded stream, so the same numbers give the same interval).
 */
#ifndef KV_REPLAY_REGRET_H
#define KV_REPLAY_REGRET_H

#include <glib.h>

typedef struct Interval {
    double value, low, high;
} Interval;

typedef struct Regret {
    guint64 steps;
    Interval mean;
    double p50, p99, worst;
    Interval to_oracle; /* sum chosen / sum best */
} Regret;

typedef struct RegretLog RegretLog;
RegretLog *regret_log_new(guint routes, guint64 seed);
void regret_log_free(RegretLog *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RegretLog, regret_log_free)
/* Times of all routes in one step; all finite. */
void regret_log_add(RegretLog *self, const double *us, guint chosen);
guint64 regret_log_steps(const RegretLog *self);
Regret regret_log_summary(RegretLog *self);
/* Fixed route `i` against the policy: sum of its times / sum of the chosen. */
Interval regret_log_ratio(RegretLog *self, guint i);

#endif
