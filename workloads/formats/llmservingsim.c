/* LLMServingSim workloads (MIT), JSON lines, and the per-request records of a vLLM run beside them.
 *
 *   flat      input_toks, output_toks, arrival_time_ns [, input_tok_ids, output_tok_ids]
 *   agentic   session_id, arrival_time_ns, sub_requests[{input_toks, output_toks,
 * tool_duration_ns}] recorded  input_toks, output_toks, arrival_time (UNIX s), queued_ts,
 * scheduled_ts, first_token_ts, last_token_ts (s, monotonic clock)
 *
 * Kinds may be mixed. A sub-request follows the one before by that one's tool_duration_ns (closed
 * loop). A line without sub-requests is dropped as "no_sub_requests"; a session id met again is a
 * session of its own, and noted. Token ids, where there are as many as input_toks, make keys of 16
 * tokens. Of a recorded request the times on the monotonic clock are only compared with one
 * another.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/key_set.h"

#define ID_BLOCK 16

typedef struct SimReader {
    FormatReader base;
    JsonInput *json;
    FormatNotes *notes;
    GHashTable *seen; /* session ids */
    GArray *keys;
    Observed observed;
    const JNode *subs, *sub; /* of the line at hand; NULL = take the next line */
    gint64 session;
    gint32 turn;
    kv_ns tool;
} SimReader;

static int sim_probe(const char *head, gsize size)
{
    static const char *const flat[] = {"\"input_toks\"", "\"output_toks\"", NULL};
    static const char *const agentic[] = {"\"sub_requests\"", NULL};
    if (format_first_char(head, size) != '{')
        return 0;
    return format_line_has(head, size, flat) || format_line_has(head, size, agentic) ? 90 : 0;
}

static void sim_free(FormatReader *base)
{
    SimReader *self = (SimReader *)base;
    json_input_free(self->json);
    g_hash_table_unref(self->seen);
    g_array_unref(self->keys);
    g_free(self);
}

static FormatReader *sim_open(Input *input, const FormatArgs *args, GError **error)
{
    SimReader *self = g_new0(SimReader, 1);
    self->base.ops = &format_llmservingsim;
    self->json = json_input_new(input);
    self->notes = args->notes;
    self->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->keys = g_array_new(FALSE, FALSE, sizeof(guint64));
    self->session = -1;
    return &self->base;
}

static gboolean read_lengths(SimReader *self, const JNode *object, LogRecord *r, GError **error)
{
    return json_tokens(self->json, json_member(self->json, object, "input_toks"), "input_toks",
                       &r->prompt, error) &&
           json_tokens(self->json, json_member(self->json, object, "output_toks"), "output_toks",
                       &r->output, error);
}

static gboolean read_keys(SimReader *self, const JNode *object, LogRecord *r, GError **error)
{
    const guint64 *ids;
    gsize n;
    if (!json_ids(self->json, json_member(self->json, object, "input_tok_ids"), "input_tok_ids",
                  &ids, &n, error))
        return FALSE;
    if (n == 0)
        return TRUE;
    if ((gint64)n != r->prompt) {
        format_note(self->notes,
                    "input_tok_ids are not as many as input_toks: no block keys for the row");
        return TRUE;
    }
    g_array_set_size(self->keys, 0);
    guint64 chain = 0;
    for (gsize i = 0; i < n; i++) {
        chain = key_chain(chain, ids[i]);
        if ((i + 1) % ID_BLOCK == 0)
            g_array_append_val(self->keys, chain);
    }
    r->block_tokens = ID_BLOCK;
    r->n_blocks = self->keys->len;
    r->blocks = (const guint64 *)(gpointer)self->keys->data;
    return TRUE;
}

static gboolean read_observed(SimReader *self, const JNode *root, LogRecord *r, GError **error)
{
    static const char *const names[] = {"queued_ts", "scheduled_ts", "first_token_ts",
                                        "last_token_ts"};
    kv_ns t[4];
    for (guint i = 0; i < 4; i++)
        if (!json_time(self->json, json_member(self->json, root, names[i]), names[i], KV_SECOND,
                       &t[i], error))
            return FALSE;
    self->observed = (Observed){.queue = t[1] - t[0], .ttft = t[2] - t[0], .e2e = t[3] - t[0]};
    r->observed = &self->observed;
    return TRUE;
}

static gboolean read_line(SimReader *self, const JNode *root, LogRecord *r, GError **error)
{
    const JNode *ns = json_member(self->json, root, "arrival_time_ns");
    const JNode *seconds = json_member(self->json, root, "arrival_time");
    const JNode *time = ns != NULL ? ns : seconds;
    kv_ns unit = ns != NULL ? 1 : KV_SECOND;
    if (!json_time(self->json, time, "arrival_time_ns", unit, &r->arrival, error))
        return FALSE;
    r->arrival_text = time->text;
    r->arrival_len = time->len;
    if (json_member(self->json, root, "queued_ts") != NULL && !read_observed(self, root, r, error))
        return FALSE;
    return read_lengths(self, root, r, error) && read_keys(self, root, r, error);
}

/* Begins an agentic line. */
static gboolean begin_session(SimReader *self, const JNode *root, LogRecord *r, GError **error)
{
    g_autofree char *id = json_text(json_member(self->json, root, "session_id"));
    const JNode *time = json_member(self->json, root, "arrival_time_ns");
    if (!json_time(self->json, time, "arrival_time_ns", 1, &r->arrival, error))
        return FALSE;
    r->arrival_text = time->text;
    r->arrival_len = time->len;
    if (id != NULL && !g_hash_table_add(self->seen, g_steal_pointer(&id)))
        format_note(self->notes, "a session id met again: its line is a session of its own");
    self->session++;
    self->turn = 0;
    self->sub = json_first(self->json, self->subs);
    if (self->sub == NULL)
        r->fault = "no_sub_requests";
    return TRUE;
}

static gboolean read_sub(SimReader *self, LogRecord *r, GError **error)
{
    const JNode *tool = json_member(self->json, self->sub, "tool_duration_ns");
    r->session = self->session;
    r->turn = self->turn++;
    if (r->turn > 0)
        r->wait = self->tool;
    self->tool = 0;
    if (tool != NULL &&
        !json_i64(self->json, tool, "tool_duration_ns", 0, G_MAXINT64, &self->tool, error))
        return FALSE;
    if (!read_lengths(self, self->sub, r, error) || !read_keys(self, self->sub, r, error))
        return FALSE;
    self->sub = json_next(self->json, self->subs, self->sub);
    return TRUE;
}

static int sim_next(FormatReader *base, LogRecord *ret, GError **error)
{
    SimReader *self = (SimReader *)base;
    log_record_init(ret);
    if (self->sub == NULL) {
        int got = json_input_next(self->json, error);
        if (got != 1)
            return got;
        ret->line = json_line(self->json, NULL);
        const JNode *root = json_root(self->json);
        self->subs = json_member(self->json, root, "sub_requests");
        if (self->subs == NULL)
            return read_line(self, root, ret, error) ? 1 : -1;
        if (!begin_session(self, root, ret, error))
            return -1;
        if (self->sub == NULL)
            return 1;
    }
    ret->line = json_line(self->json, NULL);
    return read_sub(self, ret, error) ? 1 : -1;
}

const FormatOps format_llmservingsim = {
    .info = {"llmservingsim",
             "LLMServingSim workloads (JSON lines, flat and agentic), vLLM run records", NULL, 0},
    .probe = sim_probe,
    .open = sim_open,
    .next = sim_next,
    .free = sim_free,
};
