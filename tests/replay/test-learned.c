/* The learned model beyond its linear part: points near a batch, a deviation planted in a made-up
 * machine and found again, cells measured on a card and judged on others, and the profile's text.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "replay/fit.h"
#include "replay/model.h"
#include "replay/near_pack.h"
#include "support.h"

static const NearPoint here = {1 << 24, 64, 120, 4, 128, 50, 100};

static void test_near(void)
{
    Near *near = near_new();
    NearPoint at = here;
    near_settle(near);
    g_assert_cmpfloat(near_ratio(near, &at), ==, 1); /* of no points */
    near_add(near, &here);
    NearPoint other = here;
    other.tasks = 96;
    other.off_per_mille = -30;
    near_add(near, &other);
    near_settle(near);
    g_assert_cmpuint(near_points(near), ==, 2);
    /* On a point almost its own; the other is half an octave away. */
    g_assert_cmpfloat(fabs(near_ratio(near, &here) - 1.05), <, 0.006);
    g_assert_cmpfloat(fabs(near_ratio(near, &other) - 0.97), <, 0.006);
    /* Within an octave of tasks less and less, beyond it nothing; likewise along each axis. */
    double last = near_ratio(near, &here);
    for (at.tasks = 60; at.tasks > 32; at.tasks -= 4) {
        g_assert_cmpfloat(near_ratio(near, &at), <, last);
        g_assert_cmpfloat(near_ratio(near, &at), >=, 1);
        last = near_ratio(near, &at);
    }
    const NearPoint far[] = {
        {here.kv_bytes * 9, 64, 120, 4, 128}, {here.kv_bytes / 9, 64, 120, 4, 128},
        {here.kv_bytes, 31, 120, 4, 128},     {here.kv_bytes, 200, 120, 4, 128},
        {here.kv_bytes, 64, 250, 4, 128},     {here.kv_bytes, 64, 58, 4, 128},
        {here.kv_bytes, 64, 120, 64, 128},    {here.kv_bytes, 64, 120, 4, 16}};
    for (guint i = 0; i < G_N_ELEMENTS(far); i++)
        g_assert_cmpfloat(near_ratio(near, &far[i]), ==, 1);
    near_free(near);
}

/* By its definition, over all points, in double precision: at exact places, or with the batch's
 * rounded as it is asked for. */
static double ratio_by_definition(const Near *near, const NearPoint *at, gboolean rounded)
{
    double sum = 1, off = 0;
    const NearQuestion q = near_question(at);
    for (guint i = 0; i < near_points(near); i++) {
        const NearPoint *p = near_point(near, i);
        const NearPlace exact = near_place(p);
        const NearQuestion shape = near_question(p);
        double d2 = rounded ? 0 : near_distance2(p, at);
        for (int a = 0; a < NEAR_AXES && rounded; a++) {
            const double place = a < NEAR_GROUP ? (double)exact.at[a] : shape.at[a] / 1024.0;
            d2 += pow(place - q.at[a] / 1024.0, 2);
        }
        const double w = MAX(1 / (d2 + 0.02) - 1 / 1.02, 0) * (double)p->weight_percent / 100;
        sum += w;
        off += w * (double)p->off_per_mille / 1000;
    }
    return 1 + off / sum;
}

static NearPoint random_point(RngStream *rng)
{
    return (NearPoint){
        .kv_bytes = (gint64)1 << (16 + rng_below(rng, 18)) | (gint64)rng_below(rng, 65536),
        .tasks = 1 + (gint64)rng_below(rng, 2000),
        .longest_percent = 100 + (gint64)rng_below(rng, 900),
        .group = 1 << rng_below(rng, 4),
        .head_dim = 64 << rng_below(rng, 2),
        .off_per_mille = (gint64)rng_below(rng, 400) - 200,
        .weight_percent = (gint64)rng_below(rng, 101),
    };
}

/* A place is rounded to 1/128, after what is below 1/1024 octave was cut off. */
static void check_question(const NearPoint *at)
{
    const NearPlace exact = near_place(at);
    const NearQuestion q = near_question(at);
    for (int a = 0; a < NEAR_AXES; a++) {
        g_assert_cmpint(q.at[a] % 8, ==, 0);
        g_assert_cmpfloat(fabs((double)exact.at[a] - q.at[a] / 1024.0), <=, (4 + 1 + 0.01) / 1024);
    }
}

/* Bounds of replay/near_pack.h, for offsets that spread by 0.4 and weights of 1 at most: a point's
 * place is off by 1/2048 along each of three axes, a batch's by 5/1024 along five besides. */
static void test_near_random(void)
{
    const double rounding = 0.4 * 7.1 * sqrt(3) / 2048 + 0.2 * 3 / 512,
                 asking = rounding + 0.4 * 7.1 * sqrt(5) * 5 / 1024;
    RngStream rng;
    rng_init(&rng, 7, RNG_TEST, 0, 0);
    double sum = 0, sum_exact = 0;
    guint asked = 0;
    for (guint n = 1; n < 400; n += 37) {
        Near *near = near_new();
        for (guint i = 0; i < n; i++) {
            const NearPoint p = random_point(&rng);
            g_assert_null(near_point_fault(&p));
            near_add(near, &p);
        }
        near_settle(near);
        for (guint i = 0; i < 400; i++) {
            NearPoint at = random_point(&rng);
            if (i % 2 == 0) { /* at a point, or next to one */
                at = *near_point(near, (guint)rng_below(&rng, n));
                at.kv_bytes += (gint64)rng_below(&rng, (guint64)at.kv_bytes / 8);
            }
            check_question(&at);
            const double got = near_ratio(near, &at);
            const double off = fabs(got - ratio_by_definition(near, &at, TRUE)),
                         off_exact = fabs(got - ratio_by_definition(near, &at, FALSE));
            g_assert_cmpfloat(off, <, rounding);
            g_assert_cmpfloat(off_exact, <, asking);
            g_assert_cmpfloat(got, >=, 0.8 * (1 - 0.2 / 512));
            g_assert_cmpfloat(got, <=, 1.2 * (1 + 0.2 / 512));
            sum += off;
            sum_exact += off_exact;
            asked++;
        }
        near_free(near);
    }
    g_test_message("off by %.6f on average, with the batch's rounding %.6f", sum / asked,
                   sum_exact / asked);
    g_assert_cmpfloat(sum / asked, <, rounding / 20);
    g_assert_cmpfloat(sum_exact / asked, <, asking / 20);
}

/* Batches on a machine of two routes, one of which takes up to a tenth more or less than its linear
 * part, to and fro with the octaves of tasks: nothing that the linear part could follow. */
static CalibrationTable *bent_table(guint steps, guint64 seed)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    const AttnRoute route[] = {ATTN_PERSISTENT, ATTN_WORKQUEUE_FUSED};
    CalibrationTable *table = calibration_table_new();
    RngStream rng;
    rng_init(&rng, seed, RNG_TEST, 0, 0);
    for (guint s = 0; s < steps; s++) {
        gint32 lens[64];
        const gint32 rows = 1 + (gint32)rng_below(&rng, 64), len = 512 << rng_below(&rng, 6);
        for (gint32 r = 0; r < rows; r++)
            lens[r] = len + (gint32)rng_below(&rng, 512);
        for (guint i = 0; i < G_N_ELEMENTS(route); i++) {
            AttnPlanConfig config;
            CalibrationRow row = {.rows = (guint32)rows, .shape = shape, .workers = 132};
            attn_plan_config_init(&config, route[i], 132);
            attn_plan_count(&row.counts, &config, &shape, rows, lens);
            row.kernel_us = 8 + (double)row.counts.kv_bytes / 4500e3;
            if (i == 1)
                row.kernel_us *= 1 + 0.1 * sin(2 * log2((double)row.counts.tasks));
            row.kernel_us *= 1 + 0.004 * (rng_uniform(&rng) - 0.5);
            calibration_table_add(table, &row, attn_route_name(route[i]), i == 0);
        }
    }
    return table;
}

static void forget_points(DeviceProfile *p)
{
    for (guint i = 0; i < p->learned->len; i++)
        g_clear_pointer(&g_array_index(p->learned, LearnedRoute, i).near, near_free);
}

static void test_bent(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = bent_table(200, 1), held_out = bent_table(200, 2);
    g_autoptr(DeviceProfile) p = fit_profile(table, "bent", 0, &error);
    g_assert_no_error(error);
    const FitJudgement near = fit_judge(p, held_out, FIT_LEARNED);
    forget_points(p);
    const FitJudgement linear = fit_judge(p, held_out, FIT_LEARNED);
    g_test_message(
        "with points: mean regret %.4f, error p50 %.4f p95 %.4f; without: %.4f, %.4f, %.4f",
        near.regret_mean, near.error_p50, near.error_p95, linear.regret_mean, linear.error_p50,
        linear.error_p95);
    g_assert_cmpfloat(near.error_p95, <, 0.04);
    g_assert_cmpfloat(near.error_p95, <, 0.5 * linear.error_p95);
    g_assert_cmpfloat(near.regret_mean, <, 0.004);
    g_assert_cmpfloat(near.regret_mean, <, 0.2 * linear.regret_mean);
}

static CalibrationTable *read_table(const char *name)
{
    g_autoptr(GError) error = NULL;
    CalibrationTable *table = calibration_table_new();
    calibration_table_read(table, g_test_get_filename(G_TEST_DIST, name, NULL), &error);
    g_assert_no_error(error);
    return table;
}

/* Two of three cells that the bench measured on an H200 (2026-11-30, six routes), and the others to
 * judge on. The bounds are of these tables. */
static void test_measured(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = read_table("learned-fit.csv"),
                                held_out = read_table("learned-held-out.csv");
    g_autoptr(DeviceProfile) p = fit_profile(table, "one H200", 0, &error);
    g_assert_no_error(error);
    const FitJudgement near = fit_judge(p, held_out, FIT_LEARNED);
    const FitJudgement cost = fit_judge(p, held_out, FIT_COST);
    forget_points(p);
    const FitJudgement linear = fit_judge(p, held_out, FIT_LEARNED);
    g_test_message("regret mean, worst: with points %.4f %.4f, without %.4f %.4f, cost %.4f %.4f; "
                   "error p50 %.4f %.4f",
                   near.regret_mean, near.regret_worst, linear.regret_mean, linear.regret_worst,
                   cost.regret_mean, cost.regret_worst, near.error_p50, linear.error_p50);
    g_assert_cmpuint(near.steps, ==, 74);
    g_assert_cmpfloat(near.regret_mean, <, 0.006);
    g_assert_cmpfloat(near.regret_mean, <, 0.5 * cost.regret_mean);
    g_assert_cmpfloat(near.regret_mean, <, 0.9 * linear.regret_mean);
    g_assert_cmpfloat(near.error_p50, <, 0.7 * linear.error_p50);
}

/* Written and read again it expects the same; a file says its points in a line an array.
 */
static void test_written(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = read_table("learned-fit.csv");
    g_autoptr(DeviceProfile) p = fit_profile(table, "[an] \"H200\"", 4800e3, &error);
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-learned.json", NULL);
    g_assert_true(device_profile_write(p, path, &error));
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "\"[an] \\\"H200\\\"\""));
    const char *tasks = strstr(text, "\"tasks\" : [");
    g_assert_nonnull(tasks);
    g_assert_true(g_ascii_isdigit(tasks[strlen("\"tasks\" : [")]));
    g_autoptr(DeviceProfile) q = device_profile_read(path, &error);
    g_assert_no_error(error);
    g_unlink(path);
    g_assert_cmpfloat(q->read_rate, ==, 4800e3);
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = &g_array_index(table->rows, CalibrationRow, i);
        const char *name = table->routes->pdata[r->route];
        const double a = model_learned(device_profile_learned(p, name), p, &r->shape, r->workers,
                                       &r->counts),
                     b = model_learned(device_profile_learned(q, name), q, &r->shape, r->workers,
                                       &r->counts);
        g_assert_cmpfloat(fabs(a - b), <, 1e-12 * a);
    }
}

static void test_bad_points(void)
{
    static const char head[] =
        "{\"kvreplay_profile\": 1, \"workers\": 4, \"learned\": {\"worker_gbps\": 1, "
        "\"routes\": {\"single\": {\"fixed_us\": 1, \"launch_us\": 0, \"stream\": 1, "
        "\"merge\": 0, \"wave_us\": 0, \"near\": ";
#define REST                                                                                       \
    ",\"longest_percent\": [100], \"group\": [4], \"head_dim\": [128], \"off_per_mille\": [1]"
    static const char *const bad[][2] = {
        {"[]", "\"single.near\": expected an object"},
        {"{}, \"tail\": -1", "\"single.tail\": expected a coefficient"},
        {"{}", "single.near.kv_bytes\""},
        {"{\"kv_bytes\": [1], \"tasks\": [1, 2]" REST ", \"weight_percent\": [1]}",
         "single.near.tasks\""},
        {"{\"kv_bytes\": [1], \"tasks\": [1.5]" REST ", \"weight_percent\": [1]}",
         "single.near.tasks\""},
        {"{\"kv_bytes\": [1], \"tasks\": [1]" REST ", \"weight_percent\": [-1]}",
         "single.near.weight_percent\""},
        {"{\"kv_bytes\": [1], \"tasks\": [1]" REST ", \"weight_percent\": [\"x\"]}",
         "single.near.weight_percent\""},
        {"{\"kv_bytes\": [1], \"tasks\": [0]" REST ", \"weight_percent\": [1]}",
         "\"single.near.tasks\""},
    };
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-bad-points.json", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat(head, bad[i][0], "}}}}", NULL);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
        g_assert_null(device_profile_read(path, &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        if (strstr(error->message, bad[i][1]) == NULL)
            g_error("%s: %s", bad[i][0], error->message);
    }
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/learned/near", test_near);
    g_test_add_func("/learned/near-random", test_near_random);
    g_test_add_func("/learned/bent", test_bent);
    g_test_add_func("/learned/measured", test_measured);
    g_test_add_func("/learned/written", test_written);
    g_test_add_func("/learned/bad-points", test_bad_points);
    return g_test_run();
}
