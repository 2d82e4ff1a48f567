/* A calibration table: what every route cost in executed steps, beside the counters that models
 * see.
 *
 * CSV, first line the column names (any order when read; further columns are ignored):
 *   step,rows,max_len,sum_len,q_heads,kv_heads,head_dim,workers,route,launches,merge_launches,tasks,
 *   grid_tasks,kv_bytes_touched,longest_tokens,merge_state_bytes,kernel_us,wall_us
 * Lines of one step stand together, one a route; kernel_us is of one layer, and wall_us (plan,
 * launches, wait; empty or missing = not measured) likewise. A replay or a bench writes one;
 * replay/fit.h makes a device profile of one or several.
 */
#ifndef KV_REPLAY_CALIBRATION_H
#define KV_REPLAY_CALIBRATION_H

#include "base/outfile.h"
#include "replay/policy.h"

/* What a table may say: a layer's attention above 0 and up to 1,000 s; that many CTAs. */
#define CALIBRATION_MAX_US 1e9
enum { CALIBRATION_MAX_WORKERS = 1000000 };

typedef struct CalibrationRow {
    guint64 group; /* rows of one step have the same; numbered on through several tables */
    guint32 rows;
    AttnShape shape;
    gint workers;
    guint route; /* index into the table's routes */
    AttnCounts counts;
    double kernel_us, wall_us; /* wall_us <= 0: not measured */
} CalibrationRow;

typedef struct CalibrationTable {
    GArray *rows;      /* CalibrationRow */
    GPtrArray *routes; /* char *, in order of appearance */
    guint64 groups;
} CalibrationTable;

CalibrationTable *calibration_table_new(void);
void calibration_table_free(CalibrationTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CalibrationTable, calibration_table_free)
/* Adds a file's rows. INPUT error "FILE:LINE: ..." on anything missing, no number, negative or
 * beyond what can be; a table without rows is none. */
gboolean calibration_table_read(CalibrationTable *self, const char *path, GError **error);

/* Adds a sample; its route and group are set here: a new group where `first`. */
void calibration_table_add(CalibrationTable *self, const CalibrationRow *row, const char *route,
                           gboolean first);

void calibration_write_header(OutFile *out);
void calibration_write_row(OutFile *out, guint64 step, const StepFeatures *features,
                           const Candidate *candidate, double kernel_us, double wall_us);

#endif
