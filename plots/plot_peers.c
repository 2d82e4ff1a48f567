/* The bench's cells as a heat map of ratios: the best peer's kernel time over the best of the
 * built-in routes', a panel a shape. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"
#include "plots/plot.h"

typedef struct PeerCell {
    guint shape, column; /* numbers in order of appearance */
    double rows, ours, theirs;
} PeerCell;

typedef struct Cells {
    GArray *cells;
    GPtrArray *shapes, *columns; /* char * */
    GArray *batches;             /* double, ascending */
    GHashTable *known;           /* cell's name -> index + 1 */
} Cells;

static void cells_clear(Cells *self)
{
    g_clear_pointer(&self->cells, g_array_unref);
    g_clear_pointer(&self->shapes, g_ptr_array_unref);
    g_clear_pointer(&self->columns, g_ptr_array_unref);
    g_clear_pointer(&self->batches, g_array_unref);
    g_clear_pointer(&self->known, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Cells, cells_clear)

enum { CELL, FAMILY, CONTEXT, ROWS, Q_HEADS, KV_HEADS, DIM, KERNEL, GRAPH, MERGE, N_COLUMNS };
static const char *const names[N_COLUMNS] = {
    "cell",     "family",   "context",   "rows",     "q_heads",
    "kv_heads", "head_dim", "kernel_us", "graph_us", "merge_state_bytes"};

static guint number_of(GPtrArray *all, char *name)
{
    guint at;
    g_autofree char *owned = name;
    if (g_ptr_array_find_with_equal_func(all, name, g_str_equal, &at))
        return at;
    g_ptr_array_add(all, g_steal_pointer(&owned));
    return all->len - 1;
}

static void add_batch(GArray *batches, double rows)
{
    guint at = 0;
    while (at < batches->len && g_array_index(batches, double, at) < rows)
        at++;
    if (at == batches->len || g_array_index(batches, double, at) > rows)
        g_array_insert_val(batches, at, rows);
}

static char *column_name(const CsvRows *rows, const int *at, double context)
{
    const char *family = csv_rows_text(rows, at[FAMILY]);
    if (strcmp(family, "equal") != 0)
        return g_strdup(family);
    return fmod(context, 1024) == 0 ? g_strdup_printf("%.0fK", context / 1024)
                                    : g_strdup_printf("%.0f", context);
}

static PeerCell *cell_of(Cells *self, const CsvRows *rows, const int *at, double context,
                         double batch)
{
    const char *name = csv_rows_text(rows, at[CELL]);
    const guint known = GPOINTER_TO_UINT(g_hash_table_lookup(self->known, name));
    if (known > 0)
        return &g_array_index(self->cells, PeerCell, known - 1);
    PeerCell cell = {.rows = batch, .ours = (double)INFINITY, .theirs = (double)INFINITY};
    cell.shape =
        number_of(self->shapes,
                  g_strdup_printf("Hq %s, Hkv %s, d %s", csv_rows_text(rows, at[Q_HEADS]),
                                  csv_rows_text(rows, at[KV_HEADS]), csv_rows_text(rows, at[DIM])));
    cell.column = number_of(self->columns, column_name(rows, at, context));
    add_batch(self->batches, batch);
    g_array_append_val(self->cells, cell);
    g_hash_table_insert(self->known, g_strdup(name), GUINT_TO_POINTER(self->cells->len));
    return &g_array_index(self->cells, PeerCell, self->cells->len - 1);
}

/* Peers have no merge state of which the bench would know. */
static gboolean read_cells(const char *path, Cells *ret, GError **error)
{
    int at[N_COLUMNS], got;
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL || !csv_rows_need(rows, names, N_COLUMNS, at, error))
        return FALSE;
    *ret =
        (Cells){g_array_new(FALSE, FALSE, sizeof(PeerCell)), g_ptr_array_new_with_free_func(g_free),
                g_ptr_array_new_with_free_func(g_free), g_array_new(FALSE, FALSE, sizeof(double)),
                g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    while ((got = csv_rows_next(rows, error)) > 0) {
        double us, graph, batch, context;
        if (!csv_rows_real(rows, at[KERNEL], &us, error) ||
            !csv_rows_real(rows, at[GRAPH], &graph, error) ||
            !csv_rows_real(rows, at[ROWS], &batch, error) ||
            !csv_rows_real(rows, at[CONTEXT], &context, error))
            return FALSE;
        if (isnan(us))
            continue;
        PeerCell *cell = cell_of(ret, rows, at, context, batch);
        double *best = csv_rows_text(rows, at[MERGE])[0] != '\0' ? &cell->ours : &cell->theirs;
        *best = fmin(*best, isnan(graph) ? us : fmin(us, graph));
    }
    return got == 0;
}

static guint rank_of(const GArray *batches, double rows)
{
    guint at = 0;
    while (g_array_index(batches, double, at) < rows)
        at++;
    return at;
}

static void panel(Picture *p, const Cells *self, guint shape)
{
    guint block = picture_map_block(p, shape + 1, self->shapes->pdata[shape],
                                    "column batch_rank ratio ours_us best_peer_us");
    for (guint i = 0; i < self->cells->len; i++) {
        const PeerCell *c = &g_array_index(self->cells, PeerCell, i);
        if (c->shape != shape || !isfinite(c->ours) || !isfinite(c->theirs))
            continue;
        const double row[] = {c->column, rank_of(self->batches, c->rows), c->theirs / c->ours,
                              c->ours, c->theirs};
        picture_row(p, 5, row);
    }
    picture_add(p,
                "set title %s offset 0,-0.7 noenhanced\n"
                "plot DATA index %u using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, "
                "\\\n     DATA index %u using 1:2:(sprintf('%%.2f', $3)) with labels font ',6' "
                "notitle\n",
                picture_text(p, self->shapes->pdata[shape]), block, block);
    picture_panel_done(p, PICTURE_LINEAR);
}

static void axes(Picture *p, const Cells *self, gboolean left, gboolean last)
{
    picture_add(p, "set xrange [-0.5:%u.5]\nset xtics scale 0 rotate by 35 right (",
                self->columns->len - 1);
    for (guint i = 0; i < self->columns->len; i++)
        picture_add(p, "%s%s %u", i > 0 ? ", " : "",
                    picture_text(p, last ? self->columns->pdata[i] : ""), i);
    picture_add(p, ")\nset yrange [-0.5:%u.5]\nset ytics scale 0 (", self->batches->len - 1);
    for (guint i = 0; i < self->batches->len; i++)
        picture_add(p, "%s'%s' %u", i > 0 ? ", " : "",
                    left ? picture_number(p, g_array_index(self->batches, double, i)) : "", i);
    picture_add(p, ")\n%s\n", left ? "set ylabel 'batch (rows)' offset 0,0" : "unset ylabel");
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    g_auto(Cells) cells = {0};
    if (!read_cells(input->runs[0]->bench_path, &cells, error))
        return NULL;
    if (cells.cells->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:2: no cells", input->runs[0]->bench_path);
        return NULL;
    }
    const guint n = cells.shapes->len, lines = (n + 1) / 2;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_PAGE, 0.6 + 2.2 * lines);
    picture_add(p, "set palette defined (0.8 '#d55e00', 1 '#f7f7f7', 1.15 '#a6cbe3', 1.4 "
                   "'#0072b2')\nset cbrange [0.8:1.4]\nset style fill solid 1 noborder\n"
                   "unset grid\nset colorbox user origin 0.925,0.2 size 0.012,0.6\n"
                   "set cblabel 'best peer / best built-in (kernel time)'\n");
    plot_multi_begin(p);
    for (guint i = 0; i < n; i++) {
        const double width = 0.84 / MIN(n, 2), left = 0.065 + (i % 2) * width;
        const double height = 0.9 / lines, top = 0.98 - (i / 2) * height;
        plot_place(p, left, left + width - 0.02, top - height + 0.1, top - 0.03);
        axes(p, &cells, i % 2 == 0, i + 2 >= n);
        picture_add(p, "%s", i > 0 ? "unset colorbox\n" : "");
        panel(p, &cells, i);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *path = input->runs[0]->bench_path;
    g_autoptr(GError) local = NULL;
    g_autoptr(CsvRows) rows = path != NULL ? csv_rows_open(path, &local) : NULL;
    int at[N_COLUMNS];
    if (rows == NULL)
        return "no bench.csv";
    return csv_rows_need(rows, names, N_COLUMNS, at, &local) ? NULL
                                                             : "no bench.csv with peers' columns";
}

const PlotOps plot_peers = {
    .info = {.name = "peers", .summary = "built-in routes against peers, cell by cell"},
    .caption = "Each cell is a batch size and a context length or family of lengths: the kernel "
               "time of the fastest peer, at any setting, over that of the fastest built-in route. "
               "Blue: the built-in routes are faster.",
    .wide = TRUE,
    .lacks = lacks,
    .make = make,
};
