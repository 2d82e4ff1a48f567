#include "plots/perfetto.h"

#include <math.h>
#include <string.h>

#include "base/outfile.h"
#include "plots/csv_rows.h"
#include "sim/steps_file.h"

enum { PID_STEPS = 1, PID_REQUESTS = 2, PID_MEASURED = 3 };

typedef struct Trace {
    const PerfettoRequest *request;
    FILE *out;
    guint64 events;
    GHashTable *running; /* slot -> Stretch *: rows in the batch */
    kv_ns begin, end;    /* what the steps written cover */
    guint64 steps;
    gint64 replica; /* of the steps file: the lines of replay.csv that are taken */
} Trace;

typedef struct Stretch {
    guint64 request;
    kv_ns since; /* KV_NS_NONE while paused */
} Stretch;

/* Begins an event; the caller adds its members and closes it. */
static void event(Trace *t, const char *phase, int pid, guint64 tid)
{
    fprintf(t->out, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" G_GUINT64_FORMAT,
            t->events++ > 0 ? ",\n" : "", phase, pid, tid);
}

/* Nanoseconds as microseconds, exactly. */
static void time_member(Trace *t, const char *name, kv_ns value)
{
    guint64 magnitude = value < 0 ? -(guint64)value : (guint64)value;
    fprintf(t->out, ",\"%s\":%s%" G_GUINT64_FORMAT ".%03u", name, value < 0 ? "-" : "",
            magnitude / 1000, (guint)(magnitude % 1000));
}

/* A JSON string; what is not plain text becomes an escape. */
static void text_value(Trace *t, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    fputc('"', t->out);
    for (const char *c = valid; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(t->out, "\\%c", *c);
        else if (g_ascii_iscntrl(*c))
            fprintf(t->out, "\\u%04x", (guint)(guchar)*c);
        else
            fputc(*c, t->out);
    }
    fputc('"', t->out);
}

static void name_track(Trace *t, const char *kind, int pid, guint64 tid, const char *name)
{
    event(t, "M", pid, tid);
    fprintf(t->out, ",\"name\":\"%s\",\"args\":{\"name\":", kind);
    text_value(t, name);
    fputs("}}", t->out);
}

static void name_request(Trace *t, guint64 request)
{
    g_autofree char *name = g_strdup_printf("request %" G_GUINT64_FORMAT, request);
    name_track(t, "thread_name", PID_REQUESTS, request + 1, name);
}

static void slice_head(Trace *t, int pid, guint64 tid, kv_ns start, kv_ns duration)
{
    event(t, "X", pid, tid);
    time_member(t, "ts", start);
    time_member(t, "dur", MAX(duration, 0));
}

static void end_stretch(Trace *t, const Stretch *stretch, kv_ns now)
{
    if (stretch->since == KV_NS_NONE || now <= stretch->since)
        return;
    slice_head(t, PID_REQUESTS, stretch->request + 1, stretch->since, now - stretch->since);
    fputs(",\"name\":\"decode\"}", t->out);
}

static Stretch *find(Trace *t, guint32 slot)
{
    return g_hash_table_lookup(t->running, GUINT_TO_POINTER(slot));
}

/* Rows that leave or pause were last in the step before, which ended at t->end. */
static void follow_rows(Trace *t, const Step *step)
{
    for (guint i = 0; i < step->n_left; i++) {
        Stretch *stretch = find(t, step->left[i]);
        if (stretch != NULL)
            end_stretch(t, stretch, t->end);
        g_hash_table_remove(t->running, GUINT_TO_POINTER(step->left[i]));
    }
    for (guint i = 0; i < step->n_paused; i++) {
        Stretch *stretch = find(t, step->paused[i]);
        if (stretch == NULL)
            continue;
        end_stretch(t, stretch, t->end);
        stretch->since = KV_NS_NONE;
    }
    for (guint i = 0; i < step->n_resumed; i++) {
        Stretch *stretch = find(t, step->resumed[i]);
        if (stretch != NULL)
            stretch->since = step->start;
    }
    for (guint i = 0; i < step->n_joined; i++) {
        Stretch *stretch = g_new(Stretch, 1);
        *stretch = (Stretch){step->joined[i].request, step->start};
        g_hash_table_insert(t->running, GUINT_TO_POINTER(step->joined[i].slot), stretch);
        if (t->steps == 0)
            name_request(t, stretch->request);
    }
}

static void write_prefill(Trace *t, const Step *step)
{
    for (guint i = 0; i < step->n_prefill; i++) {
        const StepPrefill *chunk = &step->prefill[i];
        if (chunk->offset == chunk->cached || t->steps == 0)
            name_request(t, chunk->request);
        slice_head(t, PID_REQUESTS, chunk->request + 1, step->start, step->duration);
        fprintf(t->out,
                ",\"name\":\"prefill %u\",\"args\":{\"step\":%" G_GUINT64_FORMAT
                ",\"offset\":%u,\"tokens\":%u,\"cached\":%u}}",
                chunk->tokens, step->index, chunk->offset, chunk->tokens, chunk->cached);
    }
}

static void write_counter(Trace *t, kv_ns now, const char *name, guint64 value)
{
    event(t, "C", PID_STEPS, 1);
    time_member(t, "ts", now);
    fprintf(t->out, ",\"name\":\"%s\",\"args\":{\"%s\":%" G_GUINT64_FORMAT "}}", name, name, value);
}

static void write_step(Trace *t, const Step *step)
{
    guint64 prefill = 0;
    for (guint i = 0; i < step->n_prefill; i++)
        prefill += step->prefill[i].tokens;
    slice_head(t, PID_STEPS, 1, step->start, step->duration);
    fprintf(t->out, ",\"name\":\"decode %u", step->rows);
    if (prefill > 0)
        fprintf(t->out, " + prefill %" G_GUINT64_FORMAT, prefill);
    fprintf(t->out,
            "\",\"args\":{\"step\":%" G_GUINT64_FORMAT
            ",\"rows\":%u,\"max_len\":%u,\"sum_len\":%" G_GUINT64_FORMAT
            ",\"prefill_tokens\":%" G_GUINT64_FORMAT "}}",
            step->index, step->rows, step->max_length, step->sum_length, prefill);
    write_counter(t, step->start, "rows", step->rows);
    write_counter(t, step->start, "waiting", step->waiting);
    write_counter(t, step->start, "pages_used", step->pages_used);
}

static gboolean write_steps(Trace *t, Progress *progress, GError **error)
{
    const PerfettoRequest *request = t->request;
    g_autoptr(StepsReader) reader = steps_reader_open(request->steps, error);
    t->replica = reader != NULL ? steps_reader_header(reader)->replica : 0;
    if (reader == NULL || (request->from > 0 && !steps_reader_seek(reader, request->from, error)))
        return FALSE;
    name_track(t, "process_name", PID_STEPS, 0, "steps (simulated)");
    name_track(t, "thread_name", PID_STEPS, 1, "engine");
    name_track(t, "process_name", PID_REQUESTS, 0, "requests (simulated)");
    const Step *step;
    int got;
    while ((got = steps_reader_next(reader, &step, error)) > 0) {
        if (request->to > 0 && step->index >= request->to)
            break;
        if (!progress_check(progress, error))
            return FALSE;
        if (t->steps == 0)
            t->begin = t->end = step->start;
        follow_rows(t, step);
        write_prefill(t, step);
        write_step(t, step);
        t->end = step->start + step->duration;
        t->steps++;
    }
    GHashTableIter iter;
    gpointer stretch;
    g_hash_table_iter_init(&iter, t->running);
    while (got >= 0 && g_hash_table_iter_next(&iter, NULL, &stretch))
        end_stretch(t, stretch, t->end);
    return got >= 0;
}

enum { R_ID, R_ARRIVAL, R_SCHEDULED, R_FINISH, R_PROMPT, R_OUTPUT, R_STATUS, R_REASON, N_R };
static const char *const request_columns[N_R] = {
    "request_id", "arrival_ns", "first_scheduled_ns", "finish_ns", "prompt_tokens", "output_tokens",
    "status",     "reason"};

static void write_request(Trace *t, const gint64 v[N_R], const char *status, const char *reason)
{
    gboolean refused = v[R_SCHEDULED] == KV_NS_NONE;
    name_request(t, (guint64)v[R_ID]);
    if (refused) {
        event(t, "i", PID_REQUESTS, (guint64)v[R_ID] + 1);
        time_member(t, "ts", v[R_ARRIVAL]);
        fputs(",\"s\":\"t\"", t->out);
    } else {
        slice_head(t, PID_REQUESTS, (guint64)v[R_ID] + 1, v[R_ARRIVAL],
                   v[R_SCHEDULED] - v[R_ARRIVAL]);
    }
    fprintf(t->out,
            ",\"name\":\"%s\",\"args\":{\"prompt_tokens\":%" G_GINT64_FORMAT
            ",\"output_tokens\":%" G_GINT64_FORMAT ",\"status\":",
            refused ? "refused" : "queued", v[R_PROMPT], v[R_OUTPUT]);
    text_value(t, status);
    fputs(",\"reason\":", t->out);
    text_value(t, reason);
    fputs("}}", t->out);
}

static gboolean write_requests(Trace *t, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(t->request->requests, error);
    int at[N_R], got;
    if (rows == NULL || !csv_rows_need(rows, request_columns, N_R, at, error))
        return FALSE;
    while ((got = csv_rows_next(rows, error)) > 0) {
        gint64 v[N_R];
        if (!csv_rows_int(rows, at[R_ID], &v[R_ID], error) ||
            !csv_rows_int(rows, at[R_ARRIVAL], &v[R_ARRIVAL], error))
            return FALSE;
        for (guint i = R_SCHEDULED; i < R_STATUS; i++)
            if (!csv_rows_int_or(rows, at[i], i < R_PROMPT ? KV_NS_NONE : 0, &v[i], error))
                return FALSE;
        kv_ns until = v[R_FINISH] == KV_NS_NONE ? v[R_ARRIVAL] : v[R_FINISH];
        if (v[R_ID] >= 0 && until >= t->begin && v[R_ARRIVAL] < t->end)
            write_request(t, v, csv_rows_text(rows, at[R_STATUS]),
                          csv_rows_text(rows, at[R_REASON]));
    }
    return got == 0;
}

enum { M_STEP, M_START, M_ROUTE, M_CHOSEN, M_LAUNCHES, M_TASKS, M_PLAN, M_KERNEL, M_WALL, N_M };
static const char *const measured_columns[N_M] = {
    "step", "start_ns", "route", "chosen", "launches", "tasks", "plan_us", "kernel_us", "wall_us"};

static void write_measured(Trace *t, guint64 tid, const char *route, kv_ns start, gint64 step,
                           const double v[N_M])
{
    kv_ns kernel = (kv_ns)llround(v[M_KERNEL] * 1e3);
    slice_head(t, PID_MEASURED, tid, start, kernel);
    fputs(",\"name\":", t->out);
    text_value(t, route);
    fprintf(t->out, ",\"args\":{\"step\":%" G_GINT64_FORMAT, step);
    for (guint i = M_CHOSEN; i < N_M; i++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        if (isfinite(v[i]))
            fprintf(t->out, ",\"%s\":%s", measured_columns[i],
                    g_ascii_formatd(number, sizeof number, "%.9g", v[i]));
    }
    fputs("}}", t->out);
}

static guint64 route_track(Trace *t, GPtrArray *routes, const char *name)
{
    for (guint i = 0; i < routes->len; i++)
        if (strcmp(g_ptr_array_index(routes, i), name) == 0)
            return i + 1;
    if (routes->len == 0)
        name_track(t, "process_name", PID_MEASURED, 0, "attention (measured)");
    g_ptr_array_add(routes, g_strdup(name));
    name_track(t, "thread_name", PID_MEASURED, routes->len, name);
    return routes->len;
}

static gboolean write_replay(Trace *t, GError **error)
{
    g_autoptr(CsvRows) rows = csv_rows_open(t->request->replay, error);
    g_autoptr(GPtrArray) routes = g_ptr_array_new_with_free_func(g_free);
    int at[N_M], got;
    if (rows == NULL || !csv_rows_need(rows, measured_columns, N_M, at, error))
        return FALSE;
    const int replica_at = csv_rows_find(rows, "replica");
    while ((got = csv_rows_next(rows, error)) > 0) {
        gint64 step, start, replica = t->replica;
        double v[N_M];
        if ((replica_at >= 0 && !csv_rows_int_or(rows, replica_at, t->replica, &replica, error)) ||
            !csv_rows_int(rows, at[M_STEP], &step, error) ||
            !csv_rows_int(rows, at[M_START], &start, error))
            return FALSE;
        for (guint i = M_CHOSEN; i < N_M; i++)
            if (!csv_rows_real(rows, at[i], &v[i], error))
                return FALSE;
        if (replica != t->replica || isnan(v[M_KERNEL]) || start < t->begin || start >= t->end)
            continue;
        const char *route = csv_rows_text(rows, at[M_ROUTE]);
        write_measured(t, route_track(t, routes, route), route, start, step, v);
    }
    return got == 0;
}

gboolean perfetto_write(const PerfettoRequest *request, Progress *progress, GError **error)
{
    g_autoptr(OutFile) out = out_file_new(request->out, error);
    if (out == NULL)
        return FALSE;
    Trace t = {.request = request, .out = out_file_stream(out)};
    t.running = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", t.out);
    gboolean good = write_steps(&t, progress, error) &&
                    (request->requests == NULL || write_requests(&t, error)) &&
                    (request->replay == NULL || write_replay(&t, error));
    fputs("\n]}\n", t.out);
    g_hash_table_unref(t.running);
    return good && out_file_commit(out, error);
}
