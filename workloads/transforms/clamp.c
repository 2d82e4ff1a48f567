/* Clamp: lengths cut to a limit; prompt before output, neither below 1. */
#include "base/error.h"
#include "workloads/transforms/transforms.h"

typedef struct ClampConfig {
    gint64 context, prompt, output;
} ClampConfig;

typedef struct Clamp {
    Wrapped base;
    ClampConfig config;
    FormatNotes *notes;
} Clamp;

static void clamp_request(Clamp *self, Request *r)
{
    const ClampConfig *c = &self->config;
    gint64 prompt = r->prompt, output = r->output;
    if (c->prompt > 0)
        prompt = MIN(prompt, c->prompt);
    if (c->output > 0)
        output = MIN(output, c->output);
    if (c->context > 0) {
        prompt = MIN(prompt, c->context - 1);
        output = MIN(output, c->context - prompt);
    }
    if (prompt != r->prompt)
        format_note(self->notes, "prompt cut by clamp");
    if (output != r->output)
        format_note(self->notes, "output cut by clamp");
    r->prompt = (gint32)prompt;
    r->output = (gint32)output;
    if (r->n_blocks > 0)
        r->n_blocks =
            (guint32)MIN((gint64)r->n_blocks, (prompt + r->block_tokens - 1) / r->block_tokens);
}

static int clamp_next(RequestSource *base, Request *ret, GError **error)
{
    int got = request_source_next(((Wrapped *)base)->inner, ret, error);
    if (got == 1)
        clamp_request((Clamp *)base, ret);
    return got;
}

static int clamp_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                           GError **error)
{
    int got = wrapped_next_turn(base, finished, now, ret, error);
    if (got == 1)
        clamp_request((Clamp *)base, ret);
    return got;
}

static const RequestSourceOps clamp_ops = {"clamp", clamp_next, clamp_next_turn, wrapped_free};

static RequestSource *clamp_wrap(gconstpointer config, RequestSource *inner,
                                 const TransformArgs *args, guint index, FormatNotes *notes,
                                 GError **error)
{
    if (((const ClampConfig *)config)->context == 1) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "transform clamp: context=1: expected 0 or at least 2");
        return NULL;
    }
    Clamp *self = g_new0(Clamp, 1);
    self->base = (Wrapped){.base.ops = &clamp_ops, .inner = inner};
    self->config = *(const ClampConfig *)config;
    self->notes = notes;
    return &self->base.base;
}

static const SpecOption clamp_options[] = {
    {"context", SPEC_INT, G_STRUCT_OFFSET(ClampConfig, context), "0", 0, 1e9, NULL,
     "largest prompt + output, at least 2; 0 = none"},
    {"prompt", SPEC_INT, G_STRUCT_OFFSET(ClampConfig, prompt), "0", 0, 1e9, NULL,
     "largest prompt; 0 = none"},
    {"output", SPEC_INT, G_STRUCT_OFFSET(ClampConfig, output), "0", 0, 1e9, NULL,
     "largest output; 0 = none"},
    {NULL},
};

const TransformOps transform_clamp = {
    .info = {"clamp", "lengths cut to a limit, never below 1; cuts are counted", clamp_options,
             sizeof(ClampConfig)},
    .wrap = clamp_wrap,
};
