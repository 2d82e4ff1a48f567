#include "replay/bench.h"

#include "base/error.h"
#include "replay/bench_csv.h"
#include "replay/bench_private.h"

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

static gboolean run_cells(Bench *self, OutFile *csv, Progress *progress, GError **error)
{
    const GArray *cells = self->config->cells;
    progress_begin(progress, "bench", cells->len);
    for (guint i = 0; i < cells->len; i++) {
        const BenchCell *cell = &g_array_index(cells, BenchCell, i);
        if (self->backend == NULL || memcmp(&cell->shape, &self->shape, sizeof self->shape) != 0) {
            bench_shape_close(self);
            if (!bench_shape_open(self, &cell->shape, error))
                return FALSE;
        }
        BenchCellResult *done = bench_cell_run(self, cell);
        g_ptr_array_add(self->result->cells, done);
        if (csv != NULL && !bench_csv_cell(csv, self->result, done, error))
            return FALSE;
        progress_tick(progress, i + 1);
        if (!progress_check(progress, error))
            return FALSE;
    }
    progress_end(progress);
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
    const BackendOps *ops = choose_backend(config, error);
    if (ops == NULL)
        return NULL;
    Bench self = {.config = config, .ops = ops};
    self.rounds = config->rounds > 0 ? config->rounds : ops == &backend_cpu ? 3 : 15;
    self.result = g_new0(BenchResult, 1);
    self.result->backend = ops->info.name;
    self.result->rounds = self.rounds;
    self.result->seed = config->config.seed;
    self.result->cells = g_ptr_array_new_with_free_func(cell_result_free);
    if (csv != NULL)
        bench_csv_header(csv);
    const gboolean ok = run_cells(&self, csv, progress, error);
    bench_shape_close(&self);
    g_free(self.left);
    if (!ok)
        g_clear_pointer(&self.result, bench_result_free);
    return self.result;
}
