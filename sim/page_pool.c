#include "sim/page_pool.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/spec.h"

#include <math.h>
#include <string.h>

typedef struct HolesConfig {
    double fraction;
} HolesConfig;

static const SpecOption holes_options[] = {
    {"fraction", SPEC_REAL, G_STRUCT_OFFSET(HolesConfig, fraction), "0.5", 0.0, 0.99, NULL,
     "share of page ids that are never used"},
    {NULL},
};

static const PluginInfo fresh = {"fresh", "page ids in ascending order", NULL, 0};
static const PluginInfo churned = {"churned", "page ids in random order, as after long serving",
                                   NULL, 0};
static const PluginInfo holes = {"holes", "in random order, with ids that are never used",
                                 holes_options, sizeof(HolesConfig)};
static const PluginInfo *const layouts[] = {&fresh, &churned, &holes, NULL};

static void fill_ids(guint32 *ids, guint32 n, gboolean shuffled, guint64 seed)
{
    for (guint32 i = 0; i < n; i++)
        ids[i] = i;
    if (!shuffled)
        return;
    RngStream rng;
    rng_init(&rng, seed, RNG_PAGES, 0, 0);
    for (guint32 i = 0; i + 1 < n; i++) {
        guint32 j = i + (guint32)rng_below(&rng, n - i);
        guint32 id = ids[i];
        ids[i] = ids[j];
        ids[j] = id;
    }
}

static void init_cache(PagePool *pool, const guint32 *ids)
{
    guint32 limit = pool->id_limit;
    pool->queue = g_new0(PageLink, (gsize)limit + 1);
    pool->ref = g_new0(guint32, (gsize)limit + 1);
    pool->key = g_new0(guint64, (gsize)limit + 1);
    pool->same_key = g_new0(guint32, (gsize)limit + 1);
    guint64 size = 16;
    while (size < 2 * (guint64)pool->n_pages)
        size *= 2;
    pool->map_key = g_new0(guint64, size);
    pool->map_page = g_new0(guint32, size);
    pool->map_mask = size - 1;
    guint32 last = limit;
    for (guint32 i = 0; i < pool->n_pages; i++) {
        pool->queue[last].next = ids[i];
        pool->queue[ids[i]].prev = last;
        last = ids[i];
    }
    pool->queue[last].next = limit;
    pool->queue[limit].prev = last;
}

gboolean page_pool_init(PagePool *pool, guint64 n_pages, gboolean caching, gboolean compat2025,
                        const char *layout, guint64 seed, GError **error)
{
    memset(pool, 0, sizeof *pool);
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "pool layout", layouts, layout ? layout : "fresh", error))
        return FALSE;
    double fraction = choice.info == &holes ? ((HolesConfig *)choice.config)->fraction : 0;
    gboolean shuffled = choice.info != &fresh;
    plugin_choice_clear(&choice);
    double limit = ceil((double)n_pages / (1 - fraction));
    if (limit >= (double)PAGE_NONE) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "pool of %" G_GUINT64_FORMAT " pages: at most %u ids", n_pages, PAGE_NONE - 1);
        return FALSE;
    }
    pool->n_pages = pool->n_free = (guint32)n_pages;
    pool->id_limit = (guint32)limit;
    pool->caching = caching;
    pool->compat2025 = compat2025;
    g_autofree guint32 *ids = g_new(guint32, (gsize)pool->id_limit + 1);
    fill_ids(ids, pool->id_limit, shuffled, seed);
    if (caching) {
        init_cache(pool, ids);
    } else {
        pool->stack = g_new(guint32, (gsize)n_pages + 1);
        for (guint32 i = 0; i < pool->n_pages; i++)
            pool->stack[pool->n_pages - 1 - i] = ids[i];
    }
    return TRUE;
}

void page_pool_clear(PagePool *pool)
{
    g_free(pool->stack);
    g_free(pool->queue);
    g_free(pool->ref);
    g_free(pool->key);
    g_free(pool->same_key);
    g_free(pool->map_key);
    g_free(pool->map_page);
    host_tier_free(pool->host);
    memset(pool, 0, sizeof *pool);
}

/* The map's place of the key, or the empty one where it would go. Keys are mixed already. */
static guint64 map_place(const PagePool *pool, guint64 key)
{
    guint64 i = key & pool->map_mask;
    while (pool->map_key[i] != 0 && pool->map_key[i] != key)
        i = (i + 1) & pool->map_mask;
    return i;
}

static void map_remove_place(PagePool *pool, guint64 hole)
{
    guint64 mask = pool->map_mask;
    pool->map_key[hole] = 0;
    for (guint64 i = (hole + 1) & mask; pool->map_key[i] != 0; i = (i + 1) & mask) {
        guint64 home = pool->map_key[i] & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home lies after the hole: it stays */
        pool->map_key[hole] = pool->map_key[i];
        pool->map_page[hole] = pool->map_page[i];
        pool->map_key[i] = 0;
        hole = i;
    }
}

static void forget_key(PagePool *pool, guint32 page)
{
    guint64 key = pool->key[page];
    pool->key[page] = PAGE_KEY_NONE;
    if (key <= PAGE_KEY_DEAD)
        return;
    pool->evicted++;
    if (pool->host)
        pool->host_writes += host_tier_put(pool->host, key);
    guint64 place = map_place(pool, key);
    if (pool->map_page[place] != page) {
        guint32 p = pool->map_page[place];
        while (pool->same_key[p] != page)
            p = pool->same_key[p];
        pool->same_key[p] = pool->same_key[page];
    } else if (pool->same_key[page] != PAGE_NONE) {
        pool->map_page[place] = pool->same_key[page];
    } else {
        map_remove_place(pool, place);
    }
}

guint32 page_pool_find(const PagePool *pool, guint64 key)
{
    guint64 place = map_place(pool, key);
    return pool->map_key[place] == key ? pool->map_page[place] : PAGE_NONE;
}

void page_pool_name(PagePool *pool, guint32 page, guint64 key)
{
    if (pool->key[page] != PAGE_KEY_NONE)
        return;
    pool->key[page] = key;
    if (key == PAGE_KEY_DEAD)
        return;
    pool->same_key[page] = PAGE_NONE;
    guint64 place = map_place(pool, key);
    if (pool->map_key[place] == 0) {
        pool->map_key[place] = key;
        pool->map_page[place] = page;
        return;
    }
    guint32 p = pool->map_page[place];
    while (pool->same_key[p] != PAGE_NONE)
        p = pool->same_key[p];
    pool->same_key[p] = page;
}

static void unlink_page(PagePool *pool, guint32 page)
{
    PageLink *link = &pool->queue[page];
    pool->queue[link->prev].next = link->next;
    pool->queue[link->next].prev = link->prev;
    pool->n_free--;
}

static void link_after(PagePool *pool, guint32 where, guint32 page)
{
    guint32 next = pool->queue[where].next;
    pool->queue[page] = (PageLink){where, next};
    pool->queue[where].next = page;
    pool->queue[next].prev = page;
    pool->n_free++;
}

void page_pool_touch(PagePool *pool, guint32 page)
{
    if (pool->ref[page]++ == 0)
        unlink_page(pool, page);
    else
        pool->shared++;
}

void page_pool_take(PagePool *pool, guint32 n, guint32 *ret)
{
    g_assert(n <= pool->n_free);
    if (!pool->caching) {
        const guint32 *top = pool->stack + pool->n_free;
        pool->n_free -= n;
        for (guint32 i = 0; i < n; i++)
            ret[i] = *--top;
        return;
    }
    for (guint32 i = 0; i < n; i++) {
        guint32 page = pool->queue[pool->id_limit].next;
        unlink_page(pool, page);
        forget_key(pool, page);
        pool->ref[page] = 1;
        ret[i] = page;
    }
}

void page_pool_give(PagePool *pool, const guint32 *pages, guint32 n)
{
    if (n == 0)
        return;
    if (!pool->caching) {
        memcpy(pool->stack + pool->n_free, pages, n * sizeof *pages);
        pool->n_free += n;
        g_assert(pool->n_free <= pool->n_pages);
        return;
    }
    guint32 front = pool->id_limit; /* pages without a key go after this one */
    for (guint32 i = n; i-- > 0;) {
        guint32 page = pages[i];
        g_assert(pool->ref[page] > 0);
        if (--pool->ref[page] > 0) {
            pool->shared--;
        } else if (pool->compat2025 || pool->key[page] != PAGE_KEY_NONE) {
            link_after(pool, pool->queue[pool->id_limit].prev, page);
        } else {
            link_after(pool, front, page);
            front = page;
        }
    }
}

guint32 page_pool_peek(const PagePool *pool, guint32 max, guint32 *ret)
{
    guint32 n = MIN(max, pool->n_free), page = pool->id_limit;
    for (guint32 i = 0; i < n; i++) {
        if (pool->caching)
            page = pool->queue[page].next;
        ret[i] = pool->caching ? page : pool->stack[pool->n_free - 1 - i];
    }
    return n;
}

static const char *check_cache(const PagePool *pool, const guint32 *holders, guint8 *is_free)
{
    guint32 n = 0, last = pool->id_limit;
    guint64 shared = 0, named = 0, in_map = 0;
    for (guint32 p = pool->queue[last].next; p != pool->id_limit; p = pool->queue[p].next) {
        if (pool->queue[p].prev != last || n++ == pool->n_free)
            return "the free queue's links do not fit";
        is_free[p] = 1;
        last = p;
    }
    if (n != pool->n_free)
        return "the free queue's length is not the number of free pages";
    for (guint32 p = 0; p < pool->id_limit; p++) {
        if (pool->ref[p] != holders[p])
            return "a reference count is not the number of tables that hold the page";
        if (is_free[p] && pool->ref[p] != 0)
            return "a page in use is in the free queue";
        shared += pool->ref[p] > 1 ? pool->ref[p] - 1 : 0;
        named += pool->key[p] > PAGE_KEY_DEAD;
    }
    for (guint64 i = 0; i <= pool->map_mask; i++) {
        if (pool->map_key[i] == 0)
            continue;
        for (guint32 p = pool->map_page[i]; p != PAGE_NONE; p = pool->same_key[p], in_map++)
            if (pool->key[p] != pool->map_key[i] || in_map > named)
                return "the key map and the pages' keys differ";
    }
    if (in_map != named || shared != pool->shared)
        return "the key map or the count of shared references is off";
    return NULL;
}

const char *page_pool_check(const PagePool *pool, const guint32 *holders)
{
    guint32 used = 0;
    g_autofree guint8 *is_free = g_new0(guint8, (gsize)pool->id_limit + 1);
    for (guint32 p = 0; p < pool->id_limit; p++)
        used += holders[p] > 0;
    if (used + pool->n_free != pool->n_pages)
        return "pages free and in use do not add up to the pool";
    if (pool->caching)
        return check_cache(pool, holders, is_free);
    for (guint32 i = 0; i < pool->n_free; i++) {
        if (is_free[pool->stack[i]]++ || holders[pool->stack[i]])
            return "a free page is listed twice or in use";
    }
    for (guint32 p = 0; p < pool->id_limit; p++)
        if (holders[p] > 1)
            return "a page has two owners";
    return NULL;
}
