/* A step: one engine iteration, and who is told of it.
 *
 * The simulator describes each step as a change from the one before: rows that join the decode
 * batch, leave it, or sit a step out; pages appended; prefill chunks. A decode row that stays grows
 * by one entry without a word. A step's decode row has `length` = entries attended to, its own new
 * one included. Rows keep a `slot` (a small number, reused after they leave) for as long as they
 * are in the batch, so that a device can keep block tables in place and apply deltas.
 *
 * Order of rows = order of joining: a row that joins goes to the end. (It is the scheduler's
 * running order but where a later request's prompt was finished before an earlier one's.) All
 * arrays are valid during the call only.
 */
#ifndef KV_SIM_STEP_H
#define KV_SIM_STEP_H

#include "base/ns.h"

typedef struct StepJoin {
    guint64 request;
    guint32 slot;
    guint32 length;  /* in this step */
    guint32 n_pages; /* pages held in this step, >= ceil(length / page size): some reserve ahead */
    const guint32 *pages; /* [n_pages] physical ids, 0 .. pool_pages-1 */
} StepJoin;

typedef struct StepAppend {
    guint32 slot;
    guint32 page;
} StepAppend;

typedef struct StepPrefill {
    guint64 request;
    guint32 offset; /* entries computed or cached before this chunk */
    guint32 tokens; /* in this chunk */
    guint32 cached; /* prefix-cache hit tokens, on the request's first chunk; else 0 */
} StepPrefill;

typedef struct Step {
    guint64 index;
    kv_ns start;
    kv_ns duration;
    guint32 waiting;    /* queued after scheduling */
    guint32 pages_used; /* in use during the step */
    guint64 tokens_held;
    /* deltas against the step before, in order of application: left, paused, resumed, joined,
     * appended. A row that left frees its slot for this very step's joins. */
    guint32 n_left, n_paused, n_resumed, n_joined, n_appended, n_prefill;
    const guint32 *left;    /* slots */
    const guint32 *paused;  /* slots: in the batch, not scheduled; they do not grow */
    const guint32 *resumed; /* slots */
    const StepJoin *joined;
    const StepAppend *appended;
    const StepPrefill *prefill;
    /* totals of the decode rows of this step (paused ones not counted) */
    guint32 rows;
    guint32 max_length;
    guint64 sum_length;
} Step;

typedef struct StepSink StepSink;
struct StepSink {
    /* Once, before the first step: page ids are below `pool_pages` (more than the configured pool
     * where a layout leaves holes). NULL = not asked for. */
    gboolean (*begin)(StepSink *self, guint64 pool_pages, GError **error);
    /* FALSE + error stops the run in order. */
    gboolean (*step)(StepSink *self, const Step *step, GError **error);
};

#endif
