/* A step's decision by the learned model: every route's expected time, laid out for cold caches.
 *
 * The numbers are those of model_learned(), but for the rounding of sums (1e-5). Between two steps
 * of an engine the caches hold other things, so what a decision costs is memory: pages, and lines
 * that wait for one another. Three things keep it small:
 *   - all it reads lies in one piece: coefficients and last answers first, then points gathered,
 *     then the index lines of all routes' points, then the points (replay/near_pack.h). What all
 *     routes need of one part is fetched before any of it is computed with;
 *   - a route's last correction stands while its question is the same, which is rounded to 1/128 of
 *     a reach: rows that grow by a token a step ask anew once in some tens of steps;
 *   - where two questions in a row are near each other, the points about there are gathered (some
 *     40 of 200 to 300), and questions within a quarter of a reach of them need no others.
 * So it has state, but no answer depends on it. Cost: docs/policies.md.
 */
#ifndef KV_REPLAY_DECISION_H
#define KV_REPLAY_DECISION_H

#include "replay/policy.h"

enum { DECISION_MOST = 64 }; /* candidates */

typedef struct Decision Decision;
/* A learned route per candidate, NULL = unknown to the model; `n` is DECISION_MOST at most. `wall`:
 * with plan, launches and the wait. Takes copies of the points, borrows nothing. */
Decision *decision_new(const DeviceProfile *profile, const LearnedRoute *const *known, guint n,
                       gboolean wall);
void decision_free(Decision *self); /* NULL is none */
/* Microseconds by candidate; INFINITY of an unknown route. */
void decision_costs(Decision *self, const StepFeatures *step, const Candidate *candidates,
                    double *ret);

#endif
