/* A step's decision against the model evaluated route by route: whatever was asked before, the
 * costs are those of model_learned(), over batches that stay, that drift and that have nothing to
 * do with one another; of points few, many, dense and of very many shapes. */
#include <math.h>

#include "base/rng.h"
#include "replay/decision.h"
#include "replay/model.h"
#include "support.h"

enum { ROUTES = 11, BATCHES = 4000 };
/* Sums of up to 500 weights in another order, in single precision; an offset is 0.3 at most. */
static const double rounding = 2e-5;

static NearPoint random_point(RngStream *rng, gboolean dense, guint shapes)
{
    const guint wide = dense ? 2 : 18;
    return (NearPoint){
        .kv_bytes = (gint64)1 << (22 + rng_below(rng, wide)) | (gint64)rng_below(rng, 1 << 22),
        .tasks = 1 + (gint64)rng_below(rng, dense ? 300 : 2000),
        .longest_percent = 100 + (gint64)rng_below(rng, dense ? 20 : 300),
        .group = 4 + (gint64)rng_below(rng, shapes),
        .head_dim = 128,
        .off_per_mille = (gint64)rng_below(rng, 600) - 300,
        .weight_percent = (gint64)rng_below(rng, 300),
    };
}

static Near *random_points(RngStream *rng, guint n, gboolean dense, guint shapes)
{
    Near *ret = near_new();
    for (guint i = 0; i < n; i++) {
        const NearPoint p = random_point(rng, dense, shapes);
        near_add(ret, &p);
    }
    near_settle(ret);
    return ret;
}

/* Of the last route there is nothing, of the one before no points. */
static DeviceProfile *random_profile(RngStream *rng)
{
    DeviceProfile *p = device_profile_guess();
    p->has_learned = TRUE;
    p->bandwidth = 4500e3;
    p->worker_bandwidth = 60e3;
    p->read_rate = 5500e3;
    for (guint i = 0; i < ROUTES - 1; i++) {
        LearnedRoute r = {.route = g_strdup_printf("route-%u", i),
                          .fixed_us = 3 + rng_uniform(rng),
                          .launch_us = 1,
                          .stream = 0.8 + 0.3 * rng_uniform(rng),
                          .tail = 0.1,
                          .merge = 1,
                          .wave_us = 0.2,
                          .host_us = 5 * rng_uniform(rng),
                          .host_task_us = 0.01};
        if (i < ROUTES - 2)
            r.near = random_points(rng, 1 + (guint)rng_below(rng, 320), i % 4 == 2,
                                   i == 5 ? 200 : i % 3 + 1);
        g_array_append_val(p->learned, r);
    }
    return p;
}

/* A batch like the last one, a little larger or smaller, or (`jump`) any. */
static void next_batch(RngStream *rng, gboolean jump, Candidate *candidates)
{
    for (guint i = 0; i < ROUTES; i++) {
        AttnCounts *c = &candidates[i].counts;
        const double more = 0.995 + 0.011 * rng_uniform(rng);
        if (jump || c->grid_tasks == 0) {
            const NearPoint p = random_point(rng, i % 4 == 2, 1);
            c->launches = 1 + (gint32)rng_below(rng, 3);
            c->merge_launches = c->launches > 1;
            c->kv_bytes_touched = p.kv_bytes;
            c->grid_tasks = p.tasks;
            c->longest_tokens = 1 + p.kv_bytes * p.longest_percent / p.tasks / 51200;
        } else {
            c->kv_bytes_touched = (gint64)((double)c->kv_bytes_touched * more);
            c->grid_tasks = MAX((gint64)round((double)c->grid_tasks * more * more), 1);
        }
    }
}

static double expected(const DeviceProfile *p, const LearnedRoute *r, const StepFeatures *step,
                       const Candidate *c, gboolean wall)
{
    if (r == NULL)
        return (double)INFINITY;
    return model_learned(r, p, &step->shape, step->workers, &c->counts) +
           (wall ? model_host(r, &c->counts) : 0);
}

static void check(gconstpointer data)
{
    const gboolean wall = GPOINTER_TO_INT(data);
    RngStream rng;
    rng_init(&rng, 11 + (guint64)wall, RNG_TEST, 0, 0);
    DeviceProfile *p = random_profile(&rng);
    const LearnedRoute *known[ROUTES] = {NULL};
    for (guint i = 0; i < p->learned->len; i++)
        known[i] = &g_array_index(p->learned, LearnedRoute, i);
    Decision *decision = decision_new(p, known, ROUTES, wall);
    StepFeatures step = {.shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND}, .workers = 132, .rows = 1};
    Candidate candidates[ROUTES] = {{0}};
    guint corrected = 0, same = 0;
    for (guint b = 0; b < BATCHES; b++) {
        double got[ROUTES], want[ROUTES];
        if (b % 3 != 2) /* else once more */
            next_batch(&rng, b / 500 % 2 == 0 || b % 97 == 0, candidates);
        step.shape.q_heads = b % 1000 < 900 ? 32 : 40; /* another group size, and back */
        decision_costs(decision, &step, candidates, got);
        guint best[2] = {0, 0};
        for (guint i = 0; i < ROUTES; i++) {
            want[i] = expected(p, known[i], &step, &candidates[i], wall);
            if (known[i] == NULL) {
                g_assert_true(isinf(got[i]));
                continue;
            }
            g_assert_cmpfloat(fabs(got[i] - want[i]), <=, rounding * want[i]);
            double terms[MODEL_TERMS];
            model_terms(terms, p, &step.shape, step.workers, &candidates[i].counts);
            corrected += fabs(want[i] - model_linear(known[i], terms)) > 0.001 * want[i];
            best[0] = want[i] < want[best[0]] ? i : best[0];
            best[1] = got[i] < got[best[1]] ? i : best[1];
        }
        g_assert_cmpfloat(want[best[1]], <=, (1 + 2 * rounding) * want[best[0]]);
        same += best[0] == best[1];
    }
    g_test_message("%u corrections, the same route in %u of %d", corrected, same, BATCHES);
    g_assert_cmpuint(corrected, >, 2 * BATCHES);
    g_assert_cmpuint(same, >=, BATCHES - BATCHES / 500);
    decision_free(decision);
    device_profile_free(p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/decision/kernel", GINT_TO_POINTER(FALSE), check);
    g_test_add_data_func("/decision/wall", GINT_TO_POINTER(TRUE), check);
    return g_test_run();
}
