/* Fixed: every request alike. */
#include "workloads/lengths/lengths.h"

typedef struct FixedConfig {
    gint64 prompt, output;
} FixedConfig;

typedef struct Fixed {
    LengthModel base;
    FixedConfig config;
} Fixed;

static LengthModel *fixed_open(gconstpointer config, guint64 seed, guint32 replication,
                               GError **error)
{
    Fixed *self = g_new0(Fixed, 1);
    length_model_init(&self->base, &lengths_fixed, seed, replication);
    self->config = *(const FixedConfig *)config;
    return &self->base;
}

static void fixed_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    const Fixed *self = (const Fixed *)base;
    *ret_prompt = (gint32)self->config.prompt;
    *ret_output = (gint32)self->config.output;
}

static const SpecOption fixed_options[] = {
    {"prompt", SPEC_INT, G_STRUCT_OFFSET(FixedConfig, prompt), "1024", 1, 1e9, NULL,
     "prompt tokens"},
    {"output", SPEC_INT, G_STRUCT_OFFSET(FixedConfig, output), "128", 1, 1e9, NULL,
     "output tokens"},
    {NULL},
};

const LengthOps lengths_fixed = {
    .info = {"fixed", "every request alike", fixed_options, sizeof(FixedConfig)},
    .open = fixed_open,
    .next = fixed_next,
};
