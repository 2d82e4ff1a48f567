/* Gamma renewal process: gaps ~ Gamma(shape b, scale 1/(rate b)), so mean 1/rate and CV 1/sqrt(b).
 *
 * b is given as `cv` (b = 1/cv^2) or as vLLM's `burstiness` (b itself; below 1 is burstier than
 * Poisson, "inf" is evenly spaced). The index of dispersion of counts tends to cv^2.
 */
#include "workloads/arrivals/arrivals.h"

#include "base/error.h"
#include "base/units.h"

typedef struct GammaConfig {
    double rate, cv;
    char *burstiness;
} GammaConfig;

typedef struct Gamma {
    ArrivalProcess base;
    double rate, shape; /* shape 0 = even */
} Gamma;

static gboolean gamma_shape(const GammaConfig *config, double *ret, GError **error)
{
    if (config->burstiness == NULL) {
        *ret = config->cv > 0 ? 1 / (config->cv * config->cv) : 0;
        return TRUE;
    }
    if (g_ascii_strcasecmp(config->burstiness, "inf") == 0) {
        *ret = 0;
        return TRUE;
    }
    if (kv_parse_real(config->burstiness, ret) && *ret > 0)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                "arrivals gamma: burstiness=%s: expected a number above 0, or inf",
                config->burstiness);
    return FALSE;
}

static ArrivalProcess *gamma_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    double shape;
    if (!gamma_shape(config, &shape, error))
        return NULL;
    Gamma *self = g_new0(Gamma, 1);
    arrival_process_init(&self->base, &arrivals_gamma, seed, replication);
    self->rate = ((const GammaConfig *)config)->rate;
    self->shape = shape;
    return &self->base;
}

static int gamma_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Gamma *self = (Gamma *)base;
    double gap = self->shape > 0 ? rng_gamma(&base->rng, self->shape) / self->shape : 1;
    return arrival_process_step(base, gap / self->rate, ret);
}

static const SpecOption gamma_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(GammaConfig, rate), "1", 1e-9, 1e9, NULL,
     "requests a second"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(GammaConfig, cv), "1", 0, 100, NULL,
     "coefficient of variation of the gaps; 0 = even"},
    {"burstiness", SPEC_STRING, G_STRUCT_OFFSET(GammaConfig, burstiness), "", 0, 0, NULL,
     "instead of cv: 1/cv^2, or inf"},
    {NULL},
};

const ArrivalOps arrivals_gamma = {
    .info = {"gamma", "independent Gamma gaps of mean 1/rate and a given CV", gamma_options,
             sizeof(GammaConfig)},
    .open = gamma_open,
    .next = gamma_next,
};
