/* The built-in clocks; private to sim/. */
#ifndef KV_SIM_CLOCKS_H
#define KV_SIM_CLOCKS_H

#include "sim/clock.h"

extern const StepClockOps clock_fixed, clock_linear, clock_roofline, clock_profile;

#endif
