/* Benchmark: what a step costs on the host: counting all routes, building plans, and a decision by
 * each model, in nanoseconds a step; the learned one without and with as many measured points as a
 * fit leaves a route at most, spread as a calibration's are. "Cold": after the host has read 64 MB
 * of something else, as between two steps of an engine. Of each three
 * figures the first is of one batch over and over, as where rows grow by a token; the second of
 * batches a hundredth larger from one to the next, as where a row joins; the third of batches that
 * have nothing to do with one another. An argument is a profile to decide by. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/stats.h"
#include "support.h"

enum {
    STEPS = 20000,
    COLD_STEPS = 51,
    ROUTES = ATTN_ROUTE_MAX,
    BATCHES = 15,
    POINTS = 320,
    ELSE = 64 << 20
};

typedef enum { SAME, NEXT, OTHER, KINDS } Kind;

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

/* Batch `i` of BATCHES. */
static void grow(Candidate *to, const Candidate *candidates, Kind kind, int i)
{
    const double more = kind == SAME   ? 1
                        : kind == NEXT ? pow(1.01, i)
                                       : pow(1.6, i * 7 % BATCHES - 7);
    for (guint k = 0; k < ROUTES; k++) {
        to[k] = candidates[k];
        AttnCounts *c = &to[k].counts;
        c->kv_bytes_touched = (gint64)((double)c->kv_bytes_touched * more);
        c->grid_tasks = (gint64)ceil((double)c->grid_tasks * more);
        c->longest_tokens = (gint64)((double)c->longest_tokens * sqrt(more));
    }
}

/* Nanoseconds of the median decision with caches that hold other things. */
static double cold_ns(Policy *policy, const Candidate *batch, const StepFeatures *step, guint *sum)
{
    static volatile guint8 other[ELSE];
    double ns[COLD_STEPS];
    for (int i = 0; i < COLD_STEPS; i++) {
        for (gsize k = 0; k < ELSE; k += 64)
            other[k]++;
        const Candidate *candidates = &batch[i % BATCHES * ROUTES];
        const double from = now_ns();
        *sum += policy->ops->choose(policy, step, candidates, ROUTES);
        ns[i] = now_ns() - from;
    }
    sort_doubles(ns, COLD_STEPS);
    return ns[COLD_STEPS / 2];
}

static DeviceProfile *made_up(guint n_points)
{
    DeviceProfile *profile = device_profile_guess();
    profile->has_learned = TRUE;
    for (int i = 0; i < ROUTES; i++) {
        LearnedRoute route = {g_strdup(attn_route_name(i)), 5, 1 + i, 1, 0.2, 1, 0.1};
        route.near = points(n_points);
        g_array_append_val(profile->learned, route);
    }
    return profile;
}

static void bench_decisions(const char *text, const DeviceProfile *profile, const char *of,
                            Candidate *candidates, StepFeatures *step)
{
    PluginChoice choice = test_choice("policy", policies, text);
    Policy *policy = policy_new(&choice, profile, NULL);
    if (policy->ops->begin != NULL)
        policy->ops->begin(policy, candidates, ROUTES, NULL);
    Candidate batch[BATCHES * ROUTES];
    guint sum = 0;
    double warm[KINDS], cold[KINDS];
    for (Kind kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < BATCHES; i++)
            grow(&batch[i * ROUTES], candidates, kind, i);
        const double from = now_ns();
        for (int i = 0; i < STEPS; i++)
            sum += policy->ops->choose(policy, step, &batch[i % BATCHES * ROUTES], ROUTES);
        warm[kind] = (now_ns() - from) / STEPS;
        cold[kind] = cold_ns(policy, batch, step, &sum);
    }
    printf("  decision by %-8s %4.0f %4.0f %4.0f ns, cold %5.0f %5.0f %5.0f ns, %s (sum %u)\n",
           text, warm[SAME], warm[NEXT], warm[OTHER], cold[SAME], cold[NEXT], cold[OTHER], of, sum);
    policy_free(policy);
    plugin_choice_clear(&choice);
}

static void bench_made_up(const char *text, guint n_points, Candidate *candidates,
                          StepFeatures *step)
{
    g_autofree char *of = g_strdup_printf("%3u points a route", n_points);
    g_autoptr(DeviceProfile) profile = made_up(n_points);
    bench_decisions(text, profile, of, candidates, step);
}

static void bench_rows(gint rows, const DeviceProfile *given)
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
    bench_made_up("cost", 0, candidates, &step);
    bench_made_up("learned", 0, candidates, &step);
    bench_made_up("learned", POINTS / 2, candidates, &step);
    bench_made_up("learned", POINTS, candidates, &step);
    if (given != NULL)
        bench_decisions("learned", given, given->device, candidates, &step);
    attn_plan_free(&plan);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DeviceProfile) given = argc > 1 ? device_profile_read(argv[1], &error) : NULL;
    if (error != NULL) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    bench_rows(1, given);
    bench_rows(8, given);
    bench_rows(32, given);
    bench_rows(256, given);
    return 0;
}
