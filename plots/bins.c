#include "plots/bins.h"

#include <math.h>
#include <string.h>

typedef struct Span {
    guint64 samples;
    kv_ns first, last; /* start of the first sample, end of the last */
} Span;

struct TimeBins {
    guint n_series, max_bins, used;
    gboolean started;
    kv_ns origin, width;
    Span *spans; /* [max_bins] */
    Cell *cells; /* [max_bins][n_series] */
};

void cell_add(Cell *cell, double value)
{
    if (isnan(value))
        return;
    if (cell->n == 0 || value < cell->min)
        cell->min = value;
    if (cell->n == 0 || value > cell->max)
        cell->max = value;
    cell->sum += value;
    cell->n++;
}

void cell_merge(Cell *into, const Cell *from)
{
    if (from->n == 0)
        return;
    if (into->n == 0) {
        *into = *from;
        return;
    }
    into->n += from->n;
    into->sum += from->sum;
    into->min = MIN(into->min, from->min);
    into->max = MAX(into->max, from->max);
}

double cell_mean(const Cell *cell)
{
    return cell->n == 0 ? (double)NAN : cell->sum / (double)cell->n;
}

TimeBins *time_bins_new(guint n_series, guint max_bins)
{
    g_assert(max_bins >= 2 && max_bins % 2 == 0);
    TimeBins *self = g_new0(TimeBins, 1);
    self->n_series = n_series;
    self->max_bins = max_bins;
    self->width = 1;
    self->spans = g_new0(Span, max_bins);
    self->cells = g_new0(Cell, (gsize)max_bins * n_series);
    return self;
}

void time_bins_free(TimeBins *self)
{
    if (self == NULL)
        return;
    g_free(self->spans);
    g_free(self->cells);
    g_free(self);
}

static void span_merge(Span *into, const Span *from)
{
    if (from->samples == 0)
        return;
    if (into->samples == 0) {
        *into = *from;
        return;
    }
    into->samples += from->samples;
    into->first = MIN(into->first, from->first);
    into->last = MAX(into->last, from->last);
}

/* Doubles the width: bins 2i and 2i+1 become bin i. */
static void fold(TimeBins *self)
{
    guint n = self->n_series;
    for (guint i = 0; i < self->used; i++) {
        guint to = i / 2;
        if (i == to)
            continue;
        Cell *from = self->cells + (gsize)i * n;
        for (guint s = 0; s < n; s++)
            cell_merge(self->cells + (gsize)to * n + s, from + s);
        memset(from, 0, n * sizeof *from);
        span_merge(&self->spans[to], &self->spans[i]);
        self->spans[i] = (Span){0};
    }
    self->used = (self->used + 1) / 2;
    self->width *= 2;
}

void time_bins_add(TimeBins *self, kv_ns start, kv_ns end, const double *values)
{
    if (!self->started) {
        self->started = TRUE;
        self->origin = start;
    }
    guint64 offset = start > self->origin ? (guint64)start - (guint64)self->origin : 0;
    while (offset / (guint64)self->width >= self->max_bins && self->width < G_MAXINT64 / 4)
        fold(self);
    guint i = (guint)MIN(offset / (guint64)self->width, self->max_bins - 1);
    self->used = MAX(self->used, i + 1);
    span_merge(&self->spans[i], &(Span){.samples = 1, .first = start, .last = MAX(end, start)});
    Cell *cells = self->cells + (gsize)i * self->n_series;
    for (guint s = 0; s < self->n_series; s++)
        cell_add(&cells[s], values[s]);
}

kv_ns time_bins_width(const TimeBins *self)
{
    return self->width;
}

kv_ns time_bins_origin(const TimeBins *self)
{
    return self->origin;
}

guint time_bins_count(const TimeBins *self)
{
    return self->used;
}

const Cell *time_bins_get(const TimeBins *self, guint i, kv_ns *ret_first, kv_ns *ret_last,
                          guint64 *ret_samples)
{
    const Span *span = &self->spans[i];
    if (span->samples == 0)
        return NULL;
    if (ret_first != NULL)
        *ret_first = span->first;
    if (ret_last != NULL)
        *ret_last = span->last;
    if (ret_samples != NULL)
        *ret_samples = span->samples;
    return self->cells + (gsize)i * self->n_series;
}

void log_bins_add(LogBins *self, double x, double value)
{
    double at = x > 1 ? floor(log2(x) * LOG_BINS_PER_OCTAVE + 1e-9) : 0;
    guint i = (guint)MIN(at, (double)G_N_ELEMENTS(self->cells) - 1);
    cell_add(&self->cells[i], value);
}

double log_bins_center(guint i)
{
    return exp2(((double)i + 0.5) / LOG_BINS_PER_OCTAVE);
}
