/* The bench's CSV back into cells and routes. */
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"
#include "replay/bench_judge.h"

typedef enum {
    C_GPU,
    C_DRIVER,
    C_TOOLKIT,
    C_COMMIT,
    C_DATE,
    C_SEED,
    C_CELL,
    C_FAMILY,
    C_ROUTE,
    C_ROWS,
    C_CONTEXT,
    C_Q_HEADS,
    C_KV_HEADS,
    C_HEAD_DIM,
    C_PAGE_SIZE,
    C_DTYPE,
    C_LAYOUT,
    C_KV_BYTES,
    C_FLOOR,
    C_KERNEL,
    C_GRAPH,
    C_WALL,
    C_GRAPH_WALL,
    C_WORKERS,
    C_NOTE,
    C_EMPTY, /* may be missing */
    N_COLUMNS
} Column;

static const char *const names[N_COLUMNS] = {
    "gpu",       "driver",        "toolkit", "commit",   "date",     "seed",      "cell",
    "family",    "route",         "rows",    "context",  "q_heads",  "kv_heads",  "head_dim",
    "page_size", "dtype",         "layout",  "kv_bytes", "floor_us", "kernel_us", "graph_us",
    "wall_us",   "graph_wall_us", "workers", "note",     "empty_us"};

static void line_clear(gpointer data)
{
    JudgeLine *line = data;
    plugin_choice_clear(&line->choice);
    g_free(line->route.label);
    g_free(line->note);
}

static void cell_free(gpointer data)
{
    JudgeCell *cell = data;
    g_free(cell->name);
    g_free(cell->note);
    g_array_unref(cell->lines);
    g_free(cell);
}

void bench_judge_free(BenchJudge *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->cells);
    g_free(self->machine);
    g_free(self);
}

static gboolean find_columns(Input *input, char **cell, guint n, guint at[N_COLUMNS],
                             GError **error)
{
    for (guint c = 0; c < N_COLUMNS; c++) {
        guint i = 0;
        while (i < n && strcmp(cell[i], names[c]) != 0)
            i++;
        if (i == n && c != C_EMPTY)
            return input_error(input, error, "column '%s' is missing from the bench's header",
                               names[c]);
        at[c] = i;
    }
    return TRUE;
}

/* The fields of a line; the last one, the note, is all that may be quoted. */
static char **split(char *line, guint n)
{
    char **cell = g_strsplit(line, ",", (gint)n);
    const guint got = g_strv_length(cell);
    if (got == n && cell[n - 1][0] == '"') {
        char *text = cell[n - 1];
        const gsize len = strlen(text);
        memmove(text, text + 1, len);
        if (len > 1 && text[len - 2] == '"')
            text[len - 2] = '\0';
    }
    return cell;
}

static double real_or(const char *text, double otherwise)
{
    double value;
    return text != NULL && text[0] != '\0' && kv_parse_real(text, &value) ? value : otherwise;
}

static gboolean whole(Input *input, char **field, const guint at[N_COLUMNS], Column c, gint64 *ret,
                      GError **error)
{
    if (kv_parse_count(field[at[c]], ret) && *ret >= 0)
        return TRUE;
    return input_error(input, error, "%s '%s': expected a whole number, 0 or more", names[c],
                       field[at[c]]);
}

static double shorter(double a, double b)
{
    return b > 0 && b < a ? b : a;
}

static gboolean read_cell(JudgeCell *ret, Input *input, char **field, const guint at[N_COLUMNS],
                          GError **error)
{
    gint64 value[N_COLUMNS] = {0};
    static const Column counts[] = {C_SEED,     C_ROWS,     C_CONTEXT,   C_Q_HEADS,
                                    C_KV_HEADS, C_HEAD_DIM, C_PAGE_SIZE, C_KV_BYTES};
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        if (!whole(input, field, at, counts[i], &value[counts[i]], error))
            return FALSE;
    guint family = 0;
    while (bench_families[family] != NULL &&
           strcmp(bench_families[family], field[at[C_FAMILY]]) != 0)
        family++;
    if (bench_families[family] == NULL)
        return input_error(input, error, "family '%s': not one of the bench's",
                           field[at[C_FAMILY]]);
    ret->name = g_strdup(field[at[C_CELL]]);
    ret->seed = (guint64)value[C_SEED];
    ret->kv_bytes = value[C_KV_BYTES];
    ret->floor_us = real_or(field[at[C_FLOOR]], 0);
    ret->cell = (BenchCell){
        .family = (BenchFamily)family,
        .context = (gint32)value[C_CONTEXT],
        .rows = (gint32)value[C_ROWS],
        .shape = {.q_heads = (int32_t)value[C_Q_HEADS],
                  .kv_heads = (int32_t)value[C_KV_HEADS],
                  .head_dim = (int32_t)value[C_HEAD_DIM],
                  .page_size = (int32_t)value[C_PAGE_SIZE],
                  .dtype = strcmp(field[at[C_DTYPE]], "bf16") == 0 ? ATTN_BF16 : ATTN_F16,
                  .layout = strcmp(field[at[C_LAYOUT]], "NHD") == 0 ? ATTN_NHD : ATTN_HND},
    };
    if (value[C_ROWS] < 1 || attn_shape_check(&ret->cell.shape) != ATTN_OK)
        return input_error(input, error, "cell '%s': not a batch", ret->name);
    return TRUE;
}

static gboolean read_line(JudgeCell *cell, Input *input, char **field, const guint at[N_COLUMNS],
                          GError **error)
{
    JudgeLine line = {.kernel_us = real_or(field[at[C_KERNEL]], -1)};
    g_autoptr(GError) local = NULL;
    g_autofree char *text = g_strdelimit(g_strdup(field[at[C_ROUTE]]), ";", ',');
    if (text[0] == '\0') { /* the cell itself was not run */
        cell->note = g_strdup(field[at[C_NOTE]]);
        return TRUE;
    }
    if (!plugin_choice_parse(&line.choice, "route", routes, text, &local))
        return input_error(input, error, "route '%s': %s", text, local->message);
    line.route = (Route){.ops = (const RouteOps *)line.choice.info,
                         .config = *(const RouteConfig *)line.choice.config,
                         .label = g_strdup(field[at[C_ROUTE]])};
    line.kernel_us = shorter(line.kernel_us, real_or(field[at[C_GRAPH]], -1));
    line.wall_us = shorter(real_or(field[at[C_WALL]], -1), real_or(field[at[C_GRAPH_WALL]], -1));
    line.workers = (gint)real_or(field[at[C_WORKERS]], 0);
    if (line.kernel_us <= 0)
        line.note = g_strdup(field[at[C_NOTE]]);
    g_array_append_val(cell->lines, line);
    return TRUE;
}

/* One line of the CSV: another route of the cell in hand, or the first of the next one. */
static gboolean take(BenchJudge *self, Input *input, char **field, guint n,
                     const guint at[N_COLUMNS], GError **error)
{
    JudgeCell *cell = self->cells->len > 0 ? self->cells->pdata[self->cells->len - 1] : NULL;
    if (cell == NULL || strcmp(cell->name, field[at[C_CELL]]) != 0) {
        cell = g_new0(JudgeCell, 1);
        cell->lines = g_array_new(FALSE, FALSE, sizeof(JudgeLine));
        g_array_set_clear_func(cell->lines, line_clear);
        g_ptr_array_add(self->cells, cell);
        if (!read_cell(cell, input, field, at, error))
            return FALSE;
        cell->empty_us = at[C_EMPTY] < n ? real_or(field[at[C_EMPTY]], 0) : 0;
    }
    if (self->machine == NULL)
        self->machine = g_strdup_printf("%s, driver %s, toolkit %s, commit %s, %s",
                                        field[at[C_GPU]], field[at[C_DRIVER]], field[at[C_TOOLKIT]],
                                        field[at[C_COMMIT]], field[at[C_DATE]]);
    if (!read_line(cell, input, field, at, error))
        return FALSE;
    self->workers = MAX(self->workers, (gint)real_or(field[at[C_WORKERS]], 0));
    return TRUE;
}

static gboolean is_default(const RouteConfig *c)
{
    return c->split == 0 && c->factor <= 1;
}

static void keep_less(const JudgeCell *cell, gint i, gboolean wall, gint *best)
{
    const JudgeLine *a = &g_array_index(cell->lines, JudgeLine, i);
    const double us = wall ? a->wall_us : a->kernel_us;
    if (us <= 0)
        return;
    if (*best >= 0) {
        const JudgeLine *b = &g_array_index(cell->lines, JudgeLine, *best);
        if (us >= (wall ? b->wall_us : b->kernel_us))
            return;
    }
    *best = i;
}

static void find_fastest(JudgeCell *cell)
{
    cell->best_peer = cell->best_default = cell->best_tc = cell->best_wall_peer = -1;
    for (guint p = 0; p < JUDGE_PICKS; p++)
        cell->pick[p] = cell->pick_with_peers[p] = cell->pick_wall[p] = -1;
    for (gint i = 0; i < (gint)cell->lines->len; i++) {
        const JudgeLine *line = &g_array_index(cell->lines, JudgeLine, i);
        keep_less(cell, i, FALSE, &cell->pick_with_peers[JUDGE_BEST]);
        if (line->route.ops->kind == ROUTE_BUILTIN) {
            keep_less(cell, i, FALSE, &cell->pick[JUDGE_BEST]);
            keep_less(cell, i, TRUE, &cell->pick_wall[JUDGE_BEST]);
            continue;
        }
        keep_less(cell, i, FALSE, &cell->best_peer);
        keep_less(cell, i, TRUE, &cell->best_wall_peer);
        if (is_default(&line->route.config))
            keep_less(cell, i, FALSE, &cell->best_default);
        if (is_default(&line->route.config) &&
            strcmp(line->route.ops->info.name, "flashinfer-tc") == 0)
            keep_less(cell, i, FALSE, &cell->best_tc);
    }
}

static gboolean read_all(BenchJudge *self, Input *input, GError **error)
{
    guint at[N_COLUMNS], n = 0;
    char *line;
    gsize len;
    int got;
    while ((got = input_line(input, &line, &len, error)) == 1) {
        g_auto(GStrv) field = n == 0 ? g_strsplit(line, ",", -1) : split(line, n);
        if (n == 0) {
            n = g_strv_length(field);
            if (!find_columns(input, field, n, at, error))
                return FALSE;
            continue;
        }
        if (g_strv_length(field) != n)
            return input_error(input, error, "%u columns: expected %u", g_strv_length(field), n);
        if (!take(self, input, field, n, at, error))
            return FALSE;
    }
    if (got == 0 && self->cells->len == 0)
        return input_error(input, error, "no cells: expected the CSV of kvreplay bench");
    return got == 0;
}

BenchJudge *bench_judge_read(const char *path, GError **error)
{
    g_autoptr(Input) input = input_open(path, error);
    if (input == NULL)
        return NULL;
    g_autoptr(BenchJudge) self = g_new0(BenchJudge, 1);
    self->cells = g_ptr_array_new_with_free_func(cell_free);
    if (!read_all(self, input, error))
        return NULL;
    for (guint i = 0; i < self->cells->len; i++)
        find_fastest(self->cells->pdata[i]);
    return g_steal_pointer(&self);
}
