/* Log buckets: each octave [2^k, 2^(k+1)) is cut into 512 equal ones; below 1024 a bucket is one
 * value. The middle of a bucket is within 1/1024 of all its values. */
#include "base/stats.h"

#include <math.h>

#define SUB_BITS 9
#define N_BUCKETS ((63 - SUB_BITS) * (1 << SUB_BITS) + (1 << SUB_BITS))

struct LogHist {
    guint64 count;
    unsigned __int128 sum;
    gint64 min, max;
    guint first, last; /* buckets in use, where count > 0 */
    guint64 buckets[N_BUCKETS];
};

static guint bucket_shift(gint64 value)
{
    guint top = 63 - (guint)__builtin_clzll((guint64)value | 1);
    return top > SUB_BITS ? top - SUB_BITS : 0;
}

static guint bucket_of(gint64 value)
{
    guint shift = bucket_shift(value);
    return (shift << SUB_BITS) + (guint)(value >> shift);
}

/* Largest value in the same bucket. */
static gint64 bucket_last(gint64 value)
{
    return value | ((G_GINT64_CONSTANT(1) << bucket_shift(value)) - 1);
}

static double bucket_middle(guint bucket)
{
    guint shift = bucket >> SUB_BITS;
    if (shift <= 1) /* value < 1024 */
        return (double)bucket;
    shift--;
    gint64 low = (gint64)((bucket & ((1u << SUB_BITS) - 1)) + (1u << SUB_BITS)) << shift;
    return (double)low + (double)((G_GINT64_CONSTANT(1) << shift) - 1) / 2.0;
}

LogHist *log_hist_new(void)
{
    return g_new0(LogHist, 1);
}

void log_hist_free(LogHist *h)
{
    g_free(h);
}

/* Widens the exact figures; call before the buckets are counted up. */
static void note_range(LogHist *h, gint64 low, gint64 high)
{
    g_assert(low >= 0 && low <= high);
    guint first = bucket_of(low), last = bucket_of(high);
    if (h->count == 0) {
        h->min = low;
        h->max = high;
        h->first = first;
        h->last = last;
        return;
    }
    h->min = MIN(h->min, low);
    h->max = MAX(h->max, high);
    h->first = MIN(h->first, first);
    h->last = MAX(h->last, last);
}

void log_hist_add(LogHist *h, gint64 value, guint64 count)
{
    if (count == 0)
        return;
    note_range(h, value, value);
    h->buckets[bucket_of(value)] += count;
    h->count += count;
    h->sum += (unsigned __int128)(guint64)value * count;
}

void log_hist_add_progression(LogHist *h, gint64 value, gint64 delta, guint64 steps, guint64 count)
{
    if (steps == 0 || count == 0)
        return;
    __int128 end = (__int128)value + (__int128)delta * (__int128)(steps - 1);
    g_assert(value >= 0 && end >= 0 && end <= G_MAXINT64);
    if (delta < 0) { /* the same samples, from the other end */
        gint64 swap = value;
        value = (gint64)end;
        end = swap;
        delta = -delta;
    }
    note_range(h, value, (gint64)end);
    h->count += steps * count;
    unsigned __int128 pairs = (unsigned __int128)steps * (steps - 1) / 2;
    h->sum += ((unsigned __int128)(guint64)value * steps + pairs * (guint64)delta) * count;
    while (steps > 0) {
        guint64 here = steps;
        if (delta > 0)
            here = MIN(here, (guint64)((bucket_last(value) - value) / delta) + 1);
        h->buckets[bucket_of(value)] += here * count;
        steps -= here;
        if (steps > 0)
            value += (gint64)here * delta;
    }
}

void log_hist_merge(LogHist *into, const LogHist *from)
{
    if (from->count == 0)
        return;
    note_range(into, from->min, from->max);
    for (guint b = from->first; b <= from->last; b++)
        into->buckets[b] += from->buckets[b];
    into->count += from->count;
    into->sum += from->sum;
}

guint64 log_hist_count(const LogHist *h)
{
    return h->count;
}

double log_hist_mean(const LogHist *h)
{
    g_assert(h->count > 0);
    return (double)h->sum / (double)h->count;
}

gint64 log_hist_min(const LogHist *h)
{
    g_assert(h->count > 0);
    return h->min;
}

gint64 log_hist_max(const LogHist *h)
{
    g_assert(h->count > 0);
    return h->max;
}

static double middle_within(const LogHist *h, guint bucket)
{
    return CLAMP(bucket_middle(bucket), (double)h->min, (double)h->max);
}

/* The linear rule between the samples of ranks floor(q(n-1)) and the next, each taken to be the
 * middle of its bucket; the first and the last rank are exact. */
double log_hist_quantile(const LogHist *h, double q)
{
    g_assert(h->count > 0 && q >= 0.0 && q <= 1.0);
    double position = q * (double)(h->count - 1);
    guint64 rank = (guint64)position, below = 0;
    double part = position - (double)rank;
    guint b = h->first;
    if (rank == 0 && part == 0.0)
        return (double)h->min;
    if (rank >= h->count - 1)
        return (double)h->max;
    while (below + h->buckets[b] <= rank)
        below += h->buckets[b++];
    double low = rank == 0 ? (double)h->min : middle_within(h, b);
    if (below + h->buckets[b] == rank + 1) /* the next rank lies in a later bucket */
        do
            b++;
        while (h->buckets[b] == 0);
    double high = rank + 1 == h->count - 1 ? (double)h->max : middle_within(h, b);
    return low + (high - low) * part;
}
