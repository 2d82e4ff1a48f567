/* The `paper` scheduler against the published runs: rows and KV bytes a step follow from the trace
 * alone, so a run of it must give the published means. */
#include "tests/sim/support.h"
#include "workloads/workload.h"

#include <math.h>
#include <string.h>

typedef struct Published {
    const char *trace;
    gint64 requests, max_active;
    guint seed, steps;
    guint64 pages;
    double rows, kv_mib; /* means a step; KV of one layer, 8 heads of 128, two bytes */
} Published;

static const Published runs[] = {
    {"bucketed", 16, 1, 20260622, 64, 30790, 1.0, 62.120},
    {"bimodal", 24, 8, 20260622, 48, 25828, 7.7708, 638.067},
    {"uniform", 24, 8, 20260622, 48, 26265, -1, 567.408},
    {"zipf", 24, 8, 20260622, 48, 31136, -1, 695.357},
    {"bimodal", 16, 4, 20260622, 48, 14954, -1, 274.880},
    {"homogeneous", 16, 4, 20260622, 48, 32838, -1, 512.366},
    {"bimodal", 24, 8, 20260623, 48, 24285, 8.0, 550.475},
    {"zipf", 24, 8, 20260624, 48, 31463, 8.0, 676.922},
    {"uniform", 24, 8, 20260625, 48, 27489, 8.0, 480.248},
    {"bucketed", 16, 1, 20260623, 64, 30793, 1.0, 32.123},
};

typedef struct Sum {
    StepSink sink;
    guint64 steps, rows, length, pool, pages_seen;
    guint8 *owner;
} Sum;

static gboolean sum_begin(StepSink *sink, guint64 pool_pages, GError **error)
{
    Sum *s = (Sum *)sink;
    s->pool = pool_pages;
    s->owner = g_new0(guint8, pool_pages + 1);
    return TRUE;
}

static gboolean sum_step(StepSink *sink, const Step *step, GError **error)
{
    Sum *s = (Sum *)sink;
    g_assert_cmpuint(step->index, ==, s->steps);
    s->steps++;
    s->rows += step->rows;
    s->length += step->sum_length;
    for (guint32 i = 0; i < step->n_joined; i++) {
        const StepJoin *j = &step->joined[i];
        g_assert_cmpuint(j->n_pages * 16, >=, j->length);
        for (guint32 k = 0; k < j->n_pages; k++) {
            g_assert_cmpuint(j->pages[k], <, s->pool);
            g_assert_cmpuint(s->owner[j->pages[k]]++, ==, 0); /* slices do not overlap */
        }
        s->pages_seen += j->n_pages;
    }
    return TRUE;
}

static void run_published(const Published *p, double holes)
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig w;
    workload_config_init(&w);
    g_free(w.workload);
    w.workload = g_strdup_printf("paper:trace=%s,requests=%d,max_active=%d,seed=%u", p->trace,
                                 (int)p->requests, (int)p->max_active, p->seed);
    g_autoptr(Workload) workload = workload_open(&w, &error);
    g_assert_no_error(error);
    g_autofree char *text =
        g_strdup_printf("paper:max_active=%d,steps=%u,seed=%u,holes=%s", (int)p->max_active,
                        p->steps, p->seed, holes > 0 ? "0.5" : "0");
    SimConfig config;
    config_for(&config, text, 1);
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks, "fixed", &error);
    g_autoptr(StepClock) clock = step_clock_new(&choice, &error);
    g_assert_no_error(error);
    Sum sum = {.sink = {sum_begin, sum_step}};
    SimResult result;
    sim_run(&config, workload_source(workload), clock, &sum.sink, NULL, NULL, &result, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sum.steps, ==, p->steps);
    g_assert_cmpuint(sum.pool, ==, holes > 0 ? 2 * p->pages : p->pages);
    double steps = (double)sum.steps, mib = (double)sum.length * 8 * 128 * 2 * 2 / 1048576 / steps;
    g_assert_cmpfloat(fabs(mib - p->kv_mib), <, 6e-4);
    if (p->rows > 0)
        g_assert_cmpfloat(fabs((double)sum.rows / steps - p->rows), <, 6e-5);
    g_assert_cmpuint(result.requests, ==, (guint64)p->requests);
    g_assert_cmpuint(result.finished, ==, (guint64)p->requests);
    g_assert_cmpuint(result.output_tokens, ==, sum.rows);
    g_free(sum.owner);
    plugin_choice_clear(&choice);
    workload_config_clear(&w);
    sim_config_clear(&config);
}

static void test_published(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(runs); i++)
        run_published(&runs[i], 0);
}

static void test_holes(void)
{
    run_published(&runs[1], 0.5);
}

/* One row a step: of two requests live at once the later one loses its tokens. */
static void test_left_out(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 4);
    log_add(&log, 1, 32, 2); /* live in steps 1 and 2 only: never served */
    log_add(&log, 2, 48, 5); /* live in 2..6: served from 4 on, at length 50 */
    log_add(&log, 20, 16, 1);
    SimConfig config;
    config_for(&config, "paper:max_active=1", 1);
    Outcome o;
    run_log_ok(&config, &log, "fixed:step=10ms", &o);
    g_assert_cmpuint(o.result.steps, ==, 4 + 3 + 1);
    g_assert_nonnull(strstr(o.csv, "\n1,,0,0,0,10000000,10000000,,,,32,0,0,0,0,cut,left_out\n"));
    g_assert_nonnull(strstr(
        o.csv,
        "\n2,,0,0,0,20000000,20000000,40000000,50000000,70000000,48,3,0,0,0,cut,left_out\n"));
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/paper/published", test_published);
    g_test_add_func("/paper/holes", test_holes);
    g_test_add_func("/paper/left-out", test_left_out);
    return g_test_run();
}
