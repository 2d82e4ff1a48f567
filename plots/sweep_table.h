/* A sweep's CSV: one row a cell (a point of the grid and a seed), columns by name.
 *
 * Columns are told apart by name: seeds (seed, replication), results (latencies, counts, tokens,
 * times), and parameters: everything else. The load axis is the first parameter with more than one
 * value among rate, scale, load, users ..., or any numeric one; "rate=" inside a plug-in text
 * ("poisson:rate=2") counts. Cells that differ in nothing but the seed form one point: mean, min,
 * max. Cells that differ in other parameters are separate curves. Memory: the table.
 */
#ifndef KV_PLOTS_SWEEP_TABLE_H
#define KV_PLOTS_SWEEP_TABLE_H

#include "plots/bins.h"

#define SWEEP_MAX_CURVES 8

typedef struct SweepTable SweepTable;
SweepTable *sweep_table_load(const char *path, GError **error);
void sweep_table_free(SweepTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SweepTable, sweep_table_free)

const char *
sweep_table_axis(const SweepTable *self); /* name of the load axis; NULL = none varies */
gboolean sweep_table_axis_is_load(const SweepTable *self); /* rate, scale, load, users */
guint sweep_table_curves(const SweepTable *self);
const char *sweep_table_label(const SweepTable *self, guint curve);

/* A result by the first of these names that is a column; -1. A name "a/b" is the ratio of two. */
int sweep_table_metric(SweepTable *self, const char *const *names);
const char *sweep_table_metric_name(const SweepTable *self, int metric);
/* Points of a curve in order of x, merged over seeds. Free both arrays. */
guint sweep_table_points(const SweepTable *self, guint curve, int metric, double **ret_x,
                         Cell **ret_y);

/* The knee of a rising curve: where it falls furthest below its chord when both axes are scaled to
 * 0..1 (Satopaa et al., "Finding a Kneedle in a Haystack", 2011). NaN below 4 points. */
double sweep_knee(const double *x, const double *y, guint n);

#endif
