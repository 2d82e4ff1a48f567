/* Thin: each request (a session with all its turns, where turns wait) kept with a probability. */
#include "base/rng.h"
#include "workloads/transforms/transforms.h"

typedef struct ThinConfig {
    double keep;
} ThinConfig;

typedef struct Thin {
    Wrapped base;
    double keep;
    RngStream rng;
    kv_ns zero;
    gboolean begun;
} Thin;

static int thin_next(RequestSource *base, Request *ret, GError **error)
{
    Thin *self = (Thin *)base;
    int got;
    while ((got = request_source_next(self->base.inner, ret, error)) == 1)
        if (rng_uniform(&self->rng) < self->keep)
            break;
    if (got != 1)
        return got;
    if (!self->begun)
        self->zero = ret->arrival;
    self->begun = TRUE;
    ret->arrival -= self->zero;
    ret->sent -= self->zero;
    return 1;
}

static const RequestSourceOps thin_ops = {"thin", thin_next, wrapped_next_turn, wrapped_free};

static RequestSource *thin_wrap(gconstpointer config, RequestSource *inner,
                                const TransformArgs *args, guint index, FormatNotes *notes,
                                GError **error)
{
    Thin *self = g_new0(Thin, 1);
    self->base = (Wrapped){.base.ops = &thin_ops, .inner = inner};
    self->keep = ((const ThinConfig *)config)->keep;
    rng_init(&self->rng, args->seed, RNG_THIN, index, args->replication);
    return &self->base.base;
}

static const SpecOption thin_options[] = {
    {"keep", SPEC_REAL, G_STRUCT_OFFSET(ThinConfig, keep), NULL, 0, 1, NULL,
     "probability to keep a request"},
    {NULL},
};

const TransformOps transform_thin = {
    .info = {"thin", "each request kept with a probability", thin_options, sizeof(ThinConfig)},
    .wrap = thin_wrap,
};
