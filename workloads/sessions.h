/* Session models: what a generated arrival opens instead of a single request.
 *
 * A model turns one arrival into a session of turns. Turn 0 arrives with it; turn k+1 arrives
 * `wait` after turn k has finished (the user thinks, a tool runs). New tokens of a turn come from
 * the length model (prompt = what the user or tool adds, output = the answer); the prompt of a
 * request is the whole context. Block keys (16 tokens each) name the shared parts: equal keys are
 * equal tokens after equal tokens, so a prefix cache finds what sessions share. State: O(open
 * sessions).
 */
#ifndef KV_WORKLOADS_SESSIONS_H
#define KV_WORKLOADS_SESSIONS_H

#include "workloads/lengths.h"
#include "workloads/request.h"

typedef struct SessionModel SessionModel;

typedef struct SessionOps {
    PluginInfo info;
    SessionModel *(*open)(gconstpointer config, guint64 seed, guint32 replication, GError **error);
    /* Fills lengths, session, turn 0, keys of `ret`. */
    void (*begin)(SessionModel *self, LengthModel *model, guint64 session, Request *ret);
    /* The turn after `finished`: lengths, turn, wait, keys. FALSE = the session is over. */
    gboolean (*turn)(SessionModel *self, LengthModel *model, const Request *finished, Request *ret);
    void (*free)(SessionModel *self);
} SessionOps;

struct SessionModel {
    const SessionOps *ops;
};

extern const PluginInfo *const session_models[]; /* of SessionOps */

void session_model_free(SessionModel *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SessionModel, session_model_free)

#endif
