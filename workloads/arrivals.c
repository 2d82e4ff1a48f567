#include "workloads/arrivals.h"

#include "workloads/arrivals/arrivals.h"
#include "workloads/users.h"

const PluginInfo *const arrivals[] = {
    &arrivals_constant.info,
    &arrivals_poisson.info,
    &arrivals_gamma.info,
    &arrivals_weibull.info,
    &arrivals_mmpp.info,
    &arrivals_diurnal.info,
    &arrivals_steps.info,
    &arrivals_ramp.info,
    &arrivals_spike.info,
    &arrivals_table.info,
    &arrivals_batch.info,
    &arrivals_closed.info,
    NULL,
};

void arrival_process_free(ArrivalProcess *self)
{
    if (self == NULL)
        return;
    if (self->ops->free != NULL)
        self->ops->free(self);
    else
        g_free(self);
}

void arrival_process_init(ArrivalProcess *self, const ArrivalOps *ops, guint64 seed,
                          guint32 replication)
{
    self->ops = ops;
    self->clock = 0;
    self->begun = FALSE;
    rng_init(&self->rng, seed, RNG_ARRIVALS, 0, replication);
}

gboolean arrival_process_step(ArrivalProcess *self, double gap, kv_ns *ret)
{
    if (self->begun)
        self->clock += gap;
    self->begun = TRUE;
    if (!(self->clock < 9.2e9)) /* 292 years */
        return FALSE;
    *ret = kv_ns_from_seconds(self->clock);
    return TRUE;
}
