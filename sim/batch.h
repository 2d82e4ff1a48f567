/* The decode batch as the steps describe it: slots, rows in order, lengths and block tables.
 *
 * Both ends of a steps file keep one: the writer to put a key state before each frame, the reader
 * to rebuild rows. batch_apply() takes one step's deltas (sim/step.h). Rows that stay grow by one
 * entry without being touched: a row's length is `base` + the number of steps applied, so the cost
 * of a step follows its deltas. Rows are in order of joining. Invalid deltas are refused, not
 * asserted: they may come from a damaged file.
 */
#ifndef KV_SIM_BATCH_H
#define KV_SIM_BATCH_H

#include "sim/step.h"

#define BATCH_MAX_SLOTS (1u << 20)

typedef struct BatchSlot {
    guint64 request;
    gint64 base;   /* length - steps applied, while it grows */
    gint64 frozen; /* length, while paused */
    guint32 n_pages, cap_pages;
    guint32 *pages;
    gboolean used, paused;
} BatchSlot;

typedef struct Batch {
    BatchSlot *slots;
    guint32 n_slots;    /* allocated */
    guint32 slots_seen; /* largest slot ever used + 1 */
    guint32 *order;     /* slots of the rows, in order of joining */
    guint32 n_rows, cap_rows;
    gint64 applied;    /* steps */
    guint32 rows;      /* not paused */
    gint64 sum_length; /* of these */
    gint64 max_length; /* of these; -1 = must be looked for */
} Batch;

void batch_init(Batch *b);
void batch_clear(Batch *b);
void batch_empty(Batch *b); /* no rows; memory is kept */
/* NULL, or what is wrong with the deltas (static text; the batch is then in no defined state). */
const char *batch_apply(Batch *b, const Step *step);
/* Adds a row outside of a step: `length` as after the last step applied. */
const char *batch_restore(Batch *b, const StepJoin *row, gboolean paused);
guint32 batch_length(const Batch *b, guint32 slot);
guint32 batch_max_length(Batch *b); /* of the rows that are not paused; 0 if none */

#endif
