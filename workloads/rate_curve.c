#include "workloads/rate_curve.h"

#include <math.h>

#include "base/error.h"

typedef struct RateCurve {
    ArrivalProcess base;
    GArray *points;       /* RatePoint */
    double period, shape; /* shape of the unit steps; 0 = even steps */
    guint i;              /* in the segment from point i to i+1 */
    double t;             /* where we are, within the period */
    double origin;        /* absolute time of the period's beginning */
} RateCurve;

static RatePoint point(const RateCurve *self, guint i)
{
    return g_array_index(self->points, RatePoint, i);
}

static gboolean check(const GArray *points, double period, const char *what, GError **error)
{
    double top = 0, last = 0;
    gboolean good = points->len > 0;
    for (guint i = 0; i < points->len; i++) {
        RatePoint p = g_array_index(points, RatePoint, i);
        good = good && isfinite(p.t) && isfinite(p.rate) && p.rate >= 0 && p.t >= last;
        top = MAX(top, p.rate);
        last = p.t;
    }
    if (good && top > 0 && (period <= 0 || period >= last))
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                "%s: expected rates of 0 or more, not all 0, at times that do not fall", what);
    return FALSE;
}

ArrivalProcess *rate_curve_new(const ArrivalOps *ops, GArray *points, double period, double cv,
                               const char *what, guint64 seed, guint32 replication, GError **error)
{
    if (!check(points, period, what, error)) {
        g_array_unref(points);
        return NULL;
    }
    RateCurve *self = g_new0(RateCurve, 1);
    arrival_process_init(&self->base, ops, seed, replication);
    self->points = points;
    self->period = period;
    self->shape = cv > 0 ? 1 / (cv * cv) : 0;
    return &self->base;
}

void rate_curve_free(ArrivalProcess *base)
{
    g_array_unref(((RateCurve *)base)->points);
    g_free(base);
}

/* End and rate at the end of the segment we are in; FALSE when it lasts for ever. */
static gboolean segment_end(const RateCurve *self, double *ret_t, double *ret_rate)
{
    if (self->i + 1 < self->points->len) {
        RatePoint next = point(self, self->i + 1);
        *ret_t = next.t;
        *ret_rate = next.rate;
        return TRUE;
    }
    *ret_t = self->period;
    *ret_rate = point(self, self->i).rate;
    return self->period > 0;
}

/* Rate at self->t. */
static double rate_now(const RateCurve *self, double end, double end_rate)
{
    RatePoint a = point(self, self->i);
    if (self->t <= a.t || end <= a.t)
        return a.rate;
    return a.rate + (end_rate - a.rate) * (self->t - a.t) / (end - a.t);
}

/* Moves on by `mass` of the integral. FALSE when it is never reached. */
static gboolean advance(RateCurve *self, double mass)
{
    double start_mass = mass;
    for (guint idle = 0;;) {
        double end = 0, end_rate = 0;
        gboolean bounded = segment_end(self, &end, &end_rate);
        double r = rate_now(self, end, end_rate), width = end - self->t;
        if (!bounded) {
            if (r <= 0)
                return FALSE;
            self->t += mass / r;
            return TRUE;
        }
        double whole = (r + end_rate) / 2 * width;
        if (width > 0 && whole >= mass && mass >= 0) {
            /* r x + (end_rate - r)/(2 width) x^2 = mass, the root that does not cancel */
            double slope = (end_rate - r) / width;
            double x = 2 * mass / (r + sqrt(MAX(r * r + 2 * slope * mass, 0.0)));
            self->t = MIN(self->t + x, end);
            return TRUE;
        }
        mass -= MAX(whole, 0.0);
        self->t = end;
        if (++self->i == self->points->len) {
            self->i = 0;
            self->t = 0;
            self->origin += self->period;
            if (mass >= start_mass && ++idle > 1)
                return FALSE; /* a whole period without rate */
        }
    }
}

int rate_curve_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    RateCurve *self = (RateCurve *)base;
    double step = self->shape == 1   ? rng_exponential(&base->rng)
                  : self->shape == 0 ? 1
                                     : rng_gamma(&base->rng, self->shape) / self->shape;
    if (base->begun && !advance(self, step))
        return 0;
    base->begun = TRUE;
    double now = self->origin + self->t;
    if (!(now < 9.2e9))
        return 0;
    *ret = kv_ns_from_seconds(now);
    return 1;
}
