/* The tables of single requests and steps: an even sample of a long run, said so. */
#include "plots/report_parts.h"

#include <math.h>
#include <string.h>

#include "plots/csv_rows.h"
#include "plots/html.h"

/* Every stride-th row is kept; when there are too many, every other one goes and the stride
 * doubles: one pass, an even sample, no need to know the count. */
typedef struct Sample {
    GPtrArray *rows; /* char *: the row's HTML */
    guint64 seen, stride;
} Sample;

static gboolean sample_wants(Sample *s)
{
    return s->seen++ % s->stride == 0;
}

static void sample_add(Sample *s, char *html)
{
    g_ptr_array_add(s->rows, html);
    if (s->rows->len <= REPORT_TABLE_ROWS)
        return;
    for (guint i = 1; i < s->rows->len; i++)
        g_ptr_array_remove_index(s->rows, i); /* i now is the one after: every other goes */
    s->stride *= 2;
}

static void cell_text(GString *row, const char *text)
{
    g_string_append(row, "<td>");
    html_text(row, text);
}

static void cell_count(GString *row, gint64 value)
{
    g_string_append(row, "<td>");
    if (value != KV_NS_NONE)
        html_count(row, value);
}

/* The number as shown, and in full for sorting. */
static void cell_real(GString *row, double value)
{
    if (!isfinite(value)) {
        g_string_append(row, "<td>");
        return;
    }
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(row, "<td data-v=\"%s\">",
                           g_ascii_formatd(text, sizeof text, "%.9g", value));
    html_number(row, value);
}

static double seconds_between(kv_ns from, kv_ns to)
{
    return from == KV_NS_NONE || to == KV_NS_NONE ? (double)NAN : (double)(to - from) / 1e9;
}

typedef struct Table {
    const char *id, *title, *what;
    const char *const *needs; /* columns */
    guint n_needs;
    const char *heads; /* HTML of the header cells, each "<th>..." */
} Table;

static void write_table(GString *page, const Table *table, const Sample *s)
{
    g_string_append_printf(page, "<section id=\"%s\"><h2>%s</h2>\n<p>", table->id, table->title);
    html_count(page, s->rows->len);
    g_string_append(page, " of ");
    html_count(page, (gint64)s->seen);
    g_string_append_printf(page, " %s", table->what);
    if (s->stride > 1)
        g_string_append_printf(page, ", an even sample (every %" G_GUINT64_FORMAT "th)", s->stride);
    g_string_append(page, ". Click a column's head to sort.</p>\n<div class=\"scroll\" "
                          "tabindex=\"0\"><table class=\"sortable\"><thead><tr>");
    g_string_append(page, table->heads);
    g_string_append(page, "</tr></thead>\n<tbody>\n");
    for (guint i = 0; i < s->rows->len; i++)
        g_string_append_printf(page, "<tr>%s\n", (const char *)g_ptr_array_index(s->rows, i));
    g_string_append(page, "</tbody></table></div></section>\n");
}

enum {
    R_ID,
    R_CLASS,
    R_ARRIVAL,
    R_SCHEDULED,
    R_FIRST,
    R_FINISH,
    R_PROMPT,
    R_OUTPUT,
    R_CACHED,
    R_RECOMPUTED,
    R_PREEMPTIONS,
    R_STATUS,
    R_REASON,
    N_R
};
static const char *const request_columns[N_R] = {
    "request_id",  "class",         "arrival_ns",    "first_scheduled_ns", "first_token_ns",
    "finish_ns",   "prompt_tokens", "output_tokens", "cached_tokens",      "recomputed_tokens",
    "preemptions", "status",        "reason"};
static const Table request_table = {
    "requests",
    "Requests",
    "requests",
    request_columns,
    N_R,
    "<th>request<th>class<th>arrival, s<th>queued, s<th>TTFT, s<th>end to end, s<th>TPOT, ms"
    "<th>prompt tokens<th>output tokens<th>cached tokens<th>recomputed tokens<th>preemptions"
    "<th>status"};

static char *request_row(const CsvRows *rows, const int *at, GError **error)
{
    gint64 v[N_R];
    for (guint i = R_ARRIVAL; i <= R_PREEMPTIONS; i++)
        if (!csv_rows_int_or(rows, at[i], KV_NS_NONE, &v[i], error))
            return NULL;
    GString *row = g_string_new(NULL);
    double decode = seconds_between(v[R_FIRST], v[R_FINISH]);
    cell_text(row, csv_rows_text(rows, at[R_ID]));
    cell_text(row, csv_rows_text(rows, at[R_CLASS]));
    cell_real(row, seconds_between(0, v[R_ARRIVAL]));
    cell_real(row, seconds_between(v[R_ARRIVAL], v[R_SCHEDULED]));
    cell_real(row, seconds_between(v[R_ARRIVAL], v[R_FIRST]));
    cell_real(row, seconds_between(v[R_ARRIVAL], v[R_FINISH]));
    cell_real(row, v[R_OUTPUT] > 1 ? decode * 1e3 / (double)(v[R_OUTPUT] - 1) : (double)NAN);
    for (guint i = R_PROMPT; i <= R_PREEMPTIONS; i++)
        cell_count(row, v[i]);
    const char *reason = csv_rows_text(rows, at[R_REASON]);
    cell_text(row, csv_rows_text(rows, at[R_STATUS]));
    if (reason[0] != '\0') {
        g_string_append(row, ": ");
        html_text(row, reason);
    }
    return g_string_free(row, FALSE);
}

enum {
    S_STEP,
    S_START,
    S_DURATION,
    S_ROWS,
    S_PREFILL,
    S_MAX_LEN,
    S_WAITING,
    S_PAGES,
    S_ROUTE,
    S_CHOSEN,
    S_LAUNCHES,
    S_TASKS,
    S_MERGE,
    S_KV,
    S_PLAN,
    S_KERNEL,
    S_WALL,
    N_S
};
static const char *const step_columns[N_S] = {
    "step",      "start_ns", "duration_ns",       "rows",     "prefill_tokens",
    "max_len",   "waiting",  "pages_used",        "route",    "chosen",
    "launches",  "tasks",    "merge_state_bytes", "kv_bytes", "plan_us",
    "kernel_us", "wall_us"};
static const Table step_table = {
    "steps",
    "Steps",
    "steps, with the chosen route",
    step_columns,
    N_S,
    "<th>step<th>start, s<th>length, ms<th>decode rows<th>prefill tokens<th>longest row"
    "<th>waiting<th>pages used<th>route<th>launches<th>tasks<th>merge state, KiB<th>KV read, MiB"
    "<th>plan, µs<th>kernel, µs<th>wall, µs"};

static char *step_row(const CsvRows *rows, const int *at, GError **error)
{
    static const int counts[] = {S_ROWS, S_PREFILL, S_MAX_LEN, S_WAITING, S_PAGES};
    gint64 start, duration, count;
    if (!csv_rows_int(rows, at[S_START], &start, error) ||
        !csv_rows_int(rows, at[S_DURATION], &duration, error))
        return NULL;
    g_autoptr(GString) row = g_string_new(NULL);
    cell_text(row, csv_rows_text(rows, at[S_STEP]));
    cell_real(row, (double)start / 1e9);
    cell_real(row, (double)duration / 1e6);
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++) {
        if (!csv_rows_int_or(rows, at[counts[i]], KV_NS_NONE, &count, error))
            return NULL;
        cell_count(row, count);
    }
    gboolean idle = strcmp(csv_rows_text(rows, at[S_ROWS]), "0") == 0;
    cell_text(row, idle ? "" : csv_rows_text(rows, at[S_ROUTE]));
    for (int i = S_LAUNCHES; i < N_S; i++) {
        double value;
        if (!csv_rows_real(rows, at[i], &value, error))
            return NULL;
        cell_real(row, value / (i == S_MERGE ? 1024.0 : i == S_KV ? 1048576.0 : 1.0));
    }
    return g_strdup(row->str);
}

static gboolean request_table_read(const CsvRows *rows, const int *at, Sample *s, gint64 *last,
                                   GError **error)
{
    if (!sample_wants(s))
        return TRUE;
    char *html = request_row(rows, at, error);
    if (html != NULL)
        sample_add(s, html);
    return html != NULL;
}

/* A step has a line a route: the chosen one's is shown, or the first where none was chosen. */
static gboolean step_table_read(const CsvRows *rows, const int *at, Sample *s, gint64 *last,
                                GError **error)
{
    gint64 step, chosen;
    if (!csv_rows_int(rows, at[S_STEP], &step, error) ||
        !csv_rows_int_or(rows, at[S_CHOSEN], 0, &chosen, error))
        return FALSE;
    gboolean first = step != *last;
    *last = step;
    if (first && !sample_wants(s))
        return TRUE;
    if (!first && ((s->seen - 1) % s->stride != 0 || chosen == 0 || s->rows->len == 0))
        return TRUE;
    char *html = step_row(rows, at, error);
    if (html == NULL)
        return FALSE;
    if (first) {
        sample_add(s, html);
    } else {
        g_free(s->rows->pdata[s->rows->len - 1]);
        s->rows->pdata[s->rows->len - 1] = html;
    }
    return TRUE;
}

typedef gboolean (*TableRead)(const CsvRows *, const int *, Sample *, gint64 *, GError **);

static gboolean one_table(GString *page, const Table *table, TableRead read, const char *path,
                          GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    int at[32];
    if (rows == NULL || !csv_rows_need(rows, table->needs, table->n_needs, at, error))
        return FALSE;
    Sample s = {.rows = g_ptr_array_new_with_free_func(g_free), .stride = 1};
    gint64 last = KV_NS_NONE;
    int got;
    while ((got = csv_rows_next(rows, error)) > 0)
        if (!read(rows, at, &s, &last, error))
            break;
    if (got == 0)
        write_table(page, table, &s);
    g_ptr_array_unref(s.rows);
    return got == 0;
}

gboolean report_tables(GString *page, const RunData *run, GError **error)
{
    if (run->requests_path != NULL &&
        !one_table(page, &request_table, request_table_read, run->requests_path, error))
        return FALSE;
    return run->replay_path == NULL ||
           one_table(page, &step_table, step_table_read, run->replay_path, error);
}
