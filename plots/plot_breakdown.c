/* Where a step's wall time goes, by route: planning, kernels, the rest. */
#include "plots/plot.h"

#include <math.h>

static double longest(const GPtrArray *routes)
{
    double max = 0;
    for (guint i = 0; i < routes->len; i++) {
        const RouteData *route = g_ptr_array_index(routes, i);
        max = MAX(max, cell_mean(&route->part[1]));
    }
    return max;
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    static const char *const parts[] = {"plan", "kernel", "rest of wall"};
    const RunData *run = input->runs[0];
    GPtrArray *shown = g_ptr_array_new();
    for (guint i = 0; i < run->routes->len; i++) {
        RouteData *route = g_ptr_array_index(run->routes, i);
        if (route->part[1].n > 0)
            g_ptr_array_add(shown, route);
    }
    guint n = shown->len;
    gboolean ms = longest(shown) > 5000;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 0.9 + 0.22 * n);
    picture_note(p, "means over the executed steps of each route");
    guint block = picture_block(p, 1, "mean time of a step",
                                ms ? "place executed_steps plan_ms kernel_ms rest_ms"
                                   : "place executed_steps plan_us kernel_us rest_us");
    for (guint i = 0; i < n; i++) {
        const RouteData *route = g_ptr_array_index(shown, i);
        double row[] = {(double)(n - i), (double)route->part[1].n, 0, 0, 0};
        for (guint k = 0; k < 3; k++)
            if (route->part[k].n > 0)
                row[2 + k] = cell_mean(&route->part[k]) * (ms ? 1e-3 : 1);
        picture_row(p, 5, row);
    }
    picture_add(p,
                "set lmargin at screen 0.27\nset rmargin at screen 0.96\n"
                "set xlabel 'mean time of a step (%s)'\nset xrange [0:*]\n"
                "set yrange [0.4:%u.6]\nset key maxrows 1\nunset ytics\n"
                "set style fill solid 0.85 noborder\nset ytics noenhanced scale 0 (",
                ms ? "ms" : "µs", n);
    for (guint i = 0; i < n; i++)
        picture_add(p, "%s%s %u", i > 0 ? ", " : "",
                    picture_text(p, ((RouteData *)g_ptr_array_index(shown, i))->name), n - i);
    picture_add(p, ")\nset grid noytics\nplot \\\n");
    static const char *const from[] = {"(0)", "3", "($3+$4)"}, *const to[] = {"3", "($3+$4)",
                                                                              "($3+$4+$5)"};
    for (guint k = 0; k < 3; k++)
        picture_add(p,
                    "%s    DATA index %u using (0):1:%s:%s:($1-0.36):($1+0.36) with boxxyerror lc "
                    "rgb '%s' title '%s'",
                    k > 0 ? ", \\\n" : "", block, from[k], to[k], picture_colour(k * 2 + (k == 1)),
                    parts[k]);
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LINEAR);
    picture_end(p);
    g_ptr_array_unref(shown);
    return p;
}

const PlotOps plot_breakdown = {
    .info = {.name = "breakdown", .summary = "plan, kernel and wall time of a step, by route"},
    .caption =
        "Mean over the executed steps: host planning and uploads, the kernels alone, and what "
        "is left of the synchronised wall time (launching, waiting).",
    .lacks = lacks_executed,
    .make = make,
};
