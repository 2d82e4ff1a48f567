/* Achieved KV read rate against the size of a step, below the machine's measured roof. */
#include "plots/plot.h"

#include <math.h>

/* summary.json's measured read rate in GB/s, or NaN. */
static double roof(const RunData *run)
{
    static const struct {
        const char *path;
        double scale;
    } keys[] = {{"replay.device.read_gbps", 1},
                {"replay.device.read_rate_gbps", 1},
                {"replay.device.bandwidth_gbps", 1},
                {"replay.device.read_bytes_per_s", 1e-9},
                {"replay.roof_gbps", 1}};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        double value = run_data_number(run, keys[i].path);
        if (!isnan(value))
            return value * keys[i].scale;
    }
    return (double)NAN;
}

static void x_range(const RunData *run, double *min, double *max)
{
    *min = INFINITY;
    *max = 0;
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        for (guint b = 0; b < G_N_ELEMENTS(route->by_kv_bytes.cells); b++)
            if (route->by_kv_bytes.cells[b].n > 0) {
                *min = MIN(*min, log_bins_center(b) / 1048576);
                *max = MAX(*max, log_bins_center(b) / 1048576);
            }
    }
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.4);
    picture_note(p, "executed steps in bins of a quarter octave of KV bytes: mean, min and max");
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    double top = roof(run), min, max, fastest = 0;
    gboolean have_roof = !isnan(top);
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        if (log_bins_empty(&route->by_kv_bytes))
            continue;
        for (guint b = 0; b < G_N_ELEMENTS(route->by_kv_bytes.cells); b++)
            fastest = MAX(fastest, route->by_kv_bytes.cells[b].max);
        guint block = plot_log_block(p, 1, route->name, "kv_MiB GBps_mean GBps_min GBps_max",
                                     &route->by_kv_bytes, 1.0 / 1048576, 1);
        g_string_append_printf(bands,
                               "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                               "notitle, \\\n",
                               block, picture_route_colour(route->name, i));
        g_string_append_printf(lines,
                               "    DATA index %u using 1:2 with linespoints pt 7 ps 0.25*PS %s "
                               "title %s%s",
                               block, plot_route_style(p, route, i), picture_text(p, route->name),
                               ", \\\n");
    }
    x_range(run, &min, &max);
    plot_log_tics(p, 'x', min * 0.9, max * 1.1);
    plot_y_from_zero(p, have_roof ? MAX(top, fastest) : fastest, 5, FALSE);
    picture_add(p,
                "set style fill transparent solid 0.12 noborder\n"
                "set xlabel 'KV bytes of the step, one layer (MiB)'\n"
                "set ylabel 'KV bytes / kernel time (GB/s)'\nplot \\\n%s%s    %s %s\n",
                bands->str, lines->str, have_roof ? picture_number(p, top) : "NaN",
                have_roof ? "with lines lc rgb '#000000' lw 1 dt 2 title 'measured read rate'"
                          : "notitle");
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
    picture_panel_done(p, PICTURE_LOG_X);
    picture_end(p);
    return p;
}

const PlotOps plot_roof = {
    .info = {.name = "roof", .summary = "KV read rate of each route against the measured roof"},
    .caption =
        "KV bytes of a step divided by the kernel time, over the step's size; the dashed line "
        "is this machine's own streaming read rate where the run measured it.",
    .lacks = lacks_executed,
    .make = make,
};
