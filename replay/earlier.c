#include "replay/earlier.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"

enum {
    STEP,
    ROWS,
    MAX_LEN,
    SUM_LEN,
    ROUTE,
    LAUNCHES,
    COPIES,
    MEMSETS,
    PLAN,
    UPLOAD,
    KERNEL,
    WALL,
    REPEATS,
    MAX_ERR,
    MEAN_ERR,
    RANKS,
    SKEW,
    TABLES,
    N_COLUMNS
};
static const char *const names[N_COLUMNS] = {
    "step",    "rows",        "max_len",      "sum_len",        "route",        "launches",
    "copies",  "memsets",     "plan_us",      "upload_bytes",   "kernel_us",    "wall_us",
    "repeats", "max_abs_err", "mean_abs_err", "rank_kernel_us", "rank_skew_us", "tables_us"};

typedef struct EarlierLine {
    guint64 step;
    double rows, max_len, sum_len;
    char *route;
    gboolean measured;
    Execution execution;
} EarlierLine;

struct Earlier {
    Input *input;
    int column[N_COLUMNS];
    guint n_columns; /* of the file */
    gboolean ended;
    gboolean have; /* `line` is read and not used */
    EarlierLine line;
    GArray *step; /* EarlierLine of the step last gathered */
};

static void line_clear(EarlierLine *line)
{
    g_free(line->route);
}

void earlier_free(Earlier *self)
{
    if (self == NULL)
        return;
    input_free(self->input);
    if (self->have)
        line_clear(&self->line);
    g_array_unref(self->step);
    g_free(self);
}

Earlier *earlier_open(const char *path, GError **error)
{
    g_autoptr(Earlier) self = g_new0(Earlier, 1);
    self->step = g_array_new(FALSE, TRUE, sizeof(EarlierLine));
    g_array_set_clear_func(self->step, (GDestroyNotify)line_clear);
    self->input = input_open(path, error);
    char *text;
    gsize len;
    if (self->input == NULL)
        return NULL;
    int got = input_line(self->input, &text, &len, error);
    if (got < 0)
        return NULL;
    self->ended = got == 0; /* nothing was measured yet */
    g_auto(GStrv) columns = g_strsplit(got == 1 ? text : "", ",", -1);
    self->n_columns = g_strv_length(columns);
    for (int c = 0; got == 1 && c < N_COLUMNS; c++) {
        self->column[c] = -1;
        for (guint i = 0; i < self->n_columns; i++)
            if (strcmp(columns[i], names[c]) == 0)
                self->column[c] = (int)i;
        if (self->column[c] < 0) {
            input_error(self->input, error, "no column '%s': not what an interrupted replay left",
                        names[c]);
            return NULL;
        }
    }
    return g_steal_pointer(&self);
}

/* An empty field is `absent`; FALSE on what is no number. "nan" is one: an error may be. */
static gboolean number_or(const char *text, double absent, double *ret)
{
    *ret = absent;
    if (g_ascii_strcasecmp(text, "nan") == 0 || g_ascii_strcasecmp(text, "-nan") == 0) {
        *ret = (double)NAN;
        return TRUE;
    }
    return *text == '\0' || kv_parse_real(text, ret);
}

/* "12.301;12.498" */
static gboolean take_ranks(Execution *e, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, ";", -1);
    if (g_strv_length(part) > EXECUTION_RANKS)
        return FALSE;
    for (e->ranks = 0; part[e->ranks] != NULL; e->ranks++)
        if (!number_or(part[e->ranks], -1, &e->rank_us[e->ranks]))
            return FALSE;
    return TRUE;
}

static gboolean take_fields(const Earlier *self, char *const *field, EarlierLine *ret)
{
    double v[N_COLUMNS];
    for (int c = 0; c < N_COLUMNS; c++) {
        const gboolean count = c == UPLOAD || c == COPIES || c == MEMSETS || c == REPEATS ||
                               c == STEP || c == ROWS || c == MAX_LEN || c == SUM_LEN;
        if (c == ROUTE || c == RANKS)
            continue;
        if (!number_or(field[self->column[c]], count ? 0 : -1, &v[c]) ||
            (count && !(v[c] >= 0 && v[c] < 0x1p53)))
            return FALSE;
    }
    *ret = (EarlierLine){
        .step = (guint64)v[STEP],
        .rows = v[ROWS],
        .max_len = v[MAX_LEN],
        .sum_len = v[SUM_LEN],
        .measured = v[KERNEL] >= 0,
        .execution = {.repeats = (gint)MIN(v[REPEATS], G_MAXINT),
                      .kernel_us = v[KERNEL],
                      .wall_us = v[WALL],
                      .plan_us = v[PLAN],
                      .tables_us = v[TABLES],
                      .upload_bytes = (gint64)v[UPLOAD],
                      .copies = (gint)MIN(v[COPIES], G_MAXINT),
                      .memsets = (gint)MIN(v[MEMSETS], G_MAXINT),
                      .launches_seen = v[LAUNCHES] >= 0 ? (gint64)v[LAUNCHES] : -1,
                      .checked = *field[self->column[MAX_ERR]] != '\0',
                      .max_abs_err = v[MAX_ERR],
                      .mean_abs_err = v[MEAN_ERR],
                      .rank_skew_us = v[SKEW]},
    };
    if (!take_ranks(&ret->execution, field[self->column[RANKS]]))
        return FALSE;
    ret->route = g_strdup(field[self->column[ROUTE]]);
    return TRUE;
}

/* Reads the next whole line into self->line; FALSE at the end or at anything that is no such line.
 */
static gboolean read_line(Earlier *self)
{
    char *text;
    gsize len;
    if (self->ended || input_line(self->input, &text, &len, NULL) != 1) {
        self->ended = TRUE;
        return FALSE;
    }
    g_auto(GStrv) field = g_strsplit(text, ",", -1);
    self->have = g_strv_length(field) == self->n_columns && take_fields(self, field, &self->line);
    self->ended = !self->have;
    return self->have;
}

static void gather(Earlier *self, guint64 step)
{
    g_array_set_size(self->step, 0);
    while (self->have || read_line(self)) {
        if (self->line.step > step)
            return;
        if (self->line.step == step)
            g_array_append_val(self->step, self->line);
        else
            line_clear(&self->line);
        self->have = FALSE;
    }
}

static gboolean is_of(const EarlierLine *line, const Step *step)
{
    return line->rows == step->rows && line->max_len == step->max_length &&
           line->sum_len == (double)step->sum_length;
}

gboolean earlier_find(Earlier *self, const Step *step, const char *const *labels, guint n,
                      Execution *ret)
{
    gather(self, step->index);
    for (guint i = 0; i < n; i++) {
        gboolean found = FALSE;
        for (guint j = 0; j < self->step->len && !found; j++) {
            const EarlierLine *line = &g_array_index(self->step, EarlierLine, j);
            found = line->measured && is_of(line, step) && strcmp(line->route, labels[i]) == 0;
            if (found)
                ret[i] = line->execution;
        }
        if (!found)
            return FALSE;
    }
    return n > 0;
}
