/* What `doctor` and `list` say about peers: which are built, from what, for which shapes; and where
 * one is not, what to do about it.
 */
#ifndef KV_REPLAY_PEERS_TEXT_H
#define KV_REPLAY_PEERS_TEXT_H

#include <glib.h>

/* One line a peer, each ended by a newline; TRUE when all are built. */
gboolean peers_text(GString *out);
/* The way to get them, one sentence; NULL when all are built. */
const char *peers_fix(void);

#endif
