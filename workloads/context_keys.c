#include "workloads/context_keys.h"

#include "workloads/key_set.h"

typedef struct Piece {
    guint64 content;
    gint64 tokens;
} Piece;

struct ContextKeys {
    gint64 block_tokens, tokens, fill; /* fill: tokens of the last, unfinished block */
    guint64 partial;                   /* its content so far */
    GArray *pieces;                    /* Piece */
    GArray *keys;                      /* guint64 */
};

ContextKeys *context_keys_new(gint32 block_tokens)
{
    ContextKeys *self = g_new0(ContextKeys, 1);
    self->block_tokens = block_tokens;
    self->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    self->keys = g_array_new(FALSE, FALSE, sizeof(guint64));
    return self;
}

void context_keys_free(ContextKeys *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->pieces);
    g_array_unref(self->keys);
    g_free(self);
}

static void fill_blocks(ContextKeys *self, guint64 content, gint64 tokens)
{
    for (gint64 offset = 0; offset < tokens;) {
        gint64 take = MIN(tokens - offset, self->block_tokens - self->fill);
        guint64 piece = key_chain(content, (guint64)offset << 32 | (guint64)take);
        self->partial = key_chain(self->partial, piece);
        self->fill += take;
        offset += take;
        if (self->fill < self->block_tokens)
            continue;
        guint64 previous =
            self->keys->len > 0 ? g_array_index(self->keys, guint64, self->keys->len - 1) : 0;
        guint64 key = key_chain(previous, self->partial);
        g_array_append_val(self->keys, key);
        self->fill = 0;
        self->partial = 0;
    }
    self->tokens += tokens;
}

void context_keys_append(ContextKeys *self, guint64 content, gint64 tokens)
{
    if (tokens <= 0)
        return;
    Piece piece = {content, tokens};
    g_array_append_val(self->pieces, piece);
    fill_blocks(self, content, tokens);
}

void context_keys_truncate(ContextKeys *self, gint64 tokens)
{
    if (tokens >= self->tokens)
        return;
    g_autoptr(GArray) old = g_steal_pointer(&self->pieces);
    self->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    g_array_set_size(self->keys, 0);
    self->tokens = self->fill = 0;
    self->partial = 0;
    for (guint i = 0; i < old->len && tokens > 0; i++) {
        Piece piece = g_array_index(old, Piece, i);
        context_keys_append(self, piece.content, MIN(piece.tokens, tokens));
        tokens -= piece.tokens;
    }
}

gint64 context_keys_tokens(const ContextKeys *self)
{
    return self->tokens;
}

const guint64 *context_keys_get(const ContextKeys *self, guint32 *ret_n)
{
    *ret_n = self->keys->len;
    return (const guint64 *)(gpointer)self->keys->data;
}
