#include "replay/bench_judge.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/calibration.h"
#include "replay/model.h"
#include "replay/peer_counts.h"

const char *const judge_pick_names[] = {"best of ours", "cost", "learned"};

/* Counters of one route in the cell, as a run would have given them to a policy. */
static gboolean count(const BenchJudge *self, const JudgeCell *cell, const JudgeLine *line,
                      const gint32 *lens, AttnCounts *ret, GError **error)
{
    const AttnShape *shape = &cell->cell.shape;
    const gint32 rows = cell->cell.rows;
    if (line->route.ops->kind == ROUTE_PEER) {
        peer_counts(ret, &line->route, shape, self->workers, rows, lens);
        return TRUE;
    }
    PluginChoice splits = {0};
    AttnPlanConfig config;
    if (!plugin_choice_parse(&splits, "splits", split_rules, "balanced", error))
        return FALSE;
    route_plan_config(&config, &line->route, &splits, shape,
                      line->workers > 0 ? line->workers : self->workers);
    plugin_choice_clear(&splits);
    if (attn_plan_count(ret, &config, shape, rows, lens) == ATTN_OK)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(ATTN_NO_MEMORY));
    return FALSE;
}

static double expect(const DeviceProfile *profile, const AttnShape *shape, gint workers,
                     const Route *route, const AttnCounts *counts, JudgePick model,
                     double *ret_wall)
{
    g_autofree char *setting = route_setting(route);
    if (model == JUDGE_COST) {
        if (route->ops->kind == ROUTE_PEER && !device_profile_has_term(profile, setting))
            return *ret_wall = (double)INFINITY;
        return *ret_wall =
                   model_cost(profile, shape, counts) + device_profile_term(profile, setting);
    }
    *ret_wall = (double)INFINITY;
    const LearnedRoute *learned = device_profile_learned(profile, setting);
    if (learned == NULL)
        return (double)INFINITY;
    const double us = model_learned(learned, profile, shape, workers, counts);
    *ret_wall = us + model_host(learned, counts);
    return us;
}

static gboolean decide(const BenchJudge *self, JudgeCell *cell, const DeviceProfile *profile,
                       const gint32 *lens, GError **error)
{
    double ours[JUDGE_PICKS], all[JUDGE_PICKS], walls[JUDGE_PICKS];
    for (guint p = 0; p < JUDGE_PICKS; p++)
        ours[p] = all[p] = walls[p] = (double)INFINITY;
    for (gint i = 0; i < (gint)cell->lines->len; i++) {
        JudgeLine *line = &g_array_index(cell->lines, JudgeLine, i);
        if (line->kernel_us <= 0)
            continue;
        if (!count(self, cell, line, lens, &line->counts, error))
            return FALSE;
        for (JudgePick p = JUDGE_COST; p < JUDGE_PICKS; p++) {
            double wall;
            const gboolean builtin = line->route.ops->kind == ROUTE_BUILTIN;
            const double us = expect(profile, &cell->cell.shape, self->workers, &line->route,
                                     &line->counts, p, &wall);
            if (builtin && us < ours[p]) {
                ours[p] = us;
                cell->pick[p] = i;
            }
            if (builtin && wall < walls[p]) {
                walls[p] = wall;
                cell->pick_wall[p] = i;
            }
            if (us < all[p]) {
                all[p] = us;
                cell->pick_with_peers[p] = i;
            }
        }
    }
    return TRUE;
}

/* Peers alone say nothing of how many CTAs run at once. */
static gboolean has_workers(const BenchJudge *self, GError **error)
{
    if (self->workers > 0)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "the bench has no timed built-in route: expected one, which says the workers");
    return FALSE;
}

gboolean bench_judge_decide(BenchJudge *self, const DeviceProfile *profile, GError **error)
{
    if (!has_workers(self, error))
        return FALSE;
    for (guint i = 0; i < self->cells->len; i++) {
        JudgeCell *cell = self->cells->pdata[i];
        g_autofree gint32 *lens = g_new(gint32, cell->cell.rows);
        bench_cell_lens(&cell->cell, cell->seed, lens);
        if (!decide(self, cell, profile, lens, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean write_cell(const BenchJudge *self, guint64 step, const JudgeCell *cell,
                           OutFile *table, GError **error)
{
    g_autofree gint32 *lens = g_new(gint32, cell->cell.rows);
    StepFeatures features = {.shape = cell->cell.shape,
                             .workers = self->workers,
                             .rows = (guint32)cell->cell.rows,
                             .lens = lens};
    bench_cell_lens(&cell->cell, cell->seed, lens);
    for (gint32 r = 0; r < cell->cell.rows; r++) {
        features.max_length = MAX(features.max_length, (guint32)lens[r]);
        features.sum_length += (guint64)lens[r];
    }
    for (guint i = 0; i < cell->lines->len; i++) {
        const JudgeLine *line = &g_array_index(cell->lines, JudgeLine, i);
        Candidate candidate = {.route = &line->route};
        if (line->kernel_us <= 0)
            continue;
        if (!count(self, cell, line, lens, &candidate.counts, error))
            return FALSE;
        calibration_write_row(table, step, &features, &candidate, line->kernel_us, line->wall_us);
    }
    return TRUE;
}

gboolean bench_judge_calibration(const BenchJudge *self, OutFile *table, GError **error)
{
    if (!has_workers(self, error))
        return FALSE;
    calibration_write_header(table);
    for (guint i = 0; i < self->cells->len; i++)
        if (!write_cell(self, i, self->cells->pdata[i], table, error))
            return FALSE;
    return out_file_ok(table, error);
}
