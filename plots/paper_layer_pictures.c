#include "plots/paper_layer_pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/plot.h"

enum { MOST_MODELS = 3, MOST_CONTEXTS = 4, PARTS = 4 };

static const struct {
    const char *label, *share, *floor;
    guint colour;
} parts[PARTS] = {{"attention", "attention_share", "attention_floor_us", 0},
                  {"matrix products", "gemm_share", "gemm_floor_us", 3},
                  {"small kernels", "other_share", "other_floor_us", 4},
                  {"scheduling", "scheduling_share", NULL, 1}};

#define HOST_HEIGHT 2.3 /* inch */

/* --- what the table holds --- */

/* "2K" of "2K_B8". Free it. */
static char *context_of(const PaperTable *t, guint row)
{
    const char *cell = paper_table_text(t, row, "cell");
    const char *end = strstr(cell, "_B");
    return g_strndup(cell, end != NULL ? (gsize)(end - cell) : strlen(cell));
}

static void add_new(GPtrArray *to, const char *text, guint most)
{
    for (guint i = 0; i < to->len; i++)
        if (strcmp(to->pdata[i], text) == 0)
            return;
    if (to->len < most)
        g_ptr_array_add(to, g_strdup(text));
}

static int by_value(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef struct Kinds {
    GPtrArray *models, *contexts, *routes; /* char * */
    GArray *batches;                       /* double, ascending */
    gboolean measured;
} Kinds;

static void kinds_clear(Kinds *k)
{
    g_ptr_array_unref(k->models);
    g_ptr_array_unref(k->contexts);
    g_ptr_array_unref(k->routes);
    g_array_unref(k->batches);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Kinds, kinds_clear)

static void kinds_read(Kinds *k, const PaperTable *t)
{
    *k = (Kinds){g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free),
                 g_ptr_array_new_with_free_func(g_free), g_array_new(FALSE, FALSE, sizeof(double)),
                 FALSE};
    for (guint row = 0; row < t->rows->len; row++) {
        g_autofree char *context = context_of(t, row);
        const double batch = paper_table_real(t, row, "batch");
        gboolean seen = FALSE;
        add_new(k->models, paper_table_text(t, row, "model"), MOST_MODELS);
        add_new(k->contexts, context, MOST_CONTEXTS);
        add_new(k->routes, paper_table_text(t, row, "route"), 8);
        for (guint i = 0; i < k->batches->len; i++)
            seen |= g_array_index(k->batches, double, i) == batch;
        if (!seen)
            g_array_append_val(k->batches, batch);
        k->measured |= !isnan(paper_table_real(t, row, "step_us"));
    }
    g_array_sort(k->batches, by_value);
}

static double place_of(const Kinds *k, double batch)
{
    for (guint i = 0; i < k->batches->len; i++)
        if (g_array_index(k->batches, double, i) == batch)
            return i;
    return (double)NAN;
}

/* "llama-3.1-70b / 8": one GPU's share of so many. Free it. */
static char *model_title(const PaperTable *t, const char *model)
{
    for (guint row = 0; row < t->rows->len; row++)
        if (paper_table_is(t, row, "model", model) && !paper_table_is(t, row, "tp", "1"))
            return g_strdup_printf("%s / %s", model, paper_table_text(t, row, "tp"));
    return g_strdup(model);
}

static gboolean is_case(const PaperTable *t, guint row, const char *model, const char *context,
                        const char *route)
{
    g_autofree char *here = context_of(t, row);
    return paper_table_is(t, row, "model", model) && paper_table_is(t, row, "route", route) &&
           strcmp(here, context) == 0;
}

/* Per cent of the step; of the estimate where nothing was measured. */
static void shares_of(const PaperTable *t, guint row, gboolean measured, double ret[PARTS])
{
    double sum = 0;
    for (guint i = 0; i < PARTS; i++) {
        const char *column = measured ? parts[i].share : parts[i].floor;
        ret[i] = column != NULL ? paper_table_real(t, row, column) : 0;
        sum += ret[i];
    }
    for (guint i = 0; i < PARTS; i++)
        ret[i] *= 100 / (measured ? 1 : sum);
}

static void absent(Picture *p, guint n)
{
    static const double none[] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    picture_row(p, n, none);
}

static void batch_tics(Picture *p, const Kinds *k)
{
    picture_add(p, "set xrange [-0.6:%u.6]\nset xtics scale 0 (", k->batches->len - 1);
    for (guint i = 0; i < k->batches->len; i++)
        picture_add(p, "%s'%s' %u", i > 0 ? ", " : "",
                    picture_number(p, g_array_index(k->batches, double, i)), i);
    picture_add(p, ")\n");
}

/* A strip above the panels: they are too narrow for a key in one row. */
static void key_strip(Picture *p, double height)
{
    plot_place(p, 0.075, 0.985, 1 - 0.2 / height, 1 - 0.02 / height);
    picture_add(p, "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset title\nunset grid\n"
                   "set xrange [0:1]\nset yrange [0:1]\nset key center center maxrows 1\nplot ");
}

/* --- shares --- */

static void shares_panel(Picture *p, const PaperTable *t, const Kinds *k, guint model,
                         guint context)
{
    const char *route = k->routes->pdata[0];
    const guint panel = model * k->contexts->len + context + 1;
    const guint block = picture_block(p, panel, k->contexts->pdata[context],
                                      "place attention products others scheduling (per cent)");
    gboolean empty = TRUE;
    for (guint row = 0; row < t->rows->len; row++) {
        double share[PARTS];
        if (!is_case(t, row, k->models->pdata[model], k->contexts->pdata[context], route))
            continue;
        shares_of(t, row, k->measured, share);
        if (isnan(share[0]))
            continue;
        const double values[] = {place_of(k, paper_table_real(t, row, "batch")), share[0], share[1],
                                 share[2], share[3]};
        picture_row(p, 1 + PARTS, values);
        empty = FALSE;
    }
    if (empty)
        absent(p, 1 + PARTS);
    g_autofree char *name = model_title(t, k->models->pdata[model]);
    g_autofree char *title = g_strdup_printf("%s, %s", name, (char *)k->contexts->pdata[context]);
    batch_tics(p, k);
    picture_add(p, "set title %s font ',6.5' offset 0,-0.8 noenhanced\nset yrange [0:100]\n",
                picture_text(p, title));
    picture_add(p,
                context == 0 ? "set ylabel '%% of a step%s'\nset format y '%%g'\n"
                             : "unset ylabel\nset format y ''\n%s",
                context == 0 && !k->measured ? " (estimate)" : "");
    picture_add(p, model + 1 == k->models->len ? "set xlabel 'rows of the batch'\n"
                                               : "unset xlabel\n");
    picture_add(p, "set boxwidth 0.8\nset style fill solid 0.9 noborder\nset grid noxtics ytics\n");
    static const char *const upto[PARTS] = {"2", "($2+$3)", "($2+$3+$4)", "($2+$3+$4+$5)"};
    picture_add(p, "plot ");
    for (guint i = PARTS; i-- > 0;) /* the tallest first: each stands before the last one */
        picture_add(p, "%sDATA index %u using 1:%s with boxes lc rgb '%s' notitle",
                    i + 1 < PARTS ? ", \\\n  " : "", block, upto[i],
                    picture_colour(parts[i].colour));
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LINEAR);
}

Picture *paper_layer_shares(const PaperTable *t)
{
    g_auto(Kinds) k;
    kinds_read(&k, t);
    if (t->rows->len == 0)
        return NULL;
    const guint rows = k.models->len, columns = k.contexts->len;
    const double height = 0.62 + 1.6 * rows;
    Picture *p = picture_new("paper_layer",
                             k.measured ? "shares of a decode step by batch and context"
                                        : "shares of a decode step by batch and context: estimate "
                                          "from bytes and FLOP",
                             PICTURE_PAGE, height);
    picture_note(p, "attention by the route %s; %s", (char *)k.routes->pdata[0],
                 k.measured ? "measured" : "an estimate, nothing was executed");
    plot_multi_begin(p);
    picture_add(p, "unset key\n");
    for (guint m = 0; m < rows; m++)
        for (guint c = 0; c < columns; c++) {
            const double left = 0.075, right = 0.985, gap = 0.022;
            const double width = (right - left - gap * (columns - 1)) / columns;
            const double x = left + c * (width + gap);
            const double low = 0.42 / height, high = 1 - 0.33 / height;
            const double step = (high - low + 0.38 / height) / rows;
            const double y = low + (rows - 1 - m) * step;
            plot_place(p, x, x + width, y, y + step - 0.38 / height);
            shares_panel(p, t, &k, m, c);
        }
    key_strip(p, height);
    for (guint i = 0; i < PARTS; i++)
        picture_add(p, "%sNaN with boxes lc rgb '%s' title '%s'", i > 0 ? ", " : "",
                    picture_colour(parts[i].colour), parts[i].label);
    picture_add(p, "\n");
    plot_multi_end(p);
    picture_end(p);
    return p;
}

/* --- the host's side --- */

static double host_block(Picture *p, const PaperTable *t, const Kinds *k, guint panel,
                         const char *column, guint route)
{
    const char *context = k->contexts->pdata[k->contexts->len - 1];
    double top = 0;
    gboolean empty = TRUE;
    picture_block(p, panel, k->routes->pdata[route], "place us");
    for (guint row = 0; row < t->rows->len; row++) {
        if (!is_case(t, row, k->models->pdata[0], context, k->routes->pdata[route]))
            continue;
        const double values[] = {place_of(k, paper_table_real(t, row, "batch")),
                                 paper_table_real(t, row, column)};
        if (isnan(values[1]))
            continue;
        picture_row(p, 2, values);
        top = fmax(top, values[1]);
        empty = FALSE;
    }
    if (empty)
        absent(p, 2);
    return top;
}

static void host_panel(Picture *p, const PaperTable *t, const Kinds *k, guint panel,
                       const char *column, const char *title)
{
    const guint first = p->blocks;
    double top = 0;
    for (guint r = 0; r < k->routes->len; r++)
        top = fmax(top, host_block(p, t, k, panel, column, r));
    plot_y_from_zero(p, top * 1.05, 4, FALSE);
    batch_tics(p, k);
    picture_add(p, "set title %s offset 0,-0.7\nset xlabel 'rows of the batch'\n",
                picture_text(p, title));
    picture_add(p, panel == 1 ? "set ylabel 'µs a step'\n" : "unset ylabel\n");
    picture_add(p, "plot ");
    for (guint r = 0; r < k->routes->len; r++)
        picture_add(p,
                    "%sDATA index %u using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '%s' "
                    "notitle",
                    r > 0 ? ", \\\n  " : "", first + r,
                    picture_route_colour(k->routes->pdata[r], r));
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LINEAR);
}

Picture *paper_layer_host(const PaperTable *t)
{
    static const struct {
        const char *column, *title;
    } panels[] = {{"plan_us", "plan and its upload"},
                  {"table_us", "block tables"},
                  {"launch_us", "launching the graph"},
                  {"update_us", "updating the graph"}};
    g_auto(Kinds) k;
    kinds_read(&k, t);
    if (!k.measured)
        return NULL;
    Picture *p = picture_new("paper_layer_host", "the host's side of a decode step, by route",
                             PICTURE_PAGE, HOST_HEIGHT);
    picture_note(p, "%s, %s", (char *)k.models->pdata[0],
                 (char *)k.contexts->pdata[k.contexts->len - 1]);
    plot_multi_begin(p);
    picture_add(p, "unset key\n");
    for (guint i = 0; i < G_N_ELEMENTS(panels); i++) {
        const double width = 0.185, x = 0.075 + i * (width + 0.057);
        plot_place(p, x, x + width, 0.19, 0.82);
        host_panel(p, t, &k, i + 1, panels[i].column, panels[i].title);
    }
    key_strip(p, HOST_HEIGHT);
    for (guint r = 0; r < k.routes->len; r++)
        picture_add(p, "%sNaN with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '%s' title %s",
                    r > 0 ? ", " : "", picture_route_colour(k.routes->pdata[r], r),
                    picture_text(p, k.routes->pdata[r]));
    picture_add(p, "\n");
    plot_multi_end(p);
    picture_end(p);
    return p;
}
