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

/* The scaled problem: unit diagonal. */
typedef struct Scaled {
    int n;
    double a[NNLS_MAX][NNLS_MAX], b[NNLS_MAX], x[NNLS_MAX];
    int free[NNLS_MAX]; /* 1 = may be above 0 */
} Scaled;

/* Solves for the free unknowns alone, by Cholesky; 0 when they depend on one another. */
static int solve_free(const Scaled *self, double *ret)
{
    double l[NNLS_MAX][NNLS_MAX], y[NNLS_MAX];
    int at[NNLS_MAX], m = 0;
    for (int i = 0; i < self->n; i++)
        if (self->free[i])
            at[m++] = i;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = self->a[at[i]][at[j]];
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j && sum < 1e-12)
                return 0;
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
        y[i] = self->b[at[i]];
        for (int k = 0; k < i; k++)
            y[i] -= l[i][k] * y[k];
        y[i] /= l[i][i];
    }
    for (int i = 0; i < self->n; i++)
        ret[i] = 0;
    for (int i = m - 1; i >= 0; i--) {
        double sum = y[i];
        for (int k = i + 1; k < m; k++)
            sum -= l[k][i] * ret[at[k]];
        ret[at[i]] = sum / l[i][i];
    }
    return 1;
}

/* Moves x towards the free solution as far as no unknown falls below 0, frees those it stops at no
 * longer, and repeats. 0 when the free ones depend on one another. */
static int settle(Scaled *self)
{
    double s[NNLS_MAX];
    for (int round = 0; round <= self->n; round++) {
        double step = 1;
        if (!solve_free(self, s))
            return 0;
        for (int i = 0; i < self->n; i++)
            if (self->free[i] && s[i] <= 0)
                step = fmin(step, self->x[i] / (self->x[i] - s[i]));
        for (int i = 0; i < self->n; i++) {
            const int stops = self->free[i] && s[i] <= 0;
            self->x[i] = self->free[i] ? self->x[i] + step * (s[i] - self->x[i]) : 0;
            if (stops && self->x[i] <= 1e-14) {
                self->x[i] = 0;
                self->free[i] = 0;
            }
        }
        if (step >= 1)
            break;
    }
    return 1;
}

/* Lawson and Hanson (1974): unknowns are set free one by one, by the steepest slope. */
static void lawson_hanson(Scaled *self)
{
    int barred[NNLS_MAX] = {0};
    for (int round = 0; round < 8 * self->n; round++) {
        int best = -1;
        double steepest = 1e-12;
        for (int i = 0; i < self->n; i++) {
            double slope = self->b[i];
            for (int j = 0; j < self->n; j++)
                slope -= self->a[i][j] * self->x[j];
            if (!self->free[i] && !barred[i] && slope > steepest) {
                steepest = slope;
                best = i;
            }
        }
        if (best < 0)
            return;
        self->free[best] = 1;
        if (!settle(self)) {
            self->free[best] = 0;
            barred[best] = 1;
        } else if (!self->free[best])
            barred[best] = 1; /* no way along it, but for rounding */
        else
            memset(barred, 0, sizeof barred);
    }
}

double nnls_solve(const Nnls *self, double *ret)
{
    Scaled scaled = {.n = self->n};
    double scale[NNLS_MAX], left = self->btb, largest = 0;
    for (int i = 0; i < self->n; i++)
        scale[i] = sqrt(self->ata[i][i]);
    for (int i = 0; i < self->n; i++) {
        scaled.b[i] = scale[i] > 0 ? self->atb[i] / scale[i] : 0;
        largest = fmax(largest, fabs(scaled.b[i]));
        for (int j = 0; j < self->n; j++)
            scaled.a[i][j] =
                scale[i] > 0 && scale[j] > 0 ? self->ata[i][j] / (scale[i] * scale[j]) : i == j;
    }
    for (int i = 0; largest > 0 && i < self->n; i++)
        scaled.b[i] /= largest;
    lawson_hanson(&scaled);
    for (int i = 0; i < self->n; i++)
        ret[i] = scale[i] > 0 ? largest * scaled.x[i] / scale[i] : 0;
    for (int i = 0; i < self->n; i++) {
        left -= 2 * ret[i] * self->atb[i];
        for (int j = 0; j < self->n; j++)
            left += ret[i] * self->ata[i][j] * ret[j];
    }
    return left > 0 ? left : 0;
}
