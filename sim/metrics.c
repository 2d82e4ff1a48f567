#include "sim/metrics.h"

#include <string.h>

SimMetrics *metrics_new(const SimConfig *config)
{
    SimMetrics *m = g_new0(SimMetrics, 1);
    m->good_ttft = config->good_ttft;
    m->good_tpot = config->good_tpot;
    m->good_e2e = config->good_e2e;
    m->result.n_classes = 1;
    m->first_arrival = KV_NS_MAX;
    m->last_finish = KV_NS_NONE;
    m->itl = log_hist_new();
    m->ttft = sampler_new(METRICS_EXACT);
    m->server_ttft = sampler_new(METRICS_EXACT);
    m->client_wait = sampler_new(METRICS_EXACT);
    m->tpot = sampler_new(METRICS_EXACT);
    m->e2e = sampler_new(METRICS_EXACT);
    m->queue_delay = sampler_new(METRICS_EXACT);
    return m;
}

void metrics_free(SimMetrics *m)
{
    if (m == NULL)
        return;
    log_hist_free(m->itl);
    sampler_free(m->ttft);
    sampler_free(m->server_ttft);
    sampler_free(m->client_wait);
    sampler_free(m->tpot);
    sampler_free(m->e2e);
    sampler_free(m->queue_delay);
    for (guint i = 0; i < SIM_CLASSES; i++) {
        ClassMetrics *c = &m->classes[i];
        sampler_free(c->ttft);
        sampler_free(c->tpot);
        sampler_free(c->e2e);
        sampler_free(c->queue_delay);
    }
    g_free(m);
}

static guint class_of(const Request *request)
{
    return MIN(request->klass, SIM_CLASSES - 1);
}

static void make_class(ClassMetrics *c)
{
    if (c->ttft)
        return;
    c->ttft = sampler_new(METRICS_EXACT);
    c->tpot = sampler_new(METRICS_EXACT);
    c->e2e = sampler_new(METRICS_EXACT);
    c->queue_delay = sampler_new(METRICS_EXACT);
}

/* Latencies by class are kept from the first request of a second class on; all before were class 0.
 */
static void need_classes(SimMetrics *m, guint n)
{
    if (n <= m->result.n_classes)
        return;
    ClassMetrics *first = &m->classes[0];
    if (first->ttft == NULL) {
        make_class(first);
        sampler_merge(first->ttft, m->ttft);
        sampler_merge(first->tpot, m->tpot);
        sampler_merge(first->e2e, m->e2e);
        sampler_merge(first->queue_delay, m->queue_delay);
    }
    for (guint i = 1; i < n; i++)
        make_class(&m->classes[i]);
    m->result.n_classes = n;
}

void metrics_arrived(SimMetrics *m, const Request *request)
{
    m->result.requests++;
    need_classes(m, class_of(request) + 1);
    m->result.classes[class_of(request)].requests++;
    m->first_arrival = MIN(m->first_arrival, request->arrival);
}

static void count_refused(SimResult *r, const char *reason, guint64 count)
{
    r->refused += count;
    guint i = 0;
    while (i < r->n_refused_by && strcmp(r->refused_by[i].reason, reason) != 0)
        i++;
    g_assert(i < G_N_ELEMENTS(r->refused_by));
    if (i == r->n_refused_by)
        r->refused_by[r->n_refused_by++] = (RefusedCount){reason, 0};
    r->refused_by[i].count += count;
}

void metrics_refused(SimMetrics *m, const Request *request, const char *reason)
{
    count_refused(&m->result, reason, 1);
    m->result.classes[class_of(request)].refused++;
}

/* From now on sendings are kept apart: fills in those so far, which were their arrivals. */
static void spell_out_sent(SimMetrics *m)
{
    if (m->sent_differs)
        return;
    m->sent_differs = TRUE;
    sampler_merge(m->server_ttft, m->ttft);
    sampler_add_progression(m->client_wait, 0, 0, m->same_sent, 1);
}

/* Most logs record no sending of its own: its samplers then cost nothing. */
static void add_client_side(SimMetrics *m, const RequestRecord *record)
{
    const Request *q = &record->request;
    if (!m->sent_differs && q->sent == q->arrival) {
        m->same_sent++;
        return;
    }
    spell_out_sent(m);
    sampler_add(m->server_ttft, record->first_token - q->sent);
    sampler_add(m->client_wait, q->sent - q->arrival);
}

typedef struct Latencies {
    gint64 ttft, e2e, queue_delay, tpot; /* tpot -1: one token has none */
} Latencies;

static void add_to_class(SimMetrics *m, const Request *q, const Latencies *t, gboolean good)
{
    ClassResult *r = &m->result.classes[class_of(q)];
    ClassMetrics *c = &m->classes[class_of(q)];
    r->good += good;
    if (c->ttft == NULL)
        return;
    sampler_add(c->ttft, t->ttft);
    sampler_add(c->e2e, t->e2e);
    sampler_add(c->queue_delay, t->queue_delay);
    if (t->tpot >= 0)
        sampler_add(c->tpot, t->tpot);
}

static void add_latencies(SimMetrics *m, const Request *q, const Latencies *t)
{
    gboolean good = (m->good_ttft == 0 || t->ttft <= m->good_ttft) &&
                    (m->good_e2e == 0 || t->e2e <= m->good_e2e) &&
                    (m->good_tpot == 0 || t->tpot <= m->good_tpot);
    m->result.measured++;
    m->result.good += good;
    add_to_class(m, q, t, good); /* before the totals get it: need_classes() copies them */
    sampler_add(m->ttft, t->ttft);
    sampler_add(m->e2e, t->e2e);
    sampler_add(m->queue_delay, t->queue_delay);
    if (t->tpot >= 0) {
        sampler_add(m->tpot, t->tpot);
        m->itl_expected += (guint64)q->output - 1;
    }
}

void metrics_finished(SimMetrics *m, const RequestRecord *record, gboolean measured)
{
    const Request *q = &record->request;
    ClassResult *c = &m->result.classes[class_of(q)];
    c->finished++;
    c->output_tokens += (guint64)q->output;
    m->result.finished++;
    m->result.prompt_tokens += (guint64)q->prompt;
    m->asked_output += (guint64)q->output;
    m->result.recomputed_tokens += (guint64)record->recomputed_tokens;
    m->result.clipped += record->status == REQUEST_CUT;
    m->last_finish = MAX(m->last_finish, record->finish);
    if (!measured)
        return;
    add_client_side(m, record); /* before ttft gets this one */
    gint64 gaps = q->output - 1, time = record->finish - record->first_token;
    Latencies t = {
        .ttft = record->first_token - q->arrival,
        .e2e = record->finish - q->arrival,
        .queue_delay = record->first_scheduled - q->sent,
        .tpot = gaps > 0 ? (time + gaps / 2) / gaps : -1,
    };
    add_latencies(m, q, &t);
}

static double mean_over(unsigned __int128 integral, kv_ns time)
{
    return time > 0 ? (double)integral / (double)time : 0;
}

static Summary hist_summary(const LogHist *h, double scale)
{
    Summary s = {.n = log_hist_count(h)};
    if (s.n == 0)
        return s;
    s.mean = log_hist_mean(h) * scale;
    s.min = (double)log_hist_min(h) * scale;
    s.max = (double)log_hist_max(h) * scale;
    s.p50 = log_hist_quantile(h, 0.5) * scale;
    s.p90 = log_hist_quantile(h, 0.9) * scale;
    s.p95 = log_hist_quantile(h, 0.95) * scale;
    s.p99 = log_hist_quantile(h, 0.99) * scale;
    return s;
}

static void summarise(SimMetrics *m, SimResult *r)
{
    const double s = 1e-9;
    r->ttft = sampler_summary(m->ttft, s);
    r->e2e = sampler_summary(m->e2e, s);
    r->queue_delay = sampler_summary(m->queue_delay, s);
    r->tpot = sampler_summary(m->tpot, s);
    r->itl_per_request = r->tpot;
    r->itl = hist_summary(m->itl, s);
    for (guint i = 0; i < r->n_classes; i++) {
        ClassMetrics *c = &m->classes[i];
        r->classes[i].ttft = c->ttft ? sampler_summary(c->ttft, s) : r->ttft;
        r->classes[i].tpot = c->ttft ? sampler_summary(c->tpot, s) : r->tpot;
        r->classes[i].e2e = c->ttft ? sampler_summary(c->e2e, s) : r->e2e;
        r->classes[i].queue_delay = c->ttft ? sampler_summary(c->queue_delay, s) : r->queue_delay;
    }
    if (m->sent_differs) {
        r->server_ttft = sampler_summary(m->server_ttft, s);
        r->client_wait = sampler_summary(m->client_wait, s);
    } else {
        r->server_ttft = r->ttft;
        r->client_wait = (Summary){.n = r->ttft.n};
    }
}

void metrics_close(SimMetrics *m, guint32 page_size, guint64 pages_end, SimResult *ret)
{
    SimResult *r = &m->result;
    r->pages_end = pages_end;
    if (r->finished > 0)
        r->duration = m->last_finish - m->first_arrival;
    r->rows_mean = mean_over(m->rows_time, r->duration);
    r->pages_mean = mean_over(m->pages_time, r->duration);
    r->waiting_mean = mean_over(m->waiting_time, r->duration);
    if (m->pages_time)
        r->pages_filled_mean = (double)m->tokens_time / ((double)m->pages_time * page_size);
    summarise(m, r);
    *ret = *r;
}

static void merge_counts(SimResult *a, const SimResult *b)
{
    a->requests += b->requests;
    a->finished += b->finished;
    a->clipped += b->clipped;
    a->steps += b->steps;
    a->row_steps += b->row_steps;
    a->prefill_tokens += b->prefill_tokens;
    a->prompt_tokens += b->prompt_tokens;
    a->output_tokens += b->output_tokens;
    a->recomputed_tokens += b->recomputed_tokens;
    a->preemptions += b->preemptions;
    a->prefix_hit_tokens += b->prefix_hit_tokens;
    a->prefix_queried_tokens += b->prefix_queried_tokens;
    a->host_hit_tokens += b->host_hit_tokens;
    a->host_bytes_in += b->host_bytes_in;
    a->host_bytes_out += b->host_bytes_out;
    a->busy += b->busy;
    a->pages_end += b->pages_end;
    a->pages_peak = MAX(a->pages_peak, b->pages_peak);
    a->waiting_peak = MAX(a->waiting_peak, b->waiting_peak);
    a->rows_peak = MAX(a->rows_peak, b->rows_peak);
    a->measured += b->measured;
    a->good += b->good;
    for (guint i = 0; i < SIM_CLASSES; i++) {
        a->classes[i].requests += b->classes[i].requests;
        a->classes[i].finished += b->classes[i].finished;
        a->classes[i].refused += b->classes[i].refused;
        a->classes[i].good += b->classes[i].good;
        a->classes[i].output_tokens += b->classes[i].output_tokens;
    }
}

/* Before the totals are merged: a side without latencies by class has class 0 only. */
static void merge_classes(SimMetrics *into, const SimMetrics *from)
{
    need_classes(into, from->result.n_classes);
    for (guint i = 0; i < into->result.n_classes && into->classes[0].ttft; i++) {
        const ClassMetrics *c = &from->classes[i];
        gboolean whole = i == 0 && c->ttft == NULL;
        if (c->ttft == NULL && !whole)
            continue;
        sampler_merge(into->classes[i].ttft, whole ? from->ttft : c->ttft);
        sampler_merge(into->classes[i].tpot, whole ? from->tpot : c->tpot);
        sampler_merge(into->classes[i].e2e, whole ? from->e2e : c->e2e);
        sampler_merge(into->classes[i].queue_delay, whole ? from->queue_delay : c->queue_delay);
    }
}

void metrics_merge(SimMetrics *into, const SimMetrics *from)
{
    merge_counts(&into->result, &from->result);
    merge_classes(into, from);
    for (guint i = 0; i < from->result.n_refused_by; i++)
        count_refused(&into->result, from->result.refused_by[i].reason,
                      from->result.refused_by[i].count);
    into->first_arrival = MIN(into->first_arrival, from->first_arrival);
    into->last_finish = MAX(into->last_finish, from->last_finish);
    into->rows_time += from->rows_time;
    into->pages_time += from->pages_time;
    into->tokens_time += from->tokens_time;
    into->waiting_time += from->waiting_time;
    into->asked_output += from->asked_output;
    into->itl_expected += from->itl_expected;
    if (from->sent_differs)
        spell_out_sent(into);
    if (into->sent_differs) {
        sampler_merge(into->server_ttft, from->sent_differs ? from->server_ttft : from->ttft);
        if (from->sent_differs)
            sampler_merge(into->client_wait, from->client_wait);
        else
            sampler_add_progression(into->client_wait, 0, 0, from->same_sent, 1);
    }
    into->same_sent += from->same_sent;
    log_hist_merge(into->itl, from->itl);
    sampler_merge(into->ttft, from->ttft);
    sampler_merge(into->tpot, from->tpot);
    sampler_merge(into->e2e, from->e2e);
    sampler_merge(into->queue_delay, from->queue_delay);
}

const char *metrics_check(const SimMetrics *m)
{
    const SimResult *r = &m->result;
    if (r->requests != r->finished + r->refused)
        return "requests are not finished + refused";
    if (r->output_tokens != m->asked_output)
        return "output tokens are not the sum of the finished requests' outputs";
    if (log_hist_count(m->itl) != m->itl_expected)
        return "inter-token times are not one fewer than the output tokens";
    if (r->pages_end != 0)
        return "pages are still in use at the end";
    return NULL;
}
