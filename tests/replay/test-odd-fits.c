/* Fits to tables that no device measured, and the profiles of them: refused in words, or written,
 * read again and finite wherever they are asked; far beyond all samples estimates keep to the read
 * rate and grow with the work. Points made fewer, against the definition. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/rng.h"
#include "replay/fit.h"
#include "replay/model.h"
#include "replay/near_merge.h"

static const char *const names[] = {"single", "persistent", "flashinfer", "trtllm-xqa:factor=8"};

/* Magnitudes from 1 to 2^bits. */
static gint64 magnitude(RngStream *rng, guint bits)
{
    return (gint64)((guint64)1 << rng_below(rng, bits)) + (gint64)rng_below(rng, 2);
}

/* Of a table: how many steps and routes, which columns stay as they are, what times are like. */
static CalibrationTable *odd_table(RngStream *rng)
{
    CalibrationTable *table = calibration_table_new();
    const guint steps = 1 + (guint)rng_below(rng, 12), first = (guint)rng_below(rng, 4),
                n = 1 + (guint)rng_below(rng, 4 - first), fixed = (guint)rng_below(rng, 256),
                bits = 1 + (guint)rng_below(rng, 50);
    const double least = rng_below(rng, 4) == 0 ? 1e-6 : 1, decades = 15 * rng_uniform(rng);
    CalibrationRow row = {.workers = 132, .shape = {.q_heads = 32, .kv_heads = 8, .head_dim = 128}};
    for (guint s = 0; s < steps; s++)
        for (guint r = first; r < first + n; r++) {
            const gboolean any = s == 0 && r == first;
            AttnCounts *c = &row.counts;
            c->launches = any || !(fixed & 1) ? (gint32)rng_below(rng, 4) : c->launches;
            c->merge_launches = any || !(fixed & 2) ? (gint32)rng_below(rng, 4) : c->merge_launches;
            c->grid_tasks = any || !(fixed & 4) ? magnitude(rng, bits) - 1 : c->grid_tasks;
            c->kv_bytes_touched =
                any || !(fixed & 8) ? magnitude(rng, bits) - 1 : c->kv_bytes_touched;
            c->longest_tokens = any || !(fixed & 16) ? magnitude(rng, bits) - 1 : c->longest_tokens;
            c->merge_state_bytes =
                any || !(fixed & 32) ? magnitude(rng, bits) - 1 : c->merge_state_bytes;
            row.shape.head_dim =
                any || !(fixed & 64) ? (gint32)magnitude(rng, 10) : row.shape.head_dim;
            row.kernel_us = any || !(fixed & 128) ? MIN(least * pow(10, decades * rng_uniform(rng)),
                                                        CALIBRATION_MAX_US)
                                                  : row.kernel_us;
            row.wall_us = rng_below(rng, 2) == 0 ? -1 : row.kernel_us * 2 * rng_uniform(rng);
            calibration_table_add(table, &row, names[r], r == first);
        }
    return table;
}

static void check_estimates(const DeviceProfile *p, RngStream *rng)
{
    for (guint i = 0; i < p->learned->len; i++)
        for (guint k = 0; k < 20; k++) {
            const AttnShape shape = {32, 8, (gint32)magnitude(rng, 10), 16, ATTN_F16, ATTN_HND};
            const AttnCounts counts = {.launches = (gint32)rng_below(rng, 9),
                                       .merge_launches = (gint32)rng_below(rng, 9),
                                       .grid_tasks = magnitude(rng, 50) - 1,
                                       .kv_bytes_touched = magnitude(rng, 50) - 1,
                                       .longest_tokens = magnitude(rng, 50) - 1,
                                       .merge_state_bytes = magnitude(rng, 50) - 1};
            const LearnedRoute *r = &g_array_index(p->learned, LearnedRoute, i);
            const double us = model_learned(r, p, &shape, 132, &counts);
            g_assert_true(isfinite(us) && us >= 0);
            g_assert_cmpfloat(us, ==, model_learned(r, p, &shape, 132, &counts));
            if (p->read_rate > 0)
                g_assert_cmpfloat(us, >=, (double)counts.kv_bytes_touched / p->read_rate);
        }
}

static void test_odd_tables(void)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-odd-fit.json", NULL);
    guint fitted = 0, refused = 0;
    for (guint i = 0; i < 400; i++) {
        RngStream rng;
        rng_init(&rng, i, RNG_TEST, 0, 0);
        g_autoptr(GError) error = NULL;
        g_autoptr(CalibrationTable) table = odd_table(&rng);
        const double most = rng_below(&rng, 2) == 0 ? 0 : 4800e3;
        g_autoptr(DeviceProfile) p = fit_profile(table, "odd", most, &error);
        if (p == NULL || !device_profile_write(p, path, &error)) {
            g_assert_nonnull(error);
            g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
            refused++;
            continue;
        }
        g_autoptr(DeviceProfile) again = device_profile_read(path, &error);
        g_assert_no_error(error);
        g_unlink(path);
        check_estimates(again, &rng);
        const FitJudgement j = fit_judge(again, table, FIT_LEARNED);
        g_assert_true(isfinite(j.regret_mean) && isfinite(j.error_p95));
        fitted++;
    }
    g_test_message("%u fitted, %u refused", fitted, refused);
    g_assert_cmpuint(fitted, >, 50);
    g_assert_cmpuint(refused, >, 50);
}

static CalibrationTable *measured_table(void)
{
    g_autoptr(GError) error = NULL;
    CalibrationTable *table = calibration_table_new();
    calibration_table_read(table, g_test_get_filename(G_TEST_DIST, "learned-fit.csv", NULL),
                           &error);
    g_assert_no_error(error);
    return table;
}

/* Cells of an H200, taken further by factors of 2 until no point is in reach: from there on an
 * estimate is the linear part, bounded by the read rate, and more of all work costs more. */
static void test_far_out(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CalibrationTable) table = measured_table();
    g_autoptr(DeviceProfile) p = fit_profile(table, "one H200", 4800e3, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < table->rows->len; i++) {
        const CalibrationRow *r = &g_array_index(table->rows, CalibrationRow, i);
        const LearnedRoute *route = device_profile_learned(p, table->routes->pdata[r->route]);
        AttnCounts c = r->counts;
        double last = 0, terms[MODEL_TERMS];
        for (guint k = 0; k < 28; k++) {
            const double us = model_learned(route, p, &r->shape, r->workers, &c);
            g_assert_cmpfloat(us, >=, (double)c.kv_bytes_touched / p->read_rate);
            model_terms(terms, p, &r->shape, r->workers, &c);
            if (k > 18) { /* 2^18 times a cell of 1 MB and more */
                const double floor = (double)c.kv_bytes_touched / p->read_rate;
                g_assert_cmpfloat(us, ==, MAX(model_linear(route, terms), floor));
                g_assert_cmpfloat(us, >, last);
            }
            last = us;
            c.kv_bytes_touched *= 2, c.longest_tokens *= 2, c.grid_tasks *= 2;
            c.merge_state_bytes *= 2;
        }
    }
}

/* As its header says, every point held against all that are kept. */
static Near *merge_by_definition(const Near *from, double within)
{
    Near *ret = near_new();
    g_autoptr(GArray) off = g_array_new(FALSE, FALSE, sizeof(double)),
                      weights = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < near_points(from); i++) {
        const NearPoint p = *near_point(from, i);
        const double w = (double)p.weight_percent, x = w * (double)p.off_per_mille;
        guint at = near_points(ret);
        double least = within * within;
        for (guint k = 0; k < near_points(ret); k++)
            if (near_distance2(near_point(ret, k), &p) < least) {
                least = near_distance2(near_point(ret, k), &p);
                at = k;
            }
        if (at == near_points(ret)) {
            near_add(ret, &p);
            g_array_append_val(off, x);
            g_array_append_val(weights, w);
            continue;
        }
        double *sum = &g_array_index(weights, double, at), *sums = &g_array_index(off, double, at);
        *sum += w, *sums += x;
        near_point(ret, at)->weight_percent = (gint64)MIN(*sum, 1e6);
        if (*sum > 0)
            near_point(ret, at)->off_per_mille = (gint64)round(*sums / *sum);
    }
    near_settle(ret);
    return ret;
}

static void test_merge(void)
{
    RngStream rng;
    rng_init(&rng, 3, RNG_TEST, 0, 0);
    for (guint round = 0; round < 30; round++) {
        Near *from = near_new();
        const double within = 0.05 * pow(1.25, round);
        for (guint i = 0; i < 300; i++) {
            const NearPoint p = {magnitude(&rng, 20),         magnitude(&rng, 8),
                                 magnitude(&rng, 5),          magnitude(&rng, 4),
                                 magnitude(&rng, 4),          (gint64)rng_below(&rng, 400) - 200,
                                 (gint64)rng_below(&rng, 101)};
            near_add(from, &p);
        }
        near_settle(from);
        Near *got = near_merge(from, within), *want = merge_by_definition(from, within);
        g_assert_cmpuint(near_points(got), ==, near_points(want));
        for (guint i = 0; i < near_points(got); i++)
            g_assert_cmpmem(near_point(got, i), sizeof(NearPoint), near_point(want, i),
                            sizeof(NearPoint));
        near_free(from);
        near_free(got);
        near_free(want);
    }
}

/* Of whatever a file holds: an error in words, and no crash. */
static void refused(const char *text, gsize n, const char *needle)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-odd-profile.json", NULL);
    g_assert_true(g_file_set_contents(path, text, (gssize)n, NULL));
    g_assert_null(device_profile_read(path, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    if (strstr(error->message, needle) == NULL)
        g_error("%s", error->message);
    g_unlink(path);
}

static void test_deep(void)
{
    g_autoptr(GString) text = g_string_new("{\"a\": \"[[\\\"[[\",\n\"b\": ");
    for (guint i = 0; i < 1000000; i++)
        g_string_append_c(text, '[');
    refused(text->str, text->len, ".json:2: over 500 brackets");
    g_string_assign(text, "");
    for (guint i = 0; i < 300000; i++)
        g_string_append(text, "{\"a\":");
    refused(text->str, text->len, ".json:1: over 500 brackets");
    g_string_assign(text, "{\"a\": \"");
    for (guint i = 0; i < 1000; i++)
        g_string_append(text, "[]{");
    g_string_append(text, "\"}");
    refused(text->str, text->len, "no device profile");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/odd-fits/tables", test_odd_tables);
    g_test_add_func("/odd-fits/far-out", test_far_out);
    g_test_add_func("/odd-fits/merge", test_merge);
    g_test_add_func("/odd-fits/deep", test_deep);
    return g_test_run();
}
