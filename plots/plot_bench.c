/* The bench's cells as heat maps: read rate by batch size and context, a panel a route. */
#include "plots/plot.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"

typedef struct BenchCell {
    char *route;
    double batch, context, value;
    guint family;  /* 0 = rows of equal length */
    double column; /* the context, or FAMILY_COLUMN + family: such rows differ in length */
} BenchCell;

#define FAMILY_COLUMN 1e15

static void bench_cell_clear(gpointer data)
{
    g_free(((BenchCell *)data)->route);
}

static int first_column(const CsvRows *rows, const char *const *names)
{
    for (guint i = 0; names[i] != NULL; i++)
        if (csv_rows_find(rows, names[i]) >= 0)
            return csv_rows_find(rows, names[i]);
    return -1;
}

static const char *const batch_names[] = {"batch", "rows", NULL};
static const char *const context_names[] = {"context", "length", "len", "max_len", NULL};
static const char *const route_names[] = {"route", "kernel", "name", NULL};
static const char *const rate_names[] = {"gb_per_s", "gbps", "kv_gbps", NULL};
static const char *const time_names[] = {"kernel_us", "median_us", "time_us", NULL};

/* Families of unequal rows are columns of their own, by name, after the contexts. */
static guint family_number(GPtrArray *families, const char *name)
{
    guint at;
    if (*name == '\0' || strcmp(name, "equal") == 0)
        return 0;
    if (!g_ptr_array_find_with_equal_func(families, name, g_str_equal, &at)) {
        at = families->len;
        g_ptr_array_add(families, g_strdup(name));
    }
    return at + 1;
}

/* Cells of the first shape in the file alone: others would lie on them. */
static gboolean same_shape(const CsvRows *rows, const int shape[3], char **first)
{
    if (shape[0] < 0 || shape[1] < 0 || shape[2] < 0)
        return TRUE;
    g_autofree char *name =
        g_strdup_printf("%s:%s d %s", csv_rows_text(rows, shape[0]), csv_rows_text(rows, shape[1]),
                        csv_rows_text(rows, shape[2]));
    if (*first == NULL)
        *first = g_strdup(name);
    return strcmp(*first, name) == 0;
}

/* GB/s where the file has it, else 1/kernel time is of no use across cells: microseconds. */
static GArray *read_cells(const char *path, gboolean *ret_rate, GPtrArray *families, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL)
        return NULL;
    int batch = first_column(rows, batch_names), context = first_column(rows, context_names);
    int route = first_column(rows, route_names), value = first_column(rows, rate_names);
    *ret_rate = value >= 0;
    if (value < 0)
        value = first_column(rows, time_names);
    if (batch < 0 || context < 0 || route < 0 || value < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s:1: expected columns batch, context, route, and gb_per_s or kernel_us",
                    path);
        return NULL;
    }
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(BenchCell));
    g_array_set_clear_func(cells, bench_cell_clear);
    int family = csv_rows_find(rows, "family"), got;
    const int shape[] = {csv_rows_find(rows, "q_heads"), csv_rows_find(rows, "kv_heads"),
                         csv_rows_find(rows, "head_dim")};
    g_autofree char *first = NULL;
    while ((got = csv_rows_next(rows, error)) > 0) {
        BenchCell cell;
        if (!same_shape(rows, shape, &first))
            continue;
        if (!csv_rows_real(rows, batch, &cell.batch, error) ||
            !csv_rows_real(rows, context, &cell.context, error) ||
            !csv_rows_real(rows, value, &cell.value, error))
            return NULL;
        if (isnan(cell.value) || isnan(cell.batch) || isnan(cell.context))
            continue; /* not run: the file says why */
        cell.route = g_strdup(csv_rows_text(rows, route));
        cell.family = family_number(families, csv_rows_text(rows, family));
        cell.column = cell.family > 0 ? FAMILY_COLUMN + cell.family : cell.context;
        g_array_append_val(cells, cell);
    }
    return got == 0 ? g_steal_pointer(&cells) : NULL;
}

static void add_distinct(GArray *values, double value)
{
    guint at = 0;
    while (at < values->len && g_array_index(values, double, at) < value)
        at++;
    if (at == values->len || g_array_index(values, double, at) > value)
        g_array_insert_val(values, at, value);
}

static guint rank_of(const GArray *values, double value)
{
    guint at = 0;
    while (at < values->len && g_array_index(values, double, at) < value)
        at++;
    return at;
}

static void tics(Picture *p, char axis, const GArray *values, const GPtrArray *families,
                 gboolean labels)
{
    picture_add(p, "set %crange [-0.5:%u.5]\nset %ctics scale 0 %s(", axis, values->len - 1, axis,
                axis == 'x' && families->len > 0 ? "rotate by 35 right " : "");
    for (guint i = 0; i < values->len; i++) {
        double v = g_array_index(values, double, i);
        gboolean k = v >= 1024 && fmod(v, 1024) == 0;
        g_autofree char *label =
            v > FAMILY_COLUMN
                ? g_strdup(families->pdata[(guint)(v - FAMILY_COLUMN) - 1])
                : g_strdup_printf("%s%s", picture_number(p, k ? v / 1024 : v), k ? "Ki" : "");
        picture_add(p, "%s%s %u", i > 0 ? ", " : "", picture_text(p, labels ? label : ""), i);
    }
    picture_add(p, ")\n");
}

static void panel(Picture *p, guint number, const GArray *cells, const char *route,
                  const GArray *batches, const GArray *contexts)
{
    guint block =
        picture_map_block(p, number, route, "context_rank batch_rank value batch context");
    for (guint i = 0; i < cells->len; i++) {
        const BenchCell *cell = &g_array_index(cells, BenchCell, i);
        if (strcmp(cell->route, route) != 0)
            continue;
        const double row[] = {rank_of(contexts, cell->column), rank_of(batches, cell->batch),
                              cell->value, cell->batch, cell->context};
        picture_row(p, 5, row);
    }
    picture_add(p,
                "set title %s offset 0,-0.7 noenhanced\n"
                "plot DATA index %u using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, "
                "\\\n     DATA index %u using 1:2:(sprintf($3 >= 100 ? '%%.0f' : '%%.3g', $3)):($3 "
                "> 0.55 * TOP ? "
                "0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle\n",
                picture_text(p, route), block, block);
    picture_panel_done(p, PICTURE_LINEAR);
}

static void draw(Picture *p, const GArray *cells, const GPtrArray *routes, const GArray *batches,
                 const GArray *contexts, const GPtrArray *families, gboolean rate)
{
    double top = 0;
    for (guint i = 0; i < cells->len; i++)
        top = fmax(top, g_array_index(cells, BenchCell, i).value);
    picture_add(p,
                "TOP = %s\nset palette defined (0 '#e8f1f8', 0.25 '#a6cbe3', 0.5 '#56a0cf', 0.75 "
                "'#0072b2', 1 '#06304f')\nset cbrange [0:TOP]\nset style fill solid 1 noborder\n"
                "unset grid\nset colorbox user origin 0.9,0.2 size 0.012,0.6\nset cblabel '%s' "
                "offset 1,0\n",
                picture_number(p, top), rate ? "KV read rate (GB/s)" : "kernel time (µs)");
    plot_multi_begin(p);
    guint columns = MIN(routes->len, 3), rows = (routes->len + columns - 1) / columns;
    for (guint i = 0; i < routes->len; i++) {
        guint x = i % columns, y = i / columns;
        const double inch = 1 / (0.5 + 1.7 * rows); /* of the picture's height */
        double w = 0.84 / columns, h = 0.86 / rows, left = 0.065 + x * w, top_y = 0.96 - y * h;
        gboolean last = i + columns >= routes->len;
        plot_place(p, left, left + w - 0.015, top_y - h + 0.35 * inch, top_y - 0.08 * inch);
        tics(p, 'x', contexts, families, last);
        tics(p, 'y', batches, families, x == 0);
        picture_add(p, "%s\n%s\n%s",
                    last ? "set xlabel 'context (tokens), or lengths'" : "unset xlabel",
                    x == 0 ? "set ylabel 'batch (rows)' offset 0,0" : "unset ylabel",
                    i > 0 ? "unset colorbox\n" : "");
        panel(p, i + 1, cells, g_ptr_array_index(routes, i), batches, contexts);
    }
    plot_multi_end(p);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const char *path = input->runs[0]->bench_path;
    gboolean rate;
    g_autoptr(GPtrArray) families = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) cells = read_cells(path, &rate, families, error);
    if (cells == NULL)
        return NULL;
    g_autoptr(GPtrArray) routes = g_ptr_array_new();
    g_autoptr(GArray) batches = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) contexts = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < cells->len; i++) {
        const BenchCell *cell = &g_array_index(cells, BenchCell, i);
        if (!g_ptr_array_find_with_equal_func(routes, cell->route, g_str_equal, NULL) &&
            routes->len < 18)
            g_ptr_array_add(routes, cell->route);
        add_distinct(batches, cell->batch);
        add_distinct(contexts, cell->column);
    }
    if (cells->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:2: no cells", path);
        return NULL;
    }
    guint rows = (routes->len + 2) / 3;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_PAGE, 0.5 + 1.7 * rows);
    picture_note(p, "x and y are ranks of the distinct contexts and batch sizes");
    draw(p, cells, routes, batches, contexts, families, rate);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    return input->runs[0]->bench_path == NULL ? "no bench.csv" : NULL;
}

const PlotOps plot_bench = {
    .info = {.name = "bench", .summary = "kernels cell by cell: batch size by context"},
    .caption =
        "Each panel is a route, each cell one batch size and context length; the number is the "
        "measured read rate.",
    .wide = TRUE,
    .lacks = lacks,
    .make = make,
};
