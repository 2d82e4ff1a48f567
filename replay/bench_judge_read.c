/* The bench's CSV back into cells and routes. */
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"
#include "replay/bench_judge.h"
#include "replay/calibration.h"

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

static double shorter(double a, double b)
{
    return b > 0 && (a <= 0 || b < a) ? b : a;
}

/* A time, or -1 where there is none; anything else is refused. */
static gboolean time_at(Input *input, char **field, const guint at[N_COLUMNS], Column c,
                        double *ret, GError **error)
{
    const char *text = field[at[c]];
    *ret = -1;
    if (text[0] == '\0')
        return TRUE;
    if (kv_parse_real(text, ret) && *ret > 0 && *ret <= CALIBRATION_MAX_US)
        return TRUE;
    return input_error(input, error, "%s '%s': expected microseconds above 0, or nothing", names[c],
                       text);
}

static gboolean whole(Input *input, char **field, const guint at[N_COLUMNS], Column c, gint64 most,
                      gint64 *ret, GError **error)
{
    if (kv_parse_count(field[at[c]], ret) && *ret >= 0 && *ret <= most)
        return TRUE;
    return input_error(input, error, "%s '%s': expected a whole number from 0 to %" G_GINT64_FORMAT,
                       names[c], field[at[c]], most);
}

static gboolean one_of(Input *input, char **field, const guint at[N_COLUMNS], Column c,
                       const char *const *all, guint *ret, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (*ret = 0; all[*ret] != NULL; (*ret)++) {
        if (strcmp(all[*ret], field[at[c]]) == 0)
            return TRUE;
        g_string_append_printf(known, "%s%s", *ret > 0 ? " " : "", all[*ret]);
    }
    return input_error(input, error, "%s '%s': expected one of %s", names[c], field[at[c]],
                       known->str);
}

static gboolean read_batch(BenchCell *ret, gint64 *ret_seed, gint64 *ret_bytes, Input *input,
                           char **field, const guint at[N_COLUMNS], GError **error)
{
    static const struct {
        Column column;
        gint64 most;
    } counts[] = {{C_SEED, G_MAXINT64},      {C_ROWS, G_MAXINT32},     {C_CONTEXT, G_MAXINT32},
                  {C_Q_HEADS, G_MAXINT32},   {C_KV_HEADS, G_MAXINT32}, {C_HEAD_DIM, G_MAXINT32},
                  {C_PAGE_SIZE, G_MAXINT32}, {C_KV_BYTES, G_MAXINT64}};
    static const char *const dtypes[] = {"fp16", "bf16", NULL}, *const layouts[] = {"HND", "NHD",
                                                                                    NULL};
    gint64 value[N_COLUMNS] = {0};
    guint family, dtype, layout;
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        if (!whole(input, field, at, counts[i].column, counts[i].most, &value[counts[i].column],
                   error))
            return FALSE;
    if (!one_of(input, field, at, C_FAMILY, bench_families, &family, error) ||
        !one_of(input, field, at, C_DTYPE, dtypes, &dtype, error) ||
        !one_of(input, field, at, C_LAYOUT, layouts, &layout, error))
        return FALSE;
    *ret = (BenchCell){
        .family = (BenchFamily)family,
        .context = (gint32)value[C_CONTEXT],
        .rows = (gint32)value[C_ROWS],
        .shape = {.q_heads = (int32_t)value[C_Q_HEADS],
                  .kv_heads = (int32_t)value[C_KV_HEADS],
                  .head_dim = (int32_t)value[C_HEAD_DIM],
                  .page_size = (int32_t)value[C_PAGE_SIZE],
                  .dtype = dtype == 1 ? ATTN_BF16 : ATTN_F16,
                  .layout = layout == 1 ? ATTN_NHD : ATTN_HND},
    };
    *ret_seed = value[C_SEED];
    *ret_bytes = value[C_KV_BYTES];
    return bench_cell_check(ret) ||
           input_error(input, error,
                       "cell '%s': %d rows of %d, %d:%d heads, dim %d, page %d: not a batch of the "
                       "bench's",
                       field[at[C_CELL]], ret->rows, ret->context, ret->shape.q_heads,
                       ret->shape.kv_heads, ret->shape.head_dim, ret->shape.page_size);
}

static gboolean read_line(JudgeCell *cell, Input *input, char **field, const guint at[N_COLUMNS],
                          GError **error)
{
    static const Column columns[] = {C_KERNEL, C_GRAPH, C_WALL, C_GRAPH_WALL};
    double us[G_N_ELEMENTS(columns)];
    gint64 workers = 0;
    g_autoptr(GError) local = NULL;
    g_autofree char *text = g_strdelimit(g_strdup(field[at[C_ROUTE]]), ";", ',');
    if (text[0] == '\0') { /* the cell itself was not run */
        g_free(cell->note);
        cell->note = g_strdup(field[at[C_NOTE]]);
        return TRUE;
    }
    for (guint i = 0; i < cell->lines->len; i++)
        if (strcmp(g_array_index(cell->lines, JudgeLine, i).route.label, field[at[C_ROUTE]]) == 0)
            return input_error(input, error, "route '%s' stands twice in cell '%s'",
                               field[at[C_ROUTE]], cell->name);
    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        if (!time_at(input, field, at, columns[i], &us[i], error))
            return FALSE;
    if (field[at[C_WORKERS]][0] != '\0' &&
        !whole(input, field, at, C_WORKERS, CALIBRATION_MAX_WORKERS, &workers, error))
        return FALSE;
    JudgeLine line = {.kernel_us = shorter(us[0], us[1]),
                      .wall_us = shorter(us[2], us[3]),
                      .workers = (gint)workers};
    if (!plugin_choice_parse(&line.choice, "route", routes, text, &local))
        return input_error(input, error, "%s", local->message);
    line.route = (Route){.ops = (const RouteOps *)line.choice.info,
                         .config = *(const RouteConfig *)line.choice.config,
                         .label = g_strdup(field[at[C_ROUTE]])};
    if (line.kernel_us > 0 && line.route.ops->kind == ROUTE_BUILTIN && workers < 1) {
        line_clear(&line);
        return input_error(input, error, "workers '%s': expected the CTAs of the plan, 1 or more",
                           field[at[C_WORKERS]]);
    }
    if (line.kernel_us <= 0)
        line.note = g_strdup(field[at[C_NOTE]]);
    g_array_append_val(cell->lines, line);
    return TRUE;
}

static JudgeCell *cell_new(BenchJudge *self, const char *name, const BenchCell *batch)
{
    JudgeCell *cell = g_new0(JudgeCell, 1);
    cell->name = g_strdup(name);
    cell->cell = *batch;
    cell->lines = g_array_new(FALSE, FALSE, sizeof(JudgeLine));
    g_array_set_clear_func(cell->lines, line_clear);
    g_ptr_array_add(self->cells, cell);
    return cell;
}

static gboolean is_cell(const JudgeCell *cell, const char *name, guint64 seed,
                        const BenchCell *batch)
{
    return strcmp(cell->name, name) == 0 && cell->seed == seed &&
           cell->cell.family == batch->family && cell->cell.rows == batch->rows &&
           memcmp(&cell->cell.shape, &batch->shape, sizeof batch->shape) == 0;
}

/* One line of the CSV: another route of the cell in hand, or the first of the next one. */
static gboolean take(BenchJudge *self, Input *input, char **field, guint n,
                     const guint at[N_COLUMNS], GError **error)
{
    JudgeCell *cell = self->cells->len > 0 ? self->cells->pdata[self->cells->len - 1] : NULL;
    BenchCell batch;
    gint64 seed, bytes;
    if (!read_batch(&batch, &seed, &bytes, input, field, at, error))
        return FALSE;
    if (cell == NULL || !is_cell(cell, field[at[C_CELL]], (guint64)seed, &batch)) {
        double floor_us, empty_us = -1;
        if (!time_at(input, field, at, C_FLOOR, &floor_us, error) ||
            (at[C_EMPTY] < n && !time_at(input, field, at, C_EMPTY, &empty_us, error)))
            return FALSE;
        cell = cell_new(self, field[at[C_CELL]], &batch);
        cell->seed = (guint64)seed;
        cell->kv_bytes = bytes;
        cell->floor_us = MAX(floor_us, 0);
        cell->empty_us = MAX(empty_us, 0);
    }
    if (self->machine == NULL)
        self->machine = g_strdup_printf("%s, driver %s, toolkit %s, commit %s, %s",
                                        field[at[C_GPU]], field[at[C_DRIVER]], field[at[C_TOOLKIT]],
                                        field[at[C_COMMIT]], field[at[C_DATE]]);
    const guint before = cell->lines->len;
    if (!read_line(cell, input, field, at, error))
        return FALSE;
    if (cell->lines->len > before)
        self->workers = MAX(self->workers, g_array_index(cell->lines, JudgeLine, before).workers);
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
