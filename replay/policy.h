/* Policies: which route a step takes. A registry; each one file.
 *
 * A policy sees the step's features and every candidate's counts (made from lengths alone) and
 * names a route. It runs once a step on the host and is timed as part of planning.
 */
#ifndef KV_REPLAY_POLICY_H
#define KV_REPLAY_POLICY_H

#include "base/spec.h"
#include "replay/profile.h"
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
    const Route *route;
    AttnCounts counts;  /* of a peer: bytes alone */
    double measured_us; /* kernel time of this step where every route was executed (oracle); NaN */
} Candidate;

typedef struct Policy Policy;
typedef struct PolicyOps {
    PluginInfo info;
    gboolean needs_measured; /* oracle */
    /* Borrows `profile` for its life. */
    Policy *(*create)(gconstpointer config, const DeviceProfile *profile, GError **error);
    /* Once, before the first step: are the routes there that it wants? The candidates keep their
     * order from then on. NULL = it takes any. */
    gboolean (*begin)(Policy *self, const Candidate *candidates, guint n, GError **error);
    /* Index into candidates. Never fails: n >= 1 and step->rows >= 1. */
    guint (*choose)(Policy *self, const StepFeatures *step, const Candidate *candidates, guint n);
    /* What a reader must know (a route replaced, a model that is a guess); NULL = nothing. */
    const char *(*note)(const Policy *self);
    void (*free)(Policy *self);
} PolicyOps;

struct Policy {
    const PolicyOps *ops;
};

extern const PluginInfo *const policies[]; /* each is a PolicyOps */
extern const PolicyOps policy_always, policy_paper_v1, policy_paper_v2, policy_cost, policy_learned,
    policy_oracle;
Policy *policy_new(const PluginChoice *choice, const DeviceProfile *profile, GError **error);
void policy_free(Policy *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Policy, policy_free)
/* Index of the candidate whose label or route name this is; -1 = none. */
gint policy_find(const Candidate *candidates, guint n, const char *name);

#endif
