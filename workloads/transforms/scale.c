/* Scale: the rate times k, from the first request on; waits between turns are the client's and
 * stay. */
#include <math.h>

#include "base/error.h"
#include "workloads/transforms/transforms.h"

typedef struct ScaleConfig {
    double rate;
} ScaleConfig;

typedef struct Scale {
    Wrapped base;
    double rate;
} Scale;

static int scale_next(RequestSource *base, Request *ret, GError **error)
{
    Scale *self = (Scale *)base;
    int got = request_source_next(self->base.inner, ret, error);
    if (got != 1)
        return got;
    double t = kv_ns_to_seconds(ret->arrival) / self->rate; /* only for the range */
    kv_ns client = ret->sent - ret->arrival;
    if (!(t < 9.2e9)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "transform scale: arrivals past 292 years");
        return -1;
    }
    ret->arrival = (kv_ns)llround((double)ret->arrival / self->rate);
    ret->sent = ret->arrival + client;
    return 1;
}

static const RequestSourceOps scale_ops = {"scale", scale_next, wrapped_next_turn, wrapped_free};

static RequestSource *scale_wrap(gconstpointer config, RequestSource *inner,
                                 const TransformArgs *args, guint index, FormatNotes *notes,
                                 GError **error)
{
    Scale *self = g_new0(Scale, 1);
    self->base = (Wrapped){.base.ops = &scale_ops, .inner = inner};
    self->rate = ((const ScaleConfig *)config)->rate;
    return &self->base.base;
}

static const SpecOption scale_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(ScaleConfig, rate), NULL, 1e-6, 1e6, NULL,
     "factor on the rate of arrivals: 2 = twice as many a second"},
    {NULL},
};

const TransformOps transform_scale = {
    .info = {"scale", "rate of arrivals times a factor, from the first request on", scale_options,
             sizeof(ScaleConfig)},
    .wrap = scale_wrap,
};
