/* The arrival processes' ops, one per file of this folder; for the registry in arrivals.c only. */
#ifndef KV_WORKLOADS_ARRIVALS_ARRIVALS_H
#define KV_WORKLOADS_ARRIVALS_ARRIVALS_H

#include "workloads/arrivals.h"

extern const ArrivalOps arrivals_constant;
extern const ArrivalOps arrivals_poisson;
extern const ArrivalOps arrivals_gamma;
extern const ArrivalOps arrivals_weibull;
extern const ArrivalOps arrivals_mmpp;
extern const ArrivalOps arrivals_diurnal;
extern const ArrivalOps arrivals_steps;
extern const ArrivalOps arrivals_ramp;
extern const ArrivalOps arrivals_spike;
extern const ArrivalOps arrivals_table;
extern const ArrivalOps arrivals_batch;

#endif
