#include "workloads/sessions/talk.h"

#include <math.h>

#include "workloads/context_keys.h"
#include "workloads/key_set.h"

typedef struct Talk {
    ContextKeys *context;
    RngStream rng;
    guint64 seed; /* of its contents' names */
    guint turn, turns;
    gint32 *prompts, *outputs; /* [turns] new tokens and answers */
} Talk;

typedef struct TalkModel {
    SessionModel base;
    TalkConfig config;
    guint64 seed;
    guint32 replication;
    GHashTable *talks; /* session -> Talk */
} TalkModel;

static void talk_free(gpointer data)
{
    Talk *talk = data;
    context_keys_free(talk->context);
    g_free(talk->prompts);
    g_free(talk->outputs);
    g_free(talk);
}

SessionModel *talk_model_new(const SessionOps *ops, const TalkConfig *config, guint64 seed,
                             guint32 replication)
{
    TalkModel *self = g_new0(TalkModel, 1);
    self->base.ops = ops;
    self->config = *config;
    self->seed = seed;
    self->replication = replication;
    self->talks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, talk_free);
    return &self->base;
}

void talk_model_free(SessionModel *base)
{
    g_hash_table_unref(((TalkModel *)base)->talks);
    g_free(base);
}

static guint draw_turns(const TalkConfig *c, RngStream *rng)
{
    if (c->turns_law == 1 || c->turns <= 1)
        return (guint)MAX(c->turns + 0.5, 1.0);
    double n = 1 + floor(log(rng_uniform_open(rng)) / log1p(-1 / c->turns));
    return (guint)MIN(n, 1e6);
}

static kv_ns draw_wait(const TalkConfig *c, RngStream *rng)
{
    double mean = kv_ns_to_seconds(c->wait), seconds = mean;
    if (c->wait_law == 0)
        seconds = mean * rng_exponential(rng);
    else if (c->wait_law == 1 && mean > 0) {
        double s2 = log1p(c->wait_cv * c->wait_cv);
        seconds = exp(log(mean) - s2 / 2 + sqrt(s2) * rng_normal(rng));
    }
    return kv_ns_from_seconds(MIN(seconds, 1e9));
}

/* Makes room for the turn's new tokens under the limit. */
static void compact(const TalkConfig *c, Talk *talk, gint64 added)
{
    gint64 tokens = context_keys_tokens(talk->context);
    if (c->limit <= 0 || tokens + added <= c->limit)
        return;
    gint64 kept = (gint64)floor(c->keep * (double)(tokens - c->system));
    kept = MAX(MIN(kept, c->limit - c->system - added), 0);
    context_keys_truncate(talk->context, c->system);
    context_keys_append(talk->context, key_chain(talk->seed, (guint64)talk->turn << 2 | 3), kept);
}

static void fill_request(const TalkConfig *c, Talk *talk, Request *ret)
{
    guint k = talk->turn;
    compact(c, talk, talk->prompts[k]);
    context_keys_append(talk->context, key_chain(talk->seed, (guint64)k << 2 | 1),
                        talk->prompts[k]);
    ret->turn = (gint32)k;
    ret->prompt = (gint32)MIN(context_keys_tokens(talk->context), G_MAXINT32);
    ret->output = talk->outputs[k];
    guint32 full, all;
    context_keys_get(talk->context, &full);
    context_keys_append(talk->context, key_chain(talk->seed, (guint64)k << 2 | 2),
                        talk->outputs[k]);
    ret->blocks = context_keys_get(talk->context, &all);
    ret->n_blocks = full;
    ret->block_tokens = full > 0 ? (gint32)c->block : 0;
    talk->turn++;
}

void talk_model_begin(SessionModel *base, LengthModel *model, guint64 session, Request *ret)
{
    TalkModel *self = (TalkModel *)base;
    const TalkConfig *c = &self->config;
    Talk *talk = g_new0(Talk, 1);
    rng_init(&talk->rng, self->seed, RNG_SESSIONS, session, self->replication);
    talk->seed = key_chain(key_mix(self->seed), session);
    talk->turns = draw_turns(c, &talk->rng);
    talk->prompts = g_new(gint32, talk->turns);
    talk->outputs = g_new(gint32, talk->turns);
    for (guint i = 0; i < talk->turns; i++)
        length_model_next(model, &talk->prompts[i], &talk->outputs[i]);
    talk->context = context_keys_new((gint32)c->block);
    guint64 group = rng_below(&talk->rng, (guint64)c->groups);
    context_keys_append(talk->context, key_chain(key_mix(self->seed ^ 0x73797374656d), group),
                        c->system);
    ret->session = (gint64)session;
    fill_request(c, talk, ret);
    /* Kept until its last request has finished: the request's keys lie in it. */
    g_hash_table_replace(self->talks, g_memdup2(&ret->session, sizeof ret->session), talk);
}

gboolean talk_model_turn(SessionModel *base, LengthModel *model, const Request *finished,
                         Request *ret)
{
    TalkModel *self = (TalkModel *)base;
    Talk *talk = g_hash_table_lookup(self->talks, &finished->session);
    if (talk == NULL)
        return FALSE;
    if (talk->turn == talk->turns) {
        g_hash_table_remove(self->talks, &finished->session);
        return FALSE;
    }
    ret->session = finished->session;
    ret->wait = draw_wait(&self->config, &talk->rng);
    fill_request(&self->config, talk, ret);
    return TRUE;
}
