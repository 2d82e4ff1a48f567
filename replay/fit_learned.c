/* The learned model: by route least squares on relative errors; then what decides is weighed up.
 *
 * Least squares make the times right on average, but a policy is judged by its choices, and a
 * choice goes wrong where two routes are close and both a little off. So the fit is repeated: after
 * each round the samples of a step that was decided wrongly, of the route taken and of the best
 * one, gain weight by the regret, up to three times that of any other sample: without that limit
 * the fit follows the noise of a few steps and decides others worse. Kept is the round that decided
 * best. The form of the model, and that its coefficients are >= 0, stay.
 */
#include <math.h>
#include <string.h>

#include "replay/fit_private.h"
#include "replay/model.h"

enum { ROUNDS = 30 };
static const double most_weight = 3;

typedef struct Fit {
    const CalibrationTable *table;
    const double *best;
    const guint8 *own;
    double floor;             /* of `stream` */
    double *weight;           /* [rows] of the table */
    double (*x)[MODEL_TERMS]; /* [routes] */
    DeviceProfile *profile;
} Fit;

static double fit_route(const Fit *fit, guint route, double ret[MODEL_TERMS])
{
    Nnls nnls;
    nnls_init(&nnls, MODEL_TERMS);
    for (guint i = 0; i < fit->table->rows->len; i++) {
        const CalibrationRow *r = fit_row(fit->table, i);
        if (r->route != route)
            continue;
        double terms[NNLS_MAX];
        model_terms(terms, fit->profile, &r->shape, r->workers, &r->counts);
        fit_add_sample(&nnls, terms, MODEL_TERMS, r, fit->best[r->group],
                       fit->floor * terms[MODEL_STREAM], fit->weight[i]);
    }
    const double left = nnls_solve(&nnls, ret);
    ret[MODEL_STREAM] += fit->floor;
    ret[MODEL_EXCESS] = MIN(ret[MODEL_EXCESS], ret[MODEL_STREAM]); /* more rows never cost less */
    return left;
}

static double fit_own(const Fit *fit)
{
    double left = 0;
    for (guint i = 0; i < fit->table->routes->len; i++)
        left += fit->own[i] ? fit_route(fit, i, fit->x[i]) : 0;
    return left;
}

static double expected(const Fit *fit, const CalibrationRow *r)
{
    double terms[MODEL_TERMS], us = 0;
    model_terms(terms, fit->profile, &r->shape, r->workers, &r->counts);
    for (guint t = 0; t < MODEL_TERMS; t++)
        us += fit->x[r->route][t] * terms[t];
    return us;
}

static void weigh_up(const Fit *fit, guint row, double regret)
{
    fit->weight[row] = MIN(most_weight, fit->weight[row] * (1 + 3 * regret));
}

/* Decides one step, rows [from, end) of the table, among the own routes, and weighs it up if that
 * was wrong. Its regret, and in *ret_error how far off the time of the route taken was. */
static double decide(const Fit *fit, guint from, guint end, double *ret_error)
{
    guint taken = from, right = from;
    double least = (double)INFINITY, best = (double)INFINITY;
    for (guint i = from; i < end; i++) {
        const CalibrationRow *r = fit_row(fit->table, i);
        const double us = fit->own[r->route] ? expected(fit, r) : (double)INFINITY;
        if (us < least) {
            least = us;
            taken = i;
        }
        if (fit->own[r->route] && r->kernel_us < best) {
            best = r->kernel_us;
            right = i;
        }
    }
    *ret_error = 0;
    if (isinf(best))
        return 0;
    *ret_error = fabs(least / fit_row(fit->table, taken)->kernel_us - 1);
    const double regret = fit_row(fit->table, taken)->kernel_us / best - 1;
    if (regret > 0.005) {
        weigh_up(fit, taken, regret);
        weigh_up(fit, right, regret);
    }
    return regret;
}

/* Mean regret, a tenth of the worst, and a tenth of the mean error of the times (a clock uses them
 * too). Weighs up what was decided wrongly. */
static double decide_all(const Fit *fit)
{
    const guint n = fit->table->rows->len;
    double sum = 0, worst = 0, errors = 0, error;
    guint steps = 0;
    for (guint from = 0, end; from < n; from = end, steps++) {
        end = from + 1;
        while (end < n && fit_row(fit->table, end)->group == fit_row(fit->table, from)->group)
            end++;
        const double regret = decide(fit, from, end, &error);
        sum += regret;
        errors += error;
        worst = MAX(worst, regret);
    }
    return (sum + 0.1 * errors) / MAX(steps, 1) + 0.1 * worst;
}

static void even_weights(Fit *fit)
{
    for (guint i = 0; i < fit->table->rows->len; i++)
        fit->weight[i] = 1;
}

/* The rate r of one worker that least squares choose. */
static void search_knee(Fit *fit)
{
    DeviceProfile *p = fit->profile;
    double least = (double)INFINITY, chosen = p->worker_bandwidth;
    even_weights(fit);
    for (int k = 0; k <= 60; k++) { /* half to eight times an even share of the bandwidth */
        p->worker_bandwidth = p->bandwidth / p->workers * 0.5 * pow(16, k / 60.0);
        const double left = fit_own(fit);
        if (left < least) {
            least = left;
            chosen = p->worker_bandwidth;
        }
    }
    p->worker_bandwidth = chosen;
}

/* The coefficients of the round that decides best. */
static void search_decisions(Fit *fit)
{
    const gsize size = sizeof(double[MODEL_TERMS]) * fit->table->routes->len;
    double(*best)[MODEL_TERMS] = g_malloc0(size + sizeof(double[MODEL_TERMS]));
    double least = (double)INFINITY;
    even_weights(fit);
    for (int round = 0; round < ROUNDS; round++) {
        fit_own(fit);
        const double score = decide_all(fit);
        if (score < least) {
            least = score;
            memcpy(best, fit->x, size);
        }
    }
    g_free(fit->x);
    fit->x = best;
}

/* Wall time beyond the kernels', by route, on relative errors of the wall time; 0 where it was not
 * measured. */
static void fit_host(const CalibrationTable *table, guint route, double ret[2])
{
    Nnls nnls;
    guint n = 0;
    nnls_init(&nnls, 2);
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = fit_row(table, i);
        if (r->route != route || r->wall_us <= 0)
            continue;
        const double terms[2] = {1 / r->wall_us, (double)r->counts.grid_tasks / r->wall_us};
        nnls_add(&nnls, terms, MAX(r->wall_us - r->kernel_us, 0) / r->wall_us);
        n++;
    }
    ret[0] = ret[1] = 0;
    if (n > 0)
        nnls_solve(&nnls, ret);
}

void fit_learned(const CalibrationTable *table, const double *best, const guint8 *own, double most,
                 DeviceProfile *profile)
{
    Fit fit = {.table = table,
               .best = best,
               .own = own,
               .floor = most > 0 ? profile->bandwidth / most : 0,
               .weight = g_new(double, table->rows->len + 1),
               .x = g_malloc0(sizeof(double[MODEL_TERMS]) * (table->routes->len + 1)),
               .profile = profile};
    search_knee(&fit);
    search_decisions(&fit);
    even_weights(&fit);
    profile->has_learned = TRUE;
    for (guint i = 0; i < table->routes->len; i++) {
        double host[2];
        const double *x = fit.x[i];
        if (!own[i])
            fit_route(&fit, i, fit.x[i]);
        fit_host(table, i, host);
        const LearnedRoute route = {
            .route = g_strdup(table->routes->pdata[i]),
            .fixed_us = x[MODEL_FIXED],
            .launch_us = x[MODEL_LAUNCH],
            .stream = x[MODEL_STREAM],
            .tail = x[MODEL_TAIL],
            .merge = x[MODEL_MERGE],
            .wave_us = x[MODEL_WAVE],
            .excess = x[MODEL_EXCESS],
            .host_us = host[0],
            .host_task_us = host[1],
        };
        g_array_append_val(profile->learned, route);
    }
    g_free(fit.weight);
    g_free(fit.x);
}
