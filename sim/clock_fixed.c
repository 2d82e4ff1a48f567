/* fixed: every step takes the same time, whatever is in it. */
#include "sim/clocks.h"

typedef struct Config {
    kv_ns step;
} Config;

static const SpecOption options[] = {
    {"step", SPEC_TIME, G_STRUCT_OFFSET(Config, step), "20ms", 1e-9, 3600, NULL,
     "length of a step"},
    {NULL},
};

typedef struct FixedClock {
    StepClock base;
    kv_ns step;
} FixedClock;

static StepClock *create(gconstpointer config, GError **error)
{
    FixedClock *self = g_new0(FixedClock, 1);
    self->step = ((const Config *)config)->step;
    return &self->base;
}

static kv_ns length(StepClock *clock, const StepLoad *load, GError **error)
{
    return ((const FixedClock *)clock)->step;
}

static gboolean slope(const StepClock *clock, kv_ns *ret)
{
    *ret = 0;
    return TRUE;
}

const StepClockOps clock_fixed = {
    .info = {"fixed", "all steps take the same time", options, sizeof(Config)},
    .create = create,
    .length = length,
    .slope = slope,
};
