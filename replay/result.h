/* What a replay adds up to. Private to replay/; replay.h gives it out as an opaque ReplayResult. */
#ifndef KV_REPLAY_RESULT_H
#define KV_REPLAY_RESULT_H

#include "replay/regret.h"
#include "replay/replay.h"

typedef struct RouteTotals {
    char *label;
    char *refused;  /* why it was not looked at; NULL */
    char *left_out; /* why it was not executed in some of the executed steps; NULL */
    guint64 left_out_steps;
    gboolean counted;
    gint64 launches, merge_launches, tasks, kv_bytes, kv_bytes_touched, merge_state_bytes;
    double nonempty; /* sum of fractions over steps with rows */
    guint64 chosen;
    /* of executed steps */
    guint64 executed, checked, wrong;
    GArray *kernel_us; /* double */
    double kernel_sum, wall_sum, plan_sum;
    gint ranks; /* shares executed; 0 = none */
    double rank_sum[EXECUTION_RANKS], skew_sum, skew_max;
    gint64 upload_bytes, copies, memsets, executed_kv_bytes;
    double max_err, mean_err_sum;
} RouteTotals;

struct ReplayResult {
    const char *backend; /* name */
    char *reason, *policy, *policy_note, *splits, *dtype, *model;
    char *profile;
    gboolean profile_guess;
    JsonNode *device;
    char *devices; /* "0", "0;1" */
    guint32 replica;
    gint layers, executed_layers, workers, repeats, tp;
    guint64 steps, decode_steps, executed_steps, resumed_steps, checked_steps, row_steps,
        prefill_tokens;
    guint64 switches; /* steps whose chosen route differs from that of the step before */
    gint64 chosen_launches, chosen_merge_bytes, chosen_tasks;
    double chosen_kernel_us,
        policy_us; /* sum over executed steps; time in choose(), sum of timed */
    guint64 policy_timed;
    AttnDtype type;
    RouteTotals *route;
    guint n_routes;
    RegretLog *regret;
    double wall_seconds;
};

/* Adds one executed step of a route; says whether its checked output passed. */
void route_totals_add_execution(RouteTotals *self, const ReplayResult *result, const Execution *e,
                                gint64 kv_bytes);

#endif
