/* Policies: which route a step takes. A registry; each one file.
 *
 * A policy sees the step's features and every candidate's counts (made from lengths alone) and
 * names a route. It runs once a step on the host and is timed as part of planning.
 */
#ifndef KV_REPLAY_POLICY_H
#define KV_REPLAY_POLICY_H

#include "base/spec.h"
#include "replay/route.h"

typedef struct StepFeatures {
    AttnShape shape;
    gint workers; /* of the backend */
    guint32 rows;
    guint32 max_length, min_length;
    guint64 sum_length;
    const gint32 *lens; /* [rows] */
} StepFeatures;

typedef struct Candidate {
    const RouteOps *route;
    AttnCounts counts;
    double measured_us; /* kernel time of this step where every route was executed (oracle); NaN */
} Candidate;

typedef struct DeviceProfile DeviceProfile; /* replay/profile.h: what calibrate measured */

typedef struct Policy Policy;
typedef struct PolicyOps {
    PluginInfo info;
    gboolean needs_measured; /* oracle */
    Policy *(*create)(gconstpointer config, const DeviceProfile *profile, GError **error);
    /* Index into candidates. Never fails: n >= 1. */
    guint (*choose)(Policy *self, const StepFeatures *step, const Candidate *candidates, guint n);
    void (*free)(Policy *self);
} PolicyOps;

struct Policy {
    const PolicyOps *ops;
};

extern const PluginInfo *const policies[]; /* each is a PolicyOps */

#endif
