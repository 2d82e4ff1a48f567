/* Uniform: whole numbers, each of [min, max] as likely, prompt and output independent. */
#include "base/error.h"
#include "workloads/lengths/lengths.h"

typedef struct UniformConfig {
    gint64 prompt_min, prompt_max, output_min, output_max;
} UniformConfig;

typedef struct Uniform {
    LengthModel base;
    UniformConfig config;
} Uniform;

static LengthModel *uniform_open(gconstpointer config, guint64 seed, guint32 replication,
                                 GError **error)
{
    const UniformConfig *c = config;
    if (c->prompt_min > c->prompt_max || c->output_min > c->output_max) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "lengths uniform: expected min <= max");
        return NULL;
    }
    Uniform *self = g_new0(Uniform, 1);
    length_model_init(&self->base, &lengths_uniform, seed, replication);
    self->config = *c;
    return &self->base;
}

static gint32 draw(RngStream *rng, gint64 min, gint64 max)
{
    return (gint32)(min + (gint64)rng_below(rng, (guint64)(max - min + 1)));
}

static void uniform_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    Uniform *self = (Uniform *)base;
    *ret_prompt = draw(&base->prompt, self->config.prompt_min, self->config.prompt_max);
    *ret_output = draw(&base->output, self->config.output_min, self->config.output_max);
}

static const SpecOption uniform_options[] = {
    {"prompt_min", SPEC_INT, G_STRUCT_OFFSET(UniformConfig, prompt_min), "1", 1, 1e9, NULL,
     "smallest prompt"},
    {"prompt_max", SPEC_INT, G_STRUCT_OFFSET(UniformConfig, prompt_max), "2048", 1, 1e9, NULL,
     "largest prompt"},
    {"output_min", SPEC_INT, G_STRUCT_OFFSET(UniformConfig, output_min), "1", 1, 1e9, NULL,
     "smallest output"},
    {"output_max", SPEC_INT, G_STRUCT_OFFSET(UniformConfig, output_max), "256", 1, 1e9, NULL,
     "largest output"},
    {NULL},
};

const LengthOps lengths_uniform = {
    .info = {"uniform", "each length of a range as likely", uniform_options, sizeof(UniformConfig)},
    .open = uniform_open,
    .next = uniform_next,
};
