/* Bimodal: with probability `share` a long request, else a short one; each kind's lengths uniform
 * in mean (1 +- spread). A long prompt goes with a long output. */
#include <math.h>

#include "workloads/lengths/lengths.h"

typedef struct BimodalConfig {
    double share, spread;
    gint64 long_prompt, long_output, short_prompt, short_output;
} BimodalConfig;

typedef struct Bimodal {
    LengthModel base;
    BimodalConfig config;
} Bimodal;

static LengthModel *bimodal_open(gconstpointer config, guint64 seed, guint32 replication,
                                 GError **error)
{
    Bimodal *self = g_new0(Bimodal, 1);
    length_model_init(&self->base, &lengths_bimodal, seed, replication);
    self->config = *(const BimodalConfig *)config;
    return &self->base;
}

static gint32 around(RngStream *rng, gint64 mean, double spread)
{
    gint64 half = (gint64)floor((double)mean * spread);
    half = MIN(half, mean - 1);
    return (gint32)(mean - half + (gint64)rng_below(rng, (guint64)(2 * half + 1)));
}

static void bimodal_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    const BimodalConfig *c = &((Bimodal *)base)->config;
    gboolean is_long = rng_uniform(&base->prompt) < c->share;
    *ret_prompt = around(&base->prompt, is_long ? c->long_prompt : c->short_prompt, c->spread);
    *ret_output = around(&base->output, is_long ? c->long_output : c->short_output, c->spread);
}

static const SpecOption bimodal_options[] = {
    {"share", SPEC_REAL, G_STRUCT_OFFSET(BimodalConfig, share), "0.25", 0, 1, NULL,
     "probability of a long request"},
    {"long_prompt", SPEC_INT, G_STRUCT_OFFSET(BimodalConfig, long_prompt), "32768", 1, 1e9, NULL,
     "its mean prompt"},
    {"long_output", SPEC_INT, G_STRUCT_OFFSET(BimodalConfig, long_output), "256", 1, 1e9, NULL,
     "its mean output"},
    {"short_prompt", SPEC_INT, G_STRUCT_OFFSET(BimodalConfig, short_prompt), "1024", 1, 1e9, NULL,
     "a short request's mean prompt"},
    {"short_output", SPEC_INT, G_STRUCT_OFFSET(BimodalConfig, short_output), "128", 1, 1e9, NULL,
     "its mean output"},
    {"spread", SPEC_REAL, G_STRUCT_OFFSET(BimodalConfig, spread), "0.5", 0, 1, NULL,
     "lengths are uniform in mean (1 +- spread)"},
    {NULL},
};

const LengthOps lengths_bimodal = {
    .info = {"bimodal", "long and short requests mixed", bimodal_options, sizeof(BimodalConfig)},
    .open = bimodal_open,
    .next = bimodal_next,
};
