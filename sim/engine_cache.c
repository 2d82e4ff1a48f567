/* The prefix cache: names for full pages, and how far a request's beginning is known.
 *
 * A page's key chains the key of the page before it with the log's block keys that cover it, so
 * that equal keys mean equal beginnings. A log's blocks may be larger or smaller than a page: a
 * page has a key when it lies within the prompt and all blocks that it touches have one. Full pages
 * beyond that (outputs; prompts of logs without keys) get keys of the request's own: only the
 * request itself finds them again, after a preemption. */
#include "sim/engine.h"
#include "sim/mix.h"

#include <string.h>

static guint64 sound_key(guint64 key)
{
    return key > PAGE_KEY_DEAD ? key : key + 2;
}

void engine_make_keys(const Engine *e, SimRequest *r, const Request *from)
{
    r->n_keys = 0;
    guint64 page_size = e->page_size, block = (guint64)from->block_tokens;
    if (!e->pool.caching || block == 0 || from->blocks == NULL)
        return;
    guint32 pages = (guint32)((guint64)from->prompt / page_size);
    if (pages > r->cap_keys) {
        r->cap_keys = pages + pages / 2;
        r->keys = g_renew(guint64, r->keys, r->cap_keys);
    }
    guint64 chain = 0;
    for (guint32 i = 0; i < pages; i++) {
        guint64 first = i * page_size / block, last = ((i + 1) * page_size - 1) / block;
        if (last >= from->n_blocks)
            break;
        chain = mix64(chain ^ mix64(i * page_size % block));
        for (guint64 b = first; b <= last; b++)
            chain = mix64(chain + from->blocks[b]);
        r->keys[r->n_keys++] = sound_key(chain);
    }
}

guint64 engine_page_key(const SimRequest *r, guint32 page)
{
    if (page < r->n_keys)
        return r->keys[page];
    return sound_key(mix64(mix64(~r->request.id) + page));
}

guint32 engine_find_prefix(const Engine *e, const SimRequest *r, guint32 max_pages, guint32 *hits,
                           guint32 *ret_free)
{
    guint32 n = 0, unused = 0;
    if (r->preemptions == 0)
        max_pages = MIN(max_pages, r->n_keys);
    while (n < max_pages) {
        guint32 page = page_pool_find(&e->pool, engine_page_key(r, n));
        if (page == PAGE_NONE)
            break;
        unused += e->pool.ref[page] == 0;
        hits[n++] = page;
    }
    *ret_free = unused;
    return n;
}

void engine_take_prefix(Engine *e, SimRequest *r, const guint32 *hits, guint32 n)
{
    if (n > r->cap_pages) {
        r->cap_pages = n + n / 2;
        r->pages = g_renew(guint32, r->pages, r->cap_pages);
    }
    for (guint32 i = 0; i < n; i++)
        page_pool_touch(&e->pool, hits[i]);
    if (n)
        memcpy(r->pages, hits, n * sizeof *hits);
    r->n_pages = r->n_named = n;
    r->computed = n * e->page_size;
    e->tokens += r->computed;
    if (r->preemptions == 0) {
        r->cached_tokens = r->computed;
        e->metrics->result.prefix_hit_tokens += r->computed;
        e->metrics->result.prefix_queried_tokens += (guint64)r->request.prompt;
    }
}

gint64 engine_page_bytes(const Engine *e)
{
    return MAX(1, e->config->entry_bytes * (gint64)e->page_size);
}

guint32 engine_find_hosted(const Engine *e, const SimRequest *r, guint32 from, guint32 max_pages)
{
    guint32 end = from;
    if (r->preemptions == 0)
        max_pages = MIN(max_pages, r->n_keys);
    while (e->pool.host && end < max_pages && host_tier_has(e->pool.host, engine_page_key(r, end)))
        end++;
    return end - from;
}

void engine_take_hosted(Engine *e, SimRequest *r, guint32 n)
{
    SimResult *m = &e->metrics->result;
    guint32 first = r->computed / e->page_size, tokens = n * e->page_size;
    for (guint32 i = 0; i < n; i++)
        host_tier_use(e->pool.host, engine_page_key(r, first + i));
    r->computed += tokens;
    e->tokens += tokens;
    m->host_bytes_in += n * (guint64)engine_page_bytes(e);
    m->host_hit_tokens += tokens;
    if (r->preemptions == 0) {
        r->cached_tokens += tokens;
        m->prefix_hit_tokens += tokens;
    }
}

void engine_name_pages(Engine *e, SimRequest *r, guint32 computed)
{
    guint32 full = MIN(computed / e->page_size, r->n_keys);
    for (; r->n_named < full; r->n_named++)
        page_pool_name(&e->pool, r->pages[r->n_named], r->keys[r->n_named]);
}
