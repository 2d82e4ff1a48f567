#include "cli/paired.h"

#include <math.h>

static void halve(Paired *self)
{
    for (guint i = 0; i < PAIRED_BATCHES / 2; i++)
        self->batch[i] = (self->batch[2 * i] + self->batch[2 * i + 1]) / 2.0;
    self->full = PAIRED_BATCHES / 2;
    self->batch_size *= 2;
}

void paired_add(Paired *self, double a, double b)
{
    if (self->batch_size == 0)
        self->batch_size = 1;
    self->n++;
    self->sum_a += a;
    self->sum_b += b;
    self->open_sum += b - a;
    if (++self->open_n < self->batch_size)
        return;
    if (self->full == PAIRED_BATCHES) {
        /* The new mean is half of a batch of the doubled size: keep it open. */
        halve(self);
        return;
    }
    self->batch[self->full++] = self->open_sum / (double)self->open_n;
    self->open_sum = 0.0;
    self->open_n = 0;
}

double paired_mean_difference(const Paired *self)
{
    return self->n > 0 ? (self->sum_b - self->sum_a) / (double)self->n : 0.0;
}

/* 97.5 % point of Student's t: the normal's with two terms of the Cornish-Fisher expansion; within
 * 0.5 % from 7 degrees of freedom on. */
static double student_t(double df)
{
    const double z = 1.959963984540054;
    double g1 = (pow(z, 3) + z) / 4.0;
    double g2 = (5.0 * pow(z, 5) + 16.0 * pow(z, 3) + 3.0 * z) / 96.0;
    return z + g1 / df + g2 / (df * df);
}

double paired_half_width(const Paired *self)
{
    guint k = self->full;
    if (k < 8)
        return NAN;
    double mean = 0.0, square = 0.0;
    for (guint i = 0; i < k; i++)
        mean += self->batch[i] / k;
    for (guint i = 0; i < k; i++)
        square += (self->batch[i] - mean) * (self->batch[i] - mean);
    return student_t(k - 1) * sqrt(square / (k - 1) / k);
}
