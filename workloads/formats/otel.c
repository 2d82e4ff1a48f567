/* OpenTelemetry gen_ai spans, as inference-perf records them (Apache-2.0): a document with spans[].
 *
 * Spans with gen_ai.* attributes are requests (others are dropped as "not_llm", those of status
 * code 2 as "failed"); arrival = start_time (ISO), end to end = end_time - start_time. Token
 * counts: gen_ai.usage.input_tokens|prompt_tokens and output_tokens|completion_tokens; where they
 * are absent the lengths are unknown, or, asked for by chars_per_token, estimated from the recorded
 * text (and noted). trace_id is the session. Memory: the document.
 */
#include "workloads/format.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/names.h"

typedef struct OtelConfig {
    double chars_per_token;
} OtelConfig;

typedef struct OtelReader {
    FormatReader base;
    JsonInput *json;
    SessionNames *names;
    FormatNotes *notes;
    const JNode *spans, *at;
    double chars_per_token;
    Observed observed;
} OtelReader;

static int otel_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"spans\"", "\"span_id\"", NULL};
    static const char *const gen_ai[] = {"gen_ai.", NULL};
    char first = format_first_char(head, size);
    if ((first != '{' && first != '[') || !format_head_has(head, size, texts))
        return 0;
    return format_head_has(head, size, gen_ai) ? 95 : 70;
}

static void otel_free(FormatReader *base)
{
    OtelReader *self = (OtelReader *)base;
    json_input_free(self->json);
    session_names_free(self->names);
    g_free(self);
}

static FormatReader *otel_open(Input *input, const FormatArgs *args, GError **error)
{
    OtelReader *self = g_new0(OtelReader, 1);
    self->base.ops = &format_otel;
    self->json = json_input_new(input);
    self->names = session_names_new();
    self->notes = args->notes;
    self->chars_per_token = ((const OtelConfig *)args->config)->chars_per_token;
    if (!json_input_document(self->json, error)) {
        otel_free(&self->base);
        return NULL;
    }
    const JNode *root = json_root(self->json);
    self->spans = root->type == JDOC_ARRAY ? root : json_member(self->json, root, "spans");
    if (self->spans == NULL || self->spans->type != JDOC_ARRAY) {
        json_error(self->json, self->spans, "spans", "an array of spans", error);
        otel_free(&self->base);
        return NULL;
    }
    self->at = json_first(self->json, self->spans);
    return &self->base;
}

/* Characters of all strings named content or text inside `node`. */
static guint64 text_chars(const JsonInput *json, const JNode *node)
{
    guint64 chars = 0;
    for (const JNode *c = json_first(json, node); c != NULL; c = json_next(json, node, c)) {
        gboolean content = c->key_len == 7 && memcmp(c->key, "content", 7) == 0;
        gboolean text = c->key_len == 4 && memcmp(c->key, "text", 4) == 0;
        if (c->type == JDOC_STRING && (content || text)) {
            g_autofree char *plain = json_text(c);
            chars += (guint64)g_utf8_strlen(plain, -1);
        } else {
            chars += text_chars(json, c);
        }
    }
    return chars;
}

static gint64 estimated(OtelReader *self, guint64 chars)
{
    format_note(self->notes, "lengths estimated from the text (chars_per_token)");
    return (gint64)MIN(ceil((double)chars / self->chars_per_token), (double)G_MAXINT32);
}

static gboolean estimate(OtelReader *self, const JNode *attributes, LogRecord *r, GError **error)
{
    const JNode *in = json_any(self->json, attributes, "gen_ai.input.messages|gen_ai.prompt");
    const JNode *out = json_any(self->json, attributes, "gen_ai.output.text|gen_ai.completion");
    if (r->prompt < 0 && in != NULL && in->type == JDOC_STRING) {
        g_autofree char *text = json_text(in);
        g_autoptr(JsonInput) nested = json_input_nested(self->json, text, strlen(text), in, NULL);
        guint64 chars = nested != NULL ? text_chars(nested, json_root(nested))
                                       : (guint64)g_utf8_strlen(text, -1);
        r->prompt = estimated(self, chars);
    }
    if (r->output < 0 && out != NULL && out->type == JDOC_STRING) {
        g_autofree char *text = json_text(out);
        r->output = estimated(self, (guint64)g_utf8_strlen(text, -1));
    }
    return TRUE;
}

static gboolean read_lengths(OtelReader *self, const JNode *attributes, LogRecord *r,
                             GError **error)
{
    const JNode *in =
        json_any(self->json, attributes, "gen_ai.usage.input_tokens|gen_ai.usage.prompt_tokens");
    const JNode *out = json_any(self->json, attributes,
                                "gen_ai.usage.output_tokens|gen_ai.usage.completion_tokens");
    if ((in != NULL &&
         !json_tokens(self->json, in, "gen_ai.usage.input_tokens", &r->prompt, error)) ||
        (out != NULL &&
         !json_tokens(self->json, out, "gen_ai.usage.output_tokens", &r->output, error)))
        return FALSE;
    return self->chars_per_token <= 0 || estimate(self, attributes, r, error);
}

static gboolean calendar(OtelReader *self, const JNode *node, const char *name, kv_ns *ret,
                         GError **error)
{
    return (node != NULL && node->type == JDOC_STRING &&
            field_calendar(node->text, node->len, ret)) ||
           json_error(self->json, node, name, "a time like 2026-02-25T10:00:00.000000", error);
}

static gboolean is_llm(const JsonInput *json, const JNode *attributes)
{
    for (const JNode *c = json_first(json, attributes); c != NULL;
         c = json_next(json, attributes, c))
        if (c->key_len > 7 && memcmp(c->key, "gen_ai.", 7) == 0)
            return TRUE;
    return FALSE;
}

static gboolean read_span(OtelReader *self, const JNode *span, LogRecord *r, GError **error)
{
    const JNode *attributes = json_member(self->json, span, "attributes");
    const JNode *start = json_member(self->json, span, "start_time");
    const JNode *trace = json_any(self->json, span, "trace_id");
    const JNode *status = json_member(self->json, span, "status");
    gint64 code = 0;
    kv_ns end;
    if (!is_llm(self->json, attributes)) {
        r->fault = "not_llm";
        r->arrival = 0;
        return TRUE;
    }
    const JNode *code_node = json_member(self->json, status, "code");
    if (!calendar(self, start, "start_time", &r->arrival, error) ||
        !calendar(self, json_member(self->json, span, "end_time"), "end_time", &end, error) ||
        (code_node != NULL && code_node->type == JDOC_NUMBER &&
         !json_i64(self->json, code_node, "status.code", 0, 1000, &code, error)) ||
        !read_lengths(self, attributes, r, error))
        return FALSE;
    if (code == 2)
        r->fault = "failed";
    r->arrival_text = start->text;
    r->arrival_len = start->len;
    if (trace != NULL && trace->text != NULL)
        r->session = session_number(self->names, trace->text, trace->len, &r->turn);
    self->observed = (Observed){.queue = KV_NS_NONE, .ttft = KV_NS_NONE, .e2e = end - r->arrival};
    r->observed = &self->observed;
    return TRUE;
}

static int otel_next(FormatReader *base, LogRecord *ret, GError **error)
{
    OtelReader *self = (OtelReader *)base;
    if (self->at == NULL)
        return 0;
    const JNode *span = self->at;
    self->at = json_next(self->json, self->spans, span);
    log_record_init(ret);
    ret->line = 1;
    return read_span(self, span, ret, error) ? 1 : -1;
}

static const SpecOption otel_options[] = {
    {"chars_per_token", SPEC_REAL, G_STRUCT_OFFSET(OtelConfig, chars_per_token), "0", 0, 100, NULL,
     "where token counts are absent: estimate them from the text; 0 = leave them unknown"},
    {NULL},
};

const FormatOps format_otel = {
    .info = {"otel", "OpenTelemetry gen_ai spans as inference-perf records them (JSON)",
             otel_options, sizeof(OtelConfig)},
    .probe = otel_probe,
    .open = otel_open,
    .next = otel_next,
    .free = otel_free,
};
