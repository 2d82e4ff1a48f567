/* replay.csv: one line per (step, route). Private to replay/.
 *
 * Lines are made by hand into a buffer, because a counters run writes millions of them; numbers are
 * integers or fixed decimals, so no locale can touch them. Empty = not executed, not checked, or (a
 * peer's launches) not known.
 */
#ifndef KV_REPLAY_CSV_H
#define KV_REPLAY_CSV_H

#include "base/outfile.h"
#include "replay/backend.h"

typedef struct ReplayCsv ReplayCsv;
ReplayCsv *replay_csv_new(OutFile *out); /* writes the header line; NULL gives NULL */
void replay_csv_free(ReplayCsv *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ReplayCsv, replay_csv_free)

typedef struct ReplayLine {
    const Route *route;
    gboolean chosen;
    const AttnCounts *counts;
    gboolean counted;           /* FALSE: a peer that has not run */
    const Execution *execution; /* NULL = not executed */
    guint32 replica;
    const char *device; /* where it was executed: "0", or the ranks' "0;1" */
} ReplayLine;

/* The columns that all of a step's lines share. */
void replay_csv_step(ReplayCsv *self, const Step *step, guint64 prefill_tokens);
void replay_csv_line(ReplayCsv *self, const ReplayLine *line);
/* Hands whole lines to the file; FALSE when it cannot take them. */
gboolean replay_csv_flush(ReplayCsv *self, GError **error);

#endif
