/* kvreplay's own workload file: everything a Request holds, exactly.
 *
 *   # kvreplay-workload 1
 *   arrival_ns,sent_ns,prompt_tokens,output_tokens,session,turn,wait_ns,priority,class,deadline_ns,block_tokens,blocks
 *
 * Columns are found by name; only prompt_tokens and output_tokens must be there. Times are whole
 * nanoseconds from the first arrival. An empty arrival_ns with a wait_ns is a closed-loop turn: it
 * arrives wait_ns after the session's previous turn ended. blocks are hexadecimal keys of 64 bits
 * separated by spaces. Empty fields take the field's "not given". The version is that of the
 * meaning of the columns; a reader refuses one it does not know.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/table.h"

#define VERSION_LINE "# kvreplay-workload "

typedef struct KvReader {
    FormatReader base;
    Input *input;
    Table *table;
    GPtrArray *classes; /* borrowed */
    GArray *blocks;     /* guint64 */
    int arrival, sent, prompt, output, session, turn, wait, priority, klass, deadline, block_tokens,
        block_keys;
} KvReader;

static int kv_probe(const char *head, gsize size)
{
    return size > strlen(VERSION_LINE) && memcmp(head, VERSION_LINE, strlen(VERSION_LINE)) == 0
               ? 100
               : 0;
}

static void kv_free(FormatReader *base)
{
    KvReader *self = (KvReader *)base;
    table_free(self->table);
    g_array_unref(self->blocks);
    g_free(self);
}

static gboolean check_version(Input *input, GError **error)
{
    char *line;
    gsize len;
    int got = input_line(input, &line, &len, error);
    if (got < 0)
        return FALSE;
    if (got == 0 || !g_str_has_prefix(line, VERSION_LINE))
        return field_error(input, 1, error, "first line", got == 1 ? line : NULL,
                           got == 1 ? len : 0, "'" VERSION_LINE "1'");
    if (strcmp(line + strlen(VERSION_LINE), "1") != 0)
        return field_error(input, 1, error, "workload file version", line + strlen(VERSION_LINE),
                           len - strlen(VERSION_LINE), "1, the only version known here");
    return TRUE;
}

static FormatReader *kv_open(Input *input, const FormatArgs *args, GError **error)
{
    KvReader *self = g_new0(KvReader, 1);
    self->base.ops = &format_kvreplay;
    self->input = input;
    self->classes = args->classes;
    self->blocks = g_array_new(FALSE, FALSE, sizeof(guint64));
    if (!check_version(input, error) ||
        (self->table = table_new(input, ',', NULL, error)) == NULL ||
        !table_require(self->table, "prompt_tokens", &self->prompt, error) ||
        !table_require(self->table, "output_tokens", &self->output, error)) {
        kv_free(&self->base);
        return NULL;
    }
    self->arrival = table_find(self->table, "arrival_ns");
    self->sent = table_find(self->table, "sent_ns");
    self->session = table_find(self->table, "session");
    self->turn = table_find(self->table, "turn");
    self->wait = table_find(self->table, "wait_ns");
    self->priority = table_find(self->table, "priority");
    self->klass = table_find(self->table, "class");
    self->deadline = table_find(self->table, "deadline_ns");
    self->block_tokens = table_find(self->table, "block_tokens");
    self->block_keys = table_find(self->table, "blocks");
    return &self->base;
}

/* Optional whole number; leaves *ret alone where the field is empty. */
static gboolean optional(KvReader *self, int column, gint64 min, gint64 max, gint64 *ret,
                         GError **error)
{
    return table_is_empty(self->table, column) ||
           table_i64(self->table, column, min, max, ret, error);
}

static gboolean read_blocks(KvReader *self, LogRecord *ret, GError **error)
{
    gsize len;
    const char *text = table_field(self->table, self->block_keys, &len);
    g_array_set_size(self->blocks, 0);
    for (gsize i = 0; i < len;) {
        guint64 v = 0;
        gsize begin = i;
        for (; i < len && text[i] != ' '; i++) {
            int digit = g_ascii_xdigit_value(text[i]);
            if (digit < 0 || i - begin >= 16)
                return table_error(self->table, self->block_keys, error,
                                   "hexadecimal keys of at most 16 digits, separated by spaces");
            v = v << 4 | (guint64)digit;
        }
        if (i > begin)
            g_array_append_val(self->blocks, v);
        i++;
    }
    ret->n_blocks = self->blocks->len;
    ret->blocks = (const guint64 *)(gpointer)self->blocks->data;
    if (ret->n_blocks > 0 && ret->block_tokens == 0)
        return table_error(self->table, self->block_tokens, error, "the tokens per block key");
    return TRUE;
}

static gboolean read_fields(KvReader *self, LogRecord *r, GError **error)
{
    gint64 turn = 0, priority = 0, block_tokens = 0;
    if (!table_tokens(self->table, self->prompt, &r->prompt, error) ||
        !table_tokens(self->table, self->output, &r->output, error) ||
        !optional(self, self->arrival, G_MININT64 + 1, G_MAXINT64, &r->arrival, error) ||
        !optional(self, self->sent, G_MININT64 + 1, G_MAXINT64, &r->sent, error) ||
        !optional(self, self->session, 0, G_MAXINT64, &r->session, error) ||
        !optional(self, self->turn, 0, G_MAXINT32, &turn, error) ||
        !optional(self, self->wait, 0, G_MAXINT64, &r->wait, error) ||
        !optional(self, self->priority, G_MININT32, G_MAXINT32, &priority, error) ||
        !optional(self, self->deadline, 0, G_MAXINT64, &r->deadline, error) ||
        !optional(self, self->block_tokens, 1, G_MAXINT32, &block_tokens, error))
        return FALSE;
    r->turn = (gint32)turn;
    r->priority = (gint32)priority;
    r->block_tokens = (gint32)block_tokens;
    if (!table_is_empty(self->table, self->klass)) {
        gsize len;
        const char *name = table_field(self->table, self->klass, &len);
        r->klass = format_class(self->classes, name, len);
    }
    if (r->arrival == KV_NS_NONE && r->wait == KV_NS_NONE)
        return table_error(self->table, self->arrival, error,
                           "an arrival or, without one, a wait_ns");
    if (r->arrival == KV_NS_NONE && r->session == KV_NO_SESSION)
        return table_error(self->table, self->session, error, "the session whose turn this is");
    return TRUE;
}

static int kv_next(FormatReader *base, LogRecord *ret, GError **error)
{
    KvReader *self = (KvReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival_text = table_field(self->table, self->arrival, &ret->arrival_len);
    if (!read_fields(self, ret, error) || !read_blocks(self, ret, error))
        return -1;
    return 1;
}

const FormatOps format_kvreplay = {
    .info = {"kvreplay", "kvreplay's own workload file (CSV, first line '# kvreplay-workload 1')",
             NULL, 0},
    .probe = kv_probe,
    .open = kv_open,
    .next = kv_next,
    .free = kv_free,
};
