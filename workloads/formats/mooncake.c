/* Mooncake traces (FAST'25, Apache-2.0) and their dialects: AIPerf, GenAI-Perf, GuideLLM, Dynamo.
 *
 * JSON lines: timestamp (ms from the start), input_length, output_length, hash_ids (one a block of
 * 512 tokens, the last one usually partial). Dialects add session_id; a later row of a session may
 * have a `delay` (ms) in place of a timestamp: it is then a closed-loop turn. Two questions that
 * the rows do not answer by themselves are options, and what was taken is said in a note: delay
 * before = wait before this row (AIPerf, Dynamo); after = wait after this row's response
 *           (GenAI-Perf: present on the first turn, absent on the last)
 *   rows    whole = each row is the whole context; delta = later rows hold only new tokens, and the
 *           context is all that went before, answers included
 *
 * Memory: O(sessions) where there are any.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/block_ids.h"
#include "workloads/context_keys.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/key_set.h"
#include "workloads/names.h"
#include "workloads/time_unit.h"

enum { ROWS_AUTO, ROWS_WHOLE, ROWS_DELTA };
enum { DELAY_AUTO, DELAY_BEFORE, DELAY_AFTER };

typedef struct MooncakeConfig {
    gint64 block;
    int time, rows, delay;
    gboolean tree;
} MooncakeConfig;

/* What is remembered of a session with closed-loop turns. */
typedef struct Talk {
    ContextKeys *context;
    kv_ns delay_after; /* of its last row; KV_NS_NONE */
} Talk;

typedef struct MooncakeReader {
    FormatReader base;
    JsonInput *json;
    Input *input;
    FormatNotes *notes;
    BlockIds *blocks;
    SessionNames *names;
    GHashTable *talks; /* session -> Talk */
    kv_ns unit;
    int rows, delay;
} MooncakeReader;

/* What the first lines show, for the choices that are left open. */
typedef struct Survey {
    GArray *times; /* double */
    guint fits[4]; /* rows with as many ids as blocks of 512, 16, 64, 128 tokens ask for */
    guint rows_with_ids;
    gboolean names_ms; /* the field is called arrival_ms */
    gboolean delay_on_first, delay_on_later, later_rows, later_extends, later_restarts;
} Survey;

static const gint32 block_sizes[4] = {512, 16, 64, 128};

static int mooncake_probe(const char *head, gsize size)
{
    static const char *const all[] = {"\"input_length\"", NULL};
    static const char *const bailian[] = {"\"chat_id\"", NULL};
    static const char *const rag[] = {"\"sys_prompt\"", NULL};
    if (format_first_char(head, size) != '{' || !format_line_has(head, size, all) ||
        format_line_has(head, size, bailian) || format_line_has(head, size, rag))
        return 0;
    return 80;
}

static void talk_free(gpointer data)
{
    Talk *talk = data;
    context_keys_free(talk->context);
    g_free(talk);
}

static void mooncake_free(FormatReader *base)
{
    MooncakeReader *self = (MooncakeReader *)base;
    json_input_free(self->json);
    block_ids_free(self->blocks);
    session_names_free(self->names);
    g_hash_table_unref(self->talks);
    g_free(self);
}

/* --- looking ahead --- */

static void survey_ids(Survey *s, const JsonInput *json, const JNode *root)
{
    const guint64 *ids;
    gsize n;
    gint64 prompt;
    if (!json_ids(json, json_member(json, root, "hash_ids"), "hash_ids", &ids, &n, NULL) ||
        n == 0 ||
        !json_tokens(json, json_member(json, root, "input_length"), "input_length", &prompt, NULL))
        return;
    s->rows_with_ids++;
    for (guint i = 0; i < G_N_ELEMENTS(block_sizes); i++)
        s->fits[i] += (gint64)n == (prompt + block_sizes[i] - 1) / block_sizes[i];
}

static void survey_session(Survey *s, GHashTable *lengths, const JsonInput *json, const JNode *root)
{
    g_autofree char *name = json_text(json_member(json, root, "session_id"));
    gint64 prompt = 0;
    if (name == NULL ||
        !json_tokens(json, json_member(json, root, "input_length"), "input_length", &prompt, NULL))
        return;
    gboolean delay = json_member(json, root, "delay") != NULL;
    gpointer before = g_hash_table_lookup(lengths, name);
    if (before == NULL) {
        s->delay_on_first |= delay;
    } else {
        s->delay_on_later |= delay;
        s->later_rows = TRUE;
        if (prompt < GPOINTER_TO_INT(before))
            s->later_restarts = TRUE;
        else
            s->later_extends = TRUE;
    }
    g_hash_table_insert(lengths, g_steal_pointer(&name), GINT_TO_POINTER((int)MAX(prompt, 1)));
}

static void survey_head(Survey *s, const char *head, gsize size)
{
    g_autoptr(GHashTable) lengths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *last = memrchr(head, '\n', size);
    gsize whole = last != NULL ? (gsize)(last - head) + 1 : size; /* whole lines only */
    g_autoptr(Input) input = input_open_memory("head", head, whole);
    g_autoptr(JsonInput) json = json_input_new(input);
    while (json_input_next(json, NULL) == 1) {
        const JNode *root = json_root(json), *time = json_any(json, root, "timestamp|arrival_ms");
        double t;
        if (time != NULL && json_real(json, time, "timestamp", &t, NULL))
            g_array_append_val(s->times, t);
        s->names_ms |= json_member(json, root, "arrival_ms") != NULL;
        survey_ids(s, json, root);
        survey_session(s, lengths, json, root);
    }
}

static gboolean choose_unit(MooncakeReader *self, const MooncakeConfig *config, const Survey *s,
                            GError **error)
{
    static const kv_ns units[] = {0, KV_MS, KV_SECOND, KV_US, 1};
    g_autofree char *reason = NULL;
    self->unit = config->time == 0 && s->names_ms ? KV_MS : units[config->time];
    if (self->unit != 0)
        return TRUE;
    self->unit =
        time_unit_choose((const double *)(gpointer)s->times->data, s->times->len, KV_MS, &reason);
    if (self->unit == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s:1: field 'timestamp': unit unclear (%s): expected it named, "
                    "--format mooncake:time=ms or time=s",
                    input_name(self->input), reason);
        return FALSE;
    }
    if (self->unit != KV_MS) {
        g_autofree char *note =
            g_strdup_printf("timestamps read as %s and not as milliseconds (%s)",
                            time_unit_name(self->unit), reason);
        format_note(self->notes, note);
    }
    return TRUE;
}

static gboolean choose_block(MooncakeReader *self, const MooncakeConfig *config, const Survey *s,
                             gint32 *ret, GError **error)
{
    guint best = 0;
    for (guint i = 1; i < G_N_ELEMENTS(block_sizes); i++)
        if (s->fits[i] > s->fits[best])
            best = i;
    gint32 seen = s->fits[best] > 0 ? block_sizes[best] : 512;
    *ret = config->block > 0 ? (gint32)config->block : seen;
    if (config->block > 0 && s->rows_with_ids > 0 && 2 * s->fits[best] > s->rows_with_ids &&
        seen != config->block) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s:1: field 'hash_ids': %u of the first %u rows have one id for %d tokens: "
                    "expected block=%" G_GINT64_FORMAT " as named",
                    input_name(self->input), s->fits[best], s->rows_with_ids, seen, config->block);
        return FALSE;
    }
    if (*ret != 512) {
        g_autofree char *note = g_strdup_printf("one block id for %d tokens (512 is usual)", *ret);
        format_note(self->notes, note);
    }
    return TRUE;
}

static gboolean choose_turns(MooncakeReader *self, const MooncakeConfig *config, const Survey *s,
                             GError **error)
{
    self->rows = config->rows;
    self->delay = config->delay;
    if (!s->delay_on_first && !s->delay_on_later)
        return TRUE;
    if (self->delay == DELAY_AUTO) {
        self->delay = s->delay_on_first ? DELAY_AFTER : DELAY_BEFORE;
        format_note(self->notes,
                    s->delay_on_first
                        ? "delay taken as the wait after its row: first turns have one (GenAI-Perf)"
                        : "delay taken as the wait before its row: first turns have none (AIPerf)");
    }
    if (self->rows == ROWS_AUTO && s->later_rows) {
        self->rows = s->later_restarts ? ROWS_DELTA : ROWS_WHOLE;
        format_note(self->notes,
                    s->later_restarts
                        ? "later rows of a session taken as new tokens only: some are "
                          "shorter than the row before (rows=delta)"
                        : "later rows of a session taken as whole contexts: each is at "
                          "least as long as the row before (rows=whole)");
    }
    return TRUE;
}

static FormatReader *mooncake_open(Input *input, const FormatArgs *args, GError **error)
{
    const MooncakeConfig *config = args->config;
    MooncakeReader *self = g_new0(MooncakeReader, 1);
    self->base.ops = &format_mooncake;
    self->input = input;
    self->notes = args->notes;
    self->json = json_input_new(input);
    self->names = session_names_new();
    self->talks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, talk_free);
    const char *head;
    gsize size;
    gint32 block;
    Survey survey = {.times = g_array_new(FALSE, FALSE, sizeof(double))};
    gboolean good = input_peek(input, &head, &size, error);
    if (good)
        survey_head(&survey, head, size);
    good = good && choose_unit(self, config, &survey, error) &&
           choose_block(self, config, &survey, &block, error) &&
           choose_turns(self, config, &survey, error);
    g_array_unref(survey.times);
    if (!good) {
        mooncake_free(&self->base);
        return NULL;
    }
    self->blocks =
        block_ids_new(input, args->notes, args->strict, block, BLOCKS_CEIL, config->tree);
    return &self->base;
}

/* --- rows --- */

static gboolean read_lengths(MooncakeReader *self, const JNode *root, LogRecord *r, GError **error)
{
    const JNode *input = json_member(self->json, root, "input_length");
    const JNode *output = json_member(self->json, root, "output_length");
    if (input == NULL && json_any(self->json, root, "text_input|messages") == NULL)
        return json_error(self->json, NULL, "input_length", "the prompt's tokens", error);
    return (input == NULL || json_tokens(self->json, input, "input_length", &r->prompt, error)) &&
           (output == NULL || json_tokens(self->json, output, "output_length", &r->output, error));
}

static Talk *talk_of(MooncakeReader *self, gint64 session)
{
    Talk *talk = g_hash_table_lookup(self->talks, &session);
    if (talk == NULL) {
        talk = g_new0(Talk, 1);
        talk->delay_after = KV_NS_NONE;
        g_hash_table_insert(self->talks, g_memdup2(&session, sizeof session), talk);
    }
    return talk;
}

static gboolean read_time(MooncakeReader *self, const JNode *root, LogRecord *r, GError **error)
{
    const JNode *time = json_any(self->json, root, "timestamp|arrival_ms");
    const JNode *delay = json_member(self->json, root, "delay");
    kv_ns wait = KV_NS_NONE;
    if (delay != NULL && !json_time(self->json, delay, "delay", KV_MS, &wait, error))
        return FALSE;
    if (wait != KV_NS_NONE && wait < 0)
        return json_error(self->json, delay, "delay", "a wait of 0 or more", error);
    Talk *talk =
        r->session != KV_NO_SESSION && self->delay != DELAY_AUTO ? talk_of(self, r->session) : NULL;
    if (self->delay == DELAY_AFTER && talk != NULL) {
        kv_ns own = wait;
        wait = talk->delay_after;
        talk->delay_after = own;
        if (r->turn > 0 && wait == KV_NS_NONE && time == NULL)
            wait = 0;
    }
    if (time != NULL) {
        r->arrival_text = time->text;
        r->arrival_len = time->len;
        return json_time(self->json, time, "timestamp", self->unit, &r->arrival, error);
    }
    if (wait == KV_NS_NONE || r->session == KV_NO_SESSION)
        return json_error(self->json, NULL, "timestamp",
                          "a timestamp, or the delay of a later turn of a session", error);
    if (r->turn == 0)
        return json_error(self->json, NULL, "timestamp", "one on the first turn of a session",
                          error);
    r->wait = wait;
    return TRUE;
}

/* A row that holds only what is new: the record becomes the whole context. */
static gboolean apply_delta(MooncakeReader *self, LogRecord *r, const guint64 *ids, gsize n,
                            GError **error)
{
    Talk *talk = talk_of(self, r->session);
    gint32 block = block_ids_tokens(self->blocks);
    if (talk->context == NULL)
        talk->context = context_keys_new(block);
    gint64 left = r->prompt;
    for (gsize i = 0; i < n && left > 0; i++, left -= block)
        context_keys_append(talk->context, key_mix(ids[i]), MIN(left, block));
    guint64 own = key_chain(key_mix((guint64)r->session) ^ 0x64656c7461, (guint64)r->turn);
    context_keys_append(talk->context, own, left);
    r->prompt = context_keys_tokens(talk->context);
    if (r->prompt > G_MAXINT32)
        return input_error(self->input, error, "the session's context exceeds 2^31 tokens");
    if (n > 0) {
        r->block_tokens = block;
        r->blocks = context_keys_get(talk->context, &r->n_blocks);
    }
    return TRUE;
}

static gboolean read_row(MooncakeReader *self, const JNode *root, LogRecord *r, GError **error)
{
    const JNode *session = json_member(self->json, root, "session_id");
    const JNode *priority = json_member(self->json, root, "priority");
    const guint64 *ids;
    gsize n;
    gint64 p = 0;
    if (session != NULL && session->text != NULL)
        r->session = session_number(self->names, session->text, session->len, &r->turn);
    if (!read_lengths(self, root, r, error) || !read_time(self, root, r, error) ||
        !json_ids(self->json, json_member(self->json, root, "hash_ids"), "hash_ids", &ids, &n,
                  error))
        return FALSE;
    if (priority != NULL &&
        !json_i64(self->json, priority, "priority", G_MININT32, G_MAXINT32, &p, error))
        return FALSE;
    r->priority = (gint32)p;
    if (self->rows == ROWS_DELTA && r->session != KV_NO_SESSION && r->prompt >= 0) {
        gint64 answer = MAX(r->output, 0);
        if (!apply_delta(self, r, ids, n, error))
            return FALSE;
        /* The answer joins the context after this row's keys are taken: keys are of full blocks,
         * and those do not change by appending. */
        Talk *talk = talk_of(self, r->session);
        guint32 keys = r->n_blocks;
        context_keys_append(
            talk->context,
            key_chain(key_mix((guint64)r->session) ^ 0x616e73776572, (guint64)r->turn), answer);
        if (r->n_blocks > 0)
            r->blocks = context_keys_get(talk->context, &r->n_blocks);
        r->n_blocks = keys;
        return TRUE;
    }
    return block_ids_apply(self->blocks, r, 0, ids, n, error);
}

static int mooncake_next(FormatReader *base, LogRecord *ret, GError **error)
{
    MooncakeReader *self = (MooncakeReader *)base;
    int got = json_input_next(self->json, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = json_line(self->json, NULL);
    return read_row(self, json_root(self->json), ret, error) ? 1 : -1;
}

static const SpecOption mooncake_options[] = {
    {"block", SPEC_INT, G_STRUCT_OFFSET(MooncakeConfig, block), "0", 0, 65536, NULL,
     "tokens per hash id; 0 = as the first rows show, else 512"},
    {"time", SPEC_CHOICE, G_STRUCT_OFFSET(MooncakeConfig, time), "auto", 0, 0, "auto|ms|s|us|ns",
     "unit of timestamp; auto = ms while that is plausible"},
    {"rows", SPEC_CHOICE, G_STRUCT_OFFSET(MooncakeConfig, rows), "auto", 0, 0, "auto|whole|delta",
     "what later rows of a session hold"},
    {"delay", SPEC_CHOICE, G_STRUCT_OFFSET(MooncakeConfig, delay), "auto", 0, 0,
     "auto|before|after", "which side of its row a delay is on"},
    {"tree", SPEC_BOOL, G_STRUCT_OFFSET(MooncakeConfig, tree), "yes", 0, 0, NULL,
     "check that an id always follows the same id"},
    {NULL},
};

const FormatOps format_mooncake = {
    .info = {"mooncake",
             "Mooncake JSON lines and the AIPerf, GenAI-Perf, GuideLLM, Dynamo dialects",
             mooncake_options, sizeof(MooncakeConfig)},
    .probe = mooncake_probe,
    .open = mooncake_open,
    .next = mooncake_next,
    .free = mooncake_free,
};
