/* tair-kvcache logs (Apache-2.0): the optimizer's trace and the event publisher's log, JSON lines.
 *
 *   optimizer  timestamp_us, keys, total_keys, input_len, output_len (0 = a lookup alone)
 *   events     trigger_time_us, type, keys. A GetCacheLocation event is a lookup of a request's
 * blocks; other events are dropped as "not_a_lookup". There are no token counts: the prompt is
 *              taken as keys x block tokens and the output is unknown.
 *
 * Keys are signed 64-bit numbers, read exactly (most do not fit a double); each stands for its
 * whole prefix already.
 */
#include "workloads/format.h"

#include "workloads/formats/formats.h"
#include "workloads/json_input.h"

typedef struct TairConfig {
    gint64 block;
} TairConfig;

typedef struct TairReader {
    FormatReader base;
    JsonInput *json;
    FormatNotes *notes;
    gint32 block;
} TairReader;

static int tair_probe(const char *head, gsize size)
{
    static const char *const events[] = {"\"trigger_time_us\"", "\"keys\"", NULL};
    static const char *const trace[] = {"\"timestamp_us\"", "\"keys\"", "\"input_len\"", NULL};
    if (format_first_char(head, size) != '{')
        return 0;
    return format_line_has(head, size, events) || format_line_has(head, size, trace) ? 90 : 0;
}

static void tair_free(FormatReader *base)
{
    json_input_free(((TairReader *)base)->json);
    g_free(base);
}

static FormatReader *tair_open(Input *input, const FormatArgs *args, GError **error)
{
    TairReader *self = g_new0(TairReader, 1);
    self->base.ops = &format_tair;
    self->json = json_input_new(input);
    self->notes = args->notes;
    self->block = (gint32)((const TairConfig *)args->config)->block;
    return &self->base;
}

static gboolean read_keys(TairReader *self, const JNode *root, LogRecord *r, GError **error)
{
    gsize n;
    const JNode *keys = json_any(self->json, root, "total_keys|keys");
    if (!json_ids(self->json, keys, "keys", &r->blocks, &n, error))
        return FALSE;
    if (n > G_MAXINT32 / (gsize)self->block)
        return json_error(self->json, keys, "keys", "fewer keys", error);
    r->n_blocks = (guint32)n;
    r->block_tokens = self->block;
    return TRUE;
}

static gboolean read_event(TairReader *self, const JNode *root, LogRecord *r, GError **error)
{
    if (!json_text_is(json_member(self->json, root, "type"), "GetCacheLocation")) {
        r->fault = "not_a_lookup";
        return TRUE;
    }
    if (format_notes_count(self->notes,
                           "prompt taken as keys x block tokens: the log has no token counts") == 0)
        format_note(self->notes,
                    "prompt taken as keys x block tokens: the log has no token counts");
    r->prompt = (gint64)r->n_blocks * self->block;
    return TRUE;
}

static int tair_next(FormatReader *base, LogRecord *ret, GError **error)
{
    TairReader *self = (TairReader *)base;
    JsonInput *json = self->json;
    int got = json_input_next(json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(json),
                *time = json_any(json, root, "timestamp_us|trigger_time_us");
    gboolean event = json_member(json, root, "trigger_time_us") != NULL;
    log_record_init(ret);
    ret->line = json_line(json, NULL);
    if (!json_time(json, time, "timestamp_us", KV_US, &ret->arrival, error) ||
        !read_keys(self, root, ret, error))
        return -1;
    ret->arrival_text = time->text;
    ret->arrival_len = time->len;
    if (event)
        return read_event(self, root, ret, error) ? 1 : -1;
    if (!json_tokens(json, json_member(json, root, "input_len"), "input_len", &ret->prompt,
                     error) ||
        !json_tokens(json, json_member(json, root, "output_len"), "output_len", &ret->output,
                     error))
        return -1;
    return 1;
}

static const SpecOption tair_options[] = {
    {"block", SPEC_INT, G_STRUCT_OFFSET(TairConfig, block), "16", 1, 65536, NULL, "tokens per key"},
    {NULL},
};

const FormatOps format_tair = {
    .info = {"tair", "tair-kvcache optimizer traces and event logs (JSON lines)", tair_options,
             sizeof(TairConfig)},
    .probe = tair_probe,
    .open = tair_open,
    .next = tair_next,
    .free = tair_free,
};
