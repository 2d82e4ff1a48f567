/* paper: the fixed slots of the published PersistentKV experiment, kept as they are.
 *
 * Time is counted in steps: a request's arrival is the number of its step, it is live for `output`
 * steps from then on, and its length is prompt + steps since then, so the token being made is not
 * counted. Each step takes the first max_active live requests by id; one that is left out loses
 * that token. There is no prefill, no queue and no growth: a request's pages, for prompt + output
 * rounded up to a page, are set aside beforehand as consecutive slices of one random permutation of
 * all ids. Steps without a live request are skipped. All requests are read before the first step.
 */
#include "sim/metrics.h"
#include "sim/scheduler.h"
#include "base/error.h"
#include "workloads/mt19937.h"

#include <math.h>

#define PAGES_SEED 99 /* the permutation's generator is seeded this far from the trace's */

typedef struct Config {
    gint64 max_active, steps, seed;
    double holes;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"max_active", SPEC_INT, AT(max_active), "8", 1, 65536, NULL, "rows of a step at most"},
    {"steps", SPEC_INT, AT(steps), "0", 0, 1e12, NULL, "steps to run; 0 = until all have ended"},
    {"holes", SPEC_REAL, AT(holes), "0", 0, 0.99, NULL, "share of page ids that are never used"},
    {"seed", SPEC_INT, AT(seed), "20260622", 0, 4294967295.0, NULL,
     "the trace's seed: page ids follow from it"},
    {NULL},
};

typedef struct PaperRow {
    Request request;
    guint32 first_page, n_pages;
    guint32 slot, served; /* steps in which it was a row */
    kv_ns arrived, first_scheduled, first_token, last_token;
} PaperRow;

typedef struct Paper {
    const SimRun *run;
    const Config *c;
    GArray *rows; /* PaperRow, by id */
    guint32 *ids; /* physical pages, slices by request */
    guint64 n_ids;
    SimMetrics *metrics;
    GArray *active; /* guint: indices into rows, ascending */
    guint next;     /* first row not yet looked at */
    guint arrived, ended;
    GArray *free_slots, *left;
    GArray *joined;
    guint32 n_slots;
    guint64 step, made; /* the trace's step number; steps made */
    kv_ns now;
} Paper;

static PaperRow *row_at(const Paper *p, guint i)
{
    return &g_array_index(p->rows, PaperRow, i);
}

static gboolean read_rows(Paper *p, GError **error)
{
    guint32 page_size = p->run->config->page_size;
    guint64 total = 0;
    Request q;
    int got;
    while ((got = request_source_next(p->run->source, &q, error)) > 0) {
        guint64 entries = (guint64)q.prompt + (guint64)q.output;
        PaperRow row = {.request = q, .first_scheduled = KV_NS_NONE, .first_token = KV_NS_NONE};
        row.request.blocks = NULL;
        row.first_page = (guint32)total;
        row.n_pages = (guint32)((entries + page_size - 1) / page_size);
        total += row.n_pages;
        g_array_append_val(p->rows, row);
    }
    double ids = ceil((double)total / (1 - p->c->holes));
    if (got == 0 && ids >= G_MAXUINT32) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "scheduler paper: %.0f pages for all requests: too many for page numbers", ids);
        return FALSE;
    }
    p->n_ids = (guint64)ids;
    return got == 0;
}

static void permute_ids(Paper *p)
{
    guint32 n = (guint32)p->n_ids;
    p->ids = g_new(guint32, (gsize)n + 1);
    for (guint32 i = 0; i < n; i++)
        p->ids[i] = i;
    Mt19937 mt;
    mt19937_seed(&mt, (guint32)p->c->seed + PAGES_SEED);
    for (guint32 i = 0; i + 1 < n; i++) {
        guint32 j = i + mt19937_next(&mt) % (n - i);
        guint32 id = p->ids[i];
        p->ids[i] = p->ids[j];
        p->ids[j] = id;
    }
}

static guint64 end_step(const PaperRow *row)
{
    return (guint64)row->request.arrival + (guint64)row->request.output;
}

static gboolean end_row(Paper *p, PaperRow *row, const char *cut, GError **error)
{
    p->ended++;
    RequestRecord record = {
        .request = row->request,
        .replica = p->run->config->replica,
        .first_scheduled = row->first_scheduled,
        .first_token = row->first_token,
        .finish = row->served ? row->last_token : KV_NS_NONE,
        .status = REQUEST_FINISHED,
    };
    record.request.arrival = record.request.sent = row->arrived;
    if (row->served < (guint32)row->request.output) {
        record.status = REQUEST_CUT;
        record.reason = cut;
        record.request.output = (gint32)row->served;
    }
    if (row->served)
        metrics_finished(p->metrics, &record, TRUE);
    else
        p->metrics->result.finished++; /* nothing was served: no latencies */
    return p->run->requests == NULL || p->run->requests->request(p->run->requests, &record, error);
}

/* Requests whose step has come: they arrive now, whether or not there is a row for them. */
static void note_arrivals(Paper *p)
{
    for (; p->arrived < p->rows->len; p->arrived++) {
        PaperRow *row = row_at(p, p->arrived);
        if ((guint64)row->request.arrival > p->step)
            return;
        Request q = row->request;
        q.arrival = row->arrived = p->now;
        metrics_arrived(p->metrics, &q);
    }
}

static gboolean drop_ended(Paper *p, GError **error)
{
    guint kept = 0;
    for (guint k = 0; k < p->active->len; k++) {
        guint i = g_array_index(p->active, guint, k);
        PaperRow *row = row_at(p, i);
        if (end_step(row) > p->step) {
            g_array_index(p->active, guint, kept++) = i;
            continue;
        }
        g_array_append_val(p->left, row->slot);
        if (!end_row(p, row, "left_out", error))
            return FALSE;
    }
    g_array_set_size(p->active, kept);
    return TRUE;
}

static void join_row(Paper *p, guint i)
{
    PaperRow *row = row_at(p, i);
    guint n = p->free_slots->len;
    row->slot = n ? g_array_index(p->free_slots, guint32, n - 1) : p->n_slots++;
    if (n)
        g_array_set_size(p->free_slots, n - 1);
    row->first_scheduled = p->now;
    StepJoin j = {row->request.id, row->slot,
                  (guint32)row->request.prompt + (guint32)(p->step - (guint64)row->request.arrival),
                  row->n_pages, p->ids + row->first_page};
    g_array_append_val(p->joined, j);
    g_array_append_val(p->active, i);
}

/* The first max_active live ones by id: those that are rows already have the lowest ids. */
static gboolean fill_slots(Paper *p, GError **error)
{
    g_array_append_vals(p->free_slots, p->left->data, p->left->len);
    g_array_set_size(p->joined, 0);
    while (p->next < p->rows->len && p->active->len < p->c->max_active) {
        PaperRow *row = row_at(p, p->next);
        if ((guint64)row->request.arrival > p->step)
            return TRUE;
        if (end_step(row) > p->step)
            join_row(p, p->next);
        else if (!end_row(p, row, "left_out", error))
            return FALSE;
        p->next++;
    }
    return TRUE;
}

static Step make_step(const Paper *p)
{
    Step s = {
        .index = p->made,
        .start = p->now,
        .rows = p->active->len,
        .waiting = p->arrived - p->ended - p->active->len,
        .n_left = p->left->len,
        .left = (const guint32 *)(gpointer)p->left->data,
        .n_joined = p->joined->len,
        .joined = (const StepJoin *)(gpointer)p->joined->data,
    };
    for (guint k = 0; k < p->active->len; k++) {
        const PaperRow *row = row_at(p, g_array_index(p->active, guint, k));
        guint32 length =
            (guint32)row->request.prompt + (guint32)(p->step - (guint64)row->request.arrival);
        s.sum_length += length;
        s.max_length = MAX(s.max_length, length);
        s.pages_used += row->n_pages;
    }
    s.tokens_held = s.sum_length;
    return s;
}

static void serve_rows(Paper *p, const Step *s)
{
    p->now += s->duration;
    p->metrics->result.output_tokens += s->rows;
    for (guint k = 0; k < p->active->len; k++) {
        PaperRow *row = row_at(p, g_array_index(p->active, guint, k));
        if (row->served++ == 0)
            row->first_token = p->now;
        else
            log_hist_add(p->metrics->itl, p->now - row->last_token, 1);
        row->last_token = p->now;
    }
}

static gboolean run_step(Paper *p, GError **error)
{
    Step s = make_step(p);
    StepLoad load = {
        .rows = s.rows, .sum_length = s.sum_length, .max_length = s.max_length, .step = &s};
    s.duration = p->run->clock->ops->length(p->run->clock, &load, error);
    if (s.duration == KV_NS_NONE)
        return FALSE;
    if (p->run->steps && !p->run->steps->step(p->run->steps, &s, error))
        return FALSE;
    g_array_set_size(p->left, 0);
    metrics_step(p->metrics, s.rows, s.pages_used, s.tokens_held, s.duration);
    p->metrics->result.waiting_peak = MAX(p->metrics->result.waiting_peak, s.waiting);
    p->metrics->waiting_time += (unsigned __int128)s.waiting * (guint64)s.duration;
    serve_rows(p, &s);
    p->made++;
    return TRUE;
}

static gboolean run_steps(Paper *p, GError **error)
{
    while (p->c->steps == 0 || p->made < (guint64)p->c->steps) {
        if (!progress_check(p->run->progress, error) || !drop_ended(p, error))
            return FALSE;
        note_arrivals(p);
        if (!fill_slots(p, error))
            return FALSE;
        if (p->active->len == 0) {
            if (p->next == p->rows->len)
                break;
            p->step = (guint64)row_at(p, p->next)->request.arrival;
            continue;
        }
        if (!run_step(p, error))
            return FALSE;
        p->step++;
    }
    return TRUE;
}

/* Those still there when the steps are up. */
static gboolean end_rest(Paper *p, GError **error)
{
    for (guint k = 0; k < p->active->len; k++)
        if (!end_row(p, row_at(p, g_array_index(p->active, guint, k)), "steps", error))
            return FALSE;
    p->step = G_MAXUINT64;
    note_arrivals(p);
    for (; p->next < p->rows->len; p->next++)
        if (!end_row(p, row_at(p, p->next), "steps", error))
            return FALSE;
    return TRUE;
}

static gboolean run_paper(const SimRun *run, SimResult *ret, GError **error)
{
    Paper p = {.run = run, .c = run->config->scheduler.config};
    p.rows = g_array_new(FALSE, FALSE, sizeof(PaperRow));
    p.active = g_array_new(FALSE, FALSE, sizeof(guint));
    p.free_slots = g_array_new(FALSE, FALSE, sizeof(guint32));
    p.left = g_array_new(FALSE, FALSE, sizeof(guint32));
    p.joined = g_array_new(FALSE, FALSE, sizeof(StepJoin));
    p.metrics = metrics_new(run->config);
    gboolean ok = read_rows(&p, error);
    if (ok) {
        permute_ids(&p);
        StepSink *sink = run->steps;
        ok = (!sink || !sink->begin || sink->begin(sink, p.n_ids, error)) && run_steps(&p, error) &&
             end_rest(&p, error);
    }
    if (ok)
        metrics_close(p.metrics, run->config->page_size, 0, ret);
    GArray *const arrays[] = {p.rows, p.active, p.free_slots, p.left, p.joined};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_free(p.ids);
    metrics_free(p.metrics);
    return ok;
}

const SchedulerOps scheduler_paper = {
    .info = {"paper", "the PersistentKV experiment's fixed slots: no queue, no prefill", options,
             sizeof(Config)},
    .run = run_paper,
};
