/* Gamma by mean m and coefficient of variation c: shape 1/c^2, scale m c^2. */
#include "workloads/lengths/by_mean.h"
#include "workloads/lengths/lengths.h"

static double draw(RngStream *rng, double mean, double cv)
{
    return cv > 0 ? mean * cv * cv * rng_gamma(rng, 1 / (cv * cv)) : mean;
}

static void gamma_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    by_mean_draw(base, draw, ret_prompt, ret_output);
}

static LengthModel *gamma_open(gconstpointer config, guint64 seed, guint32 replication,
                               GError **error)
{
    return by_mean_new(&lengths_gamma, config, seed, replication);
}

const LengthOps lengths_gamma = {
    .info = {"gamma", "Gamma by mean and CV", by_mean_options, sizeof(ByMeanConfig)},
    .open = gamma_open,
    .next = gamma_next,
};
