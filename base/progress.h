/* Progress on a terminal, and interruption.
 *
 * A Progress draws one line on standard error, at most ten times a second, when that is a terminal
 * and quiet was not asked for; otherwise it does nothing. Cost of a tick: a compare, and a clock
 * read every 1024 ticks. It also carries the interruption flag: main() installs a handler for
 * SIGINT and SIGTERM that sets it; long loops ask progress_stop() and wind up in order.
 */
#ifndef KV_BASE_PROGRESS_H
#define KV_BASE_PROGRESS_H

#include <glib.h>

typedef struct Progress Progress;
/* `interrupted` is owned by the caller, set from a signal handler; NULL = never. */
Progress *progress_new(gboolean quiet, const volatile int *interrupted);
void progress_free(Progress *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Progress, progress_free)

/* All accept NULL and then do nothing. `total` 0 = unknown. */
void progress_begin(Progress *self, const char *what, guint64 total);
void progress_tick(Progress *self, guint64 done);
/* As a tick, for callers that come by a few times a second: no ticks are left out. */
void progress_show(Progress *self, guint64 done);
void progress_end(Progress *self);
gboolean progress_stop(const Progress *self);                  /* TRUE once interrupted */
gboolean progress_check(const Progress *self, GError **error); /* FALSE + INTERRUPTED */

#endif
