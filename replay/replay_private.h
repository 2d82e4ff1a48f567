/* What the parts of a replay share: the run in hand and its lanes. Private to replay/replay*.c.
 */
#ifndef KV_REPLAY_REPLAY_PRIVATE_H
#define KV_REPLAY_REPLAY_PRIVATE_H

#include "replay/devices.h"
#include "replay/earlier.h"
#include "replay/replay_csv.h"
#include "replay/result.h"

enum { MAX_ROUTES = 64 }; /* what policies look at */

typedef struct Lane { /* one candidate route through the run */
    Route route;
    AttnPlanConfig plan_config;
    AttnPlan plan;
    RouteTotals *totals;
    Execution execution;
    gboolean own_workers; /* the backend says how many, step by step */
    gboolean executed;    /* in the step in hand */
    gboolean left_out;    /* in the step in hand: a peer that cannot run lengths like these */
} Lane;

typedef struct Replay {
    const ReplayConfig *config;
    StepsReader *steps;
    const StepsHeader *header;
    BackendConfig backend_config;
    const BackendOps *kind; /* the registered backend */
    const BackendOps *ops;  /* its operations, or those of its ranks together */
    Backend *backend;
    char *device; /* where it executes, as in replay.csv */
    DeviceProfile *profile;
    Policy *policy;
    ReplayCsv *csv;
    Progress *progress; /* NULL = none; asked between repeats */
    Earlier *earlier;   /* what an interrupted run measured; NULL */
    ReplayResult *result;
    Lane *lane;
    Candidate *candidate;
    guint n; /* lanes that run; result->route has the refused ones too */
    gint repeats, check_every;
    guint64 first, end; /* steps [first, end) */
    GArray *lens;       /* gint32, of the step in hand */
    StepFeatures features;
    gint last_chosen;
    gboolean warm;
} Replay;

/* Shape, backend, routes, policy and range. */
gboolean replay_open(Replay *self, GError **error);
/* Executes the step in hand by these lanes, or takes what an interrupted run measured. */
gboolean replay_execute(Replay *self, const Step *step, const guint *lanes, guint n,
                        GError **error);
gboolean replay_no_memory(GError **error);

#endif
