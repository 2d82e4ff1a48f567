#include "sim/clock.h"
#include "sim/clocks.h"

const PluginInfo *const step_clocks[] = {
    &clock_linear.info, &clock_fixed.info, &clock_roofline.info, &clock_profile.info, NULL,
};

StepClock *step_clock_new(const PluginChoice *choice, GError **error)
{
    const StepClockOps *ops = (const StepClockOps *)choice->info;
    StepClock *clock = ops->create(choice->config, error);
    if (clock)
        clock->ops = ops;
    return clock;
}

void step_clock_free(StepClock *self)
{
    if (self == NULL)
        return;
    if (self->ops->free)
        self->ops->free(self);
    else
        g_free(self);
}
