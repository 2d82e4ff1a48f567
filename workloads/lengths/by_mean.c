#include "workloads/lengths/by_mean.h"

typedef struct ByMean {
    LengthModel base;
    ByMeanConfig config;
} ByMean;

const SpecOption by_mean_options[] = {
    {"prompt", SPEC_REAL, G_STRUCT_OFFSET(ByMeanConfig, prompt), "1024", 1, 1e9, NULL,
     "mean prompt tokens"},
    {"prompt_cv", SPEC_REAL, G_STRUCT_OFFSET(ByMeanConfig, prompt_cv), "1", 0, 100, NULL,
     "its coefficient of variation"},
    {"output", SPEC_REAL, G_STRUCT_OFFSET(ByMeanConfig, output), "128", 1, 1e9, NULL,
     "mean output tokens"},
    {"output_cv", SPEC_REAL, G_STRUCT_OFFSET(ByMeanConfig, output_cv), "1", 0, 100, NULL,
     "its coefficient of variation"},
    {"max", SPEC_INT, G_STRUCT_OFFSET(ByMeanConfig, max), "131072", 1, 1e9, NULL,
     "longest; longer draws are cut to it"},
    {NULL},
};

LengthModel *by_mean_new(const LengthOps *ops, const ByMeanConfig *config, guint64 seed,
                         guint32 replication)
{
    ByMean *self = g_new0(ByMean, 1);
    length_model_init(&self->base, ops, seed, replication);
    self->config = *config;
    return &self->base;
}

void by_mean_draw(LengthModel *base, ByMeanLaw law, gint32 *ret_prompt, gint32 *ret_output)
{
    const ByMeanConfig *c = &((ByMean *)base)->config;
    *ret_prompt = length_tokens(law(&base->prompt, c->prompt, c->prompt_cv), c->max);
    *ret_output = length_tokens(law(&base->output, c->output, c->output_cv), c->max);
}
