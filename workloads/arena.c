#include "workloads/arena.h"

#include <string.h>

#define CHUNK_BYTES ((gsize)256 * 1024)
#define SPARE_CHUNKS 8

struct ArenaChunk {
    ArenaChunk *next, *previous; /* among all of the arena's */
    guint64 living;
    gsize used, size;
    char *data;
};

struct Arena {
    ArenaChunk *current;
    ArenaChunk *all;
    GPtrArray *spare;
    gsize bytes;
};

Arena *arena_new(void)
{
    Arena *self = g_new0(Arena, 1);
    self->spare = g_ptr_array_new();
    return self;
}

static void chunk_free(ArenaChunk *chunk)
{
    g_free(chunk->data);
    g_free(chunk);
}

void arena_free(Arena *self)
{
    if (self == NULL)
        return;
    for (ArenaChunk *chunk = self->all, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        chunk_free(chunk);
    }
    g_ptr_array_unref(self->spare);
    g_free(self);
}

static ArenaChunk *fresh_chunk(Arena *self, gsize need)
{
    if (need <= CHUNK_BYTES && self->spare->len > 0)
        return g_ptr_array_steal_index(self->spare, self->spare->len - 1);
    ArenaChunk *chunk = g_new0(ArenaChunk, 1);
    chunk->size = MAX(need, CHUNK_BYTES);
    chunk->data = g_malloc(chunk->size);
    self->bytes += chunk->size;
    chunk->next = self->all;
    if (self->all != NULL)
        self->all->previous = chunk;
    self->all = chunk;
    return chunk;
}

static void retire(Arena *self, ArenaChunk *chunk)
{
    chunk->used = 0;
    if (chunk->size == CHUNK_BYTES && self->spare->len < SPARE_CHUNKS) {
        g_ptr_array_add(self->spare, chunk);
        return;
    }
    self->bytes -= chunk->size;
    if (chunk->next != NULL)
        chunk->next->previous = chunk->previous;
    *(chunk->previous != NULL ? &chunk->previous->next : &self->all) = chunk->next;
    chunk_free(chunk);
}

static gsize padded(gsize bytes)
{
    return (bytes + 7) & ~(gsize)7;
}

static gsize variable_bytes(const Request *request)
{
    const Observed *seen = request->observed;
    gsize keys = request->n_blocks * sizeof(guint64);
    return keys + (seen != NULL ? padded(sizeof *seen) + seen->n_itl * sizeof(kv_ns) : 0);
}

/* Room for `need` bytes, counted as one living piece. */
static char *take(Arena *self, gsize need)
{
    if (self->current == NULL || self->current->size - self->current->used < need) {
        ArenaChunk *full = self->current;
        self->current = fresh_chunk(self, need);
        if (full != NULL && full->living == 0)
            retire(self, full);
    }
    ArenaChunk *chunk = self->current;
    char *p = chunk->data + chunk->used;
    chunk->used += need;
    chunk->living++;
    return p;
}

/* Copies the variable parts to `p` and points the request at them. */
static void copy_variable(Request *request, char *p)
{
    gsize keys = request->n_blocks * sizeof(guint64);
    const Observed *seen = request->observed;
    request->blocks = keys > 0 ? memcpy(p, request->blocks, keys) : NULL;
    p += keys;
    if (seen == NULL)
        return;
    Observed *copy = memcpy(p, seen, sizeof *seen);
    if (seen->n_itl > 0)
        copy->itl = memcpy(p + padded(sizeof *seen), seen->itl, seen->n_itl * sizeof(kv_ns));
    request->observed = copy;
}

ArenaChunk *arena_keep(Arena *self, Request *request)
{
    gsize need = variable_bytes(request);
    request->blocks = request->n_blocks > 0 ? request->blocks : NULL;
    if (need == 0)
        return NULL;
    copy_variable(request, take(self, need));
    return self->current;
}

const Request *arena_keep_whole(Arena *self, const Request *request, ArenaChunk **ret_chunk)
{
    char *p = take(self, padded(sizeof *request) + variable_bytes(request));
    Request *copy = memcpy(p, request, sizeof *request);
    copy_variable(copy, p + padded(sizeof *request));
    *ret_chunk = self->current;
    return copy;
}

void arena_release(Arena *self, ArenaChunk *chunk)
{
    if (chunk == NULL || --chunk->living > 0)
        return;
    if (chunk == self->current)
        chunk->used = 0;
    else
        retire(self, chunk);
}

gsize arena_bytes(const Arena *self)
{
    return self->bytes;
}
