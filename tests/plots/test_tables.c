/* csv_rows and bins: what reads a run, and what keeps it small. */
#include <glib/gstdio.h>
#include <math.h>

#include "base/error.h"
#include "plots/bins.h"
#include "plots/csv_rows.h"
#include "plots/sweep_table.h"

static char *write_temp(const char *text)
{
    char *path = NULL;
    int fd = g_file_open_tmp("kvplots-XXXXXX.csv", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_close(fd, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void test_fields(void)
{
    g_autofree char *path =
        write_temp("# note\nb,a,c\n\n7,\"x, \"\"y\"\"\",0.25\r\n-3,,\n9223372036854775807,z,-1e3");
    g_autoptr(GError) error = NULL;
    g_autoptr(CsvRows) rows = csv_rows_open(path, &error);
    g_assert_no_error(error);
    int at[3];
    const char *const names[] = {"a", "b", "c"};
    g_assert_true(csv_rows_need(rows, names, 3, at, &error));
    gint64 n;
    double real;
    g_assert_cmpint(csv_rows_next(rows, &error), ==, 1);
    g_assert_cmpstr(csv_rows_text(rows, at[0]), ==, "x, \"y\"");
    g_assert_true(csv_rows_int(rows, at[1], &n, &error) && n == 7);
    g_assert_true(csv_rows_real(rows, at[2], &real, &error) && real == 0.25);
    g_assert_cmpuint(csv_rows_line(rows), ==, 4);
    g_assert_cmpint(csv_rows_next(rows, &error), ==, 1);
    g_assert_true(csv_rows_int(rows, at[1], &n, &error) && n == -3);
    g_assert_true(csv_rows_real(rows, at[2], &real, &error) && isnan(real));
    g_assert_cmpint(csv_rows_next(rows, &error), ==, 1);
    g_assert_true(csv_rows_int(rows, at[1], &n, &error) && n == G_MAXINT64);
    g_assert_true(csv_rows_real(rows, at[2], &real, &error) && real == -1000);
    g_assert_cmpint(csv_rows_next(rows, &error), ==, 0);
    g_unlink(path);
}

/* Each damaged text, and what the one-line error must hold. */
static void test_damage(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", ":1: the file is empty"},
        {"x,y\n1,2\n", ":1: no column 'a'"},
        {"a,b\n1,2\n3\n", ":3: 1 fields, expected the header's 2"},
        {"a,b\n1,2\nsix,2\n", ":3: column a: 'six', expected a whole number"},
        {"a,b\n1,2\n9223372036854775808,2\n", ":3: column a: '9223372036854775808'"},
        {"a,b\n1,2\n5,two\n", ":3: column b: 'two', expected a number"},
        {"a,b\n1,1e999\n", ":2: column b: '1e999'"},
        {"a,b\n1,\"2\n", ":2: a quote is not closed"},
        {"a,b\n1,0x10\n", ":2: column b: '0x10'"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = write_temp(cases[i].text);
        g_autoptr(GError) error = NULL;
        g_autoptr(CsvRows) rows = csv_rows_open(path, &error);
        int at[2], got = -1;
        const char *const names[] = {"a", "b"};
        if (rows != NULL && csv_rows_need(rows, names, 2, at, &error)) {
            gint64 n;
            double real;
            while ((got = csv_rows_next(rows, &error)) > 0)
                if (!csv_rows_int(rows, at[0], &n, &error) ||
                    !csv_rows_real(rows, at[1], &real, &error))
                    break;
        }
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, cases[i].says));
        g_assert_true(g_str_has_prefix(error->message, path));
        g_unlink(path);
    }
}

static void test_reals(void)
{
    /* The short way must give strtod's bits. */
    for (guint i = 0; i < 20000; i++) {
        g_autofree char *text =
            g_strdup_printf("%s%d.%0*d", i % 2 ? "-" : "", g_test_rand_int_range(0, 1000000),
                            (int)(1 + i % 8), g_test_rand_int_range(0, 10000000));
        double got;
        g_assert_true(csv_parse_real(text, &got));
        g_assert_true(got == g_ascii_strtod(text, NULL));
    }
    double got;
    static const char *const bad[] = {"", "-", "1.2.3", ".", "1 ", " 1", "inf", "nan", "1,5"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(csv_parse_real(bad[i], &got));
}

/* Whatever the order of folding, the cells are those of a plain binning by the final width. */
static void test_time_bins(void)
{
    for (guint round = 0; round < 50; round++) {
        g_autoptr(TimeBins) bins = time_bins_new(2, 16);
        guint n = (guint)g_test_rand_int_range(1, 400);
        g_autofree kv_ns *start = g_new(kv_ns, n);
        g_autofree double *value = g_new(double, n);
        kv_ns now = g_test_rand_int_range(0, 1000);
        for (guint i = 0; i < n; i++) {
            start[i] = now;
            value[i] = g_test_rand_double();
            const double values[] = {value[i], i % 3 == 0 ? (double)NAN : 1};
            time_bins_add(bins, now, now + 5, values);
            now += (kv_ns)g_test_rand_int_range(0, 1 << (i % 20));
        }
        kv_ns width = time_bins_width(bins);
        g_assert_cmpuint(time_bins_count(bins), <=, 16);
        for (guint b = 0; b < time_bins_count(bins); b++) {
            Cell want[2] = {{0}};
            for (guint i = 0; i < n; i++)
                if ((start[i] - start[0]) / width == b) {
                    cell_add(&want[0], value[i]);
                    cell_add(&want[1], i % 3 == 0 ? (double)NAN : 1);
                }
            const Cell *got = time_bins_get(bins, b, NULL, NULL, NULL);
            g_assert_true((got == NULL) == (want[0].n == 0));
            if (got == NULL)
                continue;
            g_assert_cmpuint(got[0].n, ==, want[0].n);
            g_assert_cmpuint(got[1].n, ==, want[1].n);
            g_assert_cmpfloat_with_epsilon(got[0].sum, want[0].sum, 1e-9);
            g_assert_true(got[0].min == want[0].min && got[0].max == want[0].max);
        }
    }
}

static void test_log_bins(void)
{
    LogBins bins = {0};
    for (guint i = 1; i <= 1024; i++)
        log_bins_add(&bins, i, 1);
    guint64 n = 0;
    for (guint i = 0; i < G_N_ELEMENTS(bins.cells); i++)
        n += bins.cells[i].n;
    g_assert_cmpuint(n, ==, 1024);
    g_assert_cmpuint(bins.cells[40].n, ==, 1); /* 1024 = 2^10 begins bin 10 * 4 */
    g_assert_cmpuint(bins.cells[0].n, ==, 1);
    g_assert_true(log_bins_center(40) > 1024 && log_bins_center(40) < 1218);
}

static void test_sweep(void)
{
    g_autofree char *path =
        write_temp("seed,arrivals,pool_pages,ttft_p99,output_tokens,duration_s\n"
                   "1,poisson:rate=2,64,0.5,100,10\n"
                   "1,\"gamma:rate=1,cv=2\",64,0.25,50,10\n"
                   "2,poisson:rate=2,64,1.5,300,10\n"
                   "1,poisson:rate=2,32,9,100,20\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(SweepTable) table = sweep_table_load(path, &error);
    g_assert_no_error(error);
    /* A load axis comes before the pool's. */
    g_assert_cmpstr(sweep_table_axis(table), ==, "arrivals");
    g_assert_true(sweep_table_axis_is_load(table));
    g_assert_cmpuint(sweep_table_curves(table), ==, 2);
    g_assert_cmpstr(sweep_table_label(table, 1), ==, "pool_pages 32");
    static const char *const ttft[] = {"ttft_p99_s", "ttft_p99", NULL};
    static const char *const rate[] = {"output_tokens/duration_s", NULL}, *const none[] = {"x",
                                                                                           NULL};
    g_assert_cmpint(sweep_table_metric(table, none), ==, -1);
    g_autofree double *x = NULL, *x2 = NULL;
    g_autofree Cell *y = NULL, *y2 = NULL;
    g_assert_cmpuint(sweep_table_points(table, 0, sweep_table_metric(table, ttft), &x, &y), ==, 2);
    g_assert_true(x[0] == 1 && x[1] == 2 && y[0].max == 0.25);
    g_assert_true(y[1].n == 2 && y[1].min == 0.5 && y[1].max == 1.5 && cell_mean(&y[1]) == 1);
    g_assert_cmpuint(sweep_table_points(table, 0, sweep_table_metric(table, rate), &x2, &y2), ==,
                     2);
    g_assert_true(cell_mean(&y2[0]) == 5 && cell_mean(&y2[1]) == 20);
    g_unlink(path);
}

static void test_sweep_rate_in_text(void)
{
    g_autofree char *path = write_temp("seed,arrivals,ttft_p99\n1,poisson:rate=2,1\n"
                                       "1,poisson:rate=0.5,3\n");
    g_autoptr(SweepTable) table = sweep_table_load(path, NULL);
    static const char *const ttft[] = {"ttft_p99", NULL};
    g_autofree double *x = NULL;
    g_autofree Cell *y = NULL;
    g_assert_true(sweep_table_axis_is_load(table));
    g_assert_cmpuint(sweep_table_points(table, 0, sweep_table_metric(table, ttft), &x, &y), ==, 2);
    g_assert_true(x[0] == 0.5 && y[0].min == 3 && x[1] == 2 && y[1].min == 1);
    g_unlink(path);
}

static void test_knee(void)
{
    const double x[] = {1, 2, 3, 4, 5}, bent[] = {1, 1, 1, 5, 9}, straight[] = {1, 2, 3, 4, 5};
    g_assert_true(sweep_knee(x, bent, 5) == 3);
    g_assert_true(isnan(sweep_knee(x, straight, 5)));
    g_assert_true(isnan(sweep_knee(x, bent, 3)));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/csv/fields", test_fields);
    g_test_add_func("/plots/csv/damage", test_damage);
    g_test_add_func("/plots/csv/reals", test_reals);
    g_test_add_func("/plots/bins/time", test_time_bins);
    g_test_add_func("/plots/bins/log", test_log_bins);
    g_test_add_func("/plots/sweep/table", test_sweep);
    g_test_add_func("/plots/sweep/rate-in-text", test_sweep_rate_in_text);
    g_test_add_func("/plots/sweep/knee", test_knee);
    return g_test_run();
}
