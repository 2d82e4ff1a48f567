/* A set of 64-bit keys: open addressing, linear probing, at most half full. 16 bytes a key or less.
 */
#ifndef KV_WORKLOADS_KEY_SET_H
#define KV_WORKLOADS_KEY_SET_H

#include <glib.h>

typedef struct KeySet KeySet;
KeySet *key_set_new(void);
void key_set_free(KeySet *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KeySet, key_set_free)
gboolean key_set_has(const KeySet *self, guint64 key);
gboolean key_set_add(KeySet *self, guint64 key); /* FALSE = was there */
/* Has the key's slot brought near; for a batch of lookups that would each wait for memory. */
void key_set_prefetch(const KeySet *self, guint64 key);
guint64 key_set_count(const KeySet *self);

/* Mixes 64 bits so that each depends on all (the finaliser of MurmurHash3, Appleby 2011). */
static inline guint64 key_mix(guint64 x)
{
    x ^= x >> 33;
    x *= G_GUINT64_CONSTANT(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= G_GUINT64_CONSTANT(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}
/* Key of a block whose content is `value` after the chain `previous`. */
static inline guint64 key_chain(guint64 previous, guint64 value)
{
    return key_mix(previous ^ key_mix(value + G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)));
}

#endif
