/* One kind of picture: an ops struct a file, in the registry `plots` (plots.h).
 *
 * lacks() says in words what a run has no data for; make() builds the picture from digested runs.
 * The helpers below are what several pictures share: time series with their bands, panels under
 * one another, series over log bins.
 */
#ifndef KV_PLOTS_PLOT_H
#define KV_PLOTS_PLOT_H

#include "base/spec.h"
#include "plots/picture.h"
#include "plots/plots.h"
#include "plots/run_data.h"

typedef struct PlotInput {
    RunData *const *runs; /* [n_runs], n_runs >= 1 */
    guint n_runs;
    Progress *progress;
} PlotInput;

typedef struct PlotOps {
    PluginInfo info;
    const char *caption; /* two or three sentences under the picture in report.html */
    gboolean wide;       /* a page wide, not a column */
    /* NULL when the picture can be made, else the reason: static text. */
    const char *(*lacks)(const PlotInput *input);
    Picture *(*make)(const struct PlotOps *ops, const PlotInput *input, GError **error);
} PlotOps;

extern const PlotOps plot_launches, plot_merge, plot_batch, plot_step_length, plot_share,
    plot_tasks, plot_breakdown, plot_roof, plot_composition, plot_pool, plot_latency, plot_regions,
    plot_regret, plot_traffic, plot_workload, plot_compare, plot_load, plot_sweep, plot_bench,
    plot_peers, plot_decisions;

/* Reasons shared by several. */
const char *lacks_replay(const PlotInput *input);   /* routes on decode steps */
const char *lacks_executed(const PlotInput *input); /* a measured kernel time */

/* Where a bin's value is drawn: its middle, or both ends of a bin that is one step. Seconds. */
double plot_bin_time(kv_ns first, kv_ns last, guint64 samples, gboolean end);
/* A block "x y y_min y_max" from bins: y = scale x mean. Idle stretches leave a gap. */
guint plot_time_block(Picture *p, guint panel, const char *label, const char *columns,
                      const TimeBins *bins, guint series, double scale);
guint plot_log_block(Picture *p, guint panel, const char *label, const char *columns,
                     const LogBins *bins, double x_scale, double y_scale);
gboolean log_bins_empty(const LogBins *bins);
/* Says in the data file how wide the bins are. */
void plot_bins_note(Picture *p, const TimeBins *bins, guint64 steps);
/* Quantiles of a sampler as a CDF: a block "x fraction"; at most 200 points. */
guint plot_cdf_block(Picture *p, guint panel, const char *label, const char *columns, Sampler *s,
                     double scale);

double plot_bins_max(const TimeBins *bins, guint series);
/* A y axis from 0 to a round number above `max`, with about `tics` round steps (`whole` numbers).
 */
void plot_y_from_zero(Picture *p, double max, guint tics, gboolean whole);

/* A log axis ('x' or 'y') over [min, max] with tics at 1, 2, 5 of a decade, or decades alone. */
void plot_log_tics(Picture *p, char axis, double min, double max);

/* Keeps room above the first panel for a key of so many entries. `height` of the picture in inch.
 */
void plot_key_room(Picture *p, guint entries, guint columns, double height, guint panels);
/* Where a panel's axes lie, in fractions of the picture from its lower left corner. */
void plot_place(Picture *p, double left, double right, double bottom, double top);
/* `n` panels under one another: begins panel i (from 0), with margins that line the axes up. The
 * x labels are left to the last one. */
void plot_multi_begin(Picture *p);
void plot_multi_panel(Picture *p, guint i, guint n);
void plot_multi_end(Picture *p);

/* Line in a route's colour: "lc rgb '#..' lw W". Routes often coincide: the first ones are the
 * widest, so that all of them show. Owned by the picture. */
const char *plot_route_style(Picture *p, const RouteData *route, guint i);
/* The x axis of time in a run. */
void plot_time_axis(Picture *p, const RunData *run);

#endif
