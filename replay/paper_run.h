/* All published experiments in one go, on whatever backend there is: counters for every step,
 * outputs checked and times taken for a few (or all) steps, into one tidy table.
 *
 * Tables (column `table` of paper.csv):
 *   serving   B1 bucketed, B4 homogeneous and bimodal, B8 bimodal, uniform, zipf; held-out seeds
 *   padding   buckets: exact, padded to 2 Ki .. 32 Ki, one bucket
 *   splits    B1 buckets at S 28, 32, 36; B8 work queue at S 16, 20, 24; balanced beside them
 *   gqa       G 1, 4, 8 at the same KV bytes
 *   isolated  one row of 8, 32, 64 Ki, half of the page ids never used
 *   long      one row that really is 16, 32, 64, 128 Ki: what B1 was meant to be
 * policies.csv: what share of steps each policy gives each route, on the serving traces.
 *
 * The published times (RTX 3060) stand in columns of their own where that run was published; this
 * machine's are never mixed with them. Not executed = empty.
 */
#ifndef KV_REPLAY_PAPER_RUN_H
#define KV_REPLAY_PAPER_RUN_H

#include "replay/paper.h"

typedef struct PaperRun {
    const PluginInfo *backend; /* NULL = auto */
    BackendConfig config;      /* threads, device ...; the shape is the experiment's */
    const char *profile;       /* device profile file, or NULL */
    gint seeds;                /* held-out seeds 20260623 ...; 5 published */
    gint executed;             /* steps executed in each cell of the first seed; 0 = none */
    gboolean execute_all;      /* every step of every seed */
    gint repeats;              /* 0 = the backend's default */
} PaperRun;
/* `quick`: one executed step a cell, one seed executed. */
void paper_run_init(PaperRun *self, gboolean quick);

/* Writes paper.csv and policies.csv into `folder` (made where it is missing; steps files live there
 * while in use) and adds a summary: backend, cells, checked outputs, largest errors, correct.
 * MACHINE error when an output was outside of the tolerance (the files are still written). */
gboolean paper_run(const PaperRun *self, const char *folder, Progress *progress,
                   JsonBuilder *summary, GError **error);

#endif
