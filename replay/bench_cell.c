/* One cell: its steps, the check of every route, and then their times. */
#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "replay/bench_private.h"
#include "replay/calibration.h"
#include "replay/peer_counts.h"

/* From here on code that is not warm is below 0.5 % of a run. */
#define LARGE ((gint64)8000000000)

static void cell_close(Bench *self)
{
    if (self->rows != NULL)
        g_free((gpointer)self->rows[0].pages);
    g_clear_pointer(&self->rows, g_free);
    g_clear_pointer(&self->joins, g_free);
    g_clear_pointer(&self->lens, g_free);
}

static void cell_open(Bench *self, const BenchCell *cell)
{
    guint32 *pages = g_new(guint32, self->cell_pages);
    gint64 at = 0;
    self->rows = g_new0(StepRow, cell->rows);
    self->joins = g_new0(StepJoin, cell->rows);
    self->sets = bench_sets(&cell->shape, self->cell_pages);
    for (gint32 r = 0; r < cell->rows; r++) {
        const guint32 n =
            (guint32)((self->lens[r] + cell->shape.page_size - 1) / cell->shape.page_size);
        self->rows[r] = (StepRow){.request = (guint64)r + 1,
                                  .slot = (guint32)r,
                                  .length = (guint32)self->lens[r],
                                  .n_pages = n,
                                  .pages = pages + at};
        at += n;
    }
}

/* All rows of the step before leave, all of this one join. */
gboolean bench_begin(Bench *self, gboolean first_set, GError **error)
{
    const gint64 set = first_set ? 0 : (gint64)(self->turn++ % self->sets);
    const gint64 from = set * self->cell_pages;
    guint32 *pages = (guint32 *)self->rows[0].pages, n = 0;
    for (gint64 i = 0; i < self->cell_pages; i++)
        pages[i] = self->permutation[(from + i) % self->pool_pages];
    Step step = {.index = self->steps++, .n_left = self->n_left, .left = self->left};
    for (; self->lens[n] > 0; n++) {
        const StepRow *row = &self->rows[n];
        self->joins[n] = (StepJoin){row->request, row->slot, row->length, row->n_pages, row->pages};
        step.max_length = MAX(step.max_length, row->length);
        step.sum_length += row->length;
        step.pages_used += row->n_pages;
    }
    step.joined = self->joins;
    step.n_joined = step.rows = n;
    step.tokens_held = step.sum_length;
    const gboolean ok = self->ops->begin_step(self->backend, &step, self->rows, n, error);
    self->left = g_renew(guint32, self->left, n);
    for (guint32 r = 0; r < n; r++)
        self->left[r] = r;
    self->n_left = n;
    return ok;
}

/* The host's part of planning; peers and the device plan for themselves. */
static gboolean build_plan(Bench *self, BenchLane *lane, double *ret_us, GError **error)
{
    const gint32 rows = (gint32)self->n_left;
    AttnStatus status;
    *ret_us = 0;
    if (lane->route.ops->kind == ROUTE_PEER)
        return TRUE;
    if (lane->route.ops->builtin == ATTN_PERSISTENT && self->ops->plans_persistent) {
        lane->plan.config = lane->plan_config;
        status =
            attn_plan_count(&lane->plan.counts, &lane->plan_config, &self->shape, rows, self->lens);
    } else {
        const double from = clock_us();
        if (self->ops->fit_plan != NULL) /* as before the cell; its cost belongs to planning */
            self->ops->fit_plan(self->backend, &lane->route, &lane->plan_config, rows, self->lens);
        status = attn_plan_build(&lane->plan, &lane->plan_config, &self->shape, rows, self->lens);
        *ret_us = clock_us() - from;
    }
    if (status != ATTN_OK)
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(status));
    return status == ATTN_OK;
}

gboolean bench_run_lane(Bench *self, BenchLane *lane, guint what, Execution *ret,
                        double *ret_host_us, GError **error)
{
    const gboolean builtin = lane->route.ops->kind == ROUTE_BUILTIN;
    return build_plan(self, lane, ret_host_us, error) &&
           self->ops->execute(self->backend, &lane->route, builtin ? &lane->plan : NULL, 1, what,
                              ret, error);
}

void bench_line_note(BenchLane *lane, const char *why)
{
    g_free(lane->line.note);
    lane->line.note = g_strdup(why);
}

static gboolean run_emptied(Bench *self, BenchLane *lane, guint what, Execution *ret,
                            double *ret_us)
{
    g_autoptr(GError) local = NULL;
    if (bench_begin(self, FALSE, &local) && bench_run_lane(self, lane, what, ret, ret_us, &local))
        return TRUE;
    bench_line_note(lane, local->message);
    return FALSE;
}

/* A run of the lane on other pages than the one before. */
static gboolean run_next(Bench *self, BenchLane *lane, guint what, Execution *ret, double *ret_us)
{
    return run_emptied(self, lane, what | (self->config->emptied ? 0 : RUN_COLD), ret, ret_us);
}

static void take_line(BenchLane *lane, const Execution *e)
{
    lane->line.upload_bytes = e->upload_bytes;
    lane->line.launches = lane->line.peer ? (gint)e->launches_seen : lane->plan.counts.launches;
    lane->line.counts = lane->line.peer ? (AttnCounts){0} : lane->plan.counts;
    lane->line.merge_state_bytes = lane->line.counts.merge_state_bytes;
}

static void time_graph(Bench *self, BenchLane *lane, gint at)
{
    Execution e;
    double host_us;
    if (!lane->replays)
        return;
    if (!run_next(self, lane, RUN_GRAPH | RUN_NO_WALL, &e, &host_us))
        return;
    lane->time[TIME_GRAPH][at] = e.kernel_us;
    if (run_next(self, lane, RUN_GRAPH | RUN_NO_KERNEL, &e, &host_us))
        lane->time[TIME_GRAPH_WALL][at] = e.wall_us - e.tables_us + host_us;
}

static void time_lane(Bench *self, BenchLane *lane, gboolean large, gint at)
{
    Execution e;
    double host_us;
    /* A lane finds nothing of the one before it, whose pages are its own as well where sets are
     * few: a route that marks what it reads as first to leave would not displace it. The first run
     * of several then brings the code back into the caches. */
    if (!run_emptied(self, lane, RUN_NO_WALL, &e, &host_us) ||
        (!large && !self->config->emptied && !run_next(self, lane, RUN_NO_WALL, &e, &host_us)))
        return;
    lane->time[TIME_KERNEL][at] = e.kernel_us;
    take_line(lane, &e);
    if (self->config->kernel_only || !run_next(self, lane, RUN_NO_KERNEL, &e, &host_us))
        return;
    lane->time[TIME_PLAN][at] = MAX(e.plan_us - e.tables_us, 0) + host_us;
    lane->time[TIME_WALL][at] = e.wall_us - e.tables_us + host_us;
    if (!large)
        time_graph(self, lane, at);
}

/* Where caches are the host's own there is one time, and nothing to warm. */
static void time_lane_cpu(Bench *self, BenchLane *lane, gint at)
{
    Execution e;
    double host_us;
    if (!run_next(self, lane, 0, &e, &host_us))
        return;
    lane->time[TIME_KERNEL][at] = e.kernel_us;
    lane->time[TIME_PLAN][at] = MAX(e.plan_us, 0) + host_us;
    lane->time[TIME_WALL][at] = e.wall_us + host_us;
    take_line(lane, &e);
}

static guint common_divisor(guint a, guint b)
{
    while (b != 0) {
        const guint rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Lanes in another order each round: every so many from another start, so that no route always
 * follows the same one. (It matters on short steps: of routes that run one plan over equal rows,
 * the third in a fixed order came out up to a microsecond below the first.) */
guint bench_lane_at(guint round, guint k, guint n)
{
    guint steps = 0, step = 0;
    for (guint i = 1; i <= n; i++)
        steps += common_divisor(i, n) == 1;
    for (guint left = round % steps + 1; left > 0;)
        left -= common_divisor(++step, n) == 1;
    return (k * step + round % n) % n;
}

/* A round's runs and the sets must have no divisor in common: else every lane would meet the same
 * pages in each round. */
static void shift_sets(Bench *self, guint runs)
{
    while (common_divisor(runs, self->sets) > 1) {
        runs++;
        self->turn++;
    }
}

enum { SLOW_ROUNDS = 3 };

/* Lanes that take over three times the fastest one's time: a few rounds tell as much of them. */
static void note_slow(Bench *self)
{
    double least = (double)INFINITY;
    for (guint i = 0; i < self->n; i++)
        if (self->lane[i].line.note == NULL)
            least = MIN(least, self->lane[i].time[TIME_KERNEL][0]);
    for (guint i = 0; i < self->n; i++)
        if (self->lane[i].time[TIME_KERNEL][0] > 3 * least)
            self->lane[i].rounds = SLOW_ROUNDS;
}

/* `warm` rounds before the first that counts. */
static void time_lanes(Bench *self, gint warm, gint rounds, gboolean large)
{
    for (guint i = 0; i < self->n; i++)
        self->lane[i].rounds = rounds;
    for (gint round = -warm; round < rounds; round++) {
        const guint from = self->turn;
        for (guint k = 0; k < self->n; k++) {
            BenchLane *lane = &self->lane[bench_lane_at((guint)(round + warm), k, self->n)];
            if (lane->line.note != NULL || round >= lane->rounds)
                continue;
            if (self->ops == &backend_cpu)
                time_lane_cpu(self, lane, MAX(round, 0));
            else
                time_lane(self, lane, large, MAX(round, 0));
        }
        shift_sets(self, self->turn - from);
        if (round == 0 && rounds > SLOW_ROUNDS)
            note_slow(self);
    }
}

static void finish_line(const Bench *self, BenchLane *lane, gboolean large)
{
    BenchLine *line = &lane->line;
    const gint rounds = lane->rounds;
    if (line->note != NULL)
        return;
    line->workers = lane->plan_config.workers;
    line->rounds = rounds;
    line->kernel_us = median_of(lane->time[TIME_KERNEL], rounds);
    if (self->config->kernel_only)
        return;
    line->plan_us = median_of(lane->time[TIME_PLAN], rounds);
    line->wall_us = median_of(lane->time[TIME_WALL], rounds);
    if (!lane->replays || large)
        return;
    line->graph_us = median_of(lane->time[TIME_GRAPH], rounds);
    line->graph_wall_us = median_of(lane->time[TIME_GRAPH_WALL], rounds);
}

static gint rounds_of(const Bench *self, gint64 bytes)
{
    const gint rounds = self->config->rounds > 0    ? self->config->rounds
                        : self->ops == &backend_cpu ? 3
                        : bytes <= 1000000000       ? 11
                        : bytes <= LARGE            ? 5
                                                    : 3;
    return MIN(rounds, BENCH_MAX_ROUNDS);
}

/* Lengths, ended with a 0, and what follows from them. */
static BenchCellResult *result_new(const BenchCell *cell, guint64 seed, gint32 *lens)
{
    BenchCellResult *ret = g_new0(BenchCellResult, 1);
    ret->cell = *cell;
    ret->lines = g_array_new(FALSE, FALSE, sizeof(BenchLine));
    g_array_set_clear_func(ret->lines, bench_line_clear);
    bench_cell_lens(cell, seed, lens);
    for (gint32 r = 0; r < cell->rows; r++) {
        ret->kv_bytes += 4 * (gint64)lens[r] * cell->shape.kv_heads * cell->shape.head_dim;
        ret->max_len = MAX(ret->max_len, lens[r]);
    }
    return ret;
}

BenchCellResult *bench_cell_skip(const Bench *self, const BenchCell *cell, char *note)
{
    g_autofree gint32 *lens = g_new0(gint32, cell->rows + 1);
    BenchCellResult *ret = result_new(cell, self->config->config.seed, lens);
    ret->note = note;
    return ret;
}

static char *too_large(const Bench *self, const BenchCell *cell)
{
    const double gib = (double)(1 << 30);
    return g_strdup_printf(
        "n/a: %" G_GINT64_FORMAT " pages = %.2f GiB of K and V, the pool has %" G_GINT64_FORMAT
        " = %.2f GiB",
        self->cell_pages, (double)(2 * attn_pool_bytes(&cell->shape, self->cell_pages)) / gib,
        self->pool_pages, (double)(2 * attn_pool_bytes(&cell->shape, self->pool_pages)) / gib);
}

/* Routes that run with other CTAs by the batch are planned for this one. */
static void plan_for(Bench *self, gint32 rows)
{
    for (guint i = 0; i < self->n && self->ops->fit_plan != NULL; i++)
        if (self->lane[i].route.ops->kind == ROUTE_BUILTIN)
            self->ops->fit_plan(self->backend, &self->lane[i].route, &self->lane[i].plan_config,
                                rows, self->lens);
}

/* The cell as a step of a calibration table, with what every lane that was timed took. */
static void write_calibration(Bench *self, const BenchCellResult *cell)
{
    StepFeatures step = {.shape = self->shape,
                         .workers = self->workers,
                         .rows = (guint32)cell->cell.rows,
                         .max_length = (guint32)cell->max_len,
                         .lens = self->lens};
    for (gint32 r = 0; r < cell->cell.rows; r++)
        step.sum_length += (guint64)self->lens[r];
    for (guint i = 0; i < self->n; i++) {
        const BenchLane *lane = &self->lane[i];
        Candidate candidate = {.route = &lane->route};
        if (lane->line.note != NULL)
            continue;
        if (lane->line.peer)
            peer_counts(&candidate.counts, &lane->route, &self->shape, self->workers,
                        cell->cell.rows, self->lens);
        else
            candidate.counts = lane->plan.counts;
        calibration_write_row(self->config->calibration, self->result->cells->len, &step,
                              &candidate, lane->line.kernel_us, bench_line_wall(&lane->line));
    }
}

BenchCellResult *bench_cell_run(Bench *self, const BenchCell *cell)
{
    self->lens = g_new0(gint32, cell->rows + 1);
    BenchCellResult *ret = result_new(cell, self->config->config.seed, self->lens);
    self->cell_pages = bench_pages(cell, self->lens);
    if (self->cell_pages > self->pool_pages) {
        ret->note = too_large(self, cell);
        cell_close(self);
        return ret;
    }
    ret->rounds = rounds_of(self, ret->kv_bytes);
    const gboolean large = ret->kv_bytes > LARGE;
    const gint warm = self->ops == &backend_cpu || ret->kv_bytes <= 1000000000 ? 1 : 0;
    cell_open(self, cell);
    plan_for(self, cell->rows);
    bench_check(self);
    time_lanes(self, self->config->kernel_only ? 0 : warm, ret->rounds, large);
    for (guint i = 0; i < self->n; i++)
        finish_line(self, &self->lane[i], large);
    if (self->config->calibration != NULL)
        write_calibration(self, ret);
    for (guint i = 0; i < self->n; i++) {
        BenchLane *lane = &self->lane[i];
        g_array_append_val(ret->lines, lane->line);
        lane->line = (BenchLine){0};
    }
    cell_close(self);
    return ret;
}
