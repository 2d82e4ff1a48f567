/* Poisson: independent exponential gaps of mean 1/rate; CV of gaps 1. */
#include "workloads/arrivals/arrivals.h"

typedef struct PoissonConfig {
    double rate;
} PoissonConfig;

typedef struct Poisson {
    ArrivalProcess base;
    double rate;
} Poisson;

static ArrivalProcess *poisson_open(gconstpointer config, guint64 seed, guint32 replication,
                                    GError **error)
{
    Poisson *self = g_new0(Poisson, 1);
    arrival_process_init(&self->base, &arrivals_poisson, seed, replication);
    self->rate = ((const PoissonConfig *)config)->rate;
    return &self->base;
}

static int poisson_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Poisson *self = (Poisson *)base;
    return arrival_process_step(base, rng_exponential(&base->rng) / self->rate, ret);
}

static const SpecOption poisson_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(PoissonConfig, rate), "1", 1e-9, 1e9, NULL,
     "requests a second"},
    {NULL},
};

const ArrivalOps arrivals_poisson = {
    .info = {"poisson", "independent exponential gaps of mean 1/rate", poisson_options,
             sizeof(PoissonConfig)},
    .open = poisson_open,
    .next = poisson_next,
};
