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

static gboolean read_row(CalibrationTable *self, Input *input, char **cell,
                         const guint at[N_COLUMNS], gint64 *last_step, GError **error)
{
    gint64 value[N_COLUMNS] = {0};
    for (guint c = 0; c < N_COLUMNS; c++) {
        if (c == C_ROUTE || c == C_KERNEL_US || c == C_WALL_US)
            continue;
        if (!kv_parse_count(cell[at[c]], &value[c]) || value[c] < 0)
            return input_error(input, error, "%s '%s': expected a whole number, 0 or more",
                               names[c], cell[at[c]]);
    }
    double us, wall = -1;
    const char *wall_text = cell[at[C_WALL_US]]; /* the NULL at the end where it is missing */
    if (wall_text != NULL && wall_text[0] != '\0' &&
        (!kv_parse_real(wall_text, &wall) || wall <= 0))
        return input_error(input, error, "wall_us '%s': expected a time above 0, or nothing",
                           wall_text);
    if (!kv_parse_real(cell[at[C_KERNEL_US]], &us) || us <= 0)
        return input_error(input, error, "kernel_us '%s': expected a time above 0",
                           cell[at[C_KERNEL_US]]);
    if (value[C_ROWS] < 1 || value[C_WORKERS] < 1 || value[C_HEAD_DIM] < 1 || value[C_KV_HEADS] < 1)
        return input_error(input, error, "rows, workers, head_dim and kv_heads must be 1 or more");
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
    if (got == 0 && n == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: empty: expected a calibration table",
                    path);
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
