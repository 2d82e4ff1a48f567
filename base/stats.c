#include "base/stats.h"

#include <math.h>
#include <string.h>

/* numpy's way of going between neighbours: from the nearer end, so that it is monotone in t */
static double between(double a, double b, double t)
{
    return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1.0 - t);
}

double quantile_linear(const double *sorted, gsize n, double q)
{
    g_assert(n >= 1 && q >= 0.0 && q <= 1.0);
    double position = q * (double)(n - 1);
    gsize low = (gsize)position, high = MIN(low + 1, n - 1);
    return between(sorted[low], sorted[high], position - (double)low);
}

double quantile_linear_i64(const gint64 *sorted, gsize n, double q)
{
    g_assert(n >= 1 && q >= 0.0 && q <= 1.0);
    double position = q * (double)(n - 1);
    gsize low = (gsize)position, high = MIN(low + 1, n - 1);
    return between((double)sorted[low], (double)sorted[high], position - (double)low);
}

#define SMALL_SORT 64

static void insertion_sort(guint64 *keys, gsize n)
{
    for (gsize i = 1; i < n; i++) {
        guint64 key = keys[i];
        gsize j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Least significant byte first; a byte that is the same in all keys costs no pass. */
static void radix_sort(guint64 *keys, gsize n)
{
    g_autofree gsize *counts = g_new0(gsize, 8 * 256);
    g_autofree guint64 *spare = g_new(guint64, n);
    for (gsize i = 0; i < n; i++)
        for (guint byte = 0; byte < 8; byte++)
            counts[byte * 256 + (keys[i] >> (8 * byte) & 0xff)]++;
    guint64 *from = keys, *to = spare;
    for (guint byte = 0; byte < 8; byte++) {
        gsize *count = counts + byte * 256, place = 0;
        if (count[from[0] >> (8 * byte) & 0xff] == n)
            continue;
        for (guint v = 0; v < 256; v++) {
            gsize here = count[v];
            count[v] = place;
            place += here;
        }
        for (gsize i = 0; i < n; i++)
            to[count[from[i] >> (8 * byte) & 0xff]++] = from[i];
        guint64 *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
}

static void sort_keys(guint64 *keys, gsize n)
{
    if (n <= SMALL_SORT)
        insertion_sort(keys, n);
    else
        radix_sort(keys, n);
}

#define SIGN (G_GUINT64_CONSTANT(1) << 63)

/* Sorted as unsigned keys of the same order: the sign bit turned, and for negative doubles all
 * bits. */
void sort_doubles(double *values, gsize n)
{
    if (n < 2)
        return;
    g_autofree guint64 *keys = g_new(guint64, n);
    memcpy(keys, values, n * sizeof *keys);
    for (gsize i = 0; i < n; i++)
        keys[i] ^= keys[i] & SIGN ? ~G_GUINT64_CONSTANT(0) : SIGN;
    sort_keys(keys, n);
    for (gsize i = 0; i < n; i++)
        keys[i] ^= keys[i] & SIGN ? SIGN : ~G_GUINT64_CONSTANT(0);
    memcpy(values, keys, n * sizeof *keys);
}

double median_of(double *values, gsize n)
{
    sort_doubles(values, n);
    return quantile_linear(values, n, 0.5);
}

void sort_i64(gint64 *values, gsize n)
{
    if (n < 2)
        return;
    guint64 *keys = (guint64 *)values;
    for (gsize i = 0; i < n; i++)
        keys[i] ^= SIGN;
    sort_keys(keys, n);
    for (gsize i = 0; i < n; i++)
        keys[i] ^= SIGN;
}

struct Sampler {
    gsize limit, n, capacity;
    gint64 *values; /* while exact */
    gboolean sorted;
    LogHist *hist; /* from then on; NULL while exact */
};

Sampler *sampler_new(gsize exact_limit)
{
    Sampler *s = g_new0(Sampler, 1);
    s->limit = exact_limit;
    return s;
}

void sampler_free(Sampler *s)
{
    if (s == NULL)
        return;
    g_free(s->values);
    g_clear_pointer(&s->hist, log_hist_free);
    g_free(s);
}

static void spill(Sampler *s)
{
    s->hist = log_hist_new();
    for (gsize i = 0; i < s->n; i++)
        log_hist_add(s->hist, s->values[i], 1);
    g_clear_pointer(&s->values, g_free);
    s->n = s->capacity = 0;
}

/* Room for `more` exact samples, or the switch to the histogram. TRUE = still exact. */
static gboolean stay_exact(Sampler *s, guint64 more)
{
    if (s->hist != NULL)
        return FALSE;
    if (more > s->limit - s->n) {
        spill(s);
        return FALSE;
    }
    if (s->n + more > s->capacity) {
        s->capacity = MIN(s->limit, MAX(s->n + (gsize)more, s->capacity * 2));
        s->values = g_renew(gint64, s->values, s->capacity);
    }
    s->sorted = FALSE;
    return TRUE;
}

void sampler_add(Sampler *s, gint64 value)
{
    g_assert(value >= 0);
    if (stay_exact(s, 1))
        s->values[s->n++] = value;
    else
        log_hist_add(s->hist, value, 1);
}

void sampler_add_progression(Sampler *s, gint64 value, gint64 delta, guint64 steps, guint64 count)
{
    if (steps == 0 || count == 0)
        return;
    if (!stay_exact(s, steps > G_MAXUINT64 / count ? G_MAXUINT64 : steps * count)) {
        log_hist_add_progression(s->hist, value, delta, steps, count);
        return;
    }
    for (guint64 i = 0; i < steps; i++) {
        gint64 sample = value + (gint64)i * delta;
        g_assert(sample >= 0);
        for (guint64 k = 0; k < count; k++)
            s->values[s->n++] = sample;
    }
}

void sampler_merge(Sampler *into, const Sampler *from)
{
    if (from->hist != NULL) {
        if (into->hist == NULL)
            spill(into);
        log_hist_merge(into->hist, from->hist);
        return;
    }
    if (stay_exact(into, from->n)) {
        if (from->n > 0)
            memcpy(into->values + into->n, from->values, from->n * sizeof *from->values);
        into->n += from->n;
        return;
    }
    for (gsize i = 0; i < from->n; i++)
        log_hist_add(into->hist, from->values[i], 1);
}

gboolean sampler_is_exact(const Sampler *s)
{
    return s->hist == NULL;
}

static guint64 sampler_count(const Sampler *s)
{
    return s->hist != NULL ? log_hist_count(s->hist) : s->n;
}

double sampler_quantile(Sampler *s, double q)
{
    g_assert(sampler_count(s) >= 1);
    if (s->hist != NULL)
        return log_hist_quantile(s->hist, q);
    if (!s->sorted)
        sort_i64(s->values, s->n);
    s->sorted = TRUE;
    return quantile_linear_i64(s->values, s->n, q);
}

static double exact_mean(const Sampler *s)
{
    unsigned __int128 sum = 0;
    for (gsize i = 0; i < s->n; i++)
        sum += (guint64)s->values[i];
    return (double)sum / (double)s->n;
}

Summary sampler_summary(Sampler *s, double scale)
{
    Summary summary = {.n = sampler_count(s)};
    if (summary.n == 0)
        return summary;
    summary.mean = scale * (s->hist != NULL ? log_hist_mean(s->hist) : exact_mean(s));
    summary.min = scale * sampler_quantile(s, 0.0);
    summary.p50 = scale * sampler_quantile(s, 0.50);
    summary.p90 = scale * sampler_quantile(s, 0.90);
    summary.p95 = scale * sampler_quantile(s, 0.95);
    summary.p99 = scale * sampler_quantile(s, 0.99);
    summary.max = scale * sampler_quantile(s, 1.0);
    return summary;
}
