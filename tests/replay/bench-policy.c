/* Benchmark: what a step costs on the host: counting all routes, building plans, and a decision by
 * each model, in nanoseconds a step; the learned one without and with as many measured points as a
 * fit leaves a route at most, spread as a calibration's are. */
#include <stdio.h>
#include <time.h>

#include "support.h"

enum { STEPS = 20000, ROUTES = ATTN_ROUTE_MAX, POINTS = 320 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};

/* Rows from 1 to 192, lengths from 96 to 48K. */
static Near *points(guint n)
{
    Near *ret = near_new();
    for (guint i = 0; i < n; i++) {
        const gint64 rows = 1 + (gint64)(i % 20) * (i % 20) / 2;
        const gint64 length = (gint64)96 << (i / 20 % 10);
        const NearPoint point = {
            4096 * rows * length, 8 * rows, 100 + 10 * (i % 7), 4, 128, 20, 90};
        near_add(ret, &point);
    }
    near_settle(ret);
    return ret;
}

static void bench_decisions(const char *text, guint n_points, Candidate *candidates,
                            StepFeatures *step)
{
    DeviceProfile *profile = device_profile_guess();
    profile->has_learned = TRUE;
    for (int i = 0; i < ROUTES; i++) {
        LearnedRoute route = {g_strdup(attn_route_name(i)), 5, 1 + i, 1, 0.2, 1, 0.1};
        route.near = points(n_points);
        g_array_append_val(profile->learned, route);
    }
    PluginChoice choice = test_choice("policy", policies, text);
    Policy *policy = policy_new(&choice, profile, NULL);
    if (policy->ops->begin != NULL)
        policy->ops->begin(policy, candidates, ROUTES, NULL);
    guint sum = 0;
    const double from = now_ns();
    for (int i = 0; i < STEPS; i++) {
        candidates[i % ROUTES].counts.tasks++;
        sum += policy->ops->choose(policy, step, candidates, ROUTES);
    }
    printf("  decision by %-8s %6.0f ns, %3u points a route (sum %u)\n", text,
           (now_ns() - from) / STEPS, n_points, sum);
    policy_free(policy);
    plugin_choice_clear(&choice);
    device_profile_free(profile);
}

static void bench_rows(gint rows)
{
    gint32 lens[256];
    for (gint i = 0; i < rows; i++)
        lens[i] = 100 + (i * 7919) % 8000;
    Route route[ROUTES];
    Candidate candidates[ROUTES];
    AttnPlanConfig config[ROUTES];
    AttnPlan plan;
    attn_plan_init(&plan);
    printf("%d rows, 132 workers:\n", rows);
    for (int i = 0; i < ROUTES; i++) {
        route[i] =
            (Route){.ops = route_find(attn_route_name(i)), .label = (char *)attn_route_name(i)};
        candidates[i] = (Candidate){.route = &route[i]};
        attn_plan_config_init(&config[i], i, 132);
        double from = now_ns();
        for (int s = 0; s < STEPS / 10; s++)
            attn_plan_count(&candidates[i].counts, &config[i], &shape, rows, lens);
        const double count = (now_ns() - from) / (STEPS / 10);
        from = now_ns();
        for (int s = 0; s < STEPS / 10; s++)
            attn_plan_build(&plan, &config[i], &shape, rows, lens);
        printf("  %-16s count %6.0f ns, build %6.0f ns (%d tasks)\n", attn_route_name(i), count,
               (now_ns() - from) / (STEPS / 10), plan.n_tasks);
    }
    StepFeatures step = {.shape = shape, .workers = 132, .rows = (guint32)rows, .lens = lens};
    bench_decisions("cost", 0, candidates, &step);
    bench_decisions("learned", 0, candidates, &step);
    bench_decisions("learned", POINTS / 2, candidates, &step);
    bench_decisions("learned", POINTS, candidates, &step);
    attn_plan_free(&plan);
}

int main(void)
{
    bench_rows(1);
    bench_rows(8);
    bench_rows(32);
    bench_rows(256);
    return 0;
}
