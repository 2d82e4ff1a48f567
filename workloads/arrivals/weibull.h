/* The Weibull law's shape and coefficient of variation, each from the other. */
#ifndef KV_WORKLOADS_ARRIVALS_WEIBULL_H
#define KV_WORKLOADS_ARRIVALS_WEIBULL_H

double weibull_cv(double shape);
double weibull_shape(double cv); /* cv in about 0.007 .. 1e9; to 1e-12 */

#endif
