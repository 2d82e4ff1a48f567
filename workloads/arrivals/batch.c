/* Batches: `size` requests at one time; batches come Poisson at rate/size, or every size/rate. */
#include "workloads/arrivals/arrivals.h"

typedef struct BatchConfig {
    double rate;
    gint64 size;
    int spacing;
} BatchConfig;

typedef struct Batch {
    ArrivalProcess base;
    BatchConfig config;
    gint64 left;
    kv_ns at;
    guint64 batches;
} Batch;

static ArrivalProcess *batch_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    Batch *self = g_new0(Batch, 1);
    arrival_process_init(&self->base, &arrivals_batch, seed, replication);
    self->config = *(const BatchConfig *)config;
    return &self->base;
}

static int batch_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Batch *self = (Batch *)base;
    if (self->left == 0) {
        double mean = (double)self->config.size / self->config.rate;
        double even = (double)self->batches * mean;
        if (self->config.spacing == 0) {
            if (!arrival_process_step(base, mean * rng_exponential(&base->rng), &self->at))
                return 0;
        } else {
            if (!(even < 9.2e9))
                return 0;
            self->at = kv_ns_from_seconds(even);
        }
        self->batches++;
        self->left = self->config.size;
    }
    self->left--;
    *ret = self->at;
    return 1;
}

static const SpecOption batch_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(BatchConfig, rate), "1", 1e-9, 1e9, NULL,
     "requests (not batches) a second"},
    {"size", SPEC_INT, G_STRUCT_OFFSET(BatchConfig, size), "8", 1, 1e9, NULL,
     "requests in a batch"},
    {"spacing", SPEC_CHOICE, G_STRUCT_OFFSET(BatchConfig, spacing), "poisson", 0, 0, "poisson|even",
     "of the batches"},
    {NULL},
};

const ArrivalOps arrivals_batch = {
    .info = {"batch", "several requests at one time", batch_options, sizeof(BatchConfig)},
    .open = batch_open,
    .next = batch_next,
};
