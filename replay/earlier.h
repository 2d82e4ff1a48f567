/* What an interrupted replay measured: the lines of its replay.csv.part, taken again instead of
 * executing those steps once more.
 *
 * Read forward, one step at a time. A last line that was cut (a killed process) is left out; lines
 * of a step in which not every route asked for was measured are left out too, and so are lines of a
 * step of other rows or lengths (another steps file's): such a step is executed again. All that
 * replay.csv says of an execution is read back, so that a resumed replay.csv has the bytes that the
 * first one had. Columns are those of replay.csv. Memory: one step's lines.
 */
#ifndef KV_REPLAY_EARLIER_H
#define KV_REPLAY_EARLIER_H

#include "replay/backend.h"

typedef struct Earlier Earlier;
/* INPUT error when it is no replay.csv. */
Earlier *earlier_open(const char *path, GError **error);
void earlier_free(Earlier *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Earlier, earlier_free)

/* Steps must be asked for in rising order. TRUE: ret[n] holds what `labels`[n] measured in `step`.
 * A line that cannot be read ends what is known: FALSE from there on. */
gboolean earlier_find(Earlier *self, const Step *step, const char *const *labels, guint n,
                      Execution *ret);

#endif
