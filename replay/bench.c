#include "replay/bench.h"

#include <string.h>

#include "base/error.h"
#include "replay/bench_csv.h"
#include "replay/bench_private.h"
#include "replay/calibration.h"

void bench_config_init(BenchConfig *config)
{
    *config = (BenchConfig){
        .routes = g_ptr_array_new(),
        .cells = g_array_new(FALSE, FALSE, sizeof(BenchCell)),
        .config = {.seed = 1, .layers = 1, .tp = 1},
    };
    g_autoptr(GError) error = NULL;
    if (!plugin_choice_parse(&config->splits, "splits", split_rules, "balanced", &error))
        g_error("%s", error->message);
}

void bench_config_clear(BenchConfig *config)
{
    plugin_choice_clear(&config->backend);
    plugin_choice_clear(&config->splits);
    g_clear_pointer(&config->routes, g_ptr_array_unref);
    g_clear_pointer(&config->cells, g_array_unref);
}

void bench_line_clear(gpointer data)
{
    BenchLine *line = data;
    g_free(line->label);
    g_free(line->note);
}

static void cell_result_free(gpointer data)
{
    BenchCellResult *cell = data;
    g_free(cell->note);
    g_array_unref(cell->lines);
    g_free(cell);
}

void bench_result_free(BenchResult *self)
{
    if (self == NULL)
        return;
    g_free(self->device);
    g_clear_pointer(&self->about, json_node_unref);
    g_ptr_array_unref(self->cells);
    g_free(self);
}

/* --- the run --- */

static double seconds_now(void)
{
    return 1e-6 * (double)g_get_monotonic_time();
}

static gboolean is_wide(const Bench *self, const BenchCell *cell)
{
    g_autofree gint32 *lens = g_new(gint32, cell->rows);
    bench_cell_lens(cell, self->config->config.seed, lens);
    return bench_is_wide(cell, bench_pages(cell, lens));
}

/* The shape in hand is kept while it fits. */
static gboolean open_for(Bench *self, const BenchCell *cell, gboolean wide, GError **error)
{
    if (self->backend != NULL && self->wide == wide &&
        memcmp(&cell->shape, &self->shape, sizeof self->shape) == 0)
        return TRUE;
    bench_shape_close(self);
    return bench_shape_open(self, &cell->shape, wide, error);
}

typedef struct Run {
    Bench *bench;
    OutFile *csv;
    Progress *progress;
    double until; /* seconds_now() */
    guint done;
} Run;

static gboolean run_cell(Run *run, const BenchCell *cell, gboolean wide, GError **error)
{
    Bench *self = run->bench;
    BenchCellResult *done;
    if (seconds_now() >= run->until) {
        done = bench_cell_skip(self, cell, g_strdup("n/a: no time was left for it"));
    } else {
        if (!open_for(self, cell, wide, error))
            return FALSE;
        done = bench_cell_run(self, cell);
    }
    g_ptr_array_add(self->result->cells, done);
    if (run->csv != NULL && !bench_csv_cell(run->csv, self->result, done, error))
        return FALSE;
    OutFile *const outs[] = {run->csv, self->config->calibration};
    for (guint i = 0; i < G_N_ELEMENTS(outs); i++)
        if (outs[i] != NULL)
            fflush(out_file_stream(outs[i])); /* a killed run leaves its whole cells */
    progress_show(run->progress, ++run->done);
    return progress_check(run->progress, error);
}

/* Cells in the order given, but of neighbours of one shape the wide ones last. */
static gboolean run_cells(Run *run, GError **error)
{
    const Bench *self = run->bench;
    const GArray *cells = self->config->cells;
    progress_begin(run->progress, "bench", cells->len);
    for (guint from = 0, end; from < cells->len; from = end) {
        const BenchCell *first = &g_array_index(cells, BenchCell, from);
        end = from;
        while (end < cells->len && memcmp(&g_array_index(cells, BenchCell, end).shape,
                                          &first->shape, sizeof first->shape) == 0)
            end++;
        for (guint pass = 0; pass < 2; pass++)
            for (guint i = from; i < end; i++) {
                const BenchCell *cell = &g_array_index(cells, BenchCell, i);
                if (is_wide(self, cell) == (pass == 1) && !run_cell(run, cell, pass == 1, error))
                    return FALSE;
            }
    }
    progress_end(run->progress);
    return TRUE;
}

static const BackendOps *choose_backend(const BenchConfig *config, GError **error)
{
    g_autofree char *reason = NULL;
    if (config->cells->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "bench: no cells");
        return NULL;
    }
    const BackendOps *ops = backend_choose(config->backend.info, &config->config, &reason);
    if (!ops->executes) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "bench: backend %s executes nothing: expected cuda or cpu", ops->info.name);
        return NULL;
    }
    return ops;
}

BenchResult *bench_run(const BenchConfig *config, OutFile *csv, Progress *progress, GError **error)
{
    const BackendOps *ops =
        routes_differ(config->routes, error) ? choose_backend(config, error) : NULL;
    if (ops == NULL)
        return NULL;
    Bench self = {.config = config, .ops = ops};
    Run run = {&self, csv, progress, G_MAXDOUBLE, 0};
    if (config->seconds > 0)
        run.until = seconds_now() + config->seconds;
    self.result = g_new0(BenchResult, 1);
    self.result->backend = ops->info.name;
    self.result->commit = config->commit;
    self.result->seed = config->config.seed;
    self.result->cells = g_ptr_array_new_with_free_func(cell_result_free);
    if (csv != NULL)
        bench_csv_header(csv);
    if (config->calibration != NULL)
        calibration_write_header(config->calibration);
    const gboolean ok = run_cells(&run, error);
    bench_shape_close(&self);
    g_free(self.left);
    if (!ok)
        g_clear_pointer(&self.result, bench_result_free);
    return self.result;
}
