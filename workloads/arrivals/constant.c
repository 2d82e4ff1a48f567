/* Constant: request k arrives at k/rate. */
#include "workloads/arrivals/arrivals.h"

typedef struct ConstantConfig {
    double rate;
} ConstantConfig;

typedef struct Constant {
    ArrivalProcess base;
    double rate;
    guint64 k;
} Constant;

static ArrivalProcess *constant_open(gconstpointer config, guint64 seed, guint32 replication,
                                     GError **error)
{
    Constant *self = g_new0(Constant, 1);
    arrival_process_init(&self->base, &arrivals_constant, seed, replication);
    self->rate = ((const ConstantConfig *)config)->rate;
    return &self->base;
}

static int constant_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Constant *self = (Constant *)base;
    double t = (double)self->k++ / self->rate; /* no running sum, no drift */
    if (!(t < 9.2e9))
        return 0;
    *ret = kv_ns_from_seconds(t);
    return 1;
}

static const SpecOption constant_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(ConstantConfig, rate), "1", 1e-9, 1e9, NULL,
     "requests a second"},
    {NULL},
};

const ArrivalOps arrivals_constant = {
    .info = {"constant", "evenly spaced: request k at k/rate", constant_options,
             sizeof(ConstantConfig)},
    .open = constant_open,
    .next = constant_next,
};
