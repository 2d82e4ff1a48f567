/* Weka agentic traces (kv-cache-tester, Apache-2.0): one JSON object a conversation, one on each
 * line.
 *
 * requests[]: t (s from the conversation's start), type n|s|subagent, in, out, hash_ids (full
 * blocks of block_size tokens; republished files keep the partial one too), api_time, ttft,
 * think_time. A subagent entry nests requests whose t starts anew at 0: they begin at the entry's
 * own t, as a session of their own. Ids are local to a conversation and never join across.
 * `loop=closed` replaces the recorded t of later requests by their think_time after the one before.
 * Memory: a conversation.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/block_ids.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/key_set.h"

typedef struct WekaConfig {
    int loop;
} WekaConfig;

/* A list of requests being walked: the conversation's, or inside it a subagent's. */
typedef struct Level {
    const JNode *list, *at;
    kv_ns base; /* of its t */
    gint64 session;
    gint32 turn;
} Level;

typedef struct WekaReader {
    FormatReader base;
    Input *input;
    FormatNotes *notes;
    JsonInput *json;
    BlockIds *blocks;
    gboolean strict, closed, document, document_done;
    Level levels[8];
    guint depth;
    gint64 sessions;
    guint64 scope;
    Observed observed;
} WekaReader;

static int weka_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"hash_id_scope\"", "\"block_size\"", "\"requests\"",
                                        NULL};
    return format_first_char(head, size) == '{' && format_head_has(head, size, texts) ? 95 : 0;
}

static void weka_free(FormatReader *base)
{
    WekaReader *self = (WekaReader *)base;
    json_input_free(self->json);
    block_ids_free(self->blocks);
    g_free(self);
}

static FormatReader *weka_open(Input *input, const FormatArgs *args, GError **error)
{
    const char *head;
    gsize size;
    if (!input_peek(input, &head, &size, error))
        return NULL;
    WekaReader *self = g_new0(WekaReader, 1);
    self->base.ops = &format_weka;
    self->input = input;
    self->notes = args->notes;
    self->strict = args->strict;
    self->closed = ((const WekaConfig *)args->config)->loop == 1;
    self->json = json_input_new(input);
    const char *end = memchr(head, '\n', size);
    while (end != NULL && end > head && g_ascii_isspace(end[-1]))
        end--;
    self->document = end != NULL && end > head && end[-1] != '}'; /* spread over lines */
    return &self->base;
}

/* Next conversation: 1, 0 at the end, -1. */
static int next_conversation(WekaReader *self, GError **error)
{
    if (self->document) {
        if (self->document_done)
            return 0;
        self->document_done = TRUE;
        if (!json_input_document(self->json, error))
            return -1;
    } else {
        int got = json_input_next(self->json, error);
        if (got != 1)
            return got;
    }
    const JNode *root = json_root(self->json), *list = json_member(self->json, root, "requests");
    gint64 block;
    if (!json_i64(self->json, json_member(self->json, root, "block_size"), "block_size", 1, 1 << 20,
                  &block, error))
        return -1;
    if (list == NULL || list->type != JDOC_ARRAY) {
        json_error(self->json, list, "requests", "an array of requests", error);
        return -1;
    }
    block_ids_free(self->blocks);
    self->blocks =
        block_ids_new(self->input, self->notes, self->strict, (gint32)block, BLOCKS_EITHER, FALSE);
    self->scope = key_mix(++self->scope);
    self->depth = 1;
    self->levels[0] =
        (Level){.list = list, .at = json_first(self->json, list), .session = self->sessions++};
    return 1;
}

static gboolean enter_subagent(WekaReader *self, const JNode *entry, Level *level, GError **error)
{
    const JNode *list = json_member(self->json, entry, "requests"),
                *t = json_member(self->json, entry, "t");
    kv_ns base = 0;
    if (t != NULL && !json_time(self->json, t, "t", KV_SECOND, &base, error))
        return FALSE;
    if (self->depth == G_N_ELEMENTS(self->levels))
        return json_error(self->json, entry, "requests", "subagents nested less than 8 deep",
                          error);
    self->levels[self->depth++] = (Level){.list = list,
                                          .at = json_first(self->json, list),
                                          .base = level->base + base,
                                          .session = self->sessions++};
    return TRUE;
}

static gboolean read_times(WekaReader *self, const JNode *entry, Level *level, LogRecord *r,
                           GError **error)
{
    const JNode *t = json_member(self->json, entry, "t"),
                *think = json_member(self->json, entry, "think_time");
    const JNode *api = json_member(self->json, entry, "api_time"),
                *ttft = json_member(self->json, entry, "ttft");
    kv_ns own;
    if (!json_time(self->json, t, "t", KV_SECOND, &own, error))
        return FALSE;
    r->arrival = level->base + own;
    r->arrival_text = t->text;
    r->arrival_len = t->len;
    if (self->closed && level->turn > 0 && think != NULL) {
        if (!json_time(self->json, think, "think_time", KV_SECOND, &r->wait, error))
            return FALSE;
        r->wait = MAX(r->wait, 0);
        r->arrival = KV_NS_NONE;
    }
    self->observed = (Observed){.queue = KV_NS_NONE, .ttft = KV_NS_NONE, .e2e = KV_NS_NONE};
    if ((api != NULL &&
         !json_time(self->json, api, "api_time", KV_SECOND, &self->observed.e2e, error)) ||
        (ttft != NULL &&
         !json_time(self->json, ttft, "ttft", KV_SECOND, &self->observed.ttft, error)))
        return FALSE;
    r->observed = &self->observed;
    return TRUE;
}

static gboolean read_entry(WekaReader *self, const JNode *entry, Level *level, LogRecord *r,
                           GError **error)
{
    const guint64 *ids;
    gsize n;
    r->line = json_line(self->json, self->document ? entry : NULL);
    r->session = level->session;
    if (!json_tokens(self->json, json_member(self->json, entry, "in"), "in", &r->prompt, error) ||
        !json_tokens(self->json, json_member(self->json, entry, "out"), "out", &r->output, error) ||
        !read_times(self, entry, level, r, error) ||
        !json_ids(self->json, json_member(self->json, entry, "hash_ids"), "hash_ids", &ids, &n,
                  error))
        return FALSE;
    r->turn = level->turn++;
    return block_ids_apply(self->blocks, r, self->scope, ids, n, error);
}

static int weka_next(FormatReader *base, LogRecord *ret, GError **error)
{
    WekaReader *self = (WekaReader *)base;
    for (;;) {
        while (self->depth > 0 && self->levels[self->depth - 1].at == NULL)
            self->depth--;
        if (self->depth == 0) {
            int got = next_conversation(self, error);
            if (got != 1)
                return got;
            continue;
        }
        Level *level = &self->levels[self->depth - 1];
        const JNode *entry = level->at;
        level->at = json_next(self->json, level->list, entry);
        if (json_text_is(json_member(self->json, entry, "type"), "subagent")) {
            if (!enter_subagent(self, entry, level, error))
                return -1;
            continue;
        }
        log_record_init(ret);
        return read_entry(self, entry, level, ret, error) ? 1 : -1;
    }
}

static const SpecOption weka_options[] = {
    {"loop", SPEC_CHOICE, G_STRUCT_OFFSET(WekaConfig, loop), "open", 0, 0, "open|closed",
     "later requests at their recorded time, or think_time after the one before"},
    {NULL},
};

const FormatOps format_weka = {
    .info = {"weka", "Weka agentic traces (JSON, one conversation an object)", weka_options,
             sizeof(WekaConfig)},
    .probe = weka_probe,
    .open = weka_open,
    .next = weka_next,
    .free = weka_free,
};
