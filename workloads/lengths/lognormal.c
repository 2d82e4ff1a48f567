/* Lognormal by mean m and coefficient of variation c: s^2 = ln(1 + c^2), mu = ln m - s^2/2,
 * length = exp(mu + s N), N standard normal. */
#include <math.h>

#include "workloads/lengths/by_mean.h"
#include "workloads/lengths/lengths.h"

static double draw(RngStream *rng, double mean, double cv)
{
    double s2 = log1p(cv * cv);
    return exp(log(mean) - s2 / 2 + sqrt(s2) * rng_normal(rng));
}

static void lognormal_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    by_mean_draw(base, draw, ret_prompt, ret_output);
}

static LengthModel *lognormal_open(gconstpointer config, guint64 seed, guint32 replication,
                                   GError **error)
{
    return by_mean_new(&lengths_lognormal, config, seed, replication);
}

const LengthOps lengths_lognormal = {
    .info = {"lognormal", "lognormal by mean and CV", by_mean_options, sizeof(ByMeanConfig)},
    .open = lognormal_open,
    .next = lognormal_next,
};
