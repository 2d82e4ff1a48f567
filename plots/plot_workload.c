/* The workload itself: request rate over time, lengths, turns of sessions. */
#include "plots/plot.h"

#include "base/units.h"

static void rate_panel(Picture *p, const RequestData *r)
{
    const TimeBins *bins = r->arrivals;
    double width = (double)time_bins_width(bins) / 1e9,
           origin = (double)time_bins_origin(bins) / 1e9;
    double max = 0;
    guint block = picture_block(p, 1, "request rate", "time_s requests_per_s");
    for (guint i = 0; i < time_bins_count(bins); i++) {
        const Cell *cell = time_bins_get(bins, i, NULL, NULL, NULL);
        double rate = cell == NULL ? 0 : (double)cell->n / width;
        max = MAX(max, rate);
        const double row[] = {origin + (i + 0.5) * width, rate};
        picture_row(p, 2, row);
    }
    plot_y_from_zero(p, max, 4, FALSE);
    picture_add(p,
                "set xrange [%s:%s]\nset xlabel 'arrival (s)' offset 0,0.4\n"
                "set ylabel 'requests/s'\n"
                "plot DATA index %u using 1:2 with fillsteps lc rgb '%s' notitle\n",
                picture_number(p, origin),
                picture_number(p, origin + time_bins_count(bins) * width), block,
                picture_colour(0));
    picture_panel_done(p, PICTURE_LINEAR);
}

static void length_panel(Picture *p, const RequestData *r)
{
    guint prompt = plot_cdf_block(p, 2, "prompt", "tokens fraction", r->prompt, 1);
    guint output = plot_cdf_block(p, 2, "output", "tokens fraction", r->output, 1);
    double max = MAX(sampler_summary(r->prompt, 1).max, sampler_summary(r->output, 1).max);
    picture_add(p, "unset format\nset format x '%%.0s%%c'\n");
    picture_add(p,
                "set logscale x\nset xtics 1,10\nset xrange [1:%s]\nset yrange [0:1]\n"
                "set ytics 0.25\nset format y '%%g'\n"
                "set xlabel 'tokens' offset 0,0.4\nset ylabel 'fraction'\n"
                "set key at graph 0.02,0.98 left top vertical maxcols 1\n"
                "plot DATA index %u using 1:2 with lines lc rgb '%s' lw 1.5 title 'prompt', \\\n"
                "     DATA index %u using 1:2 with lines lc rgb '%s' lw 1.5 dt 2 title 'output'\n",
                picture_number(p, MAX(max, 10)), prompt, picture_colour(1), output,
                picture_colour(2));
    picture_panel_done(p, PICTURE_LOG_X);
}

static gboolean has_sessions(const RequestData *r)
{
    return r->turns[1] > 0;
}

/* Requests that were turn k of a session = sessions with more than k turns. */
static void turns_panel(Picture *p, const RequestData *r)
{
    guint block = picture_block(p, 3, "sessions that reach a turn", "turn sessions"), last = 0;
    for (guint k = 0; k < RUN_MAX_TURNS; k++)
        if (r->turns[k] > 0)
            last = k;
    for (guint k = 0; k <= last; k++) {
        const double row[] = {k + 1.0, (double)r->turns[k]};
        picture_row(p, 2, row);
    }
    picture_add(
        p,
        "unset logscale\nset format x '%%g'\nset xtics autofreq\nset xrange [0.4:%u.6]\n"
        "set xtics %u\nset xlabel 'turn%s' offset 0,0.4\nset ylabel 'sessions' offset 1,0\n",
        last + 1, MAX(1, (last + 4) / 5), last == RUN_MAX_TURNS - 1 ? " (last: and later)" : "");
    plot_y_from_zero(p, (double)r->turns[0], 3, TRUE);
    picture_add(p, "plot DATA index %u using 1:2:(0.8) with boxes lc rgb '%s' notitle\n", block,
                picture_colour(4));
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RequestData *r = input->runs[0]->requests;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 3.0);
    g_autofree char *width = kv_format_time(time_bins_width(r->arrivals));
    picture_note(p, "%" G_GUINT64_FORMAT " requests; rate in bins of %s; at most 200 quantiles",
                 r->n, width);
    plot_multi_begin(p);
    picture_add(p, "set style fill solid 0.6 noborder\n");
    plot_place(p, 0.15, 0.97, 0.63, 0.97);
    rate_panel(p, r);
    plot_place(p, 0.15, has_sessions(r) ? 0.55 : 0.97, 0.14, 0.46);
    length_panel(p, r);
    if (has_sessions(r)) {
        plot_place(p, 0.74, 0.97, 0.14, 0.46);
        turns_panel(p, r);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const RequestData *requests = input->runs[0]->requests;
    return requests == NULL || requests->n == 0 ? "no requests.csv with requests" : NULL;
}

const PlotOps plot_workload = {
    .info = {.name = "workload", .summary = "the workload: request rate, lengths, sessions"},
    .caption = "Arrivals per second, the distribution of prompt and output lengths, and, where the "
               "workload has sessions, how many of them reach each turn.",
    .lacks = lacks,
    .make = make,
};
