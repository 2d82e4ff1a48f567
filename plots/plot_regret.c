/* Regret: how much slower the chosen route was than the fastest one, where both were executed. */
#include "plots/plot.h"

#include <math.h>

static guint regret_block(Picture *p, const RunData *run)
{
    const TimeBins *bins = run->step_bins;
    guint block = picture_block(p, 1, "regret", "time_s percent compared_steps");
    for (guint i = 0; i < time_bins_count(bins); i++) {
        kv_ns first, last;
        const Cell *cells = time_bins_get(bins, i, &first, &last, NULL);
        if (cells == NULL || cells[STEP_REGRET_US].n == 0)
            continue;
        const double row[] = {((double)first + (double)last) / 2e9,
                              100 * cells[STEP_REGRET_US].sum / cells[STEP_BEST_US].sum,
                              (double)cells[STEP_REGRET_US].n};
        picture_row(p, 3, row);
    }
    return block;
}

static double worst(const RunData *run)
{
    double max = 0;
    for (guint i = 0; i < time_bins_count(run->step_bins); i++) {
        const Cell *c = time_bins_get(run->step_bins, i, NULL, NULL, NULL);
        if (c != NULL && c[STEP_REGRET_US].n > 0)
            max = MAX(max, 100 * c[STEP_REGRET_US].sum / c[STEP_BEST_US].sum);
    }
    return max;
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    double overall = 100 * run->regret_us / run->best_us;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.1);
    plot_bins_note(p, run->step_bins, run->steps);
    picture_note(p, "%" G_GUINT64_FORMAT " steps compared", run->compared);
    guint block = regret_block(p, run);
    g_autofree char *title =
        g_strdup_printf("all %" G_GUINT64_FORMAT " compared steps: %s %%", run->compared,
                        picture_number(p, round(overall * 100) / 100));
    plot_time_axis(p, run);
    plot_y_from_zero(p, MAX(worst(run), 1), 5, FALSE);
    picture_add(p,
                "set ylabel 'slower than the fastest (%%)'\n"
                "plot DATA index %u using 1:2 with impulses lc rgb '%s' lw 1 notitle, \\\n"
                "     DATA index %u using 1:2 with points pt 7 ps 0.3*PS lc rgb '%s' "
                "title 'mean of a bin', \\\n"
                "     %s with lines lc rgb '#000000' lw 1 dt 2 title %s\n",
                block, picture_colour(5), block, picture_colour(0), picture_number(p, overall),
                picture_text(p, title));
    picture_panel_done(p, PICTURE_LINEAR);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *why = lacks_executed(input);
    if (why != NULL)
        return why;
    return input->runs[0]->compared == 0 ? "no step has a chosen and another route executed" : NULL;
}

const PlotOps plot_regret = {
    .info = {.name = "regret", .summary = "regret of the chosen route against the fastest one"},
    .caption = "Kernel time lost by taking the chosen route instead of the fastest one executed on "
               "the same step, as a share of the fastest one's time.",
    .lacks = lacks,
    .make = make,
};
