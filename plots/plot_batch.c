/* Batch size, queue and pool use over time: what the scheduler did. */
#include "plots/plot.h"

#include <math.h>

static void panel(Picture *p, const RunData *run, guint i, StepSeries series, const char *label,
                  const char *columns, double scale, double top, const char *colour)
{
    plot_time_axis(p, run);
    plot_y_from_zero(p, top > 0 ? top : plot_bins_max(run->step_bins, series), 4, TRUE);
    plot_multi_panel(p, i, 3);
    guint block = plot_time_block(p, i + 1, label, columns, run->step_bins, series, scale);
    picture_add(p,
                "set ylabel %s\n"
                "plot DATA index %u using 1:3:4 with filledcurves lc rgb '%s' notitle, \\\n"
                "     DATA index %u using 1:2 with lines lc rgb '%s' lw 1.4 notitle\n",
                picture_text(p, label), block, colour, block, colour);
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 3.3);
    plot_bins_note(p, run->step_bins, run->steps);
    plot_multi_begin(p);
    panel(p, run, 0, STEP_ROWS, "decode rows", "time_s rows_mean rows_min rows_max", 1, 0,
          picture_colour(0));
    panel(p, run, 1, STEP_WAITING, "waiting", "time_s waiting_mean waiting_min waiting_max", 1, 0,
          picture_colour(1));
    double pool = run_data_pool_pages(run);
    if (isfinite(pool) && pool > 0) {
        panel(p, run, 2, STEP_PAGES, "pages used (%)",
              "time_s percent_mean percent_min percent_max", 100 / pool, 100, picture_colour(2));
    } else {
        panel(p, run, 2, STEP_PAGES, "pages used", "time_s pages_mean pages_min pages_max", 1, 0,
              picture_colour(2));
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    return input->runs[0]->steps == 0 ? "no replay.csv with steps" : NULL;
}

const PlotOps plot_batch = {
    .info = {.name = "batch", .summary = "batch size, queue and pool use over time"},
    .caption = "Decode rows in each step, requests waiting after scheduling, and pages of the KV "
               "pool in use. Line: mean of a bin; band: smallest and largest step in it.",
    .lacks = lacks,
    .make = make,
};
