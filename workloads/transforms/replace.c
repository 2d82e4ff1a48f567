/* A log's arrivals replaced by a process, or its lengths by a model (--arrivals, --lengths beside a
 * log).
 *
 * Arrivals: the i-th request, in order, takes the process's i-th time; with a closed loop of users
 * each user takes the log's next request when its last one has finished. Lengths: block keys go,
 * since they belong to the old prompts.
 */
#include "workloads/arrivals.h"
#include "workloads/lengths.h"
#include "workloads/transforms/transforms.h"
#include "workloads/users.h"

typedef struct ReplaceArrivals {
    Wrapped base;
    PluginChoice choice;
    ArrivalProcess *process;
} ReplaceArrivals;

static int arrivals_next(RequestSource *base, Request *ret, GError **error)
{
    ReplaceArrivals *self = (ReplaceArrivals *)base;
    kv_ns t;
    int got = arrival_process_next(self->process, &t, error);
    if (got != 1 || (got = request_source_next(self->base.inner, ret, error)) != 1)
        return got;
    ret->arrival = ret->sent = t;
    return 1;
}

static int arrivals_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                              GError **error)
{
    ReplaceArrivals *self = (ReplaceArrivals *)base;
    int got = wrapped_next_turn(base, finished, now, ret, error);
    if (got != 0 || !self->process->ops->closed)
        return got;
    got = request_source_next(self->base.inner, ret, error);
    if (got == 1) {
        ret->wait = users_think(self->process);
        ret->arrival = ret->sent = now + ret->wait;
    }
    return got;
}

static void arrivals_free(RequestSource *base)
{
    ReplaceArrivals *self = (ReplaceArrivals *)base;
    arrival_process_free(self->process);
    plugin_choice_clear(&self->choice);
    wrapped_free(base);
}

static const RequestSourceOps arrivals_ops = {"replace arrivals", arrivals_next, arrivals_next_turn,
                                              arrivals_free};

RequestSource *replace_arrivals_new(RequestSource *inner, const TransformArgs *args, GError **error)
{
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "arrivals", arrivals, args->arrivals, error))
        return NULL;
    ArrivalProcess *process = ((const ArrivalOps *)choice.info)
                                  ->open(choice.config, args->seed, args->replication, error);
    if (process == NULL) {
        plugin_choice_clear(&choice);
        return NULL;
    }
    ReplaceArrivals *self = g_new0(ReplaceArrivals, 1);
    self->base = (Wrapped){.base.ops = &arrivals_ops, .inner = inner};
    self->choice = choice;
    self->process = process;
    return &self->base.base;
}

typedef struct ReplaceLengths {
    Wrapped base;
    PluginChoice choice;
    LengthModel *model;
} ReplaceLengths;

static int lengths_apply(ReplaceLengths *self, int got, Request *ret)
{
    if (got != 1)
        return got;
    length_model_next(self->model, &ret->prompt, &ret->output);
    ret->block_tokens = 0;
    ret->n_blocks = 0;
    ret->blocks = NULL;
    return 1;
}

static int lengths_next(RequestSource *base, Request *ret, GError **error)
{
    ReplaceLengths *self = (ReplaceLengths *)base;
    return lengths_apply(self, request_source_next(self->base.inner, ret, error), ret);
}

static int lengths_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                             GError **error)
{
    ReplaceLengths *self = (ReplaceLengths *)base;
    return lengths_apply(self, wrapped_next_turn(base, finished, now, ret, error), ret);
}

static void lengths_free(RequestSource *base)
{
    ReplaceLengths *self = (ReplaceLengths *)base;
    length_model_free(self->model);
    plugin_choice_clear(&self->choice);
    wrapped_free(base);
}

static const RequestSourceOps lengths_ops = {"replace lengths", lengths_next, lengths_next_turn,
                                             lengths_free};

RequestSource *replace_lengths_new(RequestSource *inner, const TransformArgs *args, GError **error)
{
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "lengths", lengths, args->lengths, error))
        return NULL;
    LengthModel *model =
        ((const LengthOps *)choice.info)->open(choice.config, args->seed, args->replication, error);
    if (model == NULL) {
        plugin_choice_clear(&choice);
        return NULL;
    }
    ReplaceLengths *self = g_new0(ReplaceLengths, 1);
    self->base = (Wrapped){.base.ops = &lengths_ops, .inner = inner};
    self->choice = choice;
    self->model = model;
    return &self->base.base;
}
