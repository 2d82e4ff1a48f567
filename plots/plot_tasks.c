/* Tasks per step, and how many splits a (row, KV head) gets on average. */
#include "plots/plot.h"

static gboolean splits_known(const RunData *run)
{
    for (guint i = 0; i < run->routes->len; i++)
        if (((RouteData *)g_ptr_array_index(run->routes, i))->total[ROUTE_SPLITS].n > 0)
            return TRUE;
    return FALSE;
}

/* Lines of every route; bands where a bin has a range. */
static void panel(Picture *p, const RunData *run, guint number, RouteSeries series,
                  const char *columns)
{
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    double max = 0;
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        if (route->total[series].n == 0)
            continue;
        max = MAX(max, route->total[series].max);
        guint block = plot_time_block(p, number, route->name, columns, route->bins, series, 1);
        g_string_append_printf(bands,
                               "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                               "notitle, \\\n",
                               block, picture_route_colour(route->name, i));
        g_string_append_printf(lines, "%s    DATA index %u using 1:2 with lines %s title %s",
                               lines->len > 0 ? ", \\\n" : "", block, plot_route_style(p, route, i),
                               picture_text(p, route->name));
    }
    plot_y_from_zero(p, max, 4, FALSE);
    picture_add(p, "set style fill transparent solid 0.12 noborder\nplot \\\n%s%s\n", bands->str,
                lines->str);
    picture_panel_done(p, PICTURE_LINEAR);
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    guint panels = splits_known(run) ? 2 : 1;
    double height = panels == 2 ? 3.3 : 2.3;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, height);
    plot_bins_note(p, run->step_bins, run->steps);
    plot_key_room(p, run->routes->len, 2, height, panels);
    plot_multi_begin(p);
    plot_time_axis(p, run);
    plot_multi_panel(p, 0, panels);
    picture_add(p, "set ylabel 'tasks per step'\n");
    panel(p, run, 1, ROUTE_TASKS, "time_s tasks_mean tasks_min tasks_max");
    if (panels == 2) {
        plot_time_axis(p, run);
        plot_multi_panel(p, 1, panels);
        picture_add(p, "unset key\nset ylabel 'splits per row and KV head'\n");
        panel(p, run, 2, ROUTE_SPLITS, "time_s splits_mean splits_min splits_max");
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

const PlotOps plot_tasks = {
    .info = {.name = "tasks", .summary = "tasks and splits per step over time, by route"},
    .caption = "Non-empty tasks that each route cuts a step's decode attention into, and tasks per "
               "(row, KV head): 1 means no row is split.",
    .lacks = lacks_replay,
    .make = make,
};
