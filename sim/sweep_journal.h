/* The journal of a sweep: finished cells, one line each, safe on disk before the next begins.
 *
 *   kvreplay-sweep 1 DIGEST          the grid and scenario it belongs to
 *   CELL,LENGTH,TEXT                 LENGTH = bytes of TEXT: a torn line shows
 * Lines are in order of finishing. Reading stops at the first line that is not whole.
 */
#ifndef KV_SIM_SWEEP_JOURNAL_H
#define KV_SIM_SWEEP_JOURNAL_H

#include <glib.h>

typedef struct SweepJournal SweepJournal;
/* Begins a new one, or goes on after what is whole in the old one. */
SweepJournal *sweep_journal_open(const char *path, const char *digest, gboolean go_on,
                                 GError **error);
/* Written and synced. Any thread. */
gboolean sweep_journal_add(SweepJournal *self, guint64 cell, const char *text, GError **error);
/* One without a cell is removed. */
void sweep_journal_close(SweepJournal *self);
/* Puts the texts of whole lines into `lines` (n places, NULL = none); frees what they replace. A
 * file that is missing or of another digest counts as empty. */
void sweep_journal_read(const char *path, const char *digest, char **lines, guint64 n);

#endif
