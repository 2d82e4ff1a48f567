/* What a route is expected to cost in a step: two models, both pure functions of a plan's counters.
 *
 * cost    T = KVBytes/beta * max(1, Cmin/C) + L*lambda + MergeBytes/beta + the route's term
 *         (arXiv 2606.26666's form): L = launches, MergeBytes = the merge state's traffic, C =
 * tasks of the longest one's size that the work amounts to (all entries over the longest task's,
 *         summed over launches): the number of tasks where they are equal, fewer where one is long.
 *
 * learned T = near * (fixed + launch*L + stream * max(KVBytes/beta, longest/r) + tail * longest/r
 *             + excess * what the longest has over the mean, where that is not in `stream` already
 *             + merge * MergeBytes/beta + wave * ceil(tasks/workers)),    coefficients >= 0, by
 *         route; at least KVBytes at the measured read rate. The linear part has the shape of the
 *         work: what is read streams at the card's rate beta unless the longest task, at one
 *         worker's rate r, ends later (that is where skew and missing splits show); a part of a
 *         longest task runs on alone when the others have ended, and where tasks share the
 *         bandwidth that is what it has over the mean task: min(X, KVBytes/beta + X -
 *         max(KVBytes/beta, longest/r)), X = (longest - mean)/r, not below 0; launches and merge
 *         traffic are paid besides; and each wave of tasks costs its start-up. No coefficient is
 *         negative, so it grows with every kind of work. `near` is what was measured of that
 *         route about there, over this estimate (replay/near.h): some per cent, and 1 outside of
 *         the calibrated range, where the linear part is still a sane bound and ordering.
 *
 * Cost of an evaluation: some ten flops, and the points about the batch (replay/near.h); a step's
 * decision over all routes is replay/decision.h. Times in microseconds.
 */
#ifndef KV_REPLAY_MODEL_H
#define KV_REPLAY_MODEL_H

#include "replay/policy.h"

/* The linear part's terms, before coefficients; order as in LearnedRoute. */
enum {
    MODEL_FIXED,
    MODEL_LAUNCH,
    MODEL_STREAM,
    MODEL_TAIL,
    MODEL_MERGE,
    MODEL_WAVE,
    MODEL_EXCESS,
    MODEL_TERMS
};

/* Without the route's term (device_profile_term). */
double model_cost(const DeviceProfile *profile, const AttnShape *shape, const AttnCounts *counts);
void model_terms(double ret[MODEL_TERMS], const DeviceProfile *profile, const AttnShape *shape,
                 gint workers, const AttnCounts *counts);
/* The linear part alone. */
double model_linear(const LearnedRoute *route, const double terms[MODEL_TERMS]);
double model_learned(const LearnedRoute *route, const DeviceProfile *profile,
                     const AttnShape *shape, gint workers, const AttnCounts *counts);
/* No less than reading takes at the profile's read rate. */
double model_bound(const DeviceProfile *profile, double us, const AttnCounts *counts);
/* What a step's wall time has beyond its kernels: the plan, launches and the wait. */
double model_host(const LearnedRoute *route, const AttnCounts *counts);

#endif
