#include "workloads/token_counts.h"

struct TokenCounts {
    guint64 *counts; /* [size] */
    gint32 size;
    GArray *large; /* gint64 */
    guint64 n;
    guint64 sum;
};

TokenCounts *token_counts_new(void)
{
    TokenCounts *self = g_new0(TokenCounts, 1);
    self->large = g_array_new(FALSE, FALSE, sizeof(gint64));
    return self;
}

void token_counts_free(TokenCounts *self)
{
    if (self == NULL)
        return;
    g_free(self->counts);
    g_array_unref(self->large);
    g_free(self);
}

static void add_beyond(TokenCounts *self, gint32 tokens)
{
    if (tokens >= TOKEN_COUNTS_DENSE) {
        gint64 v = tokens;
        g_array_append_val(self->large, v);
        return;
    }
    gint32 size = MAX(self->size, 1024);
    while (size <= tokens)
        size *= 2;
    self->counts = g_renew(guint64, self->counts, size);
    for (gint32 i = self->size; i < size; i++)
        self->counts[i] = 0;
    self->size = size;
    self->counts[tokens]++;
}

void token_counts_add(TokenCounts *self, gint32 tokens)
{
    self->n++;
    self->sum += (guint64)tokens;
    if (G_LIKELY(tokens < self->size))
        self->counts[tokens]++;
    else
        add_beyond(self, tokens);
}

/* The k-th smallest, from 0; *tokens and *before walk on from an earlier, smaller k. */
static double at_rank(const TokenCounts *self, guint64 k, gint32 *tokens, guint64 *before)
{
    for (; *tokens < self->size; ++*tokens) {
        if (*before + self->counts[*tokens] > k)
            return *tokens;
        *before += self->counts[*tokens];
    }
    return (double)g_array_index(self->large, gint64, k - *before);
}

Summary token_counts_summary(TokenCounts *self)
{
    static const double qs[] = {0, 0.5, 0.9, 0.95, 0.99, 1};
    double values[G_N_ELEMENTS(qs)];
    Summary summary = {.n = self->n};
    gint32 tokens = 0;
    guint64 before = 0;
    if (self->n == 0)
        return summary;
    sort_i64((gint64 *)(gpointer)self->large->data, self->large->len);
    for (guint i = 0; i < G_N_ELEMENTS(qs); i++) {
        double position = qs[i] * (double)(self->n - 1);
        guint64 k = MIN((guint64)position, self->n - 1);
        double low = at_rank(self, k, &tokens, &before);
        gint32 t = tokens;
        guint64 b = before;
        double high = k + 1 < self->n ? at_rank(self, k + 1, &t, &b) : low;
        values[i] = quantile_linear((double[]){low, high}, 2, position - (double)k);
    }
    summary.mean = (double)self->sum / (double)self->n;
    summary.min = values[0];
    summary.p50 = values[1];
    summary.p90 = values[2];
    summary.p95 = values[3];
    summary.p99 = values[4];
    summary.max = values[5];
    return summary;
}
