#include "sim/host_tier.h"

typedef struct Entry {
    guint64 key; /* first: the table's keys point here */
    GList link;
} Entry;

struct HostTier {
    GHashTable *by_key; /* guint64 * -> Entry */
    GQueue order;       /* Entry; most recently used first */
    guint64 room;
};

HostTier *host_tier_new(guint64 pages)
{
    HostTier *self = g_new0(HostTier, 1);
    self->by_key = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    g_queue_init(&self->order);
    self->room = MAX(pages, 1);
    return self;
}

void host_tier_free(HostTier *self)
{
    if (self == NULL)
        return;
    g_hash_table_destroy(self->by_key); /* links are part of the entries */
    g_free(self);
}

void host_tier_use(HostTier *self, guint64 key)
{
    Entry *e = g_hash_table_lookup(self->by_key, &key);
    if (e == NULL)
        return;
    g_queue_unlink(&self->order, &e->link);
    g_queue_push_head_link(&self->order, &e->link);
}

gboolean host_tier_put(HostTier *self, guint64 key)
{
    if (g_hash_table_contains(self->by_key, &key)) {
        host_tier_use(self, key);
        return FALSE;
    }
    if (self->order.length == self->room) {
        Entry *oldest = g_queue_peek_tail(&self->order);
        g_queue_unlink(&self->order, &oldest->link);
        g_hash_table_remove(self->by_key, &oldest->key);
    }
    Entry *e = g_new0(Entry, 1);
    e->key = key;
    e->link.data = e;
    g_hash_table_insert(self->by_key, &e->key, e);
    g_queue_push_head_link(&self->order, &e->link);
    return TRUE;
}

gboolean host_tier_has(const HostTier *self, guint64 key)
{
    return g_hash_table_contains(self->by_key, &key);
}
