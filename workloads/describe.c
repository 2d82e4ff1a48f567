#include "workloads/describe.h"

#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "workloads/key_set.h"
#include "workloads/token_counts.h"
#include "workloads/workload_internal.h"

#define EXACT_LIMIT 2000000

typedef struct Collector {
    Description *d;
    TokenCounts *prompt, *output;
    Sampler *gap, *ttft, *itl, *tpot, *e2e, *queue, *client_wait, *speed;
    KeySet *keys, *sessions;
    RngStream rng;
    kv_ns previous;
    guint64 arrivals;
    unsigned __int128 gap_squares; /* ns^2: exact, and no more than the span's square */
    kv_ns bin_end;                 /* of the bin at hand */
    guint bin;
    guint64 next_point; /* number of the request that enters the sample next */
    double point_weight;
} Collector;

static void collector_init(Collector *c, Workload *workload)
{
    Sampler **samplers[] = {&c->gap, &c->ttft,  &c->itl,         &c->tpot,
                            &c->e2e, &c->queue, &c->client_wait, &c->speed};
    *c = (Collector){.d = g_new0(Description, 1), .keys = key_set_new(), .sessions = key_set_new()};
    for (guint i = 0; i < G_N_ELEMENTS(samplers); i++)
        *samplers[i] = sampler_new(EXACT_LIMIT);
    c->prompt = token_counts_new();
    c->output = token_counts_new();
    c->d->workload = workload;
    c->d->bin_width = KV_SECOND;
    c->point_weight = 1;
    rng_init(&c->rng, 1, RNG_SAMPLE, 0, 0);
}

static void collector_clear(Collector *c)
{
    Sampler *samplers[] = {c->gap, c->ttft,  c->itl,         c->tpot,
                           c->e2e, c->queue, c->client_wait, c->speed};
    for (guint i = 0; i < G_N_ELEMENTS(samplers); i++)
        sampler_free(samplers[i]);
    token_counts_free(c->prompt);
    token_counts_free(c->output);
    key_set_free(c->keys);
    key_set_free(c->sessions);
    g_free(c->d);
}

/* --- one request --- */

/* Arrivals come in order, so mostly the bin is the last one's; a division only at its end. */
static void add_bin(Collector *c, kv_ns t)
{
    Description *d = c->d;
    while (t >= d->bin_width * DESCRIBE_BINS) {
        for (guint i = 0; i < DESCRIBE_BINS; i++)
            d->bins[i] = i < DESCRIBE_BINS / 2 ? d->bins[2 * i] + d->bins[2 * i + 1] : 0;
        d->bin_width *= 2;
        c->bin_end = 0;
    }
    if (t >= c->bin_end) {
        c->bin = (guint)(t / d->bin_width);
        c->bin_end = (c->bin + 1) * d->bin_width;
        d->n_bins = c->bin + 1;
    }
    d->bins[c->bin]++;
}

static void add_arrival(Collector *c, kv_ns t)
{
    if (c->arrivals++ > 0) {
        kv_ns gap = t - c->previous;
        sampler_add(c->gap, gap);
        c->gap_squares += (unsigned __int128)gap * (guint64)gap;
    }
    c->previous = t;
    c->d->last_arrival = t;
    add_bin(c, t);
}

/* A fair sample of all requests: the next one to take is drawn, not each one's fate (Li 1994). */
static void skip_points(Collector *c)
{
    c->point_weight *= exp(log(rng_uniform_open(&c->rng)) / DESCRIBE_POINTS);
    double skip = floor(log(rng_uniform_open(&c->rng)) / log1p(-c->point_weight));
    c->next_point += skip < 1e15 ? (guint64)skip + 1 : (guint64)1e15;
}

static void add_point(Collector *c, const Request *r)
{
    Description *d = c->d;
    DescribePoint point = {r->prompt, r->output};
    if (d->n_points < DESCRIBE_POINTS) {
        d->points[d->n_points++] = point;
        if (d->n_points == DESCRIBE_POINTS) {
            c->next_point = d->requests;
            skip_points(c);
        }
        return;
    }
    if (d->requests < c->next_point)
        return;
    d->points[rng_below(&c->rng, DESCRIBE_POINTS)] = point;
    skip_points(c);
}

static void add_lengths(Collector *c, const Request *r)
{
    Description *d = c->d;
    d->prompt_tokens += (guint64)r->prompt;
    d->output_tokens += (guint64)r->output;
    if (r->prompt > 0)
        token_counts_add(c->prompt, r->prompt);
    else
        d->unknown_prompts++;
    if (r->output > 0)
        token_counts_add(c->output, r->output);
    else
        d->unknown_outputs++;
    gint64 total = (gint64)r->prompt + r->output;
    d->total_max = (gint32)MIN(MAX(total, d->total_max), G_MAXINT32);
    add_point(c, r);
}

static void add_keys(Collector *c, const Request *r)
{
    Description *d = c->d;
    if (r->n_blocks == 0)
        return;
    gint64 size = r->block_tokens;
    d->block_tokens = r->block_tokens;
    d->keyed_requests++;
    guint full = (guint)MIN((gint64)r->n_blocks, r->prompt / size);
    guint usable = (guint)MIN((gint64)full, (r->prompt - 1) / size);
    guint hits = 0;
    for (guint i = 0; i < full; i++)
        key_set_prefetch(c->keys, r->blocks[i]);
    while (hits < usable && key_set_has(c->keys, r->blocks[hits]))
        hits++;
    d->hit_tokens += hits * (guint64)size;
    d->blocks += full;
    for (guint i = hits; i < full; i++)
        key_set_add(c->keys, r->blocks[i]);
}

static void add_observed(Collector *c, const Request *r)
{
    const Observed *o = r->observed;
    if (o == NULL)
        return;
    if (o->has_sent && r->wait == KV_NS_NONE && r->sent >= r->arrival)
        sampler_add(c->client_wait, r->sent - r->arrival);
    if (o->queue != KV_NS_NONE && o->queue >= 0)
        sampler_add(c->queue, o->queue);
    if (o->ttft != KV_NS_NONE && o->ttft >= 0)
        sampler_add(c->ttft, o->ttft);
    if (o->e2e != KV_NS_NONE && o->e2e >= 0)
        sampler_add(c->e2e, o->e2e);
    for (guint i = 0; i < o->n_itl; i++)
        sampler_add(c->itl, MAX(o->itl[i], 0));
    if (o->ttft == KV_NS_NONE || o->e2e == KV_NS_NONE || r->output < 2 || o->e2e < o->ttft)
        return;
    kv_ns decode = o->e2e - o->ttft;
    kv_ns tokens = r->output - 1;
    sampler_add(c->tpot, (decode + tokens / 2) / tokens);
    if (decode > 0) /* in units of 1e-6 tokens a second */
        sampler_add(c->speed, (gint64)((double)tokens / kv_ns_to_seconds(decode) * 1e6 + 0.5));
}

static void add_request(Collector *c, const Request *r)
{
    Description *d = c->d;
    d->requests++;
    if (r->wait == KV_NS_NONE)
        add_arrival(c, r->arrival);
    else
        d->closed_turns++;
    add_lengths(c, r);
    if (r->session != KV_NO_SESSION) {
        d->session_requests++;
        d->sessions += key_set_add(c->sessions, (guint64)r->session);
        d->turns_max = MAX(d->turns_max, r->turn + 1);
    }
    add_keys(c, r);
    add_observed(c, r);
}

/* Standard deviation / mean, from exact sums about a whole number near the mean. */
static double gap_cv(const Collector *c)
{
    if (c->arrivals < 3 || c->d->last_arrival == 0)
        return (double)NAN;
    __int128 n = (__int128)(c->arrivals - 1), sum = c->d->last_arrival, centre = sum / n;
    __int128 m2 = (__int128)c->gap_squares - 2 * centre * sum + n * centre * centre;
    double mean = (double)sum / (double)n, off = mean - (double)centre;
    double variance = (double)m2 / (double)n - off * off;
    return sqrt(MAX(variance, 0.0)) / mean;
}

static void finish(Collector *c)
{
    Description *d = c->d;
    d->prompt = token_counts_summary(c->prompt);
    d->output = token_counts_summary(c->output);
    d->gap = sampler_summary(c->gap, 1e-9);
    d->gap_cv = gap_cv(c);
    d->ttft = sampler_summary(c->ttft, 1e-9);
    d->itl = sampler_summary(c->itl, 1e-9);
    d->tpot = sampler_summary(c->tpot, 1e-9);
    d->e2e = sampler_summary(c->e2e, 1e-9);
    d->queue = sampler_summary(c->queue, 1e-9);
    d->client_wait = sampler_summary(c->client_wait, 1e-9);
    d->speed = sampler_summary(c->speed, 1e-6);
    d->distinct_blocks = key_set_count(c->keys);
}

static int read_all(Collector *c, RequestSource *source, Progress *progress, GError **error)
{
    Request r;
    int got;
    while ((got = request_source_next(source, &r, error)) == 1) {
        do {
            add_request(c, &r);
            progress_tick(progress, c->d->requests);
            if (!progress_check(progress, error))
                return -1;
            Request last = r;
            got = request_source_next_turn(source, &last, 0, &r, error);
        } while (got == 1);
        if (got < 0)
            return -1;
    }
    return got;
}

Description *workload_describe(Workload *workload, Progress *progress, GError **error)
{
    Collector c;
    workload_be_lenient(workload);
    collector_init(&c, workload);
    progress_begin(progress, "reading", 0);
    int got = read_all(&c, workload_source(workload), progress, error);
    progress_end(progress);
    Description *result = NULL;
    if (got == 0) {
        finish(&c);
        result = g_steal_pointer(&c.d);
    }
    collector_clear(&c);
    return result;
}

gboolean description_write_rate(const Description *self, OutFile *out, GError **error)
{
    FILE *f = out_file_stream(out);
    double width = kv_ns_to_seconds(self->bin_width);
    fprintf(f, "# time_s rate_per_s\n");
    for (guint i = 0; i < self->n_bins; i++) {
        char t[KV_NS_TEXT_SIZE];
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(text, sizeof text, "%.9g", (double)self->bins[i] / width);
        fprintf(f, "%s %s\n", kv_ns_text((kv_ns)i * self->bin_width, t), text);
    }
    return out_file_ok(out, error);
}

gboolean description_write_scatter(const Description *self, OutFile *out, GError **error)
{
    FILE *f = out_file_stream(out);
    fprintf(f, "# prompt_tokens output_tokens\n");
    for (guint i = 0; i < self->n_points; i++)
        fprintf(f, "%d %d\n", self->points[i].prompt, self->points[i].output);
    return out_file_ok(out, error);
}
