/* The session models' common part: a context that grows turn by turn, and is cut when it grows too
 * long.
 *
 * A session has n turns (geometric of mean `turns`, or exactly so many) and one of `groups` system
 * prompts of `system` tokens, which all sessions of the group share. Each turn adds new tokens (the
 * length model's prompt) and the answer (its output) to the context; a request's prompt is the
 * whole context. When that would exceed `limit`, the context is first cut to the system prompt and
 * `keep` of the rest (a summary: new content). All of a session's lengths are drawn when it begins,
 * so they do not depend on how it is served.
 */
#ifndef KV_WORKLOADS_SESSIONS_TALK_H
#define KV_WORKLOADS_SESSIONS_TALK_H

#include "workloads/sessions.h"

typedef struct TalkConfig {
    double turns, keep, wait_cv;
    int turns_law; /* 0 geometric, 1 fixed */
    int wait_law;  /* 0 exponential, 1 lognormal, 2 fixed */
    kv_ns wait;
    gint64 system, groups, limit, block;
} TalkConfig;

SessionModel *talk_model_new(const SessionOps *ops, const TalkConfig *config, guint64 seed,
                             guint32 replication);
void talk_model_begin(SessionModel *self, LengthModel *model, guint64 session, Request *ret);
gboolean talk_model_turn(SessionModel *self, LengthModel *model, const Request *finished,
                         Request *ret);
void talk_model_free(SessionModel *self);

extern const SessionOps sessions_chat;
extern const SessionOps sessions_agent;

#endif
