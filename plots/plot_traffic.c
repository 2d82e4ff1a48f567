/* Merge traffic over KV traffic: when splitting stops being free. */
#include "plots/plot.h"

#include <math.h>

typedef const LogBins *(*Pick)(const RouteData *);

static const LogBins *by_rows(const RouteData *route)
{
    return &route->ratio_by_rows;
}

static const LogBins *by_len(const RouteData *route)
{
    return &route->ratio_by_len;
}

static gboolean has_merges(const RouteData *route)
{
    return route->total[ROUTE_MERGE_RATIO].n > 0 && route->total[ROUTE_MERGE_RATIO].max > 0;
}

static void x_range(Picture *p, const RunData *run, Pick pick)
{
    guint first = 1000, last = 0;
    for (guint i = 0; i < run->routes->len; i++) {
        const LogBins *bins = pick(g_ptr_array_index(run->routes, i));
        for (guint b = 0; b < G_N_ELEMENTS(bins->cells); b++)
            if (bins->cells[b].n > 0) {
                first = MIN(first, b);
                last = MAX(last, b);
            }
    }
    picture_add(p, "set xrange [%s:%s]\n", picture_number(p, log_bins_center(first) * 0.9),
                picture_number(p, log_bins_center(MAX(last, first + 2)) * 1.1));
}

static void panel(Picture *p, const RunData *run, guint number, Pick pick, const char *columns)
{
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        if (!has_merges(route))
            continue;
        guint block = plot_log_block(p, number, route->name, columns, pick(route), 1, 100);
        g_string_append_printf(bands,
                               "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                               "notitle, \\\n",
                               block, picture_route_colour(route->name, i));
        g_string_append_printf(lines,
                               "%s    DATA index %u using 1:2 with linespoints pt 7 ps 0.25*PS %s "
                               "title %s",
                               lines->len > 0 ? ", \\\n" : "", block, plot_route_style(p, route, i),
                               picture_text(p, route->name));
    }
    x_range(p, run, pick);
    picture_add(p, "plot \\\n%s%s\n", bands->str, lines->str);
    picture_panel_done(p, PICTURE_LOG_X);
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    double max = 0;
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        if (has_merges(route))
            max = MAX(max, route->total[ROUTE_MERGE_RATIO].max * 100);
    }
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.4);
    picture_note(p, "all steps, in bins of a quarter octave: mean, min and max");
    plot_multi_begin(p);
    picture_add(p, "set logscale x 2\nset format x '%%.0b%%B'\nset xtics 1,4\n"
                   "set style fill transparent solid 0.12 noborder\n"
                   "set key at screen 0.56,0.99 center top vertical maxrows 2 width 0\n");
    plot_y_from_zero(p, max, 5, FALSE);
    plot_place(p, 0.16, 0.54, 0.18, 0.84);
    picture_add(p, "set ylabel 'merge / KV traffic (%%)'\nset xlabel 'decode rows'\n");
    panel(p, run, 1, by_rows, "rows percent_mean percent_min percent_max");
    plot_place(p, 0.59, 0.97, 0.18, 0.84);
    picture_add(p,
                "unset ylabel\nset format y ''\nset key off\nset xlabel 'longest row (tokens)'\n");
    panel(p, run, 2, by_len, "longest percent_mean percent_min percent_max");
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *why = lacks_replay(input);
    if (why != NULL)
        return why;
    for (guint i = 0; i < input->runs[0]->routes->len; i++)
        if (has_merges(g_ptr_array_index(input->runs[0]->routes, i)))
            return NULL;
    return "no route leaves any merge state";
}

const PlotOps plot_traffic = {
    .info = {.name = "traffic", .summary = "merge traffic over KV traffic, by route"},
    .caption =
        "Bytes of partial states written and read again, as a share of the K and V bytes that "
        "the step attends to: what splitting costs in memory traffic, over batch size and over "
        "the longest row.",
    .lacks = lacks,
    .make = make,
};
