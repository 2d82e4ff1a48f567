#include "plots/sweep_table.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"

typedef enum { ROLE_PARAMETER, ROLE_SEED, ROLE_RESULT } Role;

typedef struct Metric {
    int a, b; /* columns; b = -1, or the divisor */
    char *name;
} Metric;

struct SweepTable {
    GPtrArray *names; /* char * */
    GPtrArray *rows;  /* char **: one text a column */
    GArray *roles;
    GArray *metrics;
    int axis;
    GArray *x;         /* double a row */
    GArray *curve;     /* guint a row; SWEEP_MAX_CURVES = not shown */
    GPtrArray *labels; /* char * a curve */
};

static const char *const seeds[] = {"seed", "replication", "rep", NULL};
static const char *const results[] = {
    "requests",   "finished", "refused", "clipped",       "steps", "row_steps", "status",
    "error",      "cell",     "cell_id", "correct",       "index", "warnings",  "sha256",
    "refused_by", "n",        "ok",      "meets_targets", NULL};
static const char *const result_prefixes[] = {"ttft",          "itl",
                                              "tpot",          "e2e",
                                              "queue_delay",   "server_ttft",
                                              "client_wait",   "duration",
                                              "busy",          "preempt",
                                              "recomputed",    "prompt_tokens",
                                              "output_tokens", "prefill_tokens",
                                              "pages_",        "rows_",
                                              "waiting",       "launches",
                                              "merge",         "kernel",
                                              "wall",          "plan_",
                                              "kv_bytes",      "throughput",
                                              "goodput",       "regret",
                                              "share",         "prefix_",
                                              "tokens_",       NULL};
static const char *const axes[] = {"rate",     "scale",     "load",       "users",      "qps",
                                   "arrivals", "transform", "pool_pages", "pool-pages", "pool",
                                   "budget",   "seqs",      NULL};
#define N_LOAD_AXES 7 /* of `axes`: those that mean how much is asked */

static Role role_of(const char *name)
{
    if (g_strv_contains(seeds, name))
        return ROLE_SEED;
    if (g_strv_contains(results, name))
        return ROLE_RESULT;
    for (guint i = 0; result_prefixes[i] != NULL; i++)
        if (g_str_has_prefix(name, result_prefixes[i]))
            return ROLE_RESULT;
    return ROLE_PARAMETER;
}

/* A cell's number, or the number after rate=, scale= or users= in a plug-in's text. */
static gboolean number_in(const char *text, double *ret)
{
    static const char *const keys[] = {"rate=", "scale=", "users="};
    if (csv_parse_real(text, ret))
        return TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *at = strstr(text, keys[i]);
        if (at == NULL)
            continue;
        g_autofree char *number = g_strdup(at + strlen(keys[i]));
        number[strspn(number, "0123456789.eE+-")] = '\0';
        return csv_parse_real(number, ret);
    }
    return FALSE;
}

static const char *text_at(const SweepTable *self, guint row, int column)
{
    return ((char **)g_ptr_array_index(self->rows, row))[column];
}

static gboolean varies(const SweepTable *self, int column)
{
    for (guint r = 1; r < self->rows->len; r++)
        if (strcmp(text_at(self, r, column), text_at(self, 0, column)) != 0)
            return TRUE;
    return FALSE;
}

static gboolean all_numbers(const SweepTable *self, int column)
{
    double value;
    for (guint r = 0; r < self->rows->len; r++)
        if (!number_in(text_at(self, r, column), &value))
            return FALSE;
    return TRUE;
}

static Role role_at(const SweepTable *self, guint column)
{
    return g_array_index(self->roles, Role, column);
}

static int find_axis(const SweepTable *self)
{
    for (guint a = 0; axes[a] != NULL; a++)
        for (guint c = 0; c < self->names->len; c++)
            if (strcmp(g_ptr_array_index(self->names, c), axes[a]) == 0 && varies(self, (int)c) &&
                all_numbers(self, (int)c))
                return (int)c;
    for (guint c = 0; c < self->names->len; c++)
        if (role_at(self, c) == ROLE_PARAMETER && varies(self, (int)c) && all_numbers(self, (int)c))
            return (int)c;
    return -1;
}

/* "policy cost, pool_pages 2560": the parameters besides the axis that vary at all. */
static char *label_of(const SweepTable *self, guint row)
{
    GString *label = g_string_new(NULL);
    for (guint c = 0; c < self->names->len; c++)
        if ((int)c != self->axis && role_at(self, c) == ROLE_PARAMETER && varies(self, (int)c))
            g_string_append_printf(label, "%s%s %s", label->len > 0 ? ", " : "",
                                   (char *)g_ptr_array_index(self->names, c),
                                   text_at(self, row, (int)c));
    return g_string_free(label, FALSE);
}

static void find_curves(SweepTable *self)
{
    for (guint r = 0; r < self->rows->len; r++) {
        double x = r;
        if (self->axis >= 0)
            number_in(text_at(self, r, self->axis), &x);
        g_autofree char *label = label_of(self, r);
        guint curve;
        if (!g_ptr_array_find_with_equal_func(self->labels, label, g_str_equal, &curve)) {
            curve = self->labels->len;
            g_ptr_array_add(self->labels, g_steal_pointer(&label));
        }
        g_array_append_val(self->x, x);
        g_array_append_val(self->curve, curve);
    }
}

SweepTable *sweep_table_load(const char *path, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL)
        return NULL;
    g_autoptr(SweepTable) self = g_new0(SweepTable, 1);
    self->names = g_ptr_array_new_with_free_func(g_free);
    self->rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    self->labels = g_ptr_array_new_with_free_func(g_free);
    self->roles = g_array_new(FALSE, FALSE, sizeof(Role));
    self->metrics = g_array_new(FALSE, FALSE, sizeof(Metric));
    self->x = g_array_new(FALSE, FALSE, sizeof(double));
    self->curve = g_array_new(FALSE, FALSE, sizeof(guint));
    guint n = csv_rows_n_columns(rows);
    for (guint c = 0; c < n; c++) {
        Role role = role_of(csv_rows_name(rows, c));
        g_ptr_array_add(self->names, g_strdup(csv_rows_name(rows, c)));
        g_array_append_val(self->roles, role);
    }
    int got;
    while ((got = csv_rows_next(rows, error)) > 0) {
        char **row = g_new0(char *, n + 1);
        for (guint c = 0; c < n; c++)
            row[c] = g_strdup(csv_rows_text(rows, (int)c));
        g_ptr_array_add(self->rows, row);
    }
    if (got < 0)
        return NULL;
    self->axis = self->rows->len > 0 ? find_axis(self) : -1;
    find_curves(self);
    return g_steal_pointer(&self);
}

void sweep_table_free(SweepTable *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < self->metrics->len; i++)
        g_free(g_array_index(self->metrics, Metric, i).name);
    g_array_unref(self->metrics);
    g_array_unref(self->roles);
    g_array_unref(self->x);
    g_array_unref(self->curve);
    g_ptr_array_unref(self->labels);
    g_ptr_array_unref(self->rows);
    g_ptr_array_unref(self->names);
    g_free(self);
}

const char *sweep_table_axis(const SweepTable *self)
{
    return self->axis < 0 ? NULL : g_ptr_array_index(self->names, (guint)self->axis);
}

gboolean sweep_table_axis_is_load(const SweepTable *self)
{
    const char *name = sweep_table_axis(self);
    for (guint i = 0; name != NULL && i < N_LOAD_AXES; i++)
        if (strcmp(name, axes[i]) == 0)
            return TRUE;
    return FALSE;
}

guint sweep_table_curves(const SweepTable *self)
{
    return MIN(self->labels->len, SWEEP_MAX_CURVES);
}

const char *sweep_table_label(const SweepTable *self, guint curve)
{
    return g_ptr_array_index(self->labels, curve);
}

static int find_column(const SweepTable *self, const char *name)
{
    guint at;
    return g_ptr_array_find_with_equal_func(self->names, name, g_str_equal, &at) ? (int)at : -1;
}

int sweep_table_metric(SweepTable *self, const char *const *names)
{
    for (guint i = 0; names[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(names[i], "/", 2);
        Metric metric = {.a = find_column(self, parts[0]), .b = -1};
        if (parts[1] != NULL)
            metric.b = find_column(self, parts[1]);
        if (metric.a < 0 || (parts[1] != NULL && metric.b < 0))
            continue;
        metric.name = g_strdup(names[i]);
        g_array_append_val(self->metrics, metric);
        return (int)self->metrics->len - 1;
    }
    return -1;
}

const char *sweep_table_metric_name(const SweepTable *self, int metric)
{
    return g_array_index(self->metrics, Metric, (guint)metric).name;
}

static double value_of(const SweepTable *self, guint row, const Metric *metric)
{
    double a, b = 1;
    if (!csv_parse_real(text_at(self, row, metric->a), &a) ||
        (metric->b >= 0 && !csv_parse_real(text_at(self, row, metric->b), &b)) || b == 0)
        return (double)NAN;
    return a / b;
}

/* Few rows: insertion into sorted order. */
guint sweep_table_points(const SweepTable *self, guint curve, int metric, double **ret_x,
                         Cell **ret_y)
{
    guint n = 0;
    double *xs = g_new0(double, self->rows->len + 1);
    Cell *ys = g_new0(Cell, self->rows->len + 1);
    for (guint r = 0; r < self->rows->len; r++) {
        double x = g_array_index(self->x, double, r);
        double y = value_of(self, r, &g_array_index(self->metrics, Metric, (guint)metric));
        if (g_array_index(self->curve, guint, r) != curve || isnan(y))
            continue;
        guint at = 0;
        while (at < n && xs[at] < x)
            at++;
        if (at == n || xs[at] > x) {
            memmove(xs + at + 1, xs + at, (n - at) * sizeof *xs);
            memmove(ys + at + 1, ys + at, (n - at) * sizeof *ys);
            xs[at] = x;
            ys[at] = (Cell){0};
            n++;
        }
        cell_add(&ys[at], y);
    }
    *ret_x = xs;
    *ret_y = ys;
    return n;
}

double sweep_knee(const double *x, const double *y, guint n)
{
    if (n < 4 || x[n - 1] <= x[0] || y[n - 1] <= y[0])
        return (double)NAN;
    double best = (double)NAN, furthest = 0.05; /* flatter than this has no knee */
    for (guint i = 1; i + 1 < n; i++) {
        double below = (x[i] - x[0]) / (x[n - 1] - x[0]) - (y[i] - y[0]) / (y[n - 1] - y[0]);
        if (below > furthest) {
            furthest = below;
            best = x[i];
        }
    }
    return best;
}
