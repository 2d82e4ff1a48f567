#include "replay/earlier.h"

#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"

enum {
    STEP,
    ROUTE,
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
    N_COLUMNS
};
static const char *const names[N_COLUMNS] = {
    "step",         "route",          "copies",      "memsets", "plan_us",
    "upload_bytes", "kernel_us",      "wall_us",     "repeats", "max_abs_err",
    "mean_abs_err", "rank_kernel_us", "rank_skew_us"};

typedef struct EarlierLine {
    guint64 step;
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

static double number_or(const char *text, double absent)
{
    double value;
    return *text != '\0' && kv_parse_real(text, &value) ? value : absent;
}

/* "12.301;12.498" */
static void take_ranks(Execution *e, const char *text, const char *skew)
{
    g_auto(GStrv) part = g_strsplit(text, ";", EXECUTION_RANKS);
    for (e->ranks = 0; part[e->ranks] != NULL && e->ranks < EXECUTION_RANKS; e->ranks++)
        e->rank_us[e->ranks] = number_or(part[e->ranks], -1);
    e->rank_skew_us = number_or(skew, -1);
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
    gint64 step;
    if (g_strv_length(field) != self->n_columns ||
        !kv_parse_count(field[self->column[STEP]], &step) || step < 0) {
        self->ended = TRUE;
        return FALSE;
    }
#define FIELD(c) field[self->column[c]]
    self->line = (EarlierLine){
        .step = (guint64)step,
        .route = g_strdup(FIELD(ROUTE)),
        .measured = *FIELD(KERNEL) != '\0',
        .execution = {.repeats = (gint)number_or(FIELD(REPEATS), 0),
                      .kernel_us = number_or(FIELD(KERNEL), -1),
                      .wall_us = number_or(FIELD(WALL), -1),
                      .plan_us = number_or(FIELD(PLAN), -1),
                      .upload_bytes = (gint64)number_or(FIELD(UPLOAD), 0),
                      .copies = (gint)number_or(FIELD(COPIES), 0),
                      .memsets = (gint)number_or(FIELD(MEMSETS), 0),
                      .launches_seen = -1,
                      .checked = *FIELD(MAX_ERR) != '\0',
                      .max_abs_err = number_or(FIELD(MAX_ERR), -1),
                      .mean_abs_err = number_or(FIELD(MEAN_ERR), -1)},
    };
    take_ranks(&self->line.execution, FIELD(RANKS), FIELD(SKEW));
#undef FIELD
    self->have = TRUE;
    return TRUE;
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

gboolean earlier_find(Earlier *self, guint64 step, const char *const *labels, guint n,
                      Execution *ret)
{
    gather(self, step);
    for (guint i = 0; i < n; i++) {
        gboolean found = FALSE;
        for (guint j = 0; j < self->step->len && !found; j++) {
            const EarlierLine *line = &g_array_index(self->step, EarlierLine, j);
            found = line->measured && strcmp(line->route, labels[i]) == 0;
            if (found)
                ret[i] = line->execution;
        }
        if (!found)
            return FALSE;
    }
    return n > 0;
}
