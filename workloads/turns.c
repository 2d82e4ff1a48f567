#include "workloads/turns.h"

#include "workloads/arena.h"

typedef struct Turn {
    Request request;
    ArenaChunk *chunk;
} Turn;

struct Turns {
    GHashTable *queues; /* gint64 * -> GQueue of Turn */
    Arena *arena;
    ArenaChunk *given;
    guint64 count;
};

static void queue_free(gpointer queue)
{
    g_queue_free_full(queue, g_free);
}

Turns *turns_new(void)
{
    Turns *self = g_new0(Turns, 1);
    self->queues = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, queue_free);
    self->arena = arena_new();
    return self;
}

void turns_free(Turns *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->queues);
    arena_free(self->arena);
    g_free(self);
}

void turns_add(Turns *self, const Request *request)
{
    GQueue *queue = g_hash_table_lookup(self->queues, &request->session);
    if (queue == NULL) {
        gint64 *key = g_new(gint64, 1);
        *key = request->session;
        queue = g_queue_new();
        g_hash_table_insert(self->queues, key, queue);
    }
    Turn *turn = g_new(Turn, 1);
    turn->request = *request;
    turn->chunk = arena_keep(self->arena, &turn->request);
    g_queue_push_tail(queue, turn);
    self->count++;
}

gboolean turns_take(Turns *self, gint64 session, Request *ret)
{
    arena_release(self->arena, self->given);
    self->given = NULL;
    GQueue *queue = g_hash_table_lookup(self->queues, &session);
    if (queue == NULL)
        return FALSE;
    g_autofree Turn *turn = g_queue_pop_head(queue);
    *ret = turn->request;
    self->given = turn->chunk;
    self->count--;
    if (g_queue_is_empty(queue))
        g_hash_table_remove(self->queues, &session);
    return TRUE;
}

gboolean turns_has(const Turns *self, gint64 session)
{
    return g_hash_table_contains(self->queues, &session);
}

guint64 turns_count(const Turns *self)
{
    return self->count;
}
