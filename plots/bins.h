/* Bins: any number of samples kept in a fixed number of cells, for pictures of long runs.
 *
 * A Cell keeps count, sum, minimum and maximum, so a picture can draw a mean line inside its
 * min..max band and nothing extreme is lost. Values that are NaN (not measured) are not counted.
 *
 *   TimeBins  equal spans of time. The span starts at 1 ns and doubles (pairs of bins are folded)
 *             whenever a sample falls beyond the last bin: one pass, no need to know the end, at
 *             least half of `max_bins` used in the end. Several series share the bins.
 *   LogBins   four bins an octave of a positive x (lengths, batch sizes, bytes).
 *
 * Cost of an add: O(series); memory: O(max_bins x series), whatever the number of samples.
 */
#ifndef KV_PLOTS_BINS_H
#define KV_PLOTS_BINS_H

#include "base/ns.h"

typedef struct Cell {
    guint64 n;
    double sum, min, max;
} Cell;
void cell_add(Cell *cell, double value);
void cell_merge(Cell *into, const Cell *from);
double cell_mean(const Cell *cell); /* NaN where n = 0 */

typedef struct TimeBins TimeBins;
TimeBins *time_bins_new(guint n_series, guint max_bins); /* max_bins even */
void time_bins_free(TimeBins *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TimeBins, time_bins_free)
/* One sample of every series, over [start, end). The first start is the bins' origin; an earlier
 * one counts in the first bin. */
void time_bins_add(TimeBins *self, kv_ns start, kv_ns end, const double *values);
kv_ns time_bins_width(const TimeBins *self);
kv_ns time_bins_origin(const TimeBins *self);
guint time_bins_count(const TimeBins *self); /* bins up to the last one with a sample */
/* The cells [n_series] of bin i, or NULL where the bin has no sample. */
const Cell *time_bins_get(const TimeBins *self, guint i, kv_ns *ret_first, kv_ns *ret_last,
                          guint64 *ret_samples);

#define LOG_BINS_PER_OCTAVE 4
typedef struct LogBins {
    Cell cells[64 * LOG_BINS_PER_OCTAVE];
} LogBins;
/* x >= 1 (smaller ones count as 1). */
void log_bins_add(LogBins *self, double x, double value);
double log_bins_center(guint i); /* geometric middle of bin i */

#endif
