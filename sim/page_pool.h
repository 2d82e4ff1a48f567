/* Page pool: physical pages of the KV cache, who holds them, and what the free ones still remember.
 *
 * Without caching: a stack of free ids; pages given back are reused last-in first-out, and every
 * page has one owner. Taking and giving back n pages costs O(n), with no bookkeeping besides.
 *
 * With caching: reference counts; a doubly linked free queue whose head is the next victim; and a
 * map from block key to page. A free page keeps its key until it is taken again (lazy eviction); a
 * hit on it takes it out of the free queue. Two pages may carry one key: lookups give the one that
 * got it first. `compat2025`: everything given back goes to the tail of the queue; else pages
 * without a key go to the head and pages with one to the tail (vLLM's two ways, docs/simulator.md).
 *
 * Ids are below `id_limit`, which exceeds the number of pages where a layout leaves holes.
 */
#ifndef KV_SIM_PAGE_POOL_H
#define KV_SIM_PAGE_POOL_H

#include "sim/host_tier.h"

#define PAGE_NONE G_MAXUINT32
#define PAGE_KEY_NONE ((guint64)0)
#define PAGE_KEY_DEAD ((guint64)1) /* has a key, but one that nobody can ask for */

typedef struct PageLink {
    guint32 prev, next;
} PageLink;

typedef struct PagePool {
    guint32 n_pages, id_limit;
    guint32 n_free;
    gboolean caching, compat2025;
    guint32 *stack; /* caching off: free ids, the next one at n_free-1 */
    /* caching on; the queue's ends are the links of the sentinel, id `id_limit` */
    PageLink *queue;
    guint32 *ref;
    guint64 *key;
    guint32 *same_key; /* next page with the same key, in order of getting it */
    guint64 *map_key;  /* open addressing, linear probing; 0 = empty */
    guint32 *map_page;
    guint64 map_mask;
    guint64 shared;      /* sum of max(ref - 1, 0): references beyond the first */
    HostTier *host;      /* where evicted pages are kept; owned; NULL = nowhere */
    guint64 host_writes; /* pages copied there */
    guint64 evicted;     /* keys dropped because their page was taken */
} PagePool;

/* Layouts: NULL or "fresh" = ids in ascending order; "churned" = in an order as after long serving
 * (a random permutation from `seed`); "holes:fraction=F" = that, over pages/(1-F) ids. FALSE +
 * USAGE error on any other text. */
gboolean page_pool_init(PagePool *pool, guint64 n_pages, gboolean caching, gboolean compat2025,
                        const char *layout, guint64 seed, GError **error);
void page_pool_clear(PagePool *pool);

/* Takes n pages (there must be as many free) and writes their ids in the order taken. */
void page_pool_take(PagePool *pool, guint32 n, guint32 *ret);
/* Gives back a table of pages: last page first. */
void page_pool_give(PagePool *pool, const guint32 *pages, guint32 n);
/* With caching: first page that carries the key, or PAGE_NONE. */
guint32 page_pool_find(const PagePool *pool, guint64 key);
/* One more reference; a free page leaves the queue. */
void page_pool_touch(PagePool *pool, guint32 page);
/* Names a page in use; a page that has a key keeps it. PAGE_KEY_DEAD counts as a key but is not
 * entered in the map. */
void page_pool_name(PagePool *pool, guint32 page, guint64 key);
/* The first `max` ids of the free queue, in the order in which they would be taken. */
guint32 page_pool_peek(const PagePool *pool, guint32 max, guint32 *ret);
/* Recounts from scratch. `holders` [id_limit]: how many tables hold each page. NULL when sound,
 * else what is wrong. */
const char *page_pool_check(const PagePool *pool, const guint32 *holders);

#endif
