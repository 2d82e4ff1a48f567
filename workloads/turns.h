/* Closed-loop turns of a log that wait for their predecessor: a queue for each session. */
#ifndef KV_WORKLOADS_TURNS_H
#define KV_WORKLOADS_TURNS_H

#include "workloads/request.h"

typedef struct Turns Turns;
Turns *turns_new(void);
void turns_free(Turns *self);
/* Copies the request, its keys and observation; it waits behind the session's earlier ones. */
void turns_add(Turns *self, const Request *request);
/* Next turn of the session; what it points to is valid until the next call. FALSE if none waits. */
gboolean turns_take(Turns *self, gint64 session, Request *ret);
gboolean turns_has(const Turns *self, gint64 session);
guint64 turns_count(const Turns *self); /* waiting, all sessions */

#endif
