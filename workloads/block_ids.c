#include "workloads/block_ids.h"

#include "base/error.h"
#include "workloads/key_set.h"

#define ROOT G_GUINT64_CONSTANT(0x6b762d726f6f7421) /* predecessor of a first block */

struct BlockIds {
    Input *input;
    FormatNotes *notes;
    gboolean strict, check_tree;
    gint32 block_tokens;
    BlockRule rule;
    GArray *keys; /* guint64 */
    GArray
        *small; /* guint64 by id: its predecessor + 1, 0 = not seen; ids in use are mostly dense */
    KeySet *pairs; /* of larger ids: (id, predecessor) seen */
    KeySet *known; /* ... ids seen */
};

BlockIds *block_ids_new(Input *input, FormatNotes *notes, gboolean strict, gint32 block_tokens,
                        BlockRule rule, gboolean check_tree)
{
    BlockIds *self = g_new0(BlockIds, 1);
    self->input = input;
    self->notes = notes;
    self->strict = strict;
    self->check_tree = check_tree;
    self->block_tokens = block_tokens;
    self->rule = rule;
    self->keys = g_array_new(FALSE, FALSE, sizeof(guint64));
    self->small = g_array_new(FALSE, TRUE, sizeof(guint64));
    self->pairs = key_set_new();
    self->known = key_set_new();
    return self;
}

void block_ids_free(BlockIds *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->keys);
    g_array_unref(self->small);
    key_set_free(self->pairs);
    key_set_free(self->known);
    g_free(self);
}

gint32 block_ids_tokens(const BlockIds *self)
{
    return self->block_tokens;
}

/* A finding: a note, or an error under strict. */
static gboolean finding(BlockIds *self, guint64 line, const char *kind, char *detail,
                        GError **error)
{
    g_autofree char *owned = detail;
    if (self->strict) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:%" G_GUINT64_FORMAT ": %s: %s",
                    input_name(self->input), line, kind, owned);
        return FALSE;
    }
    g_autofree char *where = g_strdup_printf("line %" G_GUINT64_FORMAT ": %s", line, owned);
    format_note_at(self->notes, kind, where);
    return TRUE;
}

static gboolean check_count(BlockIds *self, const LogRecord *r, gsize *n, GError **error)
{
    gint64 b = self->block_tokens, floor = r->prompt / b, ceil = (r->prompt + b - 1) / b;
    gint64 most = self->rule == BLOCKS_FLOOR ? floor : ceil;
    gint64 least = self->rule == BLOCKS_CEIL ? ceil : floor;
    gint64 given = (gint64)*n;
    if (given >= least && given <= most)
        return TRUE;
    *n = (gsize)MIN(given, most);
    return finding(self, r->line, "block ids do not fit the prompt length",
                   g_strdup_printf("%" G_GINT64_FORMAT " tokens, %" G_GINT64_FORMAT
                                   " ids, expected %" G_GINT64_FORMAT,
                                   r->prompt, given, given > most ? most : least),
                   error);
}

static gboolean in_tree_small(BlockIds *self, guint64 id, guint64 previous)
{
    if (id >= self->small->len)
        g_array_set_size(self->small,
                         (guint)MAX(id + 1, MIN(2 * self->small->len, BLOCK_TREE_MAX)));
    guint64 *known = &g_array_index(self->small, guint64, id);
    if (*known == 0)
        *known = previous + 1;
    return *known == previous + 1;
}

/* TRUE when the id was never seen behind another one. */
static gboolean in_tree(BlockIds *self, guint64 id, guint64 previous)
{
    if (id < BLOCK_TREE_MAX)
        return in_tree_small(self, id, previous);
    guint64 pair = key_chain(previous, id);
    if (key_set_has(self->pairs, pair) || key_set_count(self->pairs) >= BLOCK_TREE_MAX)
        return TRUE;
    key_set_add(self->pairs, pair);
    return key_set_add(self->known, id);
}

gboolean block_ids_apply(BlockIds *self, LogRecord *r, guint64 scope, const guint64 *ids, gsize n,
                         GError **error)
{
    if (n == 0 || r->prompt < 0)
        return TRUE;
    if (!check_count(self, r, &n, error))
        return FALSE;
    g_array_set_size(self->keys, (guint)n);
    guint64 *keys = (guint64 *)(gpointer)self->keys->data;
    guint64 chain = key_mix(scope), previous = ROOT;
    for (gsize i = 0; i < n; i++) {
        if (self->check_tree && !in_tree(self, ids[i], previous) &&
            !finding(self, r->line, "a block id follows another id than before",
                     g_strdup_printf("id %" G_GINT64_FORMAT " at place %" G_GSIZE_FORMAT,
                                     (gint64)ids[i], i),
                     error))
            return FALSE;
        previous = ids[i];
        chain = key_chain(chain, ids[i]);
        keys[i] = chain;
    }
    r->block_tokens = self->block_tokens;
    r->n_blocks = (guint32)n;
    r->blocks = keys;
    return TRUE;
}
