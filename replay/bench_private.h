/* What the parts of the bench share: the run, and one route through it. Private to replay/bench*.c.
 */
#ifndef KV_REPLAY_BENCH_PRIVATE_H
#define KV_REPLAY_BENCH_PRIVATE_H

#include "replay/bench.h"

/* Times of one lane, a value a round. */
enum { TIME_KERNEL, TIME_PLAN, TIME_WALL, TIME_GRAPH, TIME_GRAPH_WALL, TIMES };

typedef struct BenchLane {
    Route route;
    gboolean replays; /* a captured graph serves every step */
    AttnPlanConfig plan_config;
    AttnPlan plan;
    double *time[TIMES]; /* [BENCH_MAX_ROUNDS] each */
    gint rounds;         /* of these, in the cell in hand */
    guint16 *out;        /* of the check; [rows][q_heads][head_dim] */
    BenchLine line;
} BenchLane;

enum { BENCH_MAX_ROUNDS = 64 };

typedef struct Bench {
    const BenchConfig *config;
    const BackendOps *ops;
    Backend *backend; /* of the shape in hand */
    AttnShape shape;
    gboolean wide; /* the pool in hand has 2^32 elements a tensor or more */
    gint64 pool_pages;
    gint workers;
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
/* 2^32 elements a tensor, or more. */
gboolean bench_is_wide(const BenchCell *cell, gint64 pages);
/* Disjoint sets of pages that a cell rotates through. */
guint bench_sets(const AttnShape *shape, gint64 pages);

/* Backend, pool and lanes for the cells of one shape, wide or not. */
gboolean bench_shape_open(Bench *self, const AttnShape *shape, gboolean wide, GError **error);
void bench_shape_close(Bench *self);
/* Checks, then times. Never fails: what goes wrong is a note. */
BenchCellResult *bench_cell_run(Bench *self, const BenchCell *cell);
/* A cell that is not run, and why; takes `note`. */
BenchCellResult *bench_cell_skip(const Bench *self, const BenchCell *cell, char *note);
/* Runs every lane on the cell's first pages and compares (bench_check.c). */
void bench_check(Bench *self);
/* A step of the cell on the pages of the next set, or of the first. */
gboolean bench_begin(Bench *self, gboolean first_set, GError **error);
/* Plans and executes it; `what` as of BackendOps.execute. */
gboolean bench_run_lane(Bench *self, BenchLane *lane, guint what, Execution *ret,
                        double *ret_host_us, GError **error);
/* Which of n lanes runs as the k-th of a round. */
guint bench_lane_at(guint round, guint k, guint n);
void bench_line_note(BenchLane *lane, const char *why);
void bench_line_clear(gpointer line);

#endif
