#include "replay/fit.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "replay/fit_private.h"
#include "replay/model.h"
#include "replay/regret.h"

/* Best time of each group. */
static double *best_times(const CalibrationTable *table)
{
    double *best = g_new(double, table->groups + 1);
    for (guint64 g = 0; g < table->groups; g++)
        best[g] = (double)INFINITY;
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = fit_row(table, i);
        best[r->group] = MIN(best[r->group], r->kernel_us);
    }
    return best;
}

void fit_add_sample(Nnls *nnls, double *terms, int n, const CalibrationRow *r, double best,
                    double given, double weight)
{
    const double by = weight * best / (r->kernel_us * r->kernel_us);
    for (int i = 0; i < n; i++)
        terms[i] *= by;
    nnls_add(nnls, terms, (r->kernel_us - given) * by);
}

/* What all routes share (rates, knees) is fitted to the built-in routes alone, whose plans are
 * known; peers, counted from outside, get their own coefficients with these. A table of peers alone
 * is fitted as if they were built in. */
static guint8 *own_routes(const CalibrationTable *table)
{
    guint8 *own = g_malloc0(table->routes->len + 1);
    guint n = 0;
    for (guint i = 0; i < table->routes->len; i++) {
        g_auto(GStrv) name = g_strsplit(table->routes->pdata[i], ":", 2);
        const RouteOps *ops = route_find(name[0]);
        own[i] = ops == NULL || ops->kind == ROUTE_BUILTIN;
        n += own[i];
    }
    if (n == 0)
        memset(own, 1, table->routes->len);
    return own;
}

/* --- cost: bytes at beta, launches at lambda, a term by route; knee Cmin --- */

/* A byte costs `floor` at least. */
static double fit_cost_at(const CalibrationTable *table, const double *best, const guint8 *own,
                          double cmin, double floor, double *ret)
{
    const int n = 2 + (int)table->routes->len;
    Nnls nnls;
    nnls_init(&nnls, n);
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = fit_row(table, i);
        const AttnCounts *c = &r->counts;
        if (!own[r->route])
            continue;
        const double bytes = (double)c->kv_bytes_touched;
        const double least = (double)c->longest_tokens * cmin * 4.0 * r->shape.head_dim;
        double terms[NNLS_MAX] = {MAX(bytes, least) + 2 * (double)c->merge_state_bytes,
                                  c->launches};
        terms[2 + r->route] = 1;
        fit_add_sample(&nnls, terms, n, r, best[r->group], floor * terms[0], 1);
    }
    const double left = nnls_solve(&nnls, ret);
    ret[0] += floor;
    return left;
}

/* A peer's term: the mean of what the formula leaves of its times, 0 at least. */
static double peer_term(const CalibrationTable *table, const double *best, guint route,
                        const DeviceProfile *profile)
{
    double sum = 0, weights = 0;
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = fit_row(table, i);
        if (r->route != route)
            continue;
        const double by = best[r->group] / (r->kernel_us * r->kernel_us);
        sum += by * by * (r->kernel_us - model_cost(profile, &r->shape, &r->counts));
        weights += by * by;
    }
    return weights > 0 ? MAX(sum / weights, 0) : 0;
}

#define MOST_RATE 1e15 /* bytes a microsecond: the most that a profile can hold */

/* FALSE where the samples do not tell what a byte costs. */
static gboolean fit_cost(const CalibrationTable *table, const double *best, const guint8 *own,
                         double most, DeviceProfile *profile)
{
    const double floor = most > 0 ? 1 / most : 0;
    double x[NNLS_MAX], least = (double)INFINITY, cmin = 1;
    for (int k = 0; k <= 60; k++) { /* 1 .. 4 times the workers */
        const double at = pow(4.0 * profile->workers, k / 60.0);
        const double left = fit_cost_at(table, best, own, at, floor, x);
        if (left < least) {
            least = left;
            cmin = at;
        }
    }
    fit_cost_at(table, best, own, cmin, floor, x);
    profile->cmin = cmin;
    if (!(x[0] * MOST_RATE > 1))
        return FALSE;
    profile->bandwidth = 1 / x[0];
    profile->launch_us = x[1];
    for (guint i = 0; i < table->routes->len; i++) {
        const RouteTerm term = {g_strdup(table->routes->pdata[i]),
                                own[i] ? x[2 + i] : peer_term(table, best, i, profile)};
        g_array_append_val(profile->terms, term);
    }
    return TRUE;
}

DeviceProfile *fit_profile(const CalibrationTable *table, const char *device, double most,
                           GError **error)
{
    if (table->groups < 3 || table->routes->len + 2 > NNLS_MAX) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "calibration table of %" G_GUINT64_FORMAT
                    " steps and %u routes: a fit needs at "
                    "least 3 steps and at most %d routes",
                    table->groups, table->routes->len, NNLS_MAX - 2);
        return NULL;
    }
    g_autofree double *best = best_times(table);
    g_autoptr(DeviceProfile) self = device_profile_guess();
    self->guess = FALSE;
    g_free(self->device);
    self->device = g_strdup(device);
    self->workers = fit_row(table, 0)->workers;
    g_autofree guint8 *own = own_routes(table);
    if (!fit_cost(table, best, own, most, self)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "calibration table of %" G_GUINT64_FORMAT
                    " steps: its times do not grow with the bytes, so no rate can be fitted: "
                    "expected steps of more lengths and rows",
                    table->groups);
        return NULL;
    }
    fit_learned(table, best, own, most, self);
    return g_steal_pointer(&self);
}

/* --- judging --- */

static double predict(const DeviceProfile *profile, const CalibrationTable *table,
                      const CalibrationRow *r, FitModel model)
{
    const char *name = table->routes->pdata[r->route];
    if (model == FIT_COST)
        return model_cost(profile, &r->shape, &r->counts) + device_profile_term(profile, name);
    const LearnedRoute *learned = device_profile_learned(profile, name);
    if (learned == NULL)
        return (double)INFINITY;
    return model_learned(learned, profile, &r->shape, r->workers, &r->counts);
}

typedef struct Group { /* the samples of one step */
    double predicted, chosen_us, best_us;
    guint chosen; /* route */
} Group;

static Group *decide(const DeviceProfile *profile, const CalibrationTable *table, FitModel model,
                     GArray *errors)
{
    Group *group = g_new(Group, table->groups + 1);
    for (guint64 g = 0; g < table->groups; g++)
        group[g] = (Group){(double)INFINITY, (double)NAN, (double)INFINITY};
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = fit_row(table, i);
        Group *g = &group[r->group];
        const double us = predict(profile, table, r, model);
        g->best_us = MIN(g->best_us, r->kernel_us);
        if (us < g->predicted) {
            g->predicted = us;
            g->chosen_us = r->kernel_us;
            g->chosen = r->route;
        }
        const double error = fabs(us / r->kernel_us - 1);
        if (isfinite(error))
            g_array_append_val(errors, error);
    }
    return group;
}

FitJudgement fit_judge(const DeviceProfile *profile, const CalibrationTable *table, FitModel model)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    g_autofree Group *group = decide(profile, table, model, errors);
    g_autoptr(RegretLog) log = regret_log_new(2, 1);
    FitJudgement ret = {0};
    for (guint64 g = 0; g < table->groups; g++) {
        const double us[2] = {group[g].chosen_us, group[g].best_us};
        if (isnan(us[0]))
            continue;
        regret_log_add(log, us, 0);
        ret.best_share += us[0] == us[1];
    }
    if (regret_log_steps(log) == 0)
        return ret;
    const Regret regret = regret_log_summary(log);
    ret.steps = regret.steps;
    ret.regret_mean = regret.mean.value;
    ret.regret_low95 = regret.mean.low;
    ret.regret_high95 = regret.mean.high;
    ret.regret_p99 = regret.p99;
    ret.regret_worst = regret.worst;
    ret.best_share /= (double)ret.steps;
    double *e = (double *)(void *)errors->data;
    sort_doubles(e, errors->len);
    ret.error_p50 = quantile_linear(e, errors->len, 0.5);
    ret.error_p95 = quantile_linear(e, errors->len, 0.95);
    return ret;
}

void fit_judge_routes(const DeviceProfile *profile, const CalibrationTable *table, FitModel model,
                      GString *out)
{
    const guint n = table->routes->len;
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    g_autofree Group *group = decide(profile, table, model, errors);
    g_autofree double *fixed = g_new0(double, n + 1);
    g_autofree guint64 *seen = g_new0(guint64, n + 1), *taken = g_new0(guint64, n + 1);
    double chosen = 0;
    for (guint i = 0; i < table->rows->len; i++) {
        fixed[fit_row(table, i)->route] += fit_row(table, i)->kernel_us;
        seen[fit_row(table, i)->route]++;
    }
    for (guint64 g = 0; g < table->groups; g++) {
        if (isnan(group[g].chosen_us))
            return;
        chosen += group[g].chosen_us;
        taken[group[g].chosen]++;
    }
    if (table->groups == 0)
        return;
    g_string_append(out, "takes:");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, " %s %.1f %%", (const char *)table->routes->pdata[i],
                               100.0 * (double)taken[i] / (double)table->groups);
    g_string_append(out, "\neach alone over it:");
    for (guint i = 0; i < n; i++)
        if (seen[i] == table->groups)
            g_string_append_printf(out, " %s %.3f", (const char *)table->routes->pdata[i],
                                   fixed[i] / chosen);
    g_string_append_c(out, '\n');
}
