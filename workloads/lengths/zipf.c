/* Zipf: rank k of 1..ranks with probability proportional to k^-s; prompt = largest k^-slope, so
 * that the usual prompt is the largest and the rare ones are short. Output: geometric of a mean
 * (support 1, 2 ...), independent. The cumulative table takes 8 bytes a rank. */
#include <math.h>

#include "workloads/lengths/lengths.h"

typedef struct ZipfConfig {
    double exponent, slope, output;
    gint64 ranks, largest, max;
} ZipfConfig;

typedef struct Zipf {
    LengthModel base;
    ZipfConfig config;
    double *cumulative; /* [ranks] */
} Zipf;

static LengthModel *zipf_open(gconstpointer config, guint64 seed, guint32 replication,
                              GError **error)
{
    Zipf *self = g_new0(Zipf, 1);
    length_model_init(&self->base, &lengths_zipf, seed, replication);
    self->config = *(const ZipfConfig *)config;
    self->cumulative = g_new(double, self->config.ranks);
    double sum = 0;
    for (gint64 k = 0; k < self->config.ranks; k++)
        self->cumulative[k] = sum += pow((double)(k + 1), -self->config.exponent);
    return &self->base;
}

static void zipf_free(LengthModel *base)
{
    g_free(((Zipf *)base)->cumulative);
    g_free(base);
}

static void zipf_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    Zipf *self = (Zipf *)base;
    const ZipfConfig *c = &self->config;
    double u = rng_uniform(&base->prompt) * self->cumulative[c->ranks - 1];
    gint64 lo = 0, hi = c->ranks - 1;
    while (lo < hi) {
        gint64 mid = (lo + hi) / 2;
        if (self->cumulative[mid] > u)
            hi = mid;
        else
            lo = mid + 1;
    }
    *ret_prompt = length_tokens((double)c->largest * pow((double)(lo + 1), -c->slope), c->max);
    double p = 1 / c->output;
    double n = p >= 1 ? 1 : 1 + floor(log(rng_uniform_open(&base->output)) / log1p(-p));
    *ret_output = length_tokens(n, c->max);
}

static const SpecOption zipf_options[] = {
    {"exponent", SPEC_REAL, G_STRUCT_OFFSET(ZipfConfig, exponent), "1", 0, 10, NULL, "s of k^-s"},
    {"ranks", SPEC_INT, G_STRUCT_OFFSET(ZipfConfig, ranks), "32", 1, 1e7, NULL, "number of ranks"},
    {"largest", SPEC_INT, G_STRUCT_OFFSET(ZipfConfig, largest), "32768", 1, 1e9, NULL,
     "prompt tokens of rank 1"},
    {"slope", SPEC_REAL, G_STRUCT_OFFSET(ZipfConfig, slope), "0.5", 0, 10, NULL,
     "prompt of rank k = largest k^-slope"},
    {"output", SPEC_REAL, G_STRUCT_OFFSET(ZipfConfig, output), "128", 1, 1e9, NULL,
     "mean output tokens (geometric)"},
    {"max", SPEC_INT, G_STRUCT_OFFSET(ZipfConfig, max), "131072", 1, 1e9, NULL,
     "longest; longer draws are cut to it"},
    {NULL},
};

const LengthOps lengths_zipf = {
    .info = {"zipf", "prompts by Zipf rank, geometric outputs", zipf_options, sizeof(ZipfConfig)},
    .open = zipf_open,
    .next = zipf_next,
    .free = zipf_free,
};
