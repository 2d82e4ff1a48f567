#include "workloads/generate.h"

#include "workloads/arrivals.h"
#include "workloads/lengths.h"
#include "workloads/sessions.h"
#include "workloads/users.h"

typedef struct Generated {
    RequestSource base;
    ArrivalProcess *arrivals;
    LengthModel *lengths;
    SessionModel *sessions; /* NULL = single requests */
    guint64 limit, given, sessions_begun;
} Generated;

static void blank(Request *ret)
{
    *ret = (Request){.deadline = KV_NS_NONE, .session = KV_NO_SESSION, .wait = KV_NS_NONE};
}

static int generated_next(RequestSource *base, Request *ret, GError **error)
{
    Generated *self = (Generated *)base;
    kv_ns t;
    if (self->given >= self->limit)
        return 0;
    int got = arrival_process_next(self->arrivals, &t, error);
    if (got != 1)
        return got;
    blank(ret);
    ret->arrival = ret->sent = t;
    ret->mark = self->given++;
    if (self->sessions != NULL)
        self->sessions->ops->begin(self->sessions, self->lengths, self->sessions_begun++, ret);
    else
        length_model_next(self->lengths, &ret->prompt, &ret->output);
    return 1;
}

static int generated_next_turn(RequestSource *base, const Request *finished, kv_ns now,
                               Request *ret, GError **error)
{
    Generated *self = (Generated *)base;
    if (self->given >= self->limit)
        return 0;
    blank(ret);
    ret->session = finished->session;
    if (self->sessions != NULL &&
        self->sessions->ops->turn(self->sessions, self->lengths, finished, ret)) {
        ret->mark = finished->mark;
    } else if (self->arrivals->ops->closed) {
        /* The user's session, if any, is over: the next one begins. */
        ret->wait = users_think(self->arrivals);
        ret->mark = finished->mark;
        if (self->sessions != NULL)
            self->sessions->ops->begin(self->sessions, self->lengths, self->sessions_begun++, ret);
        else
            length_model_next(self->lengths, &ret->prompt, &ret->output);
    } else {
        return 0;
    }
    self->given++;
    ret->arrival = ret->sent = now + ret->wait;
    return 1;
}

static void generated_free(RequestSource *base)
{
    Generated *self = (Generated *)base;
    arrival_process_free(self->arrivals);
    length_model_free(self->lengths);
    session_model_free(self->sessions);
    g_free(self);
}

static const RequestSourceOps generated_ops = {"generated", generated_next, generated_next_turn,
                                               generated_free};

RequestSource *generated_source_new(const GenerateConfig *config, GError **error)
{
    const ArrivalOps *a = (const ArrivalOps *)config->arrivals.info;
    const LengthOps *l = (const LengthOps *)config->lengths.info;
    const SessionOps *s = (const SessionOps *)config->sessions.info;
    Generated *self = g_new0(Generated, 1);
    self->base.ops = &generated_ops;
    self->limit = config->requests;
    self->arrivals = a->open(config->arrivals.config, config->seed, config->replication, error);
    if (self->arrivals != NULL)
        self->lengths = l->open(config->lengths.config, config->seed, config->replication, error);
    if (self->lengths != NULL && s != NULL)
        self->sessions = s->open(config->sessions.config, config->seed, config->replication, error);
    if (self->lengths == NULL || (s != NULL && self->sessions == NULL)) {
        generated_free(&self->base);
        return NULL;
    }
    return &self->base;
}
