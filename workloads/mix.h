/* Several workloads as one: their requests merged by arrival.
 *
 * Weights are relative: of the part with the largest weight every request is kept, of each other
 * one with probability weight / largest (its own random stream; a session's turns are kept or left
 * out together). All parts begin at time 0. Sessions stay apart, block keys too; the class of a
 * request becomes its part, named after it. Streaming: O(parts).
 */
#ifndef KV_WORKLOADS_MIX_H
#define KV_WORKLOADS_MIX_H

#include "workloads/workload.h"

/* Takes the parts, also on failure. `weights` NULL = all alike. */
Workload *workload_mix(Workload *const *parts, const double *weights, guint n, guint64 seed,
                       GError **error);

#endif
