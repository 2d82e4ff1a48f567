#include "workloads/reorder.h"

#include "workloads/arena.h"

/* Most logs have only lengths and arrivals: such a request is kept in these 40 bytes, so that the
 * window stays in the cache; any other one has its whole Request beside its keys. */
typedef struct Slot {
    kv_ns arrival;
    guint64 order; /* file order */
    ArenaChunk *chunk;
    const Request *whole; /* NULL = plain */
    gint32 prompt, output;
} Slot;

struct Reorder {
    Slot *ring; /* [ring_size], sorted by (arrival, order); a power of two that grows */
    gsize head, ring_count, ring_size;
    GArray *heap; /* Slot, min-heap by (arrival, order): the late ones */
    Arena *arena;
    ArenaChunk *given; /* of the request last popped */
    guint64 pushed;
};

Reorder *reorder_new(void)
{
    Reorder *self = g_new0(Reorder, 1);
    self->ring_size = 256;
    self->ring = g_new(Slot, self->ring_size);
    self->heap = g_array_new(FALSE, FALSE, sizeof(Slot));
    self->arena = arena_new();
    return self;
}

void reorder_free(Reorder *self)
{
    if (self == NULL)
        return;
    g_free(self->ring);
    g_array_unref(self->heap);
    arena_free(self->arena);
    g_free(self);
}

static gboolean before(const Slot *a, const Slot *b)
{
    if (a->arrival != b->arrival)
        return a->arrival < b->arrival;
    return a->order < b->order;
}

static void heap_push(GArray *heap, const Slot *slot)
{
    g_array_append_vals(heap, slot, 1);
    Slot *h = (Slot *)(gpointer)heap->data;
    gsize i = heap->len - 1;
    for (; i > 0 && before(slot, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = *slot;
}

static Slot heap_pop(GArray *heap)
{
    Slot *h = (Slot *)(gpointer)heap->data;
    Slot top = h[0], last = h[heap->len - 1];
    gsize n = heap->len - 1, i = 0;
    for (gsize c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(&h[c + 1], &h[c]))
            c++;
        if (!before(&h[c], &last))
            break;
        h[i] = h[c];
    }
    h[i] = last;
    g_array_set_size(heap, (guint)n);
    return top;
}

static void grow_ring(Reorder *self)
{
    Slot *bigger = g_new(Slot, 2 * self->ring_size);
    for (gsize i = 0; i < self->ring_count; i++)
        bigger[i] = self->ring[(self->head + i) & (self->ring_size - 1)];
    g_free(self->ring);
    self->ring = bigger;
    self->head = 0;
    self->ring_size *= 2;
}

static gboolean is_plain(const Request *r)
{
    return r->sent == r->arrival && r->session == KV_NO_SESSION && r->wait == KV_NS_NONE &&
           r->deadline == KV_NS_NONE && r->priority == 0 && r->klass == 0 && r->n_blocks == 0 &&
           r->observed == NULL && r->turn == 0 && r->mark == 0;
}

static void slot_fill(Reorder *self, Slot *slot, const Request *request)
{
    *slot = (Slot){
        .arrival = request->arrival,
        .order = self->pushed++,
        .prompt = request->prompt,
        .output = request->output,
    };
    if (!is_plain(request))
        slot->whole = arena_keep_whole(self->arena, request, &slot->chunk);
}

static void slot_take(Reorder *self, const Slot *slot, Request *ret)
{
    self->given = slot->chunk;
    if (slot->whole != NULL) {
        *ret = *slot->whole;
        return;
    }
    *ret = (Request){
        .arrival = slot->arrival,
        .sent = slot->arrival,
        .prompt = slot->prompt,
        .output = slot->output,
        .deadline = KV_NS_NONE,
        .session = KV_NO_SESSION,
        .wait = KV_NS_NONE,
    };
}

gboolean reorder_push(Reorder *self, const Request *request)
{
    const Slot *tail =
        self->ring_count > 0
            ? &self->ring[(self->head + self->ring_count - 1) & (self->ring_size - 1)]
            : NULL;
    gboolean late = tail != NULL && request->arrival < tail->arrival;
    if (!late && self->ring_count < REORDER_ROWS) {
        if (self->ring_count == self->ring_size)
            grow_ring(self);
        slot_fill(self, &self->ring[(self->head + self->ring_count++) & (self->ring_size - 1)],
                  request);
        return FALSE;
    }
    Slot slot;
    slot_fill(self, &slot, request);
    heap_push(self->heap, &slot);
    return late;
}

gboolean reorder_pop(Reorder *self, Request *ret)
{
    arena_release(self->arena, self->given);
    self->given = NULL;
    const Slot *head = self->ring_count > 0 ? &self->ring[self->head] : NULL;
    if (self->heap->len > 0 &&
        (head == NULL || before(&g_array_index(self->heap, Slot, 0), head))) {
        Slot slot = heap_pop(self->heap);
        slot_take(self, &slot, ret);
        return TRUE;
    }
    if (head == NULL)
        return FALSE;
    slot_take(self, head, ret);
    self->head = (self->head + 1) & (self->ring_size - 1);
    self->ring_count--;
    return TRUE;
}

gboolean reorder_full(const Reorder *self)
{
    return self->ring_count + self->heap->len >= REORDER_ROWS ||
           arena_bytes(self->arena) >= REORDER_BYTES;
}

gsize reorder_count(const Reorder *self)
{
    return self->ring_count + self->heap->len;
}
