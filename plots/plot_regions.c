/* Decision regions: which route is chosen, and which was fastest, over batch size and length. */
#include "plots/plot.h"

typedef guint64 Grid[RUN_GRID][RUN_GRID];

static const Grid *grid_of(const RouteData *route, gboolean fastest)
{
    return fastest ? &route->fastest : &route->chosen;
}

/* The route with most steps in a cell; its steps and all steps of the cell. */
static int winner(const RunData *run, gboolean fastest, guint x, guint y, guint64 *ret_most,
                  guint64 *ret_total)
{
    int best = -1;
    *ret_most = *ret_total = 0;
    for (guint i = 0; i < run->routes->len; i++) {
        guint64 n = (*grid_of(g_ptr_array_index(run->routes, i), fastest))[x][y];
        *ret_total += n;
        if (n > *ret_most) {
            *ret_most = n;
            best = (int)i;
        }
    }
    return best;
}

static gboolean any(const RunData *run, gboolean fastest)
{
    guint64 most, total;
    for (guint x = 0; x < RUN_GRID; x++)
        for (guint y = 0; y < RUN_GRID; y++)
            if (winner(run, fastest, x, y, &most, &total) >= 0)
                return TRUE;
    return FALSE;
}

/* A block a route: its cells. Cells are squares in log2; area follows the share of the majority. */
static void panel(Picture *p, const RunData *run, guint number, gboolean fastest, gboolean titles)
{
    GString *plots_text = g_string_new(NULL);
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        gboolean begun = FALSE;
        guint block = 0;
        for (guint x = 0; x < RUN_GRID; x++)
            for (guint y = 0; y < RUN_GRID; y++) {
                guint64 most, total;
                if (winner(run, fastest, x, y, &most, &total) != (int)i)
                    continue;
                if (!begun)
                    block = picture_map_block(p, number, route->name,
                                              "log2_rows log2_longest percent_of_steps steps");
                begun = TRUE;
                const double row[] = {x + 0.5, y + 0.5, 100.0 * (double)most / (double)total,
                                      (double)total};
                picture_row(p, 4, row);
            }
        if (begun)
            g_string_append_printf(plots_text,
                                   "    DATA index %u using "
                                   "1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror "
                                   "lc rgb '%s' notitle, \\\n",
                                   block, picture_route_colour(route->name, i));
        if (titles)
            g_string_append_printf(plots_text, "    NaN with boxes lc rgb '%s' title %s, \\\n",
                                   picture_route_colour(route->name, i),
                                   picture_text(p, route->name));
    }
    picture_add(p, "plot \\\n%s    NaN notitle\n", plots_text->str);
    g_string_free(plots_text, TRUE);
    picture_panel_done(p, PICTURE_LINEAR);
}

static void range(const RunData *run, guint *x_end, guint *y_begin, guint *y_end)
{
    guint64 most, total;
    *x_end = *y_end = 1;
    *y_begin = RUN_GRID;
    for (guint f = 0; f < 2; f++)
        for (guint x = 0; x < RUN_GRID; x++)
            for (guint y = 0; y < RUN_GRID; y++)
                if (winner(run, f == 1, x, y, &most, &total) >= 0) {
                    *x_end = MAX(*x_end, x + 1);
                    *y_end = MAX(*y_end, y + 1);
                    *y_begin = MIN(*y_begin, y);
                }
}

static void y_tics(Picture *p, guint begin, guint end, gboolean labels)
{
    picture_add(p, "set ytics (");
    for (guint k = begin; k <= end; k++)
        picture_add(p, "%s'%s' %u", k > begin ? ", " : "",
                    !labels   ? ""
                    : k >= 10 ? picture_scaled(p, k - 10, "Ki")
                              : picture_scaled(p, k, ""),
                    k);
    picture_add(p, ")\n");
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    gboolean left = any(run, FALSE), right = any(run, TRUE);
    guint x_end, y_begin, y_end;
    range(run, &x_end, &y_begin, &y_end);
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.5);
    picture_note(p, "cells are powers of two; x and y are log2 of their middle");
    picture_add(p,
                "set xrange [0:%u]\nset yrange [%u:%u]\nset style fill solid 0.9 noborder\n"
                "set xlabel 'decode rows'\nset ylabel 'longest row (tokens)'\n"
                "set key at screen 0.56,0.99 center top vertical maxrows 3 width 0\nset xtics (",
                x_end, y_begin, y_end);
    for (guint k = 0; k <= x_end; k += x_end > 5 ? 2 : 1)
        picture_add(p, "%s'%u' %u", k > 0 ? ", " : "", 1u << k, k);
    picture_add(p, ")\n");
    y_tics(p, y_begin, y_end, TRUE);
    plot_multi_begin(p);
    if (left) {
        plot_place(p, 0.15, right ? 0.54 : 0.97, 0.17, 0.72);
        picture_add(p, "set title 'chosen' offset 0,-0.8\n");
        panel(p, run, 1, FALSE, TRUE);
    }
    if (right) {
        plot_place(p, left ? 0.58 : 0.15, 0.97, 0.17, 0.72);
        picture_add(p, "set title 'fastest, where measured' offset 0,-0.8\n%s",
                    left ? "unset ylabel\nset key off\n" : "");
        y_tics(p, y_begin, y_end, !left);
        panel(p, run, left ? 2 : 1, TRUE, !left);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *why = lacks_replay(input);
    const RunData *run = input->runs[0];
    return why != NULL                           ? why
           : !any(run, FALSE) && !any(run, TRUE) ? "no route was chosen, and no two were executed"
                                                 : NULL;
}

const PlotOps plot_regions = {
    .info = {.name = "regions", .summary = "decision regions: chosen and fastest route"},
    .caption =
        "Steps by batch size and longest row, in powers of two. The colour is the route that "
        "the policy chose most often (left) and the one measured fastest most often (right); "
        "the smaller the square, the weaker the majority.",
    .lacks = lacks,
    .make = make,
};
