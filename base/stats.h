/* Quantiles and summaries, with the rule named.
 *
 * Exact quantiles follow the linear rule (numpy's default, Hyndman and Fan type 7): position
 * q*(n-1), linear between neighbours. Histograms keep pooled samples in log buckets of 1/512 of
 * an octave: a quantile read from one is within 0.1 % of a sample at that rank; counts, sums, mean,
 * min and max stay exact. No samples have no quantile: callers print "n/a".
 */
#ifndef KV_BASE_STATS_H
#define KV_BASE_STATS_H

#include <glib.h>

/* `sorted` ascending, n >= 1, 0 <= q <= 1. */
double quantile_linear(const double *sorted, gsize n, double q);
double quantile_linear_i64(const gint64 *sorted, gsize n, double q);
void sort_doubles(double *values, gsize n);
double median_of(double *values, gsize n); /* by the linear rule; sorts them */
void sort_i64(gint64 *values, gsize n);

typedef struct LogHist LogHist; /* of gint64 samples >= 0 */
LogHist *log_hist_new(void);
void log_hist_free(LogHist *h);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LogHist, log_hist_free)
void log_hist_add(LogHist *h, gint64 value, guint64 count);
/* `steps` samples value, value+delta, value+2*delta ..., each `count` times: what a fast-forwarded
 * stretch adds. Cost follows buckets crossed, not steps. */
void log_hist_add_progression(LogHist *h, gint64 value, gint64 delta, guint64 steps, guint64 count);
void log_hist_merge(LogHist *into, const LogHist *from);
guint64 log_hist_count(const LogHist *h);
double log_hist_mean(const LogHist *h); /* exact (128-bit sum) */
gint64 log_hist_min(const LogHist *h);
gint64 log_hist_max(const LogHist *h);
double log_hist_quantile(const LogHist *h, double q);

/* What every latency prints. `n` = 0 means the other fields are meaningless. */
typedef struct Summary {
    guint64 n;
    double mean, min, p50, p90, p95, p99, max;
} Summary;

/* Collects gint64 samples: exact up to `exact_limit` of them, from then on a LogHist. */
typedef struct Sampler Sampler;
Sampler *sampler_new(gsize exact_limit);
void sampler_free(Sampler *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sampler, sampler_free)
void sampler_add(Sampler *s, gint64 value);
void sampler_add_progression(Sampler *s, gint64 value, gint64 delta, guint64 steps, guint64 count);
void sampler_merge(Sampler *into, const Sampler *from);
gboolean sampler_is_exact(const Sampler *s);
Summary sampler_summary(Sampler *s, double scale); /* every figure times `scale` (1e-9: seconds) */
double sampler_quantile(Sampler *s, double q);

#endif
