/* A sweep: a grid of what-ifs, each cell run once, one CSV in the end.
 *
 * The grid is the product of axes {key, values}; the last axis varies fastest. A cell gives its
 * figures as CSV text; its line is the axes' values, then that. Workers (threads, or the ranks of
 * an MPI job, or both) take cells from a shared counter. Each finished cell is appended to the
 * worker's journal (PATH.journal.RANK) and synced, so that a job that dies goes on with `resume`:
 * journals of the same grid are read back, a torn last line is dropped. When all cells are there,
 * rank 0 writes PATH in order of cells and removes the journals: its bytes depend neither on
 * threads nor on ranks.
 */
#ifndef KV_SIM_SWEEP_H
#define KV_SIM_SWEEP_H

#include "base/progress.h"

#include <glib.h>

typedef struct SweepAxis {
    char *key;
    GPtrArray *values; /* char * */
} SweepAxis;

typedef struct SweepGrid {
    GArray *axes; /* SweepAxis */
} SweepGrid;
void sweep_grid_init(SweepGrid *grid);
void sweep_grid_clear(SweepGrid *grid);
/* "rate=1|2|4", "seed=1..5" (whole numbers), "rate=1..8:0.5" (with a step). FALSE + USAGE error. */
gboolean sweep_grid_add(SweepGrid *grid, const char *text, GError **error);
guint64 sweep_grid_cells(const SweepGrid *grid);
/* The values of a cell, one an axis; owned by the grid. */
void sweep_grid_cell(const SweepGrid *grid, guint64 cell, const char **ret_values);

/* Runs one cell; called from several threads at once. Its figures as CSV without a newline; free
 * it. NULL + error ends the sweep (what is finished stays in the journals). */
typedef char *(*SweepCell)(gpointer data, guint64 cell, const char *const *values, GError **error);

typedef struct SweepConfig {
    const SweepGrid *grid;
    const char *path;     /* of the CSV */
    const char *figures;  /* header of what cells give: "ttft_p50,ttft_p99" */
    const char *scenario; /* what else decides the results: journals of another one are not taken */
    guint threads;        /* 0 = one a processor */
    gboolean resume;
} SweepConfig;

/* TRUE on all ranks when the CSV is there. Progress is drawn by rank 0. */
gboolean sweep_run(const SweepConfig *config, SweepCell cell, gpointer data, Progress *progress,
                   GError **error);
/* TRUE on the rank that prints and writes: the only one outside of mpirun. */
gboolean sweep_is_first_rank(void);

#endif
