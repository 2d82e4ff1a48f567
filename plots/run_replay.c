/* replay.csv into RunData: one line per (step, route), lines of a step together. The steps of a
 * fleet's replicas follow one another; what is seen over time is then the mean of those that run.
 */
#include "plots/run_data.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"

enum {
    C_STEP,
    C_START,
    C_DURATION,
    C_ROWS,
    C_PREFILL,
    C_MAX_LEN,
    C_SUM_LEN,
    C_WAITING,
    C_PAGES,
    C_ROUTE,
    C_CHOSEN,
    C_LAUNCHES,
    C_MERGE_LAUNCHES,
    C_TASKS,
    C_NONEMPTY,
    C_KV_BYTES,
    C_MERGE_STATE,
    C_MERGE_TRAFFIC,
    C_PLAN,
    C_KERNEL,
    C_WALL,
    N_COLUMNS
};
static const char *const column_names[N_COLUMNS] = {"step",
                                                    "start_ns",
                                                    "duration_ns",
                                                    "rows",
                                                    "prefill_tokens",
                                                    "max_len",
                                                    "sum_len",
                                                    "waiting",
                                                    "pages_used",
                                                    "route",
                                                    "chosen",
                                                    "launches",
                                                    "merge_launches",
                                                    "tasks",
                                                    "nonempty_fraction",
                                                    "kv_bytes",
                                                    "merge_state_bytes",
                                                    "merge_traffic_bytes",
                                                    "plan_us",
                                                    "kernel_us",
                                                    "wall_us"};

typedef struct Reader {
    RunData *run;
    CsvRows *rows;
    int at[N_COLUMNS];
    int replica_at; /* column; -1 = none */
    /* the step whose lines are being read */
    gboolean open;
    gint64 step, replica, start, duration, n_rows, max_len, prefill;
    double series[N_STEP_SERIES];
    double kernel_us[RUN_MAX_ROUTES]; /* NaN = not executed or no such line */
    int chosen;
    double chosen_launches;
} Reader;

static int find_route(RunData *run, const char *name)
{
    for (guint i = 0; i < run->routes->len; i++)
        if (strcmp(((RouteData *)g_ptr_array_index(run->routes, i))->name, name) == 0)
            return (int)i;
    if (run->routes->len == RUN_MAX_ROUTES)
        return -1;
    RouteData *route = g_new0(RouteData, 1);
    route->name = g_strdup(name);
    route->bins = time_bins_new(N_ROUTE_SERIES, RUN_TIME_BINS);
    g_ptr_array_add(run->routes, route);
    return (int)run->routes->len - 1;
}

static void compare_routes(Reader *r)
{
    int best = -1;
    guint executed = 0;
    for (guint i = 0; i < r->run->routes->len; i++) {
        if (isnan(r->kernel_us[i]))
            continue;
        executed++;
        if (best < 0 || r->kernel_us[i] < r->kernel_us[best])
            best = (int)i;
    }
    if (executed < 2)
        return;
    guint x = run_grid_index((double)r->n_rows), y = run_grid_index((double)r->max_len);
    ((RouteData *)g_ptr_array_index(r->run->routes, best))->fastest[x][y]++;
    if (r->chosen < 0 || isnan(r->kernel_us[r->chosen]))
        return;
    r->series[STEP_BEST_US] = r->kernel_us[best];
    r->series[STEP_REGRET_US] = r->kernel_us[r->chosen] - r->kernel_us[best];
    r->run->compared++;
    r->run->best_us += r->kernel_us[best];
    r->run->regret_us += r->series[STEP_REGRET_US];
}

static void close_step(Reader *r)
{
    RunData *run = r->run;
    if (!r->open)
        return;
    r->open = FALSE;
    compare_routes(r);
    time_bins_add(run->step_bins, r->start, r->start + r->duration, r->series);
    run->first = run->steps == 0 ? r->start : MIN(run->first, r->start); /* of all replicas */
    run->last = MAX(run->last, r->start + r->duration);
    run->steps++;
    run->decode_steps += r->n_rows > 0;
    if (r->chosen >= 0) {
        double launches[RUN_MAX_ROUTES] = {0};
        launches[r->chosen] = r->chosen_launches;
        time_bins_add(run->chosen_bins, r->start, r->start + r->duration, launches);
        run->chosen_steps++;
    }
    log_hist_add(r->prefill > 0 ? run->mixed_ns : run->decode_ns, r->duration, 1);
}

static gboolean open_step(Reader *r, gint64 step, gint64 replica, GError **error)
{
    static const struct {
        int column;
        StepSeries series;
    } plain[] = {{C_ROWS, STEP_ROWS},       {C_PREFILL, STEP_PREFILL}, {C_MAX_LEN, STEP_MAX_LEN},
                 {C_SUM_LEN, STEP_SUM_LEN}, {C_WAITING, STEP_WAITING}, {C_PAGES, STEP_PAGES}};
    close_step(r);
    r->open = TRUE;
    r->step = step;
    r->replica = replica;
    r->chosen = -1;
    for (guint i = 0; i < RUN_MAX_ROUTES; i++)
        r->kernel_us[i] = (double)NAN;
    r->series[STEP_BEST_US] = r->series[STEP_REGRET_US] = (double)NAN;
    if (!csv_rows_int(r->rows, r->at[C_START], &r->start, error) ||
        !csv_rows_int(r->rows, r->at[C_DURATION], &r->duration, error))
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(plain); i++) {
        gint64 value;
        if (!csv_rows_int_or(r->rows, r->at[plain[i].column], 0, &value, error))
            return FALSE;
        r->series[plain[i].series] = (double)value;
    }
    r->series[STEP_MS] = (double)r->duration / 1e6;
    r->n_rows = (gint64)r->series[STEP_ROWS];
    r->max_len = (gint64)r->series[STEP_MAX_LEN];
    r->prefill = (gint64)r->series[STEP_PREFILL];
    if (r->start < 0 || r->duration < 0 || r->duration > G_MAXINT64 - r->start || r->n_rows < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "replay.csv:%" G_GUINT64_FORMAT ": negative or overflowing start_ns, "
                    "duration_ns or rows",
                    csv_rows_line(r->rows));
        return FALSE;
    }
    return TRUE;
}

static gboolean read_route_values(Reader *r, double value[N_ROUTE_SERIES], GError **error)
{
    static const struct {
        int column;
        RouteSeries series;
    } plain[] = {{C_LAUNCHES, ROUTE_LAUNCHES},
                 {C_MERGE_LAUNCHES, ROUTE_MERGE_LAUNCHES},
                 {C_TASKS, ROUTE_TASKS},
                 {C_NONEMPTY, ROUTE_NONEMPTY},
                 {C_KV_BYTES, ROUTE_KV_BYTES},
                 {C_MERGE_STATE, ROUTE_MERGE_STATE},
                 {C_MERGE_TRAFFIC, ROUTE_MERGE_RATIO},
                 {C_PLAN, ROUTE_PLAN_US},
                 {C_KERNEL, ROUTE_KERNEL_US},
                 {C_WALL, ROUTE_WALL_US}};
    for (guint i = 0; i < G_N_ELEMENTS(plain); i++)
        if (!csv_rows_real(r->rows, r->at[plain[i].column], &value[plain[i].series], error))
            return FALSE;
    value[ROUTE_MERGE_RATIO] /= value[ROUTE_KV_BYTES];
    if (!isfinite(value[ROUTE_MERGE_RATIO]))
        value[ROUTE_MERGE_RATIO] = (double)NAN;
    return TRUE;
}

static void add_route_line(Reader *r, int index, const double value[N_ROUTE_SERIES])
{
    RouteData *route = g_ptr_array_index(r->run->routes, index);
    time_bins_add(route->bins, r->start, r->start + r->duration, value);
    for (guint s = 0; s < N_ROUTE_SERIES; s++)
        cell_add(&route->total[s], value[s]);
    log_bins_add(&route->ratio_by_rows, (double)r->n_rows, value[ROUTE_MERGE_RATIO]);
    log_bins_add(&route->ratio_by_len, (double)r->max_len, value[ROUTE_MERGE_RATIO]);
    double kernel = value[ROUTE_KERNEL_US], wall = value[ROUTE_WALL_US];
    double plan = value[ROUTE_PLAN_US];
    r->kernel_us[index] = kernel;
    if (isnan(kernel))
        return;
    if (kernel > 0)
        log_bins_add(&route->by_kv_bytes, value[ROUTE_KV_BYTES],
                     value[ROUTE_KV_BYTES] / kernel / 1e3);
    cell_add(&route->part[0], plan);
    cell_add(&route->part[1], kernel);
    double rest = wall - kernel - (isnan(plan) ? 0 : plan);
    cell_add(&route->part[2], isnan(rest) ? rest : MAX(rest, 0));
}

/* The single route has one task a (row, KV head): that tells the KV heads of a lone replay.csv. */
static double splits(Reader *r, const char *name, double tasks)
{
    if (r->run->kv_heads <= 0 && strcmp(name, "single") == 0)
        r->run->kv_heads = tasks / (double)r->n_rows;
    if (r->run->kv_heads <= 0)
        return (double)NAN;
    return tasks / ((double)r->n_rows * r->run->kv_heads);
}

static gboolean read_line(Reader *r, GError **error)
{
    gint64 step, replica = 0;
    if (!csv_rows_int(r->rows, r->at[C_STEP], &step, error) ||
        (r->replica_at >= 0 && !csv_rows_int_or(r->rows, r->replica_at, 0, &replica, error)))
        return FALSE;
    r->run->lines++;
    if ((!r->open || step != r->step || replica != r->replica) &&
        !open_step(r, step, replica, error))
        return FALSE;
    const char *name = csv_rows_text(r->rows, r->at[C_ROUTE]);
    if (name[0] == '\0' || r->n_rows == 0)
        return TRUE;
    int index = find_route(r->run, name);
    if (index < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "replay.csv:%" G_GUINT64_FORMAT ": more than %d different routes",
                    csv_rows_line(r->rows), RUN_MAX_ROUTES);
        return FALSE;
    }
    double value[N_ROUTE_SERIES];
    gint64 chosen;
    if (!read_route_values(r, value, error) ||
        !csv_rows_int_or(r->rows, r->at[C_CHOSEN], 0, &chosen, error))
        return FALSE;
    value[ROUTE_SPLITS] = splits(r, name, value[ROUTE_TASKS]);
    if (chosen != 0) {
        RouteData *route = g_ptr_array_index(r->run->routes, index);
        route->chosen[run_grid_index((double)r->n_rows)][run_grid_index((double)r->max_len)]++;
        r->chosen = index;
        r->chosen_launches = value[ROUTE_LAUNCHES];
    }
    add_route_line(r, index, value);
    return TRUE;
}

gboolean run_data_read_replay(RunData *self, const char *path, Progress *progress, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL)
        return FALSE;
    Reader r = {.run = self, .rows = rows, .replica_at = csv_rows_find(rows, "replica")};
    if (!csv_rows_need(rows, column_names, N_COLUMNS, r.at, error))
        return FALSE;
    self->step_bins = time_bins_new(N_STEP_SERIES, RUN_TIME_BINS);
    self->chosen_bins = time_bins_new(RUN_MAX_ROUTES, RUN_TIME_BINS);
    self->decode_ns = log_hist_new();
    self->mixed_ns = log_hist_new();
    progress_begin(progress, "reading replay.csv", 0);
    int got;
    while ((got = csv_rows_next(rows, error)) > 0) {
        if (!read_line(&r, error))
            return FALSE;
        progress_tick(progress, self->lines);
        if (self->lines % 4096 == 0 && !progress_check(progress, error))
            return FALSE;
    }
    close_step(&r);
    progress_end(progress);
    return got == 0;
}
