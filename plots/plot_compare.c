/* Several runs over one another: batch, launches, and what users wait for. */
#include "plots/plot.h"

#include <math.h>

#define MAX_RUNS 8

/* Appends "DATA index .. with lines .. title RUN" of run i. */
static void add_line(Picture *p, GString *lines, guint block, guint i, const char *label)
{
    g_string_append_printf(
        lines, "%s    DATA index %u using 1:2 with lines lc rgb '%s' lw 1.3 title %s",
        lines->len > 0 ? ", \\\n" : "", block, picture_colour(i), picture_text(p, label));
}

static guint launches_block(Picture *p, const RunData *run)
{
    guint block = picture_block(p, 2, run->label, "time_s launches_mean");
    for (guint b = 0; b < time_bins_count(run->chosen_bins); b++) {
        kv_ns first, last;
        const Cell *cells = time_bins_get(run->chosen_bins, b, &first, &last, NULL);
        double sum = 0;
        for (guint i = 0; cells != NULL && i < run->routes->len; i++)
            sum += cell_mean(&cells[i]);
        const double row[] = {((double)first + (double)last) / 2e9, sum};
        if (cells != NULL)
            picture_row(p, 2, row);
    }
    return block;
}

static void finish(Picture *p, GString *lines, PictureAxes axes)
{
    picture_add(p, "plot \\\n%s\n", lines->len > 0 ? lines->str : "    NaN notitle");
    picture_panel_done(p, axes);
    g_string_free(lines, TRUE);
}

static void time_panel(Picture *p, const PlotInput *input, guint n, guint panel)
{
    GString *lines = g_string_new(NULL);
    double end = 0, top = 0;
    for (guint i = 0; i < n; i++) {
        const RunData *run = input->runs[i];
        if (run->steps == 0 || (panel == 2 && run->chosen_steps == 0))
            continue;
        end = MAX(end, (double)run->last / 1e9);
        top = MAX(top, panel == 1 ? plot_bins_max(run->step_bins, STEP_ROWS) : 0);
        guint block = panel == 1
                          ? plot_time_block(p, 1, run->label, "time_s rows_mean rows_min rows_max",
                                            run->step_bins, STEP_ROWS, 1)
                          : launches_block(p, run);
        add_line(p, lines, block, i, run->label);
    }
    picture_add(p, "set xrange [0:%s]\nset xlabel 'simulated time (s)'\nset ylabel '%s'\n",
                picture_number(p, MAX(end, 1e-9)),
                panel == 1 ? "decode rows" : "launches per step");
    if (panel == 1)
        plot_y_from_zero(p, top, 4, TRUE);
    else
        picture_add(p, "set yrange [0:*]\nset ytics autofreq\nset format y '%%g'\n");
    finish(p, lines, PICTURE_LINEAR);
}

static void cdf_panel(Picture *p, const PlotInput *input, guint n, guint panel)
{
    GString *lines = g_string_new(NULL);
    double min = INFINITY, max = 0;
    for (guint i = 0; i < n; i++) {
        const RequestData *r = input->runs[i]->requests;
        Sampler *s = r == NULL ? NULL : panel == 3 ? r->ttft : r->tpot;
        if (s == NULL || sampler_summary(s, 1).n == 0)
            continue;
        min = MIN(min, MAX(sampler_quantile(s, 0.01) * 1e-9, 1e-4));
        max = MAX(max, sampler_summary(s, 1e-9).max);
        guint block = plot_cdf_block(p, panel, input->runs[i]->label, "seconds fraction", s, 1e-9);
        add_line(p, lines, block, i, input->runs[i]->label);
    }
    plot_log_tics(p, 'x', isfinite(min) ? min : 0.1, isfinite(min) ? MAX(max, min * 2) : 1);
    picture_add(p,
                "set xlabel '%s (s)'\nset ylabel 'fraction of requests'\nset yrange [0:1]\n"
                "set ytics 0.25\nset format y '%%g'\n",
                panel == 3 ? "TTFT" : "TPOT");
    finish(p, lines, PICTURE_LOG_X);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    guint n = MIN(input->n_runs, MAX_RUNS);
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_PAGE, 3.9);
    picture_note(p, "%u runs; means of time bins, at most 200 quantiles", n);
    if (input->n_runs > n)
        picture_note(p, "only the first %u of %u runs", n, input->n_runs);
    plot_multi_begin(p);
    picture_add(p, "set key at screen 0.5,0.99 center top\n");
    plot_place(p, 0.08, 0.48, 0.60, 0.90);
    time_panel(p, input, n, 1);
    picture_add(p, "set key off\n");
    plot_place(p, 0.58, 0.98, 0.60, 0.90);
    time_panel(p, input, n, 2);
    plot_place(p, 0.08, 0.48, 0.11, 0.41);
    cdf_panel(p, input, n, 3);
    plot_place(p, 0.58, 0.98, 0.11, 0.41);
    cdf_panel(p, input, n, 4);
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    if (input->n_runs < 2)
        return "only one run was given";
    for (guint i = 0; i < input->n_runs; i++)
        if (input->runs[i]->steps > 0 || input->runs[i]->requests != NULL)
            return NULL;
    return "no run has a replay.csv or a requests.csv";
}

const PlotOps plot_compare = {
    .info = {.name = "compare", .summary = "several runs over one another"},
    .caption = "Decode rows and launches per step of each run over time, and the distributions of "
               "TTFT and TPOT.",
    .wide = TRUE,
    .lacks = lacks,
    .make = make,
};
