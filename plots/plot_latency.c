/* Distributions of what users wait for: TTFT, time per output token, queueing, end to end. */
#include "plots/plot.h"

#include <math.h>

typedef struct Curve {
    const char *label, *summary;
    Sampler *samples;
} Curve;

static void x_range(const Curve *curves, guint n, double *min, double *max)
{
    *min = INFINITY;
    *max = 0;
    for (guint i = 0; i < n; i++) {
        Summary s = sampler_summary(curves[i].samples, 1e-9);
        if (s.n == 0)
            continue;
        *min = MIN(*min, MAX(sampler_quantile(curves[i].samples, 0.01) * 1e-9, 1e-4));
        *max = MAX(*max, s.max);
    }
    *min = isfinite(*min) ? *min : 0.1;
    *max = MAX(*max, *min * 2);
}

/* Pooled ITL is in summary.json alone: its quantiles as points. */
static int itl_block(Picture *p, const RunData *run)
{
    static const struct {
        const char *path;
        double q;
    } points[] = {{"simulate.itl.p50", 0.5},
                  {"simulate.itl.p90", 0.9},
                  {"simulate.itl.p95", 0.95},
                  {"simulate.itl.p99", 0.99},
                  {"simulate.itl.max", 1}};
    if (isnan(run_data_number(run, points[0].path)))
        return -1;
    guint block = picture_block(p, 1, "ITL, pooled: p50 p90 p95 p99 max", "seconds fraction");
    for (guint i = 0; i < G_N_ELEMENTS(points); i++) {
        const double row[] = {run_data_number(run, points[i].path), points[i].q};
        if (row[0] > 0)
            picture_row(p, 2, row);
    }
    return (int)block;
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    const RequestData *r = run->requests;
    const Curve curves[] = {{"TPOT", "tpot", r->tpot},
                            {"TTFT", "ttft", r->ttft},
                            {"queueing", "queue_delay", r->queue},
                            {"end to end", "e2e", r->e2e}};
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.3);
    picture_note(p,
                 "%" G_GUINT64_FORMAT " requests, %" G_GUINT64_FORMAT
                 " of them refused; at most 200 quantiles of each",
                 r->n, r->refused);
    GString *lines = g_string_new(NULL);
    double min, max;
    x_range(curves, G_N_ELEMENTS(curves), &min, &max);
    for (guint i = 0; i < G_N_ELEMENTS(curves); i++) {
        if (sampler_summary(curves[i].samples, 1).n == 0)
            continue;
        guint block =
            plot_cdf_block(p, 1, curves[i].label, "seconds fraction", curves[i].samples, 1e-9);
        g_string_append_printf(lines,
                               "%s    DATA index %u using 1:2 with lines lc rgb '%s' lw 1.5 dt %u "
                               "title '%s'",
                               lines->len > 0 ? ", \\\n" : "", block, picture_colour(i), 1 + i % 3,
                               curves[i].label);
    }
    int itl = itl_block(p, run);
    if (itl >= 0)
        g_string_append_printf(
            lines,
            "%s    DATA index %d using 1:2 with points pt 7 ps 0.45*PS lc rgb '%s' "
            "title 'ITL, pooled'",
            lines->len > 0 ? ", \\\n" : "", itl, picture_colour(4));
    plot_log_tics(p, 'x', min, max);
    picture_add(p,
                "set xlabel 'time (s)'\nset yrange [0:1.02]\nset ylabel 'fraction of requests'\n"
                "plot \\\n%s\n",
                lines->len > 0 ? lines->str : "    NaN notitle");
    g_string_free(lines, TRUE);
    picture_panel_done(p, PICTURE_LOG_X);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const RequestData *requests = input->runs[0]->requests;
    return requests == NULL || requests->n == 0 ? "no requests.csv with requests" : NULL;
}

const PlotOps plot_latency = {
    .info = {.name = "latency", .summary = "distributions of TTFT, TPOT, queueing and end to end"},
    .caption =
        "Cumulative distributions over requests, from the intended arrival. TPOT is (end to "
        "end - TTFT) / (output tokens - 1). Inter-token latency pools every token's wait, so "
        "its marked quantiles (from the summary) weigh long outputs more.",
    .lacks = lacks,
    .make = make,
};
