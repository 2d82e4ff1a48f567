#include "plots/run_data.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "plots/csv_rows.h"

guint run_grid_index(double x)
{
    return x >= 2 ? (guint)MIN(floor(log2(x) + 1e-9), RUN_GRID - 1) : 0;
}

guint run_length_cell(gint64 tokens)
{
    double at = tokens > 1 ? floor(RUN_LENGTHS_PER_OCTAVE * log2((double)tokens) + 1e-9) : 0;
    return (guint)MIN(at, RUN_LENGTH_CELLS - 1);
}

static gboolean read_summary(RunData *self, const char *path, GError **error)
{
    self->summary = json_read_file(path, "a run's summary", error);
    return self->summary != NULL;
}

static gboolean read_scenario(RunData *self, const char *path, GError **error)
{
    g_autoptr(GError) local = NULL;
    self->scenario = g_key_file_new();
    if (g_key_file_load_from_file(self->scenario, path, G_KEY_FILE_NONE, &local))
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: not a scenario: %s", path, local->message);
    return FALSE;
}

/* A lone CSV file: told by its columns. */
static gboolean open_lone_file(RunData *self, const char *path, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL)
        return FALSE;
    if (csv_rows_find(rows, "route") >= 0 && csv_rows_find(rows, "launches") >= 0 &&
        csv_rows_find(rows, "step") >= 0)
        return run_data_read_replay(self, path, NULL, error);
    if (csv_rows_find(rows, "request_id") >= 0)
        return run_data_read_requests(self, path, NULL, error);
    if (csv_rows_find(rows, "skew") >= 0 && csv_rows_find(rows, "expected_us") >= 0)
        self->regions_path = g_strdup(path);
    else if (csv_rows_find(rows, "route") >= 0 &&
             (csv_rows_find(rows, "context") >= 0 || csv_rows_find(rows, "batch") >= 0))
        self->bench_path = g_strdup(path);
    else
        self->sweep_path = g_strdup(path);
    return TRUE;
}

static gboolean part_of(const char *folder, const char *name, char **ret_path)
{
    *ret_path = g_build_filename(folder, name, NULL);
    if (g_file_test(*ret_path, G_FILE_TEST_IS_REGULAR))
        return TRUE;
    g_clear_pointer(ret_path, g_free);
    return FALSE;
}

static gboolean read_folder_head(RunData *self, GError **error)
{
    g_autofree char *summary = NULL, *scenario = NULL;
    if (part_of(self->folder, "summary.json", &summary) && !read_summary(self, summary, error))
        return FALSE;
    if (part_of(self->folder, "scenario.ini", &scenario) && !read_scenario(self, scenario, error))
        return FALSE;
    part_of(self->folder, "replay.csv", &self->replay_path);
    part_of(self->folder, "requests.csv", &self->requests_path);
    part_of(self->folder, "steps.kvsteps", &self->steps_path);
    part_of(self->folder, "sweep.csv", &self->sweep_path);
    part_of(self->folder, "bench.csv", &self->bench_path);
    part_of(self->folder, "regions.csv", &self->regions_path);
    if (summary == NULL && self->replay_path == NULL && self->requests_path == NULL &&
        self->steps_path == NULL && self->sweep_path == NULL && self->bench_path == NULL &&
        self->regions_path == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: no run's output folder: none of summary.json, replay.csv, requests.csv, "
                    "steps.kvsteps, sweep.csv, bench.csv, regions.csv is there",
                    self->folder);
        return FALSE;
    }
    return TRUE;
}

static gboolean read_folder(RunData *self, Progress *progress, GError **error)
{
    return read_folder_head(self, error) &&
           (self->steps_path == NULL ||
            run_data_read_steps(self, self->steps_path, progress, error)) &&
           (self->replay_path == NULL ||
            run_data_read_replay(self, self->replay_path, progress, error)) &&
           (self->requests_path == NULL ||
            run_data_read_requests(self, self->requests_path, progress, error));
}

static RunData *run_data_new(const char *path, GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: no such folder or file", path);
        return NULL;
    }
    RunData *self = g_new0(RunData, 1);
    self->folder = g_strdup(path);
    self->label = g_path_get_basename(path);
    self->routes = g_ptr_array_new();
    return self;
}

RunData *run_data_open(const char *folder, GError **error)
{
    g_autoptr(RunData) self = run_data_new(folder, error);
    return self != NULL && read_folder_head(self, error) ? g_steal_pointer(&self) : NULL;
}

RunData *run_data_load(const char *path, Progress *progress, GError **error)
{
    g_autoptr(RunData) self = run_data_new(path, error);
    if (self == NULL)
        return NULL;
    gboolean folder = g_file_test(path, G_FILE_TEST_IS_DIR);
    if (!(folder ? read_folder(self, progress, error) : open_lone_file(self, path, error)))
        return NULL;
    return g_steal_pointer(&self);
}

static void route_free(RouteData *route)
{
    g_free(route->name);
    time_bins_free(route->bins);
    g_free(route);
}

static void requests_free(RequestData *requests)
{
    if (requests == NULL)
        return;
    Sampler *samplers[] = {requests->ttft,  requests->tpot,   requests->e2e,
                           requests->queue, requests->prompt, requests->output};
    for (guint i = 0; i < G_N_ELEMENTS(samplers); i++)
        sampler_free(samplers[i]);
    time_bins_free(requests->arrivals);
    g_free(requests->turns);
    g_free(requests);
}

void run_data_free(RunData *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < self->routes->len; i++)
        route_free(g_ptr_array_index(self->routes, i));
    g_ptr_array_unref(self->routes);
    requests_free(self->requests);
    steps_data_free(self->steps_data);
    time_bins_free(self->step_bins);
    time_bins_free(self->chosen_bins);
    log_hist_free(self->decode_ns);
    log_hist_free(self->mixed_ns);
    g_clear_pointer(&self->summary, json_node_unref);
    g_clear_pointer(&self->scenario, g_key_file_unref);
    g_free(self->folder);
    g_free(self->label);
    g_free(self->replay_path);
    g_free(self->requests_path);
    g_free(self->steps_path);
    g_free(self->sweep_path);
    g_free(self->bench_path);
    g_free(self->regions_path);
    g_free(self);
}

JsonNode *run_data_node(const RunData *self, const char *path)
{
    JsonNode *node = self->summary;
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    for (guint i = 0; node != NULL && parts[i] != NULL; i++) {
        if (!JSON_NODE_HOLDS_OBJECT(node))
            return NULL;
        JsonObject *object = json_node_get_object(node);
        node = json_object_has_member(object, parts[i]) ? json_object_get_member(object, parts[i])
                                                        : NULL;
    }
    return node;
}

double run_data_number(const RunData *self, const char *path)
{
    JsonNode *node = run_data_node(self, path);
    if (node == NULL || !JSON_NODE_HOLDS_VALUE(node))
        return (double)NAN;
    GType type = json_node_get_value_type(node);
    return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE ? json_node_get_double(node) : (double)NAN;
}

const char *run_data_string(const RunData *self, const char *path)
{
    JsonNode *node = run_data_node(self, path);
    return node != NULL && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
}

double run_data_pool_pages(const RunData *self)
{
    double pages = run_data_number(self, "simulate.pool_pages");
    if (!isnan(pages) || self->scenario == NULL)
        return pages;
    g_autofree char *text = g_key_file_get_value(self->scenario, "engine", "pool-pages", NULL);
    gint64 n;
    return text != NULL && csv_parse_int(text, &n) ? (double)n : (double)NAN;
}
