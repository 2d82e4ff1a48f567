/* Distribution of the length of a step, with and without prefill in it. */
#include "plots/plot.h"

#include <math.h>

#define POINTS 200

static guint cdf(Picture *p, const LogHist *h, const char *label)
{
    guint block = picture_block(p, 1, label, "step_ms fraction");
    for (guint i = 0; i <= POINTS; i++) {
        double q = (double)i / POINTS;
        const double row[] = {log_hist_quantile(h, q) / 1e6, q};
        picture_row(p, 2, row);
    }
    return block;
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    const struct {
        const LogHist *h;
        const char *label;
    } kinds[] = {{run->decode_ns, "decode only"}, {run->mixed_ns, "with prefill"}};
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.1);
    picture_note(p, "quantiles 0, 1/%d ... 1 of a histogram that is within 0.1 %%", POINTS);
    GString *lines = g_string_new(NULL);
    double min = INFINITY, max = 0;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        guint64 n = log_hist_count(kinds[i].h);
        if (n == 0)
            continue;
        min = MIN(min, (double)log_hist_min(kinds[i].h) / 1e6);
        max = MAX(max, (double)log_hist_max(kinds[i].h) / 1e6);
        g_autofree char *title =
            g_strdup_printf("%s (%" G_GUINT64_FORMAT " steps)", kinds[i].label, n);
        guint block = cdf(p, kinds[i].h, title);
        g_string_append_printf(lines,
                               "%s    DATA index %u using 1:2 with lines lc rgb '%s' lw 1.6 dt %u "
                               "title %s",
                               lines->len > 0 ? ", \\\n" : "", block, picture_colour(i), i + 1,
                               picture_text(p, title));
    }
    plot_log_tics(p, 'x', min, MAX(max, min * 1.5));
    picture_add(p,
                "set xlabel 'length "
                "of a step (ms)'\n"
                "set yrange [0:1]\nset ylabel 'fraction of steps'\n"
                "set key maxcols 1\nplot \\\n%s\n",
                lines->str);
    g_string_free(lines, TRUE);
    picture_panel_done(p, PICTURE_LOG_X);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    return input->runs[0]->steps == 0 ? "no replay.csv with steps" : NULL;
}

const PlotOps plot_step_length = {
    .info = {.name = "step-length", .summary = "distribution of the length of a step"},
    .caption =
        "Cumulative distribution of how long a step takes by the run's clock; steps that also "
        "prefill are kept apart. Every decoding request waits one step for each token, so "
        "this bounds inter-token latency from below.",
    .lacks = lacks,
    .make = make,
};
