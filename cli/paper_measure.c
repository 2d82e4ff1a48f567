/* One experiment through a set of routes, and what its replay.csv says. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/stats.h"
#include "cli/paper_run.h"
#include "kernels/peers/peers.h"
#include "plots/csv_rows.h"

static void lane_free(gpointer data)
{
    PaperLane *lane = data;
    g_free(lane->name);
    g_free(lane->spec);
    g_free(lane->refused);
    g_free(lane->left_out);
    g_array_unref(lane->event);
    g_array_unref(lane->wall);
    g_array_unref(lane->plan);
    g_free(lane);
}

GPtrArray *paper_lanes_new(void)
{
    return g_ptr_array_new_with_free_func(lane_free);
}

void paper_lane_add(GPtrArray *lanes, const char *name, const char *format, ...)
{
    PaperLane *lane = g_new0(PaperLane, 1);
    va_list args;
    va_start(args, format);
    lane->name = g_strdup(name);
    lane->spec = g_strdup_vprintf(format, args);
    va_end(args);
    lane->event = g_array_new(FALSE, FALSE, sizeof(double));
    lane->wall = g_array_new(FALSE, FALSE, sizeof(double));
    lane->plan = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(lanes, lane);
}

void paper_lanes_add_peers(GPtrArray *lanes, const PaperRun *run)
{
    g_autoptr(GPtrArray) names = run->gpu ? paper_peer_routes(peer_find) : g_ptr_array_new();
    for (guint i = 0; i < names->len; i++)
        paper_lane_add(lanes, names->pdata[i], "%s", (const char *)names->pdata[i]);
}

void paper_series_free(PaperSeries *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->lanes);
    g_array_unref(self->chosen);
    g_free(self);
}

/* --- the run --- */

static gboolean configure(const PaperRun *run, const PaperMeasure *m, ReplayConfig *ret,
                          GError **error)
{
    replay_config_init(ret);
    plugin_choice_clear(&ret->policy);
    ret->config.seed = (guint64)m->experiment->seed;
    ret->config.device = run->device;
    ret->config.layers = MAX(m->layers, 1);
    ret->config.graphs = m->graphs;
    ret->profile = g_strdup(run->profile);
    ret->execute = m->execute == G_MAXUINT64 ? EXECUTE_ALL : EXECUTE_SAMPLE;
    ret->execute_a = m->execute;
    ret->check_every = m->check_every;
    ret->repeats = run->gpu ? (run->quick ? 3 : 5) : 1;
    gboolean ok = plugin_choice_parse(&ret->policy, "policy", policies,
                                      m->policy != NULL ? m->policy : "always:route=single", error);
    if (ok && run->backend != NULL)
        ok = plugin_choice_parse(&ret->backend, "backend", backends, run->backend, error);
    for (guint i = 0; ok && i < m->lanes->len; i++) {
        PluginChoice *choice = g_new0(PluginChoice, 1);
        ok = plugin_choice_parse(choice, "route", routes, ((PaperLane *)m->lanes->pdata[i])->spec,
                                 error);
        if (ok)
            g_ptr_array_add(ret->routes, choice);
        else
            g_free(choice);
    }
    if (ok && m->policy == NULL) {
        plugin_choice_clear(&ret->policy);
        const PluginChoice *first = ret->routes->pdata[0];
        g_autofree char *text = g_strdup_printf("always:route=%s", first->info->name);
        ok = plugin_choice_parse(&ret->policy, "policy", policies, text, error);
    }
    if (!ok)
        replay_config_clear(ret);
    return ok;
}

/* --- reading replay.csv back --- */

enum {
    C_STEP,
    C_ROWS,
    C_ROUTE,
    C_CHOSEN,
    C_LAUNCHES,
    C_MERGES,
    C_TASKS,
    C_KV,
    C_TOUCHED,
    C_MERGE,
    C_PLAN,
    C_KERNEL,
    C_WALL,
    C_MAX_ERR,
    C_MEAN_ERR,
    N_C
};
static const char *const columns[N_C] = {
    "step",           "rows",      "route",    "chosen",           "launches",
    "merge_launches", "tasks",     "kv_bytes", "kv_bytes_touched", "merge_state_bytes",
    "plan_us",        "kernel_us", "wall_us",  "max_abs_err",      "mean_abs_err"};

static void add_line(PaperRun *run, PaperSeries *series, PaperLane *lane, guint index,
                     const double *v, double layers)
{
    const double mib = 1 << 20, event = v[C_KERNEL] / 1e3 / layers;
    const double plan = v[C_PLAN] / 1e3;
    /* The host plans once whatever the layers: the rest of the wall time is shared out. */
    const double wall = (v[C_WALL] / 1e3 - plan) / layers + plan / layers;
    lane->launches += v[C_LAUNCHES];
    lane->merges += v[C_MERGES];
    lane->tasks += v[C_TASKS];
    lane->kv_mib += v[C_KV] / mib;
    lane->touched_mib += v[C_TOUCHED] / mib;
    lane->merge_mib += v[C_MERGE] / mib;
    g_array_append_val(lane->event, event);
    g_array_append_val(lane->wall, wall);
    g_array_append_val(lane->plan, plan);
    lane->executed += !isnan(event);
    if (v[C_CHOSEN] > 0)
        g_array_append_val(series->chosen, index);
    if (isnan(v[C_MAX_ERR]))
        return;
    lane->checked++;
    run->checked++;
    lane->max_err = fmax(lane->max_err, v[C_MAX_ERR]);
    run->max_err = fmax(run->max_err, v[C_MAX_ERR]);
    lane->mean_err += v[C_MEAN_ERR];
}

/* Lines of a step come in the order of the lanes that were not refused. */
static gboolean read_csv(PaperRun *run, const PaperMeasure *m, PaperSeries *series,
                         const char *path, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    int at[N_C], got;
    if (rows == NULL || !csv_rows_need(rows, columns, N_C, at, error))
        return FALSE;
    double step = -1;
    guint lane = 0;
    while ((got = csv_rows_next(rows, error)) > 0) {
        double v[N_C] = {0};
        for (int i = 0; i < N_C; i++)
            if (i != C_ROUTE && !csv_rows_real(rows, at[i], &v[i], error))
                return FALSE;
        lane = v[C_STEP] == step ? lane + 1 : 0;
        while (lane < series->lanes->len &&
               ((PaperLane *)series->lanes->pdata[lane])->refused != NULL)
            lane++;
        g_assert(lane < series->lanes->len);
        if (v[C_STEP] != step) {
            step = v[C_STEP];
            series->steps++;
            series->rows += (guint64)v[C_ROWS];
            series->executed += !isnan(v[C_KERNEL]);
        }
        add_line(run, series, series->lanes->pdata[lane], lane, v, MAX(m->layers, 1));
    }
    return got == 0;
}

/* Means over the steps that it could run stand beside means over all: they are not comparable. */
static void refuse_lane(PaperLane *lane)
{
    GArray *const times[] = {lane->event, lane->wall, lane->plan};
    for (guint k = 0; k < G_N_ELEMENTS(times); k++)
        for (guint i = 0; i < times[k]->len; i++)
            g_array_index(times[k], double, i) = (double)NAN;
    lane->executed = lane->checked = 0;
    lane->max_err = lane->mean_err = (double)NAN;
    lane->refused = g_strdup(lane->left_out);
}

static void finish_lanes(PaperSeries *series)
{
    const double n = MAX((double)series->steps, 1);
    for (guint i = 0; i < series->lanes->len; i++) {
        PaperLane *lane = series->lanes->pdata[i];
        double *means[] = {&lane->launches, &lane->merges,      &lane->tasks,
                           &lane->kv_mib,   &lane->touched_mib, &lane->merge_mib};
        for (guint k = 0; k < G_N_ELEMENTS(means); k++)
            *means[k] /= n;
        lane->mean_err = lane->checked > 0 ? lane->mean_err / (double)lane->checked : (double)NAN;
        if (lane->checked == 0)
            lane->max_err = (double)NAN;
        if (lane->left_out != NULL && lane->refused == NULL)
            refuse_lane(lane);
    }
}

/* Why routes were left out, and the device's name. */
static void read_result(PaperRun *run, PaperSeries *series, const ReplayResult *result)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    replay_result_to_json(result, b);
    json_builder_end_object(b);
    g_autoptr(JsonNode) root = json_builder_get_root(b);
    JsonObject *o = json_node_get_object(root);
    if (run->device_name == NULL)
        run->device_name = g_strdup(json_object_get_string_member_with_default(
            json_object_get_object_member(o, "device"), "name",
            json_object_get_string_member(o, "backend")));
    JsonObject *all = json_object_get_object_member(o, "routes");
    g_autoptr(GList) names = json_object_get_members(all); /* in the order of the lanes */
    guint i = 0;
    for (GList *at = names; at != NULL; at = at->next, i++) {
        JsonObject *route = json_object_get_object_member(all, at->data);
        if (json_object_has_member(route, "refused"))
            ((PaperLane *)series->lanes->pdata[i])->refused =
                g_strdup(json_object_get_string_member(route, "refused"));
        if (json_object_has_member(route, "left_out"))
            ((PaperLane *)series->lanes->pdata[i])->left_out =
                g_strdup_printf("n/a: left out of %" G_GINT64_FORMAT " executed steps: %s",
                                json_object_get_int_member(route, "left_out_steps"),
                                json_object_get_string_member(route, "left_out"));
    }
}

static gboolean run_replay(PaperRun *run, const PaperMeasure *m, PaperSeries *series,
                           const char *steps_path, const char *csv_path, GError **error)
{
    ReplayConfig config;
    if (!configure(run, m, &config, error))
        return FALSE;
    gboolean ok = FALSE;
    g_autoptr(StepsReader) steps = steps_reader_open(steps_path, error);
    g_autoptr(OutFile) csv = steps != NULL ? out_file_new(csv_path, error) : NULL;
    if (csv != NULL) {
        g_autoptr(ReplayResult) result = replay_run(&config, steps, csv, run->progress, error);
        ok = result != NULL && out_file_commit(csv, error);
        if (ok)
            read_result(run, series, result);
        /* Judged there and not from the file, in which an error that is NaN reads as unchecked. */
        if (ok && !replay_result_correct(result))
            run->wrong++;
    }
    replay_config_clear(&config);
    return ok;
}

PaperSeries *paper_measure(PaperRun *run, const PaperMeasure *m, GError **error)
{
    g_autoptr(PaperSeries) series = g_new0(PaperSeries, 1);
    series->lanes = m->lanes;
    series->chosen = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autofree char *steps_name = g_strconcat(m->name, ".kvsteps", NULL);
    g_autofree char *csv_name = g_strconcat(m->name, ".csv", NULL);
    g_autofree char *steps_path = g_build_filename(run->out, "steps", steps_name, NULL);
    g_autofree char *csv_path = g_build_filename(run->out, "replay", csv_name, NULL);
    if (!paper_write_steps(m->experiment, steps_path, error) ||
        !run_replay(run, m, series, steps_path, csv_path, error) ||
        !read_csv(run, m, series, csv_path, error)) {
        g_prefix_error(error, "paper %s: ", m->name);
        return NULL;
    }
    finish_lanes(series);
    return g_steal_pointer(&series);
}

/* --- figures over steps and seeds --- */

double paper_mean(const GArray *values)
{
    double sum = 0;
    guint n = 0;
    for (guint i = 0; i < values->len; i++) {
        const double v = g_array_index(values, double, i);
        if (!isnan(v)) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

double paper_deviation(const GArray *values)
{
    const double mean = paper_mean(values);
    double sum = 0;
    guint n = 0;
    for (guint i = 0; i < values->len; i++) {
        const double v = g_array_index(values, double, i);
        if (!isnan(v)) {
            sum += (v - mean) * (v - mean);
            n++;
        }
    }
    return n > 1 ? sqrt(sum / (n - 1)) : (double)NAN;
}

void paper_interval(const GArray *values, double *ret_low, double *ret_high)
{
    enum { RESAMPLES = 1000 };
    g_autofree double *known = g_new(double, values->len + 1);
    guint n = 0;
    *ret_low = *ret_high = (double)NAN;
    for (guint i = 0; i < values->len; i++)
        if (!isnan(g_array_index(values, double, i)))
            known[n++] = g_array_index(values, double, i);
    if (n < 3)
        return;
    double means[RESAMPLES];
    for (guint k = 0; k < RESAMPLES; k++) {
        RngStream stream;
        rng_init(&stream, 1, RNG_BOOTSTRAP, k, 0);
        double sum = 0;
        for (guint i = 0; i < n; i++)
            sum += known[rng_below(&stream, n)];
        means[k] = sum / n;
    }
    sort_doubles(means, RESAMPLES);
    *ret_low = quantile_linear(means, RESAMPLES, 0.025);
    *ret_high = quantile_linear(means, RESAMPLES, 0.975);
}
