/* The arrival processes' ops, one per file of this folder; for the registry in arrivals.c only. */
#ifndef KV_WORKLOADS_ARRIVALS_ARRIVALS_H
#define KV_WORKLOADS_ARRIVALS_ARRIVALS_H

#include "workloads/arrivals.h"

extern const ArrivalOps arrivals_constant;
extern const ArrivalOps arrivals_poisson;
extern const ArrivalOps arrivals_gamma;
extern const ArrivalOps arrivals_weibull;

#endif
