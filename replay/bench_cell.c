/* One cell: its steps, the check of every route, and then their times. */
#include <time.h>

#include "base/error.h"
#include "base/stats.h"
#include "replay/bench_private.h"

enum { WARM_ROUNDS = 1 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

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

/* A step of the cell's first `n` rows on the pages of the next set. All rows of the step before
 * leave, all of this one join. */
static gboolean begin(Bench *self, gint32 n, GError **error)
{
    const gint64 from = (gint64)(self->turn++ % self->sets) * self->cell_pages;
    guint32 *pages = (guint32 *)self->rows[0].pages;
    for (gint64 i = 0; i < self->cell_pages; i++)
        pages[i] = self->permutation[(from + i) % self->pool_pages];
    Step step = {.index = self->steps++, .n_left = self->n_left, .left = self->left};
    for (gint32 r = 0; r < n; r++) {
        const StepRow *row = &self->rows[r];
        self->joins[r] = (StepJoin){row->request, row->slot, row->length, row->n_pages, row->pages};
        step.max_length = MAX(step.max_length, row->length);
        step.sum_length += row->length;
        step.pages_used += row->n_pages;
    }
    step.joined = self->joins;
    step.n_joined = step.rows = (guint32)n;
    step.tokens_held = step.sum_length;
    const gboolean ok = self->ops->begin_step(self->backend, &step, self->rows, (guint32)n, error);
    self->left = g_renew(guint32, self->left, n);
    for (gint32 r = 0; r < n; r++)
        self->left[r] = (guint32)r;
    self->n_left = (guint32)n;
    return ok;
}

static gboolean run_lane(Bench *self, BenchLane *lane, gint32 n, gboolean check, Execution *ret,
                         double *ret_host_us, GError **error)
{
    const gboolean builtin = lane->route.ops->kind == ROUTE_BUILTIN;
    if (!begin(self, n, error))
        return FALSE;
    const double from = now_us();
    if (builtin &&
        attn_plan_build(&lane->plan, &lane->plan_config, &self->shape, n, self->lens) != ATTN_OK) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s",
                    attn_strerror(ATTN_NO_MEMORY));
        return FALSE;
    }
    *ret_host_us = builtin ? now_us() - from : 0;
    return self->ops->execute(self->backend, &lane->route, builtin ? &lane->plan : NULL, 1, check,
                              ret, error);
}

static void line_note(BenchLane *lane, const char *why)
{
    g_free(lane->line.note);
    lane->line.note = g_strdup(why);
}

/* The cell's first rows that stay within what a check may read, at least one. */
static gint32 rows_to_check(const Bench *self, const BenchCell *cell)
{
    const gint64 most =
        self->config->check_bytes > 0 ? self->config->check_bytes : (gint64)256 << 20;
    const gint64 token = 4 * (gint64)cell->shape.kv_heads * cell->shape.head_dim;
    gint64 tokens = 0;
    gint32 n = 0;
    while (n < cell->rows && (n == 0 || (tokens + self->lens[n]) * token <= most))
        tokens += self->lens[n++];
    return n;
}

static void check_lane(Bench *self, const BenchCell *cell, BenchLane *lane)
{
    g_autoptr(GError) local = NULL;
    Execution e;
    double host_us;
    const char *refused = self->ops->refuses(self->backend, &lane->route);
    const gint32 n = rows_to_check(self, cell);
    lane->line = (BenchLine){.label = g_strdup(lane->route.label),
                             .peer = lane->route.ops->kind == ROUTE_PEER,
                             .launches = -1,
                             .kernel_us = -1,
                             .plan_us = -1,
                             .wall_us = -1,
                             .max_abs_err = -1,
                             .mean_abs_err = -1};
    if (refused != NULL) {
        line_note(lane, refused);
        return;
    }
    if (!run_lane(self, lane, n, TRUE, &e, &host_us, &local)) {
        line_note(lane, local->message);
        return;
    }
    lane->line.checked_rows = n;
    lane->line.max_abs_err = e.max_abs_err;
    lane->line.mean_abs_err = e.mean_abs_err;
    if (!backend_errors_pass(cell->shape.dtype, e.max_abs_err, e.mean_abs_err)) {
        line_note(lane, "WRONG: outputs differ from the reference by more than the tolerance");
        self->result->wrong = TRUE;
    }
}

static void time_lanes(Bench *self, const BenchCell *cell)
{
    for (gint round = -WARM_ROUNDS; round < self->rounds; round++)
        for (guint k = 0; k < self->n; k++) {
            BenchLane *lane = &self->lane[(k + (guint)(round + WARM_ROUNDS)) % self->n];
            g_autoptr(GError) local = NULL;
            Execution e;
            double host_us;
            if (lane->line.note != NULL)
                continue;
            /* On a GPU the first of two runs, on other pages, brings the code back into caches. */
            if ((self->ops != &backend_cpu &&
                 !run_lane(self, lane, cell->rows, FALSE, &e, &host_us, &local)) ||
                !run_lane(self, lane, cell->rows, FALSE, &e, &host_us, &local)) {
                line_note(lane, local->message);
                continue;
            }
            const gint at = MAX(round, 0);
            lane->kernel[at] = e.kernel_us;
            lane->plan_us[at] = MAX(e.plan_us, 0) + host_us;
            lane->wall[at] = e.wall_us + host_us;
            lane->line.upload_bytes = e.upload_bytes;
            lane->line.launches =
                lane->line.peer ? (gint)e.launches_seen : lane->plan.counts.launches;
            lane->line.merge_state_bytes =
                lane->line.peer ? 0 : lane->plan.counts.merge_state_bytes;
        }
}

static double median_of(double *values, gint n)
{
    sort_doubles(values, (gsize)n);
    return quantile_linear(values, (gsize)n, 0.5);
}

BenchCellResult *bench_cell_run(Bench *self, const BenchCell *cell)
{
    BenchCellResult *ret = g_new0(BenchCellResult, 1);
    ret->cell = *cell;
    ret->lines = g_array_new(FALSE, FALSE, sizeof(BenchLine));
    g_array_set_clear_func(ret->lines, bench_line_clear);
    self->lens = g_new(gint32, cell->rows);
    bench_cell_lens(cell, self->config->config.seed, self->lens);
    for (gint32 r = 0; r < cell->rows; r++) {
        ret->kv_bytes += 4 * (gint64)self->lens[r] * cell->shape.kv_heads * cell->shape.head_dim;
        ret->max_len = MAX(ret->max_len, self->lens[r]);
    }
    self->cell_pages = bench_pages(cell, self->lens);
    if (self->cell_pages > self->pool_pages) {
        const double gib = (double)(1 << 30);
        ret->note = g_strdup_printf(
            "n/a: %" G_GINT64_FORMAT " pages = %.2f GiB of K and V, the pool has %" G_GINT64_FORMAT
            " = %.2f GiB",
            self->cell_pages, (double)(2 * attn_pool_bytes(&cell->shape, self->cell_pages)) / gib,
            self->pool_pages, (double)(2 * attn_pool_bytes(&cell->shape, self->pool_pages)) / gib);
        cell_close(self);
        return ret;
    }
    cell_open(self, cell);
    for (guint i = 0; i < self->n; i++)
        check_lane(self, cell, &self->lane[i]);
    time_lanes(self, cell);
    for (guint i = 0; i < self->n; i++) {
        BenchLane *lane = &self->lane[i];
        if (lane->line.note == NULL) {
            lane->line.kernel_us = median_of(lane->kernel, self->rounds);
            lane->line.plan_us = median_of(lane->plan_us, self->rounds);
            lane->line.wall_us = median_of(lane->wall, self->rounds);
        }
        g_array_append_val(ret->lines, lane->line);
        lane->line = (BenchLine){0};
    }
    cell_close(self);
    return ret;
}
