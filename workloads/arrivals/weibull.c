/* Weibull renewal process: gaps = scale * E^(1/k), E exponential of mean 1.
 *
 * The shape k follows from the CV: CV^2 = G(1+2/k)/G(1+1/k)^2 - 1 with G the gamma function
 * (falling in k, solved by bisection); scale = 1/(rate G(1+1/k)), so that the mean is 1/rate.
 */
#include <math.h>

#include "workloads/arrivals/arrivals.h"
#include "workloads/arrivals/weibull.h"

typedef struct WeibullConfig {
    double rate, cv;
} WeibullConfig;

typedef struct Weibull {
    ArrivalProcess base;
    double scale, power; /* power = 1/k; 0 = even */
} Weibull;

double weibull_cv(double shape)
{
    return sqrt(exp(lgamma(1 + 2 / shape) - 2 * lgamma(1 + 1 / shape)) - 1);
}

double weibull_shape(double cv)
{
    double lo = 0.05, hi = 200;
    for (int i = 0; i < 100; i++) {
        double mid = (lo + hi) / 2;
        if (weibull_cv(mid) > cv)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

static ArrivalProcess *weibull_open(gconstpointer config, guint64 seed, guint32 replication,
                                    GError **error)
{
    const WeibullConfig *c = config;
    Weibull *self = g_new0(Weibull, 1);
    arrival_process_init(&self->base, &arrivals_weibull, seed, replication);
    self->power = c->cv > 0 ? 1 / weibull_shape(c->cv) : 0;
    self->scale = exp(-lgamma(1 + self->power)) / c->rate;
    return &self->base;
}

static int weibull_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Weibull *self = (Weibull *)base;
    return arrival_process_step(base, self->scale * pow(rng_exponential(&base->rng), self->power),
                                ret);
}

static const SpecOption weibull_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(WeibullConfig, rate), "1", 1e-9, 1e9, NULL,
     "requests a second"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(WeibullConfig, cv), "1", 0, 100, NULL,
     "coefficient of variation of the gaps; 0 = even"},
    {NULL},
};

const ArrivalOps arrivals_weibull = {
    .info = {"weibull", "independent Weibull gaps of mean 1/rate and a given CV", weibull_options,
             sizeof(WeibullConfig)},
    .open = weibull_open,
    .next = weibull_next,
};
