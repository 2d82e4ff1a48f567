/* Sweeps and capacity: the grid, the same bytes with any number of threads and after a stop, and a
 * capacity that theory knows. */
#include "base/error.h"
#include "base/rng.h"
#include "sim/capacity.h"
#include "sim/sweep.h"
#include "tests/sim/support.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_grid(void)
{
    g_autoptr(GError) error = NULL;
    SweepGrid grid;
    sweep_grid_init(&grid);
    g_assert_true(sweep_grid_add(&grid, "scheduler=vllm-v1|orca:seqs=4", &error));
    g_assert_true(sweep_grid_add(&grid, "rate=0.1..0.5:0.1", &error));
    g_assert_true(sweep_grid_add(&grid, "seed=1..3", &error));
    g_assert_cmpuint(sweep_grid_cells(&grid), ==, 30);
    const char *v[3];
    sweep_grid_cell(&grid, 0, v);
    g_assert_cmpstr(v[0], ==, "vllm-v1");
    g_assert_cmpstr(v[1], ==, "0.1");
    g_assert_cmpstr(v[2], ==, "1");
    sweep_grid_cell(&grid, 15 + 3 * 2 + 2, v);
    g_assert_cmpstr(v[0], ==, "orca:seqs=4");
    g_assert_cmpstr(v[1], ==, "0.3");
    g_assert_cmpstr(v[2], ==, "3");
    const char *const bad[] = {"", "rate", "=1", "rate="};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_clear_error(&error);
        g_assert_false(sweep_grid_add(&grid, bad[i], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    }
    sweep_grid_clear(&grid);
}

typedef struct Cells {
    gint ran;       /* atomic */
    gint fail_from; /* cells from here on fail; 0 = none */
} Cells;

static char *square(gpointer data, guint64 cell, const char *const *values, GError **error)
{
    Cells *c = data;
    if (c->fail_from && cell >= (guint64)c->fail_from) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "cell %d fails", (int)cell);
        return NULL;
    }
    g_atomic_int_inc(&c->ran);
    int x = atoi(values[0]), y = atoi(values[1]);
    return g_strdup_printf("%d,%d", x * x, x * y);
}

static gboolean sweep(const SweepGrid *grid, const char *path, guint threads, gboolean resume,
                      Cells *cells, char **ret_text, GError **error)
{
    SweepConfig config = {.grid = grid,
                          .path = path,
                          .figures = "xx,xy",
                          .scenario = "none",
                          .threads = threads,
                          .resume = resume};
    gboolean ok = sweep_run(&config, square, cells, NULL, error);
    if (ok)
        g_assert_true(g_file_get_contents(path, ret_text, NULL, NULL));
    return ok;
}

static void test_threads_and_resume(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("kvsweep-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "a.csv", NULL);
    g_autofree char *journal = g_strconcat(path, ".journal.0", NULL);
    SweepGrid grid;
    sweep_grid_init(&grid);
    sweep_grid_add(&grid, "x=1..8", NULL);
    sweep_grid_add(&grid, "y=1|2|3|4|5", NULL);
    Cells all = {0};
    g_autofree char *one = NULL, *four = NULL, *resumed = NULL;
    g_assert_true(sweep(&grid, path, 1, FALSE, &all, &one, &error));
    g_assert_cmpint(all.ran, ==, 40);
    g_assert_true(g_str_has_prefix(one, "x,y,xx,xy\n1,1,1,1\n1,2,1,2\n"));
    g_assert_true(sweep(&grid, path, 4, FALSE, &all, &four, &error));
    g_assert_cmpstr(one, ==, four);
    g_assert_false(g_file_test(journal, G_FILE_TEST_EXISTS));
    g_remove(path);
    Cells some = {.fail_from = 25}, rest = {0};
    g_assert_false(sweep(&grid, path, 2, FALSE, &some, &resumed, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_clear_error(&error);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS)); /* nothing half-written */
    g_autofree char *kept = NULL;
    gsize size;
    g_assert_true(g_file_get_contents(journal, &kept, &size, NULL));
    g_assert_true(g_file_set_contents(journal, kept, (gssize)size - 3, NULL)); /* torn last line */
    g_assert_true(sweep(&grid, path, 2, TRUE, &rest, &resumed, &error));
    g_assert_cmpint(rest.ran, ==, 40 - some.ran + 1);
    g_assert_cmpstr(one, ==, resumed);
    g_remove(path);
    g_rmdir(dir);
    sweep_grid_clear(&grid);
}

static void test_targets(void)
{
    g_autoptr(GError) error = NULL;
    CapacityTargets t;
    g_assert_true(capacity_targets_parse(&t, "ttft.p99<=2s, itl.mean<=80ms,finished>=0.9", &error));
    g_assert_cmpuint(t.n, ==, 2);
    g_assert_cmpfloat(t.items[1].limit, ==, 0.08);
    SimResult r = {.requests = 10, .finished = 9};
    r.ttft = (Summary){.n = 9, .p99 = 2};
    r.itl = (Summary){.n = 9, .mean = 0.08};
    g_assert_true(capacity_targets_kept(&t, &r));
    r.itl.mean = 0.0801;
    g_assert_false(capacity_targets_kept(&t, &r));
    r.itl.n = 0;
    g_assert_true(capacity_targets_kept(&t, &r));
    r.finished = 8;
    g_assert_false(capacity_targets_kept(&t, &r));
    const char *const bad[] = {
        "",         "ttft<=2s",   "ttft.p42<=2s", "speed.p99<=2s", "ttft.p99<=fast",
        "ttft.p99", "finished>=2"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_clear_error(&error);
        g_assert_false(capacity_targets_parse(&t, bad[i], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    }
}

/* M/D/1, service 0.2 s: the mean wait is rho / (2 (1 - rho)) x 0.2 s. */
static gboolean queue_trial(gpointer data, double load, guint32 replication, SimResult *ret,
                            GError **error)
{
    Log log;
    log_init(&log);
    RngStream gaps;
    rng_init(&gaps, 11, RNG_TEST, 0, replication);
    double t = 0;
    for (guint i = 0; i < 8000; i++) {
        log_add(&log, kv_ns_from_seconds(t), 1, 20);
        t += rng_exponential(&gaps) / load;
    }
    SimConfig config;
    config_for(&config, "vllm-v1:seqs=1", 1000);
    config.check = FALSE;
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks, "fixed:step=10ms", NULL);
    g_autoptr(StepClock) clock = step_clock_new(&choice, NULL);
    gboolean ok = sim_run(&config, log_source(&log), clock, NULL, NULL, NULL, ret, error);
    plugin_choice_clear(&choice);
    sim_config_clear(&config);
    log_clear(&log);
    return ok;
}

static void test_capacity(void)
{
    g_autoptr(GError) error = NULL;
    CapacityConfig config;
    capacity_config_init(&config);
    g_assert_true(capacity_targets_parse(&config.targets, "queue_delay.mean<=200ms", &error));
    config.replications = 6;
    CapacityResult one, two;
    config.threads = 1;
    g_assert_true(capacity_find(&config, queue_trial, NULL, NULL, &one, &error));
    config.threads = 3;
    g_assert_true(capacity_find(&config, queue_trial, NULL, NULL, &two, &error));
    g_assert_cmpmem(&one, sizeof one, &two, sizeof two);
    /* rho / (2 (1 - rho)) = 1: rho = 2/3, 3.33 requests a second */
    g_test_message("capacity %.4f (%.4f to %.4f), theory %.4f", one.load, one.low, one.high,
                   10.0 / 3);
    g_assert_cmpfloat(fabs(one.load - 10.0 / 3), <, (one.high - one.low) + 0.02);
    g_assert_cmpfloat(one.high - one.low, <, 0.2);
    config.largest = 2;
    g_assert_true(capacity_find(&config, queue_trial, NULL, NULL, &one, &error));
    g_assert_true(one.unbounded);
    g_assert_cmpfloat(one.load, ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sweep/grid", test_grid);
    g_test_add_func("/sweep/threads-and-resume", test_threads_and_resume);
    g_test_add_func("/capacity/targets", test_targets);
    g_test_add_func("/capacity/known", test_capacity);
    return g_test_run();
}
