/* Executing a step: rounds in which every route runs once, and what they add up to. */

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "replay/calibration.h"
#include "replay/replay_private.h"

gboolean replay_no_memory(GError **error)
{
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(ATTN_NO_MEMORY));
    return FALSE;
}

/* The host's part of planning, timed; peers plan for themselves. */
static gboolean build_plan(Replay *self, Lane *lane, double *ret_us, GError **error)
{
    *ret_us = 0;
    if (lane->route.ops->kind != ROUTE_BUILTIN)
        return TRUE;
    if (lane->route.ops->builtin == ATTN_PERSISTENT && self->ops->plans_persistent) {
        lane->plan.config = lane->plan_config;
        lane->plan.counts = self->candidate[lane - self->lane].counts;
        return TRUE;
    }
    const double from = clock_us();
    if (lane->own_workers) /* already known from counting; its cost belongs to planning */
        self->ops->fit_plan(self->backend, &lane->route, &lane->plan_config,
                            (gint32)self->features.rows, self->features.lens);
    const AttnStatus status =
        attn_plan_build(&lane->plan, &lane->plan_config, &self->backend_config.shape,
                        (int32_t)self->features.rows, self->features.lens);
    *ret_us = clock_us() - from;
    return status == ATTN_OK || replay_no_memory(error);
}

static gboolean check_launches(const Replay *self, const Lane *lane, const AttnCounts *counts,
                               guint64 step, GError **error)
{
    const gint64 seen = lane->execution.launches_seen;
    if (!self->config->config.verify_launches || seen < 0 || !lane->totals->counted ||
        seen == counts->launches)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "step %" G_GUINT64_FORMAT ", route %s: %d launches recorded, %" G_GINT64_FORMAT
                " seen",
                step, lane->route.label, counts->launches, seen);
    return FALSE;
}

typedef struct Samples { /* of one lane, by round */
    double *kernel, *wall, *plan, *skew;
    double *rank; /* [ranks * repeats] */
} Samples;

static void take_ranks(const Replay *self, Samples *samples, gint round, const Execution *e)
{
    for (gint r = 0; r < e->ranks; r++)
        samples->rank[r * self->repeats + round] = e->rank_us[r];
    samples->skew[round] = e->rank_skew_us;
}

/* Room for the samples of `n` lanes, in one piece; free samples[0].kernel and them. */
static Samples *samples_new(const Replay *self, guint n)
{
    const gsize repeats = (gsize)self->repeats;
    const gsize each = repeats * (4 + (gsize)MAX(self->backend_config.tp, 1));
    Samples *samples = g_new(Samples, n);
    double *values = g_new0(double, each *n);
    for (guint i = 0; i < n; i++) {
        double *at = values + each * i;
        samples[i] =
            (Samples){at, at + repeats, at + 2 * repeats, at + 3 * repeats, at + 4 * repeats};
    }
    return samples;
}

static void samples_free(Samples *samples)
{
    g_free(samples[0].kernel);
    g_free(samples);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Samples, samples_free)

/* Medians over the rounds; uploads and errors are the last round's. */
static Execution settle(const Replay *self, const Samples *samples, const Execution *last)
{
    const gint repeats = self->repeats;
    Execution e = *last;
    e.repeats = repeats;
    e.kernel_us = median_of(samples->kernel, repeats);
    e.wall_us = median_of(samples->wall, repeats);
    e.plan_us = median_of(samples->plan, repeats);
    for (gint r = 0; r < e.ranks; r++)
        e.rank_us[r] = median_of(samples->rank + r * repeats, repeats);
    e.rank_skew_us = median_of(samples->skew, repeats);
    return e;
}

/* A peer that is built and runs this shape may still not take a step's lengths: it is left out of
 * the step, and the result says so. */
static gboolean leave_out(Lane *lane, GError **local, GError **error)
{
    if (lane->route.ops->kind == ROUTE_BUILTIN ||
        !g_error_matches(*local, KV_ERROR, KV_ERROR_UNSUPPORTED)) {
        g_propagate_error(error, g_steal_pointer(local));
        return FALSE;
    }
    lane->left_out = TRUE;
    lane->totals->left_out_steps++;
    if (lane->totals->left_out == NULL)
        lane->totals->left_out = g_strdup((*local)->message);
    return TRUE;
}

/* Rounds A B C, B C A ...: every route once a round, another one first each time. */
static gboolean run_rounds(Replay *self, const guint *lanes, guint n, gboolean check,
                           Samples *samples, GError **error)
{
    for (gint round = 0; round < self->repeats; round++) {
        if (!progress_check(self->progress, error))
            return FALSE;
        for (guint k = 0; k < n; k++) {
            const guint at = (k + (guint)round) % n;
            Lane *lane = &self->lane[lanes[at]];
            const gboolean peer = lane->route.ops->kind != ROUTE_BUILTIN;
            g_autoptr(GError) local = NULL;
            double host_us;
            Execution e;
            if (lane->left_out)
                continue;
            if (!build_plan(self, lane, &host_us, &local) ||
                !self->ops->execute(self->backend, &lane->route, peer ? NULL : &lane->plan, 1,
                                    check && round == self->repeats - 1 ? RUN_CHECK : 0, &e,
                                    &local)) {
                if (!leave_out(lane, &local, error))
                    return FALSE;
                continue;
            }
            samples[at].kernel[round] = e.kernel_us;
            samples[at].wall[round] = e.wall_us + host_us;
            samples[at].plan[round] = MAX(e.plan_us, 0) + host_us;
            take_ranks(self, &samples[at], round, &e);
            lane->execution = e;
        }
    }
    return TRUE;
}

/* One route's execution of a step into the totals, the candidates and the calibration table. */
static gboolean take_execution(Replay *self, const Step *step, guint lane_index,
                               const Execution *execution, GError **error)
{
    ReplayResult *r = self->result;
    Lane *lane = &self->lane[lane_index];
    Candidate *candidate = &self->candidate[lane_index];
    lane->executed = TRUE;
    lane->execution = *execution;
    candidate->measured_us = execution->kernel_us;
    if (self->config->calibration != NULL) /* several layers' wall time is not one's */
        calibration_write_row(self->config->calibration, step->index, &self->features, candidate,
                              execution->kernel_us / r->executed_layers,
                              r->executed_layers == 1 ? execution->wall_us - execution->tables_us
                                                      : -1);
    route_totals_add_execution(lane->totals, r, execution, candidate->counts.kv_bytes);
    return check_launches(self, lane, &candidate->counts, step->index, error);
}

/* Steps that an interrupted run has measured: 1 = taken from it, 0 = not there, -1 = error. */
static int take_earlier(Replay *self, const Step *step, const guint *lanes, guint n, GError **error)
{
    const char *labels[MAX_ROUTES] = {NULL};
    Execution found[MAX_ROUTES];
    if (self->earlier == NULL)
        return 0;
    for (guint i = 0; i < n; i++)
        labels[i] = self->lane[lanes[i]].route.label;
    if (!earlier_find(self->earlier, step, labels, n, found))
        return 0;
    for (guint i = 0; i < n; i++)
        if (!take_execution(self, step, lanes[i], &found[i], error))
            return -1;
    self->result->executed_steps++;
    self->result->checked_steps += found[0].checked;
    self->result->resumed_steps++;
    return 1;
}

gboolean replay_execute(Replay *self, const Step *step, const guint *lanes, guint n, GError **error)
{
    ReplayResult *r = self->result;
    const int earlier = take_earlier(self, step, lanes, n, error);
    if (earlier != 0)
        return earlier > 0;
    const gboolean check =
        self->check_every > 0 && r->executed_steps % (guint)self->check_every == 0;
    g_autoptr(Samples) samples = samples_new(self, n);
    for (guint i = 0; i < n; i++)
        self->lane[lanes[i]].left_out = FALSE;
    /* A round that is not recorded, where a repeat is worth one. */
    if (!self->warm && self->repeats > 1 && !run_rounds(self, lanes, n, FALSE, samples, error))
        return FALSE;
    self->warm = TRUE;
    if (!run_rounds(self, lanes, n, check, samples, error))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        if (self->lane[lanes[i]].left_out)
            continue;
        const Execution execution = settle(self, &samples[i], &self->lane[lanes[i]].execution);
        if (!take_execution(self, step, lanes[i], &execution, error))
            return FALSE;
    }
    r->executed_steps++;
    r->checked_steps += check;
    return TRUE;
}
