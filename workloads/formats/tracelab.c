/* TraceLab (code Apache-2.0, data CC-BY-4.0): recorded rounds (JSON lines) and replay lists (CSV).
 *
 *   rounds  session_id, round_index, input_tokens_total = prefix_tokens + newly_append_tokens,
 *           output_tokens, timing_events[{event_type, timestamp}]. A round arrives with the last of
 * its own user_message and tool_result events; its last event ends it. replay  session_id,
 * [arrival_time (ms),] round_idx, prefix_len, input_len, output_len, tool_wait_after_ms: prompt =
 * prefix_len + input_len; round 0 arrives by itself, round k+1 tool_wait_after_ms of round k after
 * it has finished.
 *
 * No hashes: keys of `block` tokens are made from what a round keeps of its session's context
 * (prefix) and what it adds. Sessions share nothing.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/context_keys.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/key_set.h"
#include "workloads/names.h"
#include "workloads/table.h"

typedef struct TraceLabConfig {
    gint64 block;
} TraceLabConfig;

typedef struct Talk {
    ContextKeys *context;
    kv_ns tool_wait; /* of its last round */
} Talk;

typedef struct TraceLab {
    FormatReader base;
    Input *input;
    JsonInput *json; /* rounds */
    Table *table;    /* replay */
    SessionNames *names;
    GHashTable *talks; /* session -> Talk */
    gint32 block;
    int session, arrival, round, prefix, added, output, wait; /* columns */
    Observed observed;
} TraceLab;

static void talk_free(gpointer data)
{
    Talk *talk = data;
    context_keys_free(talk->context);
    g_free(talk);
}

static void tracelab_free(FormatReader *base)
{
    TraceLab *self = (TraceLab *)base;
    json_input_free(self->json);
    table_free(self->table);
    session_names_free(self->names);
    g_hash_table_unref(self->talks);
    g_free(self);
}

static TraceLab *tracelab_new(Input *input, const FormatArgs *args, const FormatOps *ops)
{
    TraceLab *self = g_new0(TraceLab, 1);
    self->base.ops = ops;
    self->input = input;
    self->block = (gint32)((const TraceLabConfig *)args->config)->block;
    self->names = session_names_new();
    self->talks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, talk_free);
    return self;
}

static Talk *talk_of(TraceLab *self, gint64 session)
{
    Talk *talk = g_hash_table_lookup(self->talks, &session);
    if (talk == NULL) {
        talk = g_new0(Talk, 1);
        talk->context = context_keys_new(self->block);
        g_hash_table_insert(self->talks, g_memdup2(&session, sizeof session), talk);
    }
    return talk;
}

/* Keys of a prompt that keeps `prefix` tokens of the session's context and adds `added`. */
static void apply_context(TraceLab *self, Talk *talk, gint64 prefix, gint64 added, LogRecord *r)
{
    guint64 seed = key_chain(key_mix((guint64)r->session), (guint64)r->turn);
    context_keys_truncate(talk->context, prefix);
    /* What the prefix has beyond the known context came from outside the log: the session's own. */
    context_keys_append(talk->context, seed ^ 1, prefix - context_keys_tokens(talk->context));
    context_keys_append(talk->context, seed ^ 2, added);
    guint32 n;
    context_keys_get(talk->context, &n);
    context_keys_append(talk->context, seed ^ 3, r->output); /* full blocks before it stay */
    guint32 all;
    r->blocks = context_keys_get(talk->context, &all);
    r->n_blocks = n;
    r->block_tokens = self->block;
}

/* --- rounds --- */

static int rounds_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"newly_append_tokens\"", "\"prefix_tokens\"", NULL};
    return format_first_char(head, size) == '{' && format_line_has(head, size, texts) ? 95 : 0;
}

static FormatReader *rounds_open(Input *input, const FormatArgs *args, GError **error)
{
    TraceLab *self = tracelab_new(input, args, &format_tracelab);
    self->json = json_input_new(input);
    return &self->base;
}

static gboolean read_events(TraceLab *self, const JNode *events, LogRecord *r, GError **error)
{
    kv_ns last = KV_NS_NONE;
    for (const JNode *e = json_first(self->json, events); e != NULL;
         e = json_next(self->json, events, e)) {
        const JNode *time = json_member(self->json, e, "timestamp");
        const JNode *type = json_member(self->json, e, "event_type");
        kv_ns t;
        if (time == NULL || time->type != JDOC_STRING || !field_calendar(time->text, time->len, &t))
            return json_error(self->json, time, "timestamp", "a time like 2026-06-01T05:40:20.151Z",
                              error);
        gboolean input = json_text_is(type, "user_message") || json_text_is(type, "tool_result");
        if (r->arrival == KV_NS_NONE || (input && t > r->arrival)) {
            r->arrival = t;
            r->arrival_text = time->text;
            r->arrival_len = time->len;
        }
        last = MAX(last, t);
    }
    if (r->arrival == KV_NS_NONE)
        return json_error(self->json, events, "timing_events", "at least one event", error);
    self->observed = (Observed){.queue = KV_NS_NONE, .ttft = KV_NS_NONE, .e2e = last - r->arrival};
    r->observed = &self->observed;
    return TRUE;
}

static int rounds_next(FormatReader *base, LogRecord *ret, GError **error)
{
    TraceLab *self = (TraceLab *)base;
    JsonInput *json = self->json;
    int got = json_input_next(json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(json), *name = json_member(json, root, "session_id");
    const JNode *total = json_member(json, root, "input_tokens_total");
    gint64 prefix, added, round;
    log_record_init(ret);
    ret->line = json_line(json, NULL);
    if (name == NULL || name->text == NULL) {
        json_error(json, name, "session_id", "the session's name", error);
        return -1;
    }
    if (!json_i64(json, json_member(json, root, "round_index"), "round_index", 0, G_MAXINT32,
                  &round, error) ||
        !json_tokens(json, total, "input_tokens_total", &ret->prompt, error) ||
        !json_tokens(json, json_member(json, root, "prefix_tokens"), "prefix_tokens", &prefix,
                     error) ||
        !json_tokens(json, json_member(json, root, "newly_append_tokens"), "newly_append_tokens",
                     &added, error) ||
        !json_tokens(json, json_member(json, root, "output_tokens"), "output_tokens", &ret->output,
                     error) ||
        !read_events(self, json_member(json, root, "timing_events"), ret, error))
        return -1;
    if (prefix + added != ret->prompt) {
        json_error(json, total, "input_tokens_total", "prefix_tokens + newly_append_tokens", error);
        return -1;
    }
    ret->session = session_number(self->names, name->text, name->len, NULL);
    ret->turn = (gint32)round;
    apply_context(self, talk_of(self, ret->session), prefix, added, ret);
    return 1;
}

/* --- replay --- */

static int replay_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"session_id", "round_idx", "prefix_len", "input_len",
                                          NULL};
    return format_head_score(head, size, columns, 95);
}

static FormatReader *replay_open(Input *input, const FormatArgs *args, GError **error)
{
    TraceLab *self = tracelab_new(input, args, &format_tracelab_replay);
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL || !table_require(self->table, "session_id", &self->session, error) ||
        !table_require(self->table, "round_idx", &self->round, error) ||
        !table_require(self->table, "prefix_len", &self->prefix, error) ||
        !table_require(self->table, "input_len", &self->added, error) ||
        !table_require(self->table, "output_len", &self->output, error)) {
        tracelab_free(&self->base);
        return NULL;
    }
    self->arrival = table_find(self->table, "arrival_time");
    self->wait = table_find(self->table, "tool_wait_after_ms");
    return &self->base;
}

static gboolean replay_times(TraceLab *self, Talk *talk, LogRecord *r, GError **error)
{
    if (r->turn > 0) {
        r->wait = talk->tool_wait;
    } else {
        r->arrival = 0;
        r->arrival_text = table_field(self->table, self->arrival, &r->arrival_len);
        if (self->arrival >= 0 &&
            !table_time(self->table, self->arrival, KV_MS, &r->arrival, error))
            return FALSE;
    }
    talk->tool_wait = 0;
    if (table_is_empty(self->table, self->wait))
        return TRUE;
    if (!table_time(self->table, self->wait, KV_MS, &talk->tool_wait, error))
        return FALSE;
    return talk->tool_wait >= 0 ||
           table_error(self->table, self->wait, error, "a wait of 0 milliseconds or more");
}

static int replay_next(FormatReader *base, LogRecord *ret, GError **error)
{
    TraceLab *self = (TraceLab *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    gint64 prefix, added, round;
    gsize len;
    log_record_init(ret);
    ret->line = table_line(self->table);
    const char *name = table_field(self->table, self->session, &len);
    if (!table_i64(self->table, self->round, 0, G_MAXINT32, &round, error) ||
        !table_tokens(self->table, self->prefix, &prefix, error) ||
        !table_tokens(self->table, self->added, &added, error) ||
        !table_tokens(self->table, self->output, &ret->output, error))
        return -1;
    ret->prompt = prefix + added;
    if (ret->prompt > G_MAXINT32) {
        table_error(self->table, self->added, error, "prefix_len + input_len below 2^31");
        return -1;
    }
    ret->session = session_number(self->names, name, len, NULL);
    ret->turn = (gint32)round;
    Talk *talk = talk_of(self, ret->session);
    if (!replay_times(self, talk, ret, error))
        return -1;
    apply_context(self, talk, prefix, added, ret);
    return 1;
}

static const SpecOption tracelab_options[] = {
    {"block", SPEC_INT, G_STRUCT_OFFSET(TraceLabConfig, block), "16", 1, 65536, NULL,
     "tokens per block key made from the sessions' contexts"},
    {NULL},
};

const FormatOps format_tracelab = {
    .info = {"tracelab", "TraceLab rounds (JSON lines)", tracelab_options, sizeof(TraceLabConfig)},
    .probe = rounds_probe,
    .open = rounds_open,
    .next = rounds_next,
    .free = tracelab_free,
};

const FormatOps format_tracelab_replay = {
    .info = {"tracelab-replay", "TraceLab replay lists (CSV; later rounds are closed-loop)",
             tracelab_options, sizeof(TraceLabConfig)},
    .probe = replay_probe,
    .open = replay_open,
    .next = replay_next,
    .free = tracelab_free,
};
