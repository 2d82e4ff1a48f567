/* Qwen-Bailian usage traces (Apache-2.0): chat_id, parent_chat_id (-1 = root), timestamp (seconds),
 * input_length, output_length, type, turn, hash_ids (one for 16 tokens).
 *
 * Each row is the whole context: earlier turns are in it. Rows need not be in order of time. A chat
 * belongs to the session of its parent; a parent that has not been seen (rows out of order, or
 * outside the file) is remembered, so that a later row of that chat joins. `type` is the request's
 * class.
 */
#include "workloads/format.h"

#include <string.h>

#include "workloads/block_ids.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"

typedef struct BailianReader {
    FormatReader base;
    JsonInput *json;
    BlockIds *blocks;
    GPtrArray *classes;
    GHashTable *sessions; /* chat id -> session, both gint64 * */
    gint64 next_session;
} BailianReader;

static int bailian_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"chat_id\"", "\"parent_chat_id\"", "\"input_length\"",
                                        NULL};
    return format_first_char(head, size) == '{' && format_line_has(head, size, texts) ? 95 : 0;
}

static void bailian_free(FormatReader *base)
{
    BailianReader *self = (BailianReader *)base;
    json_input_free(self->json);
    block_ids_free(self->blocks);
    g_hash_table_unref(self->sessions);
    g_free(self);
}

static FormatReader *bailian_open(Input *input, const FormatArgs *args, GError **error)
{
    BailianReader *self = g_new0(BailianReader, 1);
    self->base.ops = &format_bailian;
    self->json = json_input_new(input);
    self->blocks = block_ids_new(input, args->notes, args->strict, 16, BLOCKS_CEIL, FALSE);
    self->classes = args->classes;
    self->sessions = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    return &self->base;
}

/* The session of a chat; a chat or parent already known decides it. */
static gint64 session_of(BailianReader *self, gint64 chat, gint64 parent)
{
    gint64 *known = g_hash_table_lookup(self->sessions, &chat);
    gint64 *through = parent >= 0 ? g_hash_table_lookup(self->sessions, &parent) : NULL;
    gint64 session = known != NULL ? *known : through != NULL ? *through : self->next_session++;
    if (known == NULL)
        g_hash_table_insert(self->sessions, g_memdup2(&chat, 8), g_memdup2(&session, 8));
    if (parent >= 0 && through == NULL)
        g_hash_table_insert(self->sessions, g_memdup2(&parent, 8), g_memdup2(&session, 8));
    return session;
}

static int bailian_next(FormatReader *base, LogRecord *ret, GError **error)
{
    BailianReader *self = (BailianReader *)base;
    JsonInput *json = self->json;
    int got = json_input_next(json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(json), *time = json_member(json, root, "timestamp");
    const JNode *turn_node = json_member(json, root, "turn");
    gint64 chat, parent, turn = 1;
    const guint64 *ids;
    gsize n;
    log_record_init(ret);
    ret->line = json_line(json, NULL);
    if (!json_i64(json, json_member(json, root, "chat_id"), "chat_id", 0, G_MAXINT64, &chat,
                  error) ||
        !json_i64(json, json_member(json, root, "parent_chat_id"), "parent_chat_id", -1, G_MAXINT64,
                  &parent, error) ||
        !json_time(json, time, "timestamp", KV_SECOND, &ret->arrival, error) ||
        !json_tokens(json, json_member(json, root, "input_length"), "input_length", &ret->prompt,
                     error) ||
        !json_tokens(json, json_member(json, root, "output_length"), "output_length", &ret->output,
                     error) ||
        (turn_node != NULL && !json_i64(json, turn_node, "turn", 0, G_MAXINT32, &turn, error)) ||
        !json_ids(json, json_member(json, root, "hash_ids"), "hash_ids", &ids, &n, error) ||
        !block_ids_apply(self->blocks, ret, 0, ids, n, error))
        return -1;
    ret->arrival_text = time->text;
    ret->arrival_len = time->len;
    ret->session = session_of(self, chat, parent);
    ret->turn = (gint32)MAX(turn - 1, 0);
    g_autofree char *type = json_text(json_member(json, root, "type"));
    if (type != NULL)
        ret->klass = format_class(self->classes, type, strlen(type));
    return 1;
}

const FormatOps format_bailian = {
    .info = {"bailian", "Qwen-Bailian usage traces (JSON lines, 16-token ids, whole contexts)",
             NULL, 0},
    .probe = bailian_probe,
    .open = bailian_open,
    .next = bailian_next,
    .free = bailian_free,
};
