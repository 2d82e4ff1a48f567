/* Fitting: nonnegative least squares against known solutions; models recovered from tables that
 * they made; a calibration table written by a replay and read back; decisions judged on held-out
 * samples.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "replay/fit.h"
#include "replay/model.h"
#include "replay/nnls.h"
#include "support.h"

static void test_nnls(void)
{
    /* An exact system with a solution inside. */
    const double a[4][3] = {{1, 2, 0}, {0, 1, 1}, {3, 0, 1}, {1, 1, 1}}, want[3] = {2, 0.5, 4};
    Nnls nnls;
    double x[3];
    nnls_init(&nnls, 3);
    for (guint i = 0; i < 4; i++)
        nnls_add(&nnls, a[i], a[i][0] * want[0] + a[i][1] * want[1] + a[i][2] * want[2]);
    g_assert_cmpfloat(nnls_solve(&nnls, x), <, 1e-9);
    for (guint i = 0; i < 3; i++)
        g_assert_cmpfloat(fabs(x[i] - want[i]), <, 1e-6);
    /* min (x + y - 1)^2 + (x - y - 3)^2 has y = -1 without the bound; with it y = 0, x = 2: 2 left.
     */
    const double b[2][2] = {{1, 1}, {1, -1}};
    nnls_init(&nnls, 2);
    nnls_add(&nnls, b[0], 1);
    nnls_add(&nnls, b[1], 3);
    g_assert_cmpfloat(fabs(nnls_solve(&nnls, x) - 2), <, 1e-9);
    g_assert_cmpfloat(fabs(x[0] - 2), <, 1e-9);
    g_assert_cmpfloat(x[1], ==, 0);
    /* A column of zeros. */
    const double c[2] = {2, 0};
    nnls_init(&nnls, 2);
    nnls_add(&nnls, c, 6);
    nnls_solve(&nnls, x);
    g_assert_cmpfloat(fabs(x[0] - 3), <, 1e-9);
    g_assert_cmpfloat(x[1], ==, 0);
}

static double squares_left(const Nnls *nnls, const double *x)
{
    double left = nnls->btb;
    for (int i = 0; i < nnls->n; i++) {
        left -= 2 * x[i] * nnls->atb[i];
        for (int j = 0; j < nnls->n; j++)
            left += x[i] * nnls->ata[i][j] * x[j];
    }
    return left;
}

/* The same minimum another way: each unknown set to its best in turn, until nothing moves. */
static double by_coordinates(const Nnls *nnls)
{
    double x[NNLS_MAX] = {0}, moved = 1;
    for (int sweep = 0; sweep < 100000 && moved > 1e-14; sweep++) {
        moved = 0;
        for (int i = 0; i < nnls->n; i++) {
            double slope = nnls->atb[i];
            for (int j = 0; j < nnls->n; j++)
                slope -= j != i ? nnls->ata[i][j] * x[j] : 0;
            const double next = MAX(slope / nnls->ata[i][i], 0);
            moved = MAX(moved, fabs(next - x[i]));
            x[i] = next;
        }
    }
    return squares_left(nnls, x);
}

/* Random systems, some with columns that nearly make up another one. */
static void test_nnls_random(void)
{
    RngStream rng;
    rng_init(&rng, 3, RNG_TEST, 0, 0);
    for (guint t = 0; t < 300; t++) {
        Nnls nnls;
        double row[8], x[8];
        const int n = 2 + (int)rng_below(&rng, 6);
        nnls_init(&nnls, n);
        for (guint r = 0; r < 30; r++) {
            double b = rng_uniform(&rng);
            for (int i = 0; i < n; i++)
                row[i] = rng_uniform(&rng);
            if (n > 3)
                row[n - 1] = row[0] + 0.5 * row[1] + 1e-2 * row[n - 1];
            for (int i = 0; i < n; i++)
                b += row[i] * (i % 3 - 0.7);
            nnls_add(&nnls, row, b);
        }
        const double left = nnls_solve(&nnls, x);
        for (int i = 0; i < n; i++)
            g_assert_cmpfloat(x[i], >=, 0);
        g_assert_cmpfloat(fabs(left - squares_left(&nnls, x)), <, 1e-9 * nnls.btb);
        g_assert_cmpfloat(left, <, by_coordinates(&nnls) + 1e-9 * nnls.btb);
    }
}

typedef struct Truth { /* a machine */
    double bandwidth, worker_bandwidth;
    LearnedRoute route[ATTN_ROUTE_MAX];
} Truth;

static const Truth truth = {
    .bandwidth = 4500e3,
    .worker_bandwidth = 95e3,
    .route =
        {
            {(char *)"single", 4, 1.5, 1.0, 0.4, 0, 0.05},
            {(char *)"buckets", 3, 4.0, 1.05, 0, 1.2, 0.1},
            {(char *)"masked", 4, 3.0, 1.02, 0.3, 1.5, 0.2},
            {(char *)"workqueue", 4, 3.0, 1.0, 0.3, 1.3, 0.1},
            {(char *)"workqueue-fused", 6, 1.0, 1.0, 0.3, 1.6, 0.1},
            {(char *)"persistent", 8, 1.0, 0.99, 0, 1.0, 0.3},
        },
};

/* `steps` random batches, timed by the truth with `noise` (relative, uniform). */
static CalibrationTable *make_table(guint steps, double noise, guint64 seed)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    CalibrationTable *table = calibration_table_new();
    DeviceProfile *p = device_profile_guess();
    p->bandwidth = truth.bandwidth;
    p->worker_bandwidth = truth.worker_bandwidth;
    for (guint i = 0; i < ATTN_ROUTE_MAX; i++)
        g_ptr_array_add(table->routes, g_strdup(truth.route[i].route));
    RngStream rng;
    rng_init(&rng, seed, RNG_TEST, 0, 0);
    for (guint s = 0; s < steps; s++) {
        gint32 lens[64];
        const gint32 rows = 1 << rng_below(&rng, 7);
        const gint32 scale = 512 << rng_below(&rng, 7);
        for (gint32 r = 0; r < rows; r++)
            lens[r] =
                (gint32)rng_below(&rng, (guint64)scale) + (rng_below(&rng, 4) == 0 ? scale : 16);
        for (guint i = 0; i < ATTN_ROUTE_MAX; i++) {
            AttnPlanConfig config;
            attn_plan_config_init(&config, i, 132);
            CalibrationRow row = {
                .group = s, .rows = (guint32)rows, .shape = shape, .workers = 132, .route = i};
            attn_plan_count(&row.counts, &config, &shape, rows, lens);
            double terms[MODEL_TERMS];
            model_terms(terms, p, &shape, 132, &row.counts);
            row.kernel_us =
                model_linear(&truth.route[i], terms) * (1 + noise * (2 * rng_uniform(&rng) - 1));
            g_array_append_val(table->rows, row);
        }
    }
    table->groups = steps;
    device_profile_free(p);
    return table;
}

static void test_recovers(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = make_table(300, 0.02, 1),
                                held_out = make_table(300, 0.02, 2);
    g_autoptr(DeviceProfile) p = fit_profile(table, "made up", 0, &error);
    g_assert_no_error(error);
    g_assert_cmpint(p->workers, ==, 132);
    /* Among the knees about that of the least squares, decisions choose. */
    g_assert_cmpfloat(fabs(log(p->worker_bandwidth / truth.worker_bandwidth)), <, log(1.8));
    const FitJudgement learned = fit_judge(p, held_out, FIT_LEARNED);
    const FitJudgement cost = fit_judge(p, held_out, FIT_COST);
    g_test_message("learned: mean regret %.4f worst %.4f error p50 %.4f p95 %.4f best %.2f; cost: "
                   "mean %.4f worst %.4f",
                   learned.regret_mean, learned.regret_worst, learned.error_p50, learned.error_p95,
                   learned.best_share, cost.regret_mean, cost.regret_worst);
    g_assert_cmpuint(learned.steps, ==, 300);
    g_assert_cmpfloat(learned.error_p50, <, 0.03);
    g_assert_cmpfloat(learned.regret_mean, <, 0.02);
    g_assert_cmpfloat(learned.regret_worst, <, 0.10);
    g_assert_cmpfloat(learned.regret_low95, <=, learned.regret_mean);
    g_assert_cmpfloat(learned.regret_high95, >=, learned.regret_mean);
    /* What is learned stays monotone: no coefficient below 0. */
    for (guint i = 0; i < p->learned->len; i++) {
        const LearnedRoute *r = &g_array_index(p->learned, LearnedRoute, i);
        g_assert_true(r->fixed_us >= 0 && r->launch_us >= 0 && r->stream >= 0 && r->merge >= 0 &&
                      r->wave_us >= 0);
    }
    /* The same table gives the same profile. */
    g_autoptr(DeviceProfile) again = fit_profile(table, "made up", 0, &error);
    g_assert_cmpfloat(again->bandwidth, ==, p->bandwidth);
    g_assert_cmpfloat(again->cmin, ==, p->cmin);
}

/* What both models say of a batch; the smallest and largest over the routes. */
static void predict_all(const DeviceProfile *p, gint32 rows, gint32 len, double *ret_least,
                        double *ret_bytes)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    g_autofree gint32 *lens = g_new(gint32, rows);
    for (gint32 r = 0; r < rows; r++)
        lens[r] = len;
    *ret_least = (double)INFINITY;
    for (guint i = 0; i < ATTN_ROUTE_MAX; i++) {
        const Route route = {.label = (char *)attn_route_name(i)};
        Candidate candidate = {.route = &route};
        AttnPlanConfig config;
        attn_plan_config_init(&config, i, 132);
        attn_plan_count(&candidate.counts, &config, &shape, rows, lens);
        const LearnedRoute *learned = device_profile_learned(p, route.label);
        *ret_least = MIN(*ret_least, model_learned(learned, p, &shape, 132, &candidate.counts));
        *ret_least = MIN(*ret_least, model_cost(p, &shape, &candidate.counts));
        *ret_bytes = (double)candidate.counts.kv_bytes;
    }
}

/* A table of small batches alone, in which times hardly grow with bytes: beyond it no route is told
 * faster than the card reads, and more rows never cost less. */
static void test_extrapolation(void)
{
    g_autoptr(CalibrationTable) table = make_table(60, 0.02, 3);
    for (guint i = 0; i < table->rows->len; i++) {
        CalibrationRow *r = &g_array_index(table->rows, CalibrationRow, i);
        r->kernel_us = 9 + 1e-3 * (double)(r->group % 7) + 0.1 * (double)r->route;
    }
    const double most = 4700e3;
    g_autoptr(DeviceProfile) bound = fit_profile(table, "small", most, NULL);
    g_autoptr(DeviceProfile) free = fit_profile(table, "small", 0, NULL);
    double last = 0, least, bytes;
    for (gint32 rows = 1; rows <= 4096; rows *= 4) {
        predict_all(bound, rows, 32768, &least, &bytes);
        g_assert_cmpfloat(least, >=, bytes / most * 0.999999);
        g_assert_cmpfloat(least, >=, last);
        last = least;
    }
    predict_all(free, 4096, 32768, &least, &bytes); /* what the bound is for */
    g_assert_cmpfloat(least, <, bytes / most);
}

static void test_table(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kvreplay-fit-XXXXXX", &error);
    g_autofree char *steps = g_build_filename(folder, "s.kvsteps", NULL);
    g_autofree char *path = g_build_filename(folder, "calibration.csv", NULL);
    small_run_write(&small_run, steps);
    ReplayConfig config;
    test_config(&config, "cpu", "cost", "balanced", "all", NULL);
    config.calibration = out_file_new(path, &error);
    g_assert_no_error(error);
    g_autoptr(ReplayResult) result = test_replay(&config, steps, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(out_file_commit(config.calibration, &error));
    out_file_free(config.calibration);
    replay_config_clear(&config);

    g_autoptr(CalibrationTable) table = calibration_table_new();
    g_assert_true(calibration_table_read(table, path, &error));
    g_assert_cmpuint(table->groups, ==, 19);
    g_assert_cmpuint(table->rows->len, ==, 19 * 6);
    g_assert_true(calibration_table_read(table, path, &error)); /* a second one is added */
    g_assert_cmpuint(table->groups, ==, 38);
    g_autoptr(DeviceProfile) p = fit_profile(table, "this one", 0, &error);
    g_assert_no_error(error);
    const FitJudgement j = fit_judge(p, table, FIT_LEARNED);
    g_assert_cmpuint(j.steps, ==, 38);
    g_unlink(steps);
    g_unlink(path);
    g_rmdir(folder);
}

static void test_bad_tables(void)
{
    static const char head[] =
        "step,rows,max_len,sum_len,q_heads,kv_heads,head_dim,workers,route,launches,merge_launches,"
        "tasks,grid_tasks,kv_bytes_touched,longest_tokens,merge_state_bytes,kernel_us\n";
    static const char *const bad[][2] = {
        {"0,1,1,1,8,2,64,2,single,1,0,2,2,512,32,0,x\n", ":2: kernel_us 'x'"},
        {"0,1,1,1,8,2,64,2,single,1,0,2,2,512,32,0,0\n", ":2: kernel_us '0'"},
        {"0,1,1,1,8,2,64,2,single,one,0,2,2,512,32,0,5\n", ":2: launches 'one'"},
        {"0,1,1,1,8,2,64,2,single,-1,0,2,2,512,32,0,5\n", ":2: launches '-1'"},
        {"0,1,1,1,8,2,64,0,single,1,0,2,2,512,32,0,5\n", ":2: workers '0'"},
        {"0,1,1,1,8,2,64,99999999999,single,1,0,2,2,512,32,0,5\n", ":2: workers '99999999999'"},
        {"0,99999999999,1,1,8,2,64,2,single,1,0,2,2,512,32,0,5\n", ":2: rows '99999999999'"},
        {"0,1,1,1,8,2,64,2,single,1,0,2,2,9223372036854775807,32,0,5\n", ":2: kv_bytes_touched"},
        {"0,1,1,1,8,2,64,2,single,1,0,2,2,512,32,0,1e300\n", ":2: kernel_us '1e300'"},
        {"0,1,1,1,8,2,64,2,,1,0,2,2,512,32,0,5\n", ":2: route"},
        {"", "no line follows"},
        {"0,1,1\n", ":2: 3 columns"},
    };
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-bad-table.csv", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat(head, bad[i][0], NULL);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
        g_autoptr(CalibrationTable) table = calibration_table_new();
        g_assert_false(calibration_table_read(table, path, &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        if (strstr(error->message, bad[i][1]) == NULL)
            g_error("%s", error->message);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = calibration_table_new();
    g_assert_true(g_file_set_contents(path, "a,b\n", -1, NULL));
    g_assert_false(calibration_table_read(table, path, &error));
    g_assert_nonnull(strstr(error->message, "'step'"));
    g_clear_error(&error);
    /* Faster the more is read: no rate follows, and the guess's own must not stand for it. */
    g_autoptr(GString) flat = g_string_new(head);
    for (guint i = 0; i < 4; i++)
        g_string_append_printf(flat, "%u,1,1,1,8,2,64,2,single,1,0,2,2,%u,0,0,%u\n", i, 512u << i,
                               8u >> i);
    g_assert_true(g_file_set_contents(path, flat->str, -1, NULL));
    g_autoptr(CalibrationTable) same = calibration_table_new();
    g_assert_true(calibration_table_read(same, path, &error));
    g_assert_null(fit_profile(same, "none", 0, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_clear_error(&error);
    g_assert_null(fit_profile(table, "none", 0, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fit/nnls", test_nnls);
    g_test_add_func("/fit/nnls-random", test_nnls_random);
    g_test_add_func("/fit/recovers", test_recovers);
    g_test_add_func("/fit/extrapolation", test_extrapolation);
    g_test_add_func("/fit/table", test_table);
    g_test_add_func("/fit/bad-tables", test_bad_tables);
    return g_test_run();
}
