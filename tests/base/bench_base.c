/* Prints how fast the base pieces are that whole runs wait for. */
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/input.h"
#include "base/rng.h"
#include "base/stats.h"

static double seconds_since(gint64 start)
{
    return (double)(g_get_monotonic_time() - start) / 1e6;
}

static void bench_lines(gboolean hash)
{
    gsize size = 128 << 20, len, sum = 0;
    g_autofree char *text = g_malloc(size);
    memset(text, 'x', size);
    for (gsize i = 39; i < size; i += 40)
        text[i] = '\n';
    gint64 start = g_get_monotonic_time();
    g_autoptr(Input) input = input_open_memory("memory", text, size);
    char *line;
    if (hash)
        input_set_hash(input);
    while (input_line(input, &line, &len, NULL) > 0)
        sum += len;
    g_assert_cmpuint(sum, >, 0);
    printf("lines of 40 bytes%s: %.2f GB/s\n", hash ? ", hashed" : "",
           (double)size / 1e9 / seconds_since(start));
}

static void bench_decimal(void)
{
    static const char *const texts[] = {"1700000000.1234567", "12.345678901", "374", "0.5"};
    gint64 start = g_get_monotonic_time(), value, sum = 0;
    int n = 20000000;
    for (int i = 0; i < n; i++) {
        const char *text = texts[i % 4];
        decimal_parse(text, strlen(text), 1000000000, &value, NULL);
        sum ^= value;
    }
    printf("decimal: %.1f ns (%" G_GINT64_FORMAT ")\n", seconds_since(start) * 1e9 / n, sum % 10);
}

static void bench_sort(void)
{
    gsize n = 4000000;
    g_autofree gint64 *values = g_new(gint64, n);
    RngStream s;
    rng_init(&s, 1, RNG_TEST, 0, 0);
    gint64 start = g_get_monotonic_time();
    for (gsize i = 0; i < n; i++)
        values[i] = (gint64)rng_below(&s, 100000000);
    printf("rng_below: %.1f ns\n", seconds_since(start) * 1e9 / (double)n);
    start = g_get_monotonic_time();
    sort_i64(values, n);
    printf("sort of %zu: %.0f ms\n", n, seconds_since(start) * 1e3);
}

static void bench_hist(void)
{
    g_autoptr(LogHist) h = log_hist_new();
    gint64 start = g_get_monotonic_time();
    int n = 20000000;
    for (int i = 0; i < n; i++)
        log_hist_add(h, (gint64)i * 37, 1);
    printf("log_hist_add: %.1f ns\n", seconds_since(start) * 1e9 / n);
    start = g_get_monotonic_time();
    int stretches = 1000000;
    for (int i = 0; i < stretches; i++)
        log_hist_add_progression(h, 16000000 + i, 7000, 16, 200);
    printf("log_hist_add_progression of 16 steps: %.1f ns\n",
           seconds_since(start) * 1e9 / stretches);
}

int main(void)
{
    bench_lines(FALSE);
    bench_lines(TRUE);
    bench_decimal();
    bench_sort();
    bench_hist();
    return 0;
}
