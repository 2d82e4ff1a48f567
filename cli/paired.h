/* Paired differences of two series, with an interval that serial correlation does not shrink.
 *
 * Pairs arrive in order (steps, requests). The mean of B - A gets a 95 % interval by batch means:
 * neighbours are averaged into 32 to 63 equally long batches, and Student's t is applied to the
 * batch means (Law and Kelton, "Simulation Modeling and Analysis": the method of batch means).
 * Steps of one run depend on each other, so an interval from single steps would be too narrow.
 * Under 8 pairs there is no interval. Memory: constant.
 */
#ifndef KV_CLI_PAIRED_H
#define KV_CLI_PAIRED_H

#include <glib.h>

#define PAIRED_BATCHES 64

typedef struct Paired {
    guint64 n;
    double sum_a, sum_b;
    guint64 batch_size; /* 1, 2, 4 ... */
    guint full;         /* batches complete */
    double batch[PAIRED_BATCHES];
    double open_sum; /* the batch in the making */
    guint64 open_n;
} Paired;

void paired_add(Paired *self, double a, double b);
double paired_mean_difference(const Paired *self); /* B - A; 0 without pairs */
/* Half width of the 95 % interval; NaN under 8 pairs. */
double paired_half_width(const Paired *self);

#endif
