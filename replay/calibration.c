#include "replay/calibration.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"

typedef enum {
    C_STEP,
    C_ROWS,
    C_MAX_LEN,
    C_SUM_LEN,
    C_Q_HEADS,
    C_KV_HEADS,
    C_HEAD_DIM,
    C_WORKERS,
    C_ROUTE,
    C_LAUNCHES,
    C_MERGE_LAUNCHES,
    C_TASKS,
    C_GRID_TASKS,
    C_KV_BYTES,
    C_LONGEST,
    C_MERGE_BYTES,
    C_KERNEL_US,
    C_WALL_US,
    N_COLUMNS
} Column;

static const char *const names[N_COLUMNS] = {
    "step",           "rows",
    "max_len",        "sum_len",
    "q_heads",        "kv_heads",
    "head_dim",       "workers",
    "route",          "launches",
    "merge_launches", "tasks",
    "grid_tasks",     "kv_bytes_touched",
    "longest_tokens", "merge_state_bytes",
    "kernel_us",      "wall_us",
};

CalibrationTable *calibration_table_new(void)
{
    CalibrationTable *self = g_new0(CalibrationTable, 1);
    self->rows = g_array_new(FALSE, TRUE, sizeof(CalibrationRow));
    self->routes = g_ptr_array_new_with_free_func(g_free);
    return self;
}

void calibration_table_free(CalibrationTable *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->rows);
    g_ptr_array_unref(self->routes);
    g_free(self);
}

static guint route_index(CalibrationTable *self, const char *name)
{
    for (guint i = 0; i < self->routes->len; i++)
        if (strcmp(self->routes->pdata[i], name) == 0)
            return i;
    g_ptr_array_add(self->routes, g_strdup(name));
    return self->routes->len - 1;
}

void calibration_table_add(CalibrationTable *self, const CalibrationRow *row, const char *route,
                           gboolean first)
{
    CalibrationRow copy = *row;
    self->groups += first || self->groups == 0;
    copy.group = self->groups - 1;
    copy.route = route_index(self, route);
    g_array_append_val(self->rows, copy);
}

static gboolean find_columns(Input *input, char **cell, guint n, guint at[N_COLUMNS],
                             GError **error)
{
    for (guint c = 0; c < N_COLUMNS; c++) {
        guint i = 0;
        while (i < n && strcmp(cell[i], names[c]) != 0)
            i++;
        if (i == n && c != C_WALL_US)
            return input_error(input, error,
                               "column '%s' is missing from the calibration table's header",
                               names[c]);
        at[c] = i;
    }
    return TRUE;
}

/* What a column may hold. A count of bytes or tokens is exact as a double, and sums of many do not
 * overflow. */
static void limits(Column c, gint64 *ret_least, gint64 *ret_most)
{
    *ret_least = c == C_ROWS || c == C_WORKERS || c == C_HEAD_DIM || c == C_KV_HEADS;
    switch (c) {
    case C_ROWS:
    case C_LAUNCHES:
    case C_MERGE_LAUNCHES:
        *ret_most = 1 << 24;
        break;
    case C_WORKERS:
        *ret_most = CALIBRATION_MAX_WORKERS;
        break;
    case C_Q_HEADS:
    case C_KV_HEADS:
    case C_HEAD_DIM:
        *ret_most = 1 << 16;
        break;
    default:
        *ret_most = G_GINT64_CONSTANT(1) << 50;
    }
}

static gboolean read_us(Input *input, char **cell, const guint at[N_COLUMNS], Column c,
                        gboolean needed, double *ret, GError **error)
{
    const char *text = cell[at[c]]; /* the NULL at the end where the column is missing */
    *ret = -1;
    if (!needed && (text == NULL || text[0] == '\0'))
        return TRUE;
    if (kv_parse_real(text, ret) && *ret > 0 && *ret <= CALIBRATION_MAX_US)
        return TRUE;
    return input_error(input, error, "%s '%s': expected a time above 0 and up to 1e9%s", names[c],
                       text, needed ? "" : ", or nothing");
}

static gboolean read_row(CalibrationTable *self, Input *input, char **cell,
                         const guint at[N_COLUMNS], gint64 *last_step, GError **error)
{
    gint64 value[N_COLUMNS] = {0}, least, most;
    double us, wall;
    for (guint c = 0; c < N_COLUMNS; c++) {
        if (c == C_ROUTE || c == C_KERNEL_US || c == C_WALL_US)
            continue;
        limits((Column)c, &least, &most);
        if (!kv_parse_count(cell[at[c]], &value[c]) || value[c] < least || value[c] > most)
            return input_error(input, error,
                               "%s '%s': expected a whole number from %" G_GINT64_FORMAT
                               " to %" G_GINT64_FORMAT,
                               names[c], cell[at[c]], least, most);
    }
    if (cell[at[C_ROUTE]][0] == '\0')
        return input_error(input, error, "route '': expected the name of a route");
    if (!read_us(input, cell, at, C_WALL_US, FALSE, &wall, error) ||
        !read_us(input, cell, at, C_KERNEL_US, TRUE, &us, error))
        return FALSE;
    const gboolean first = *last_step != value[C_STEP];
    *last_step = value[C_STEP];
    const CalibrationRow row = {
        .rows = (guint32)value[C_ROWS],
        .shape = {.q_heads = (int32_t)value[C_Q_HEADS],
                  .kv_heads = (int32_t)value[C_KV_HEADS],
                  .head_dim = (int32_t)value[C_HEAD_DIM]},
        .workers = (gint)value[C_WORKERS],
        .counts = {.launches = (int32_t)value[C_LAUNCHES],
                   .merge_launches = (int32_t)value[C_MERGE_LAUNCHES],
                   .tasks = value[C_TASKS],
                   .grid_tasks = value[C_GRID_TASKS],
                   .kv_bytes = value[C_KV_BYTES],
                   .kv_bytes_touched = value[C_KV_BYTES],
                   .longest_tokens = value[C_LONGEST],
                   .merge_state_bytes = value[C_MERGE_BYTES]},
        .kernel_us = us,
        .wall_us = wall,
    };
    calibration_table_add(self, &row, cell[at[C_ROUTE]], first);
    return TRUE;
}

gboolean calibration_table_read(CalibrationTable *self, const char *path, GError **error)
{
    g_autoptr(Input) input = input_open(path, error);
    if (input == NULL)
        return FALSE;
    guint at[N_COLUMNS], n = 0;
    gint64 last_step = -1;
    char *line;
    gsize len;
    int got;
    while ((got = input_line(input, &line, &len, error)) == 1) {
        g_auto(GStrv) cell = g_strsplit(line, ",", -1);
        if (n == 0) {
            n = g_strv_length(cell);
            if (!find_columns(input, cell, n, at, error))
                return FALSE;
            continue;
        }
        if (g_strv_length(cell) != n)
            return input_error(input, error, "%u columns: expected %u", g_strv_length(cell), n);
        if (!read_row(self, input, cell, at, &last_step, error))
            return FALSE;
    }
    if (got == 0 && last_step < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: %s: expected a calibration table", path,
                    n == 0 ? "empty" : "no line follows the header");
        return FALSE;
    }
    return got == 0;
}

void calibration_write_header(OutFile *out)
{
    FILE *f = out_file_stream(out);
    for (guint c = 0; c < N_COLUMNS; c++)
        fprintf(f, "%s%s", names[c], c + 1 < N_COLUMNS ? "," : "\n");
}

void calibration_write_row(OutFile *out, guint64 step, const StepFeatures *s,
                           const Candidate *candidate, double kernel_us, double wall_us)
{
    const AttnCounts *c = &candidate->counts;
    char us[G_ASCII_DTOSTR_BUF_SIZE], wall[G_ASCII_DTOSTR_BUF_SIZE] = "";
    if (wall_us > 0)
        g_ascii_formatd(wall, sizeof wall, "%.4f", wall_us);
    g_autofree char *setting = route_setting(candidate->route);
    fprintf(out_file_stream(out),
            "%" G_GUINT64_FORMAT ",%u,%u,%" G_GUINT64_FORMAT ",%d,%d,%d,%d,%s,%d,%d,%" PRId64
            ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%s\n",
            step, s->rows, s->max_length, s->sum_length, s->shape.q_heads, s->shape.kv_heads,
            s->shape.head_dim, s->workers, setting, c->launches, c->merge_launches, c->tasks,
            c->grid_tasks, c->kv_bytes_touched, c->longest_tokens, c->merge_state_bytes,
            g_ascii_formatd(us, sizeof us, "%.4f", kernel_us), wall);
}
