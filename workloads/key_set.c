#include "workloads/key_set.h"

struct KeySet {
    guint64 *slots; /* 0 = empty */
    gsize mask;
    guint64 count;
    gboolean has_zero;
};

KeySet *key_set_new(void)
{
    KeySet *self = g_new0(KeySet, 1);
    self->mask = 1023;
    self->slots = g_new0(guint64, self->mask + 1);
    return self;
}

void key_set_free(KeySet *self)
{
    if (self == NULL)
        return;
    g_free(self->slots);
    g_free(self);
}

static gsize find(const KeySet *self, guint64 key)
{
    gsize i = key_mix(key) & self->mask;
    while (self->slots[i] != 0 && self->slots[i] != key)
        i = (i + 1) & self->mask;
    return i;
}

gboolean key_set_has(const KeySet *self, guint64 key)
{
    return key == 0 ? self->has_zero : self->slots[find(self, key)] == key;
}

static void grow(KeySet *self)
{
    guint64 *old = self->slots;
    gsize n = self->mask + 1;
    self->mask = 2 * n - 1;
    self->slots = g_new0(guint64, 2 * n);
    for (gsize i = 0; i < n; i++)
        if (old[i] != 0)
            self->slots[find(self, old[i])] = old[i];
    g_free(old);
}

gboolean key_set_add(KeySet *self, guint64 key)
{
    if (key == 0) {
        gboolean fresh = !self->has_zero;
        self->has_zero = TRUE;
        self->count += fresh;
        return fresh;
    }
    gsize i = find(self, key);
    if (self->slots[i] == key)
        return FALSE;
    self->slots[i] = key;
    self->count++;
    if (self->count * 2 > self->mask)
        grow(self);
    return TRUE;
}

guint64 key_set_count(const KeySet *self)
{
    return self->count;
}

void key_set_prefetch(const KeySet *self, guint64 key)
{
    __builtin_prefetch(&self->slots[key_mix(key) & self->mask]);
}
