/* What the parts of the bench share: the run, and one route through it. Private to replay/bench*.c.
 */
#ifndef KV_REPLAY_BENCH_PRIVATE_H
#define KV_REPLAY_BENCH_PRIVATE_H

#include "replay/bench.h"

typedef struct BenchLane {
    Route route;
    AttnPlanConfig plan_config;
    AttnPlan plan;
    double *kernel, *plan_us, *wall; /* [rounds] */
    BenchLine line;
} BenchLane;

typedef struct Bench {
    const BenchConfig *config;
    const BackendOps *ops;
    Backend *backend; /* of the shape in hand */
    AttnShape shape;
    gint64 pool_pages;
    gint workers, rounds;
    guint32 *permutation; /* [pool_pages] */
    BenchLane *lane;
    guint n;
    /* the cell in hand */
    gint32 *lens;
    gint64 cell_pages;
    guint sets, turn;
    StepRow *rows;
    StepJoin *joins;
    guint32 *left, n_left; /* slots of the step before */
    guint64 steps;
    BenchResult *result;
} Bench;

gint64 bench_pages(const BenchCell *cell, const gint32 *lens);
/* Disjoint sets of pages that a cell rotates through. */
guint bench_sets(const AttnShape *shape, gint64 pages);

/* Backend, pool and lanes for the cells of one shape. */
gboolean bench_shape_open(Bench *self, const AttnShape *shape, GError **error);
void bench_shape_close(Bench *self);
/* Checks, then times. Never fails: what goes wrong is a note. */
BenchCellResult *bench_cell_run(Bench *self, const BenchCell *cell);
void bench_line_clear(gpointer line);

#endif
