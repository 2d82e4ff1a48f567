/* Arrivals of a given rate over time: a Poisson process with a piecewise linear rate, by inversion.
 *
 * With unit exponential steps s1, s2 ... the k-th arrival is where the integral of the rate reaches
 * s1 + ... + sk, after one at 0 (Cinlar 1975): exact, no thinning. Between two points the rate is
 * linear; two points at one time are a step. After the last point the curve starts anew (`period` >
 * 0) or its last rate holds. `cv` other than 1 makes the unit steps Gamma of that CV (the rate
 * stays the same).
 */
#ifndef KV_WORKLOADS_RATE_CURVE_H
#define KV_WORKLOADS_RATE_CURVE_H

#include "workloads/arrivals.h"

typedef struct RatePoint {
    double t, rate; /* s, requests/s; t does not fall */
} RatePoint;

/* Takes the points (RatePoint). NULL + USAGE error when they make no curve: none, out of order, a
 * rate below 0, or all 0. `what` is for messages. */
ArrivalProcess *rate_curve_new(const ArrivalOps *ops, GArray *points, double period, double cv,
                               const char *what, guint64 seed, guint32 replication, GError **error);
int rate_curve_next(ArrivalProcess *self, kv_ns *ret, GError **error);
void rate_curve_free(ArrivalProcess *self);

#endif
