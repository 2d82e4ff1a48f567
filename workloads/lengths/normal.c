/* Normal, cut at 1 token from below and at `max` from above: length = mean (1 + cv N). The cut
 * lifts the mean when cv is large (by 0.1 % at cv 0.35, 8 % at cv 1). */
#include "workloads/lengths/lengths.h"
#include "workloads/lengths/by_mean.h"

static double draw(RngStream *rng, double mean, double cv)
{
    return mean * (1 + cv * rng_normal(rng));
}

static void normal_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    by_mean_draw(base, draw, ret_prompt, ret_output);
}

static LengthModel *normal_open(gconstpointer config, guint64 seed, guint32 replication,
                                GError **error)
{
    return by_mean_new(&lengths_normal, config, seed, replication);
}

const LengthOps lengths_normal = {
    .info = {"normal", "normal by mean and CV, cut at 1 token", by_mean_options,
             sizeof(ByMeanConfig)},
    .open = normal_open,
    .next = normal_next,
};
