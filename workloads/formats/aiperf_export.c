/* AIPerf / GenAI-Perf profile exports (Apache-2.0), JSON lines, one record a request in order of
 * completion: metadata, metrics {name: {value, unit}}, error.
 *
 * Two generations of names: timestamp_ns, ttft, credit_phase; request_start_ns,
 * time_to_first_token, benchmark_phase. Times are 64-bit ns and are read as integers. The output
 * length is output_sequence_length, reasoning included. Records with an error are dropped as
 * "failed", those of a warm-up phase as "warmup". Gaps are between chunks, which may hold several
 * tokens.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/names.h"

typedef struct ExportReader {
    FormatReader base;
    JsonInput *json;
    SessionNames *names;
    GArray *gaps;
    Observed observed;
} ExportReader;

static int export_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"metadata\"", "\"metrics\"", NULL};
    return format_first_char(head, size) == '{' && format_line_has(head, size, texts) ? 90 : 0;
}

static void export_free(FormatReader *base)
{
    ExportReader *self = (ExportReader *)base;
    json_input_free(self->json);
    session_names_free(self->names);
    g_array_unref(self->gaps);
    g_free(self);
}

static FormatReader *export_open(Input *input, const FormatArgs *args, GError **error)
{
    ExportReader *self = g_new0(ExportReader, 1);
    self->base.ops = &format_aiperf_export;
    self->json = json_input_new(input);
    self->names = session_names_new();
    self->gaps = g_array_new(FALSE, FALSE, sizeof(kv_ns));
    return &self->base;
}

static kv_ns unit_of(const JsonInput *json, const JNode *metric)
{
    const JNode *unit = json_member(json, metric, "unit");
    return json_text_is(unit, "s") || json_text_is(unit, "sec") ? KV_SECOND
           : json_text_is(unit, "us")                           ? KV_US
           : json_text_is(unit, "ns")                           ? 1
                                                                : KV_MS;
}

/* A time metric by either name; KV_NS_NONE where it is absent. */
static gboolean metric_time(ExportReader *self, const JNode *metrics, const char *names, kv_ns *ret,
                            GError **error)
{
    const JNode *metric = json_any(self->json, metrics, names);
    *ret = KV_NS_NONE;
    return metric == NULL || json_time(self->json, json_member(self->json, metric, "value"), names,
                                       unit_of(self->json, metric), ret, error);
}

static gboolean metric_tokens(ExportReader *self, const JNode *metrics, const char *name,
                              gint64 *ret, GError **error)
{
    const JNode *metric = json_member(self->json, metrics, name);
    return metric == NULL ||
           json_tokens(self->json, json_member(self->json, metric, "value"), name, ret, error);
}

static gboolean read_gaps(ExportReader *self, const JNode *metrics, GError **error)
{
    const JNode *metric = json_member(self->json, metrics, "inter_chunk_latency");
    const JNode *list = json_member(self->json, metric, "value");
    JsonCursor cursor;
    g_array_set_size(self->gaps, 0);
    json_cursor_init(&cursor, self->json, list);
    for (guint64 i = 0; i < json_length(list); i++) {
        kv_ns t;
        if (!json_cursor_time(&cursor, "inter_chunk_latency", unit_of(self->json, metric), &t,
                              error))
            return FALSE;
        g_array_append_val(self->gaps, t);
    }
    return TRUE;
}

static gboolean read_metrics(ExportReader *self, const JNode *metrics, LogRecord *r, GError **error)
{
    Observed *o = &self->observed;
    gint64 answer = -1, reasoning = 0;
    *o = (Observed){.queue = KV_NS_NONE};
    if (!metric_tokens(self, metrics, "input_sequence_length", &r->prompt, error) ||
        !metric_tokens(self, metrics, "output_sequence_length", &r->output, error) ||
        !metric_tokens(self, metrics, "output_token_count", &answer, error) ||
        !metric_tokens(self, metrics, "reasoning_token_count", &reasoning, error) ||
        !metric_time(self, metrics, "time_to_first_token|ttft", &o->ttft, error) ||
        !metric_time(self, metrics, "request_latency", &o->e2e, error) ||
        !read_gaps(self, metrics, error))
        return FALSE;
    if (r->output < 0 && answer >= 0)
        r->output = MIN(answer + reasoning, G_MAXINT32);
    o->n_itl = self->gaps->len;
    o->itl = (const kv_ns *)(gpointer)self->gaps->data;
    r->observed = o;
    return TRUE;
}

static gboolean read_metadata(ExportReader *self, const JNode *metadata, LogRecord *r,
                              GError **error)
{
    const JNode *time = json_any(self->json, metadata, "request_start_ns|timestamp_ns");
    const JNode *talk = json_member(self->json, metadata, "conversation_id");
    const JNode *turn = json_member(self->json, metadata, "turn_index");
    const JNode *phase = json_any(self->json, metadata, "benchmark_phase|credit_phase");
    gint64 number = 0;
    if (!json_i64(self->json, time, "request_start_ns", G_MININT64 + 1, G_MAXINT64, &r->arrival,
                  error) ||
        (turn != NULL && !json_i64(self->json, turn, "turn_index", 0, G_MAXINT32, &number, error)))
        return FALSE;
    r->arrival_text = time->text;
    r->arrival_len = time->len;
    if (talk != NULL && talk->text != NULL)
        r->session = session_number(self->names, talk->text, talk->len, NULL);
    r->turn = (gint32)number;
    if (json_text_is(phase, "warmup"))
        r->fault = "warmup";
    return TRUE;
}

static int export_next(FormatReader *base, LogRecord *ret, GError **error)
{
    ExportReader *self = (ExportReader *)base;
    JsonInput *json = self->json;
    int got = json_input_next(json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(json), *metadata = json_member(json, root, "metadata");
    log_record_init(ret);
    ret->line = json_line(json, NULL);
    if (metadata == NULL) {
        json_error(json, NULL, "metadata", "a record's metadata", error);
        return -1;
    }
    if (!read_metadata(self, metadata, ret, error))
        return -1;
    const JNode *cancelled = json_member(json, metadata, "was_cancelled");
    if (json_member(json, root, "error") != NULL ||
        (cancelled != NULL && cancelled->type == JDOC_TRUE)) {
        ret->fault = "failed";
        return 1;
    }
    return read_metrics(self, json_member(json, root, "metrics"), ret, error) ? 1 : -1;
}

const FormatOps format_aiperf_export = {
    .info = {"aiperf-export", "AIPerf and GenAI-Perf profile exports (JSON lines)", NULL, 0},
    .probe = export_probe,
    .open = export_open,
    .next = export_next,
    .free = export_free,
};
