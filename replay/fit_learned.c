/* The learned model: by route least squares of a linear estimate, and what they leave, as points.
 *
 * Samples are weighed by how well their times are known. The same plan timed under several routes'
 * names (`buckets`, `masked` and `workqueue` over equal rows) comes out alike within a quarter of a
 * per cent on long steps, and within 0.15 us on short ones; by relative errors alone, launches of
 * 7 us would bend what is said of steps of milliseconds, where routes are told apart by one per
 * cent. And by best time of the step / its time: a policy is hurt by errors about routes that are
 * near the best one, not about those far off.
 *
 * What is left of each sample becomes a point (replay/near.h). Points close to each other are made
 * one; the less noise a time has, the more it counts.
 */
#include <math.h>

#include "replay/fit_private.h"
#include "replay/model.h"
#include "replay/near_merge.h"

#define NOISE_PART 0.0025
#define NOISE_US 0.15
#define SURE 0.01           /* noise with which a point counts half */
#define CLOSE 0.25          /* distance at which points become one */
enum { MOST_POINTS = 320 }; /* of a route, NEAR_JSON_MOST at most: a decision looks at those near */

typedef struct Fit {
    const CalibrationTable *table;
    const double *best;
    const guint8 *own;
    double floor; /* of `stream` */
    DeviceProfile *profile;
} Fit;

/* Relative. */
static double noise_of(double us)
{
    return hypot(NOISE_PART, NOISE_US / us);
}

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
                       fit->floor * terms[MODEL_STREAM], NOISE_PART / noise_of(r->kernel_us));
    }
    const double left = nnls_solve(&nnls, ret);
    ret[MODEL_STREAM] += fit->floor;
    ret[MODEL_EXCESS] = MIN(ret[MODEL_EXCESS], ret[MODEL_STREAM]); /* more rows never cost less */
    return left;
}

/* The rate r of one worker that least squares over the own routes choose. */
static void search_knee(const Fit *fit)
{
    DeviceProfile *p = fit->profile;
    double least = (double)INFINITY, chosen = p->worker_bandwidth, x[MODEL_TERMS];
    for (int k = 0; k <= 75; k++) { /* half to sixteen times an even share of the bandwidth */
        double left = 0;
        p->worker_bandwidth = p->bandwidth / p->workers * 0.5 * pow(32, k / 75.0);
        for (guint i = 0; i < fit->table->routes->len; i++)
            left += fit->own[i] ? fit_route(fit, i, x) : 0;
        if (left < least) {
            least = left;
            chosen = p->worker_bandwidth;
        }
    }
    p->worker_bandwidth = chosen;
}

/* --- points --- */

/* What the linear estimate leaves of a route's samples, sorted. */
static Near *samples_left(const Fit *fit, guint route, const LearnedRoute *linear)
{
    Near *ret = near_new();
    for (guint i = 0; i < fit->table->rows->len; i++) {
        const CalibrationRow *r = fit_row(fit->table, i);
        if (r->route != route)
            continue;
        const double noise = noise_of(r->kernel_us) / SURE;
        const double us = model_learned(linear, fit->profile, &r->shape, r->workers, &r->counts);
        NearPoint point = near_at(&r->shape, &r->counts);
        point.off_per_mille =
            (gint64)CLAMP(round(1000 * (r->kernel_us / MAX(us, 1e-9) - 1)), -999, 1e6);
        point.weight_percent = (gint64)round(100 / (1 + noise * noise));
        if (near_point_fault(&point) == NULL)
            near_add(ret, &point);
    }
    near_settle(ret);
    return ret;
}

static Near *fit_near(const Fit *fit, guint route, const LearnedRoute *linear)
{
    Near *all = samples_left(fit, route, linear), *ret = NULL;
    for (double within = CLOSE;; within *= 1.25) {
        near_free(ret);
        ret = near_merge(all, within);
        if (near_points(ret) <= MOST_POINTS)
            break;
    }
    near_free(all);
    return ret;
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

static LearnedRoute learn_route(const Fit *fit, guint route)
{
    double x[MODEL_TERMS], host[2];
    fit_route(fit, route, x);
    fit_host(fit->table, route, host);
    LearnedRoute ret = {
        .route = g_strdup(fit->table->routes->pdata[route]),
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
    ret.near = fit_near(fit, route, &ret);
    return ret;
}

void fit_learned(const CalibrationTable *table, const double *best, const guint8 *own, double most,
                 DeviceProfile *profile)
{
    const Fit fit = {.table = table,
                     .best = best,
                     .own = own,
                     .floor = most > 0 ? profile->bandwidth / most : 0,
                     .profile = profile};
    profile->read_rate = MAX(most, 0);
    search_knee(&fit);
    profile->has_learned = TRUE;
    for (guint i = 0; i < table->routes->len; i++) {
        const LearnedRoute route = learn_route(&fit, i);
        g_array_append_val(profile->learned, route);
    }
}
