/* requests.csv into RunData: latencies, lengths, arrivals, turns. */
#include "plots/run_data.h"

#include <string.h>

#include "plots/csv_rows.h"

enum {
    C_TURN,
    C_SESSION,
    C_ARRIVAL,
    C_SCHEDULED,
    C_FIRST_TOKEN,
    C_FINISH,
    C_PROMPT,
    C_OUTPUT,
    C_PREEMPTIONS,
    C_STATUS,
    N_COLUMNS
};
static const char *const column_names[N_COLUMNS] = {
    "turn",      "session_id",    "arrival_ns",    "first_scheduled_ns", "first_token_ns",
    "finish_ns", "prompt_tokens", "output_tokens", "preemptions",        "status"};

#define EXACT_LIMIT 2000000 /* requests whose quantiles are exact */

static RequestData *requests_new(void)
{
    RequestData *self = g_new0(RequestData, 1);
    self->ttft = sampler_new(EXACT_LIMIT);
    self->tpot = sampler_new(EXACT_LIMIT);
    self->e2e = sampler_new(EXACT_LIMIT);
    self->queue = sampler_new(EXACT_LIMIT);
    self->prompt = sampler_new(EXACT_LIMIT);
    self->output = sampler_new(EXACT_LIMIT);
    self->arrivals = time_bins_new(1, RUN_TIME_BINS / 4);
    self->turns = g_new0(guint64, RUN_MAX_TURNS);
    return self;
}

static void add_latencies(RequestData *self, const gint64 v[N_COLUMNS])
{
    kv_ns arrival = v[C_ARRIVAL], first = v[C_FIRST_TOKEN], finish = v[C_FINISH];
    if (v[C_SCHEDULED] != KV_NS_NONE)
        sampler_add(self->queue, MAX(v[C_SCHEDULED] - arrival, 0));
    if (first == KV_NS_NONE)
        return;
    sampler_add(self->ttft, MAX(first - arrival, 0));
    if (finish == KV_NS_NONE)
        return;
    sampler_add(self->e2e, MAX(finish - arrival, 0));
    if (v[C_OUTPUT] > 1)
        sampler_add(self->tpot, MAX(finish - first, 0) / (v[C_OUTPUT] - 1));
}

static gboolean read_line(RequestData *self, const CsvRows *rows, const int at[N_COLUMNS],
                          GError **error)
{
    gint64 v[N_COLUMNS];
    if (!csv_rows_int(rows, at[C_ARRIVAL], &v[C_ARRIVAL], error))
        return FALSE;
    for (int i = 0; i < N_COLUMNS; i++)
        if (i != C_ARRIVAL && i != C_STATUS && i != C_SESSION &&
            !csv_rows_int_or(rows, at[i], i >= C_PROMPT || i == C_TURN ? 0 : KV_NS_NONE, &v[i],
                             error))
            return FALSE;
    const double one = 1;
    self->n++;
    time_bins_add(self->arrivals, v[C_ARRIVAL], v[C_ARRIVAL], &one);
    sampler_add(self->prompt, MAX(v[C_PROMPT], 0));
    sampler_add(self->output, MAX(v[C_OUTPUT], 0));
    if (csv_rows_text(rows, at[C_SESSION])[0] != '\0')
        self->turns[CLAMP(v[C_TURN], 0, RUN_MAX_TURNS - 1)]++;
    self->preempted += v[C_PREEMPTIONS] > 0;
    if (strcmp(csv_rows_text(rows, at[C_STATUS]), "refused") == 0)
        self->refused++;
    else
        add_latencies(self, v);
    return TRUE;
}

gboolean run_data_read_requests(RunData *self, const char *path, Progress *progress, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    int at[N_COLUMNS];
    if (rows == NULL || !csv_rows_need(rows, column_names, N_COLUMNS, at, error))
        return FALSE;
    self->requests = requests_new();
    int got;
    while ((got = csv_rows_next(rows, error)) > 0) {
        if (!read_line(self->requests, rows, at, error))
            return FALSE;
        if (self->requests->n % 4096 == 0 && !progress_check(progress, error))
            return FALSE;
    }
    return got == 0;
}
