/* Lognormal, given by mean m and coefficient of variation c: s^2 = ln(1 + c^2), mu = ln m - s^2/2,
 * length = exp(mu + s N), N standard normal. Prompt and output independent. */
#include <math.h>

#include "workloads/lengths/lengths.h"

typedef struct LognormalConfig {
    double prompt, prompt_cv, output, output_cv;
    gint64 max;
} LognormalConfig;

typedef struct Lognormal {
    LengthModel base;
    LognormalConfig config;
} Lognormal;

static LengthModel *lognormal_open(gconstpointer config, guint64 seed, guint32 replication,
                                   GError **error)
{
    Lognormal *self = g_new0(Lognormal, 1);
    length_model_init(&self->base, &lengths_lognormal, seed, replication);
    self->config = *(const LognormalConfig *)config;
    return &self->base;
}

static double draw(RngStream *rng, double mean, double cv)
{
    double s2 = log1p(cv * cv);
    return exp(log(mean) - s2 / 2 + sqrt(s2) * rng_normal(rng));
}

static void lognormal_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    const LognormalConfig *c = &((Lognormal *)base)->config;
    *ret_prompt = length_tokens(draw(&base->prompt, c->prompt, c->prompt_cv), c->max);
    *ret_output = length_tokens(draw(&base->output, c->output, c->output_cv), c->max);
}

static const SpecOption lognormal_options[] = {
    {"prompt", SPEC_REAL, G_STRUCT_OFFSET(LognormalConfig, prompt), "1024", 1, 1e9, NULL,
     "mean prompt tokens"},
    {"prompt_cv", SPEC_REAL, G_STRUCT_OFFSET(LognormalConfig, prompt_cv), "1", 0, 100, NULL,
     "its coefficient of variation"},
    {"output", SPEC_REAL, G_STRUCT_OFFSET(LognormalConfig, output), "128", 1, 1e9, NULL,
     "mean output tokens"},
    {"output_cv", SPEC_REAL, G_STRUCT_OFFSET(LognormalConfig, output_cv), "1", 0, 100, NULL,
     "its coefficient of variation"},
    {"max", SPEC_INT, G_STRUCT_OFFSET(LognormalConfig, max), "131072", 1, 1e9, NULL,
     "longest; longer draws are cut to it"},
    {NULL},
};

const LengthOps lengths_lognormal = {
    .info = {"lognormal", "lognormal by mean and CV", lognormal_options, sizeof(LognormalConfig)},
    .open = lognormal_open,
    .next = lognormal_next,
};
