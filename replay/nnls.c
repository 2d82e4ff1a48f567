#include "replay/nnls.h"

#include <math.h>
#include <string.h>

void nnls_init(Nnls *self, int n)
{
    memset(self, 0, sizeof *self);
    self->n = n;
}

void nnls_add(Nnls *self, const double *row, double b)
{
    for (int i = 0; i < self->n; i++) {
        for (int j = 0; j < self->n; j++)
            self->ata[i][j] += row[i] * row[j];
        self->atb[i] += row[i] * b;
    }
    self->btb += b * b;
}

/* One sweep over the scaled problem; the largest move. */
static double sweep(const Nnls *self, const double *scale, double *x)
{
    double moved = 0;
    for (int i = 0; i < self->n; i++) {
        if (scale[i] == 0)
            continue;
        double gradient = self->atb[i] / scale[i];
        for (int j = 0; j < self->n; j++)
            if (j != i && scale[j] > 0)
                gradient -= self->ata[i][j] / (scale[i] * scale[j]) * x[j];
        const double next = gradient > 0 ? gradient : 0;
        moved = fmax(moved, fabs(next - x[i]));
        x[i] = next;
    }
    return moved;
}

double nnls_solve(const Nnls *self, double *ret)
{
    double scale[NNLS_MAX], x[NNLS_MAX] = {0}, largest = 0;
    for (int i = 0; i < self->n; i++)
        scale[i] = sqrt(self->ata[i][i]);
    for (int k = 0; k < 20000; k++) {
        const double moved = sweep(self, scale, x);
        largest = 0;
        for (int i = 0; i < self->n; i++)
            largest = fmax(largest, x[i]);
        if (moved <= 1e-11 * largest)
            break;
    }
    double left = self->btb;
    for (int i = 0; i < self->n; i++)
        ret[i] = scale[i] > 0 ? x[i] / scale[i] : 0;
    for (int i = 0; i < self->n; i++) {
        left -= 2 * ret[i] * self->atb[i];
        for (int j = 0; j < self->n; j++)
            left += ret[i] * self->ata[i][j] * ret[j];
    }
    return left > 0 ? left : 0;
}
