#include "workloads/lengths.h"

#include <math.h>

#include "workloads/lengths/lengths.h"

const PluginInfo *const lengths[] = {
    &lengths_fixed.info,     &lengths_uniform.info,
    &lengths_normal.info,    &lengths_lognormal.info,
    &lengths_gamma.info,     &lengths_zipf.info,
    &lengths_bimodal.info,   &lengths_paper.info,
    &lengths_empirical.info, NULL,
};

void length_model_free(LengthModel *self)
{
    if (self == NULL)
        return;
    if (self->ops->free != NULL)
        self->ops->free(self);
    else
        g_free(self);
}

void length_model_init(LengthModel *self, const LengthOps *ops, guint64 seed, guint32 replication)
{
    self->ops = ops;
    rng_init(&self->prompt, seed, RNG_LENGTHS, 0, replication);
    rng_init(&self->output, seed, RNG_LENGTHS, 1, replication);
}

gint32 length_tokens(double value, gint64 max)
{
    if (!(value > 1))
        return 1;
    return value < (double)max ? (gint32)floor(value + 0.5) : (gint32)max;
}
