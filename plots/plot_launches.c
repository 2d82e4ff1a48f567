/* Kernel launches per step over time: what each route would take, and what the chosen ones took. */
#include "plots/plot.h"

#include <string.h>

static void every_route(Picture *p, const RunData *run)
{
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    double max = 2;
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        guint block =
            plot_time_block(p, 1, route->name, "time_s launches_mean launches_min launches_max",
                            route->bins, ROUTE_LAUNCHES, 1);
        const Cell *total = &route->total[ROUTE_LAUNCHES];
        max = total->n > 0 ? MAX(max, total->max) : max;
        if (total->min < total->max)
            g_string_append_printf(bands,
                                   "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                                   "notitle, \\\n",
                                   block, picture_route_colour(route->name, i));
        /* Many routes share a count: wide lines first, so that all show where they coincide. */
        g_string_append_printf(
            lines, "%s    DATA index %u using 1:2 with lines lc rgb '%s' lw %s title %s",
            i > 0 ? ", \\\n" : "", block, picture_route_colour(route->name, i),
            picture_number(p, total->min < total->max ? 1.2 : MAX(4 - 0.7 * i, 0.8)),
            picture_text(p, route->name));
    }
    plot_log_tics(p, 'y', 0.8, max * 1.2);
    picture_add(p,
                "set ylabel \"launches per step\\nif always taken\"\n"
                "plot \\\n%s%s\n",
                bands->str, lines->str);
    picture_panel_done(p, PICTURE_LOG_Y);
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
}

/* Running sums over the routes: a stack whose height is the chosen routes' launches per step. */
static guint stack_block(Picture *p, const RunData *run)
{
    guint n = run->routes->len;
    GString *columns = g_string_new("time_s");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(columns, " up_to_route_%u", i);
    guint block =
        picture_block(p, 2, "launches per step of the chosen route, stacked", columns->str);
    g_string_free(columns, TRUE);
    const TimeBins *bins = run->chosen_bins;
    kv_ns previous = KV_NS_NONE;
    for (guint b = 0; b < time_bins_count(bins); b++) {
        double row[RUN_MAX_ROUTES + 2] = {0};
        kv_ns first, last;
        guint64 samples;
        const Cell *cells = time_bins_get(bins, b, &first, &last, &samples);
        if (cells == NULL)
            continue;
        if (previous != KV_NS_NONE && first - previous > 3 * time_bins_width(bins))
            picture_gap(p);
        previous = last;
        row[0] = plot_bin_time(first, last, samples, FALSE);
        for (guint i = 0; i < n; i++)
            row[i + 1] = (i > 0 ? row[i] : 0) + cell_mean(&cells[i]);
        picture_row(p, n + 1, row);
        row[0] = plot_bin_time(first, last, samples, TRUE);
        if (samples == 1)
            picture_row(p, n + 1, row);
    }
    return block;
}

static void chosen_routes(Picture *p, const RunData *run)
{
    guint block = stack_block(p, run);
    picture_add(p, "unset logscale y\nset ytics autofreq\nset yrange [0:*]\n"
                   "set ylabel \"launches per step\\nas chosen\"\n"
                   "set style fill solid 0.75 noborder\nunset key\n"
                   "plot \\\n");
    gboolean begun = FALSE;
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        guint64 steps = 0;
        for (guint x = 0; x < RUN_GRID; x++)
            for (guint y = 0; y < RUN_GRID; y++)
                steps += route->chosen[x][y];
        if (steps == 0)
            continue;
        picture_add(p, "%s    DATA index %u using 1:%s:%u with filledcurves lc rgb '%s' title %s",
                    begun ? ", \\\n" : "", block, i == 0 ? "(0)" : picture_number(p, i + 1.0),
                    i + 2, picture_route_colour(route->name, i), picture_text(p, route->name));
        begun = TRUE;
    }
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    guint panels = run->chosen_steps > 0 ? 2 : 1;
    double height = panels == 2 ? 3.3 : 2.3;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, height);
    plot_key_room(p, run->routes->len, 2, height, panels);
    plot_bins_note(p, run->step_bins, run->steps);
    plot_multi_begin(p);
    plot_time_axis(p, run);
    plot_multi_panel(p, 0, panels);
    every_route(p, run);
    if (panels == 2) {
        plot_time_axis(p, run);
        plot_multi_panel(p, 1, panels);
        chosen_routes(p, run);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

const PlotOps plot_launches = {
    .info = {.name = "launches", .summary = "kernel launches per step over time, by route"},
    .caption = "Above: launches that each route would take for every step's decode attention. "
               "Below: launches of the routes that the policy chose, stacked by route.",
    .lacks = lacks_replay,
    .make = make,
};
