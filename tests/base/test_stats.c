/* Quantiles against values worked by hand, histograms against the exact samples. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static gint64 random_value(void)
{
    guint64 bits = (guint64)g_test_rand_int() << 32 | (guint32)g_test_rand_int();
    return (gint64)(bits >> g_test_rand_int_range(1, 63));
}

static void test_linear_rule(void)
{
    static const double three[] = {10, 20, 30}, one[] = {7};
    static const gint64 five[] = {1, 2, 4, 8, 16};
    double even[] = {9, 1, 5, 3}; /* any order */
    const double eps = 1e-12;
    g_assert_cmpfloat(median_of(even, 4), ==, 4);
    g_assert_cmpfloat(quantile_linear(three, 3, 0.5), ==, 20);
    g_assert_cmpfloat_with_epsilon(quantile_linear(three, 3, 0.9), 28, eps); /* 20 + 0.8 x 10 */
    g_assert_cmpfloat_with_epsilon(quantile_linear(three, 3, 0.99), 29.8, eps);
    g_assert_cmpfloat(quantile_linear(three, 3, 0), ==, 10);
    g_assert_cmpfloat(quantile_linear(three, 3, 1), ==, 30);
    g_assert_cmpfloat(quantile_linear(one, 1, 0.99), ==, 7);
    g_assert_cmpfloat_with_epsilon(quantile_linear_i64(five, 5, 0.9), 12.8, eps); /* rank 3.6 */
    g_assert_cmpfloat(quantile_linear_i64(five, 5, 0.25), ==, 2);
}

static int compare_i64(const void *a, const void *b)
{
    gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;
    return (x > y) - (x < y);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_sorts(void)
{
    static const gsize sizes[] = {0, 1, 2, 3, 64, 65, 1000, 70000};
    for (gsize k = 0; k < G_N_ELEMENTS(sizes); k++) {
        gsize n = sizes[k];
        g_autofree gint64 *a = g_new(gint64, n + 1), *b = g_new(gint64, n + 1);
        g_autofree double *x = g_new(double, n + 1), *y = g_new(double, n + 1);
        for (gsize i = 0; i < n; i++) {
            a[i] = b[i] = random_value() * (g_test_rand_bit() ? 1 : -1);
            x[i] = y[i] = g_test_rand_double_range(-1, 1) * pow(10, g_test_rand_int_range(-9, 9));
        }
        sort_i64(a, n);
        qsort(b, n, sizeof *b, compare_i64);
        sort_doubles(x, n);
        qsort(y, n, sizeof *y, compare_doubles);
        for (gsize i = 0; i < n; i++) {
            g_assert_cmpint(a[i], ==, b[i]);
            g_assert_cmpfloat(x[i], ==, y[i]);
        }
    }
}

static const double quantiles[] = {0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1};

/* Between the samples of the two ranks around the quantile, each side widened by 0.1 %. */
static void check_quantiles(const LogHist *h, const gint64 *sorted, gsize n)
{
    for (gsize i = 0; i < G_N_ELEMENTS(quantiles); i++) {
        double position = quantiles[i] * (double)(n - 1), got = log_hist_quantile(h, quantiles[i]);
        double low = (double)sorted[(gsize)floor(position)];
        double high = (double)sorted[(gsize)ceil(position)];
        g_assert_cmpfloat(got, >=, low * 0.999);
        g_assert_cmpfloat(got, <=, high * 1.001);
    }
}

static void test_hist_bound(void)
{
    for (int round = 0; round < 40; round++) {
        gsize n = (gsize)g_test_rand_int_range(1, 3000);
        g_autofree gint64 *samples = g_new(gint64, n);
        g_autoptr(LogHist) h = log_hist_new();
        long double sum = 0;
        for (gsize i = 0; i < n; i++) {
            samples[i] = random_value();
            sum += samples[i];
            log_hist_add(h, samples[i], 1);
        }
        sort_i64(samples, n);
        check_quantiles(h, samples, n);
        g_assert_cmpuint(log_hist_count(h), ==, n);
        g_assert_cmpint(log_hist_min(h), ==, samples[0]);
        g_assert_cmpint(log_hist_max(h), ==, samples[n - 1]);
        double mean = (double)(sum / n);
        g_assert_cmpfloat_with_epsilon(log_hist_mean(h), mean, 1e-12 * mean);
    }
}

static void test_hist_small_exact(void)
{
    g_autoptr(LogHist) h = log_hist_new();
    for (gint64 v = 0; v < 1024; v++)
        log_hist_add(h, v, 1);
    for (gint64 v = 0; v < 1024; v++)
        g_assert_cmpfloat_with_epsilon(log_hist_quantile(h, (double)v / 1023), (double)v, 1e-9);
    log_hist_add(h, G_MAXINT64, 1);
    g_assert_cmpfloat(log_hist_quantile(h, 1), ==, (double)G_MAXINT64);
}

static gboolean same_hist(const LogHist *a, const LogHist *b)
{
    if (log_hist_count(a) != log_hist_count(b) || log_hist_mean(a) != log_hist_mean(b) ||
        log_hist_min(a) != log_hist_min(b) || log_hist_max(a) != log_hist_max(b))
        return FALSE;
    for (int i = 0; i <= 200; i++)
        if (log_hist_quantile(a, i / 200.0) != log_hist_quantile(b, i / 200.0))
            return FALSE;
    return TRUE;
}

/* A progression adds what its samples one by one add. */
static void test_progression(void)
{
    for (int round = 0; round < 300; round++) {
        g_autoptr(LogHist) at_once = log_hist_new();
        g_autoptr(LogHist) one_by_one = log_hist_new();
        g_autoptr(Sampler) sampler = sampler_new(round % 2 ? 100 : 100000);
        g_autoptr(Sampler) singles = sampler_new(round % 2 ? 100 : 100000);
        guint64 steps = (guint64)g_test_rand_int_range(1, 400);
        guint64 count = (guint64)g_test_rand_int_range(1, 5);
        gint64 value = random_value() >> 20, delta = (random_value() >> 20) % 100000;
        if (round % 3 == 0)
            delta = -MIN(delta, value / (gint64)steps);
        if (round % 7 == 0)
            delta = 0;
        log_hist_add_progression(at_once, value, delta, steps, count);
        sampler_add_progression(sampler, value, delta, steps, count);
        for (guint64 i = 0; i < steps; i++) {
            log_hist_add(one_by_one, value + (gint64)i * delta, count);
            for (guint64 k = 0; k < count; k++)
                sampler_add(singles, value + (gint64)i * delta);
        }
        g_assert_true(same_hist(at_once, one_by_one));
        g_assert_cmpint(sampler_is_exact(sampler), ==, sampler_is_exact(singles));
        for (gsize i = 0; i < G_N_ELEMENTS(quantiles); i++)
            g_assert_cmpfloat(sampler_quantile(sampler, quantiles[i]), ==,
                              sampler_quantile(singles, quantiles[i]));
    }
}

/* 10^18 samples in no time, the sum beyond 64 bits. */
static void test_progression_long(void)
{
    g_autoptr(LogHist) h = log_hist_new();
    guint64 steps = G_GUINT64_CONSTANT(1000000000000);
    log_hist_add_progression(h, 5, 3, steps, 1000000);
    g_assert_cmpuint(log_hist_count(h), ==, steps * 1000000);
    double mean = 5 + 3 * (double)(steps - 1) / 2;
    g_assert_cmpfloat_with_epsilon(log_hist_mean(h), mean, 1e-9 * mean);
    g_assert_cmpfloat_with_epsilon(log_hist_quantile(h, 0.5), mean, 1e-3 * mean);
    g_assert_cmpint(log_hist_max(h), ==, (gint64)(5 + 3 * (steps - 1)));
}

static void test_merge(void)
{
    for (int round = 0; round < 50; round++) {
        gsize limit = (gsize)g_test_rand_int_range(0, 400);
        g_autoptr(Sampler) whole = sampler_new(limit);
        g_autoptr(Sampler) left = sampler_new(limit);
        g_autoptr(Sampler) right = sampler_new(limit);
        int n = g_test_rand_int_range(1, 600);
        for (int i = 0; i < n; i++) {
            gint64 v = random_value();
            sampler_add(whole, v);
            sampler_add(g_test_rand_bit() ? left : right, v);
        }
        sampler_merge(left, right);
        Summary a = sampler_summary(whole, 1e-9), b = sampler_summary(left, 1e-9);
        g_assert_cmpint(sampler_is_exact(whole), ==, (gsize)n <= limit);
        g_assert_cmpint(sampler_is_exact(left), ==, sampler_is_exact(whole));
        g_assert_cmpuint(a.n, ==, b.n);
        g_assert_cmpfloat(a.mean, ==, b.mean);
        g_assert_cmpfloat(a.min, ==, b.min);
        g_assert_cmpfloat(a.p50, ==, b.p50);
        g_assert_cmpfloat(a.p90, ==, b.p90);
        g_assert_cmpfloat(a.p95, ==, b.p95);
        g_assert_cmpfloat(a.p99, ==, b.p99);
        g_assert_cmpfloat(a.max, ==, b.max);
    }
}

static void test_summary(void)
{
    g_autoptr(Sampler) s = sampler_new(10);
    g_assert_cmpuint(sampler_summary(s, 1).n, ==, 0);
    sampler_add(s, 30);
    sampler_add(s, 10);
    sampler_add(s, 20);
    Summary m = sampler_summary(s, 0.5);
    g_assert_cmpuint(m.n, ==, 3);
    g_assert_cmpfloat(m.mean, ==, 10);
    g_assert_cmpfloat(m.min, ==, 5);
    g_assert_cmpfloat(m.p50, ==, 10);
    g_assert_cmpfloat_with_epsilon(m.p90, 14, 1e-12);
    g_assert_cmpfloat_with_epsilon(m.p99, 14.9, 1e-12);
    g_assert_cmpfloat(m.max, ==, 15);
    sampler_add(s, 40); /* after a quantile was asked for */
    g_assert_cmpfloat(sampler_quantile(s, 0.5), ==, 25);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stats/linear-rule", test_linear_rule);
    g_test_add_func("/stats/sorts", test_sorts);
    g_test_add_func("/hist/bound", test_hist_bound);
    g_test_add_func("/hist/small-exact", test_hist_small_exact);
    g_test_add_func("/hist/progression", test_progression);
    g_test_add_func("/hist/progression-long", test_progression_long);
    g_test_add_func("/sampler/merge", test_merge);
    g_test_add_func("/sampler/summary", test_summary);
    return g_test_run();
}
