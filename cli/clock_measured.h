/* The `measured` clock: the simulation in closed loop with an engine.
 *
 * Each step's decode attention is planned and executed now, by one route on a backend, and its wall
 * time, once a layer, moves the simulated clock; what is not executed (weights, prefill, host work)
 * is modelled by `base` and `prefill_token`:
 *
 *     length = base + prefill_token * prompt tokens + layers * (plan + wall time of one layer)
 *
 * with the plan counted once a step. Results depend on the machine and differ from run to run;
 * every step is executed, so a run takes as long as its attention. sim/ knows only the clock's ops
 * struct.
 */
#ifndef KV_CLI_CLOCK_MEASURED_H
#define KV_CLI_CLOCK_MEASURED_H

#include "sim/clock.h"
#include "sim/steps_file.h"

extern const StepClockOps clock_measured;
/* All clocks: sim/'s and the measured one. NULL-ended. */
extern const PluginInfo *const all_clocks[];

/* `header` gives shape, page size and pool; `seed` the contents. */
StepClock *measured_clock_new(const PluginChoice *choice, const StepsHeader *header, guint64 seed,
                              GError **error);

#endif
