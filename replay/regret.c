#include "replay/regret.h"

#include "base/rng.h"
#include "base/stats.h"

struct RegretLog {
    guint routes;
    guint64 seed;
    GArray *us;     /* double [steps][routes] */
    GArray *chosen; /* guint8 or guint: index */
};

RegretLog *regret_log_new(guint routes, guint64 seed)
{
    RegretLog *self = g_new0(RegretLog, 1);
    self->routes = routes;
    self->seed = seed;
    self->us = g_array_new(FALSE, FALSE, sizeof(double));
    self->chosen = g_array_new(FALSE, FALSE, sizeof(guint));
    return self;
}

void regret_log_free(RegretLog *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->us);
    g_array_unref(self->chosen);
    g_free(self);
}

void regret_log_add(RegretLog *self, const double *us, guint chosen)
{
    g_array_append_vals(self->us, us, self->routes);
    g_array_append_val(self->chosen, chosen);
}

guint64 regret_log_steps(const RegretLog *self)
{
    return self->chosen->len;
}

static const double *times_of(const RegretLog *self, guint step)
{
    return &g_array_index(self->us, double, (gsize)step * self->routes);
}

static double chosen_of(const RegretLog *self, guint step)
{
    return times_of(self, step)[g_array_index(self->chosen, guint, step)];
}

static double best_of(const RegretLog *self, guint step)
{
    const double *us = times_of(self, step);
    double best = us[0];
    for (guint i = 1; i < self->routes; i++)
        best = MIN(best, us[i]);
    return best;
}

/* sum a / sum b over steps, with its interval. Both arrays hold one number a step. */
static Interval bootstrap_ratio(const RegretLog *self, const double *a, const double *b, guint n)
{
    Interval ret = {0};
    double top = 0, bottom = 0;
    for (guint i = 0; i < n; i++) {
        top += a[i];
        bottom += b[i];
    }
    ret.value = ret.low = ret.high = bottom > 0 ? top / bottom : 0;
    if (n < 2 || bottom <= 0)
        return ret;
    const guint resamples = n > 20000 ? 100 : 1000;
    g_autofree double *ratio = g_new(double, resamples);
    for (guint k = 0; k < resamples; k++) {
        RngStream stream;
        rng_init(&stream, self->seed, RNG_BOOTSTRAP, k, 0);
        top = bottom = 0;
        for (guint i = 0; i < n; i++) {
            const guint at = (guint)((guint64)rng_u32(&stream) * n >> 32);
            top += a[at];
            bottom += b[at];
        }
        ratio[k] = top / bottom;
    }
    sort_doubles(ratio, resamples);
    ret.low = quantile_linear(ratio, resamples, 0.025);
    ret.high = quantile_linear(ratio, resamples, 0.975);
    return ret;
}

Regret regret_log_summary(RegretLog *self)
{
    const guint n = self->chosen->len;
    Regret ret = {.steps = n};
    if (n == 0)
        return ret;
    g_autofree double *regret = g_new(double, n), *one = g_new(double, n);
    g_autofree double *chosen = g_new(double, n), *best = g_new(double, n);
    for (guint i = 0; i < n; i++) {
        chosen[i] = chosen_of(self, i);
        best[i] = best_of(self, i);
        regret[i] = best[i] > 0 ? chosen[i] / best[i] - 1 : 0;
        one[i] = 1;
    }
    ret.mean = bootstrap_ratio(self, regret, one, n);
    ret.to_oracle = bootstrap_ratio(self, chosen, best, n);
    sort_doubles(regret, n);
    ret.p50 = quantile_linear(regret, n, 0.5);
    ret.p99 = quantile_linear(regret, n, 0.99);
    ret.worst = regret[n - 1];
    return ret;
}

Interval regret_log_ratio(RegretLog *self, guint route)
{
    const guint n = self->chosen->len;
    g_autofree double *fixed = g_new(double, n + 1), *chosen = g_new(double, n + 1);
    for (guint i = 0; i < n; i++) {
        fixed[i] = times_of(self, i)[route];
        chosen[i] = chosen_of(self, i);
    }
    return bootstrap_ratio(self, fixed, chosen, n);
}
