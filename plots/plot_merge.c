/* Merge state: bytes of partial (m, l, acc) states that a step's splits leave for the merge. */
#include "plots/plot.h"

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.3);
    plot_bins_note(p, run->step_bins, run->steps);
    double max = 0;
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        const Cell *total = &route->total[ROUTE_MERGE_STATE];
        if (total->n == 0 || total->max <= 0)
            continue; /* a route without splits has none: no line at zero */
        max = MAX(max, total->max / (1 << 20));
        guint block = plot_time_block(p, 1, route->name, "time_s MiB_mean MiB_min MiB_max",
                                      route->bins, ROUTE_MERGE_STATE, 1.0 / (1 << 20));
        g_string_append_printf(bands,
                               "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                               "notitle, \\\n",
                               block, picture_route_colour(route->name, i));
        g_string_append_printf(lines, "%s    DATA index %u using 1:2 with lines %s title %s",
                               lines->len > 0 ? ", \\\n" : "", block, plot_route_style(p, route, i),
                               picture_text(p, route->name));
    }
    plot_time_axis(p, run);
    plot_y_from_zero(p, max, 5, FALSE);
    picture_add(p,
                "set ylabel 'merge state per step, one layer (MiB)'\n"
                "plot \\\n%s%s\n",
                bands->str, lines->len > 0 ? lines->str : "    NaN notitle");
    picture_panel_done(p, PICTURE_LINEAR);
    picture_end(p);
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *why = lacks_replay(input);
    if (why != NULL)
        return why;
    for (guint i = 0; i < input->runs[0]->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(input->runs[0]->routes, i);
        if (route->total[ROUTE_MERGE_STATE].n > 0 && route->total[ROUTE_MERGE_STATE].max > 0)
            return NULL;
    }
    return "no route leaves any merge state";
}

const PlotOps plot_merge = {
    .info = {.name = "merge", .summary = "merge-state MiB per step over time, by route"},
    .caption =
        "Bytes of partial states (m, l, acc; fp32) that the splits of one layer leave for the "
        "merge in each step. They are written once and read once, so the traffic is twice "
        "this. Line: mean of a bin; band: smallest and largest step in it.",
    .lacks = lacks,
    .make = make,
};
