/* Session names of a log to session numbers 0, 1, 2 ... in order of appearance, with turns counted.
 * Memory: O(sessions). */
#ifndef KV_WORKLOADS_NAMES_H
#define KV_WORKLOADS_NAMES_H

#include <glib.h>

typedef struct SessionNames SessionNames;
SessionNames *session_names_new(void);
void session_names_free(SessionNames *self);
/* Number of the session `name`; *ret_turn (may be NULL) = how often it was asked for before. */
gint64 session_number(SessionNames *self, const char *name, gsize len, gint32 *ret_turn);
gint64 session_fresh(SessionNames *self); /* a number that no name has */

#endif
