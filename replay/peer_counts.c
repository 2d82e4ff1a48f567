#include "replay/peer_counts.h"

#include <string.h>

static gint64 div_up(gint64 a, gint64 b)
{
    return (a + b - 1) / b;
}

static gint64 chunks_of(gint32 rows, const gint32 *lens, gint64 chunk)
{
    gint64 n = 0;
    for (gint32 r = 0; r < rows; r++)
        n += MAX(div_up(lens[r], chunk), 1);
    return n;
}

/* Smallest chunk, whole pages and at least 128 tokens, of which `most` at a KV head suffice. */
static gint64 fitting_chunk(gint32 rows, const gint32 *lens, gint64 longest, gint64 page,
                            gint64 most)
{
    gint64 low = MAX(128 / page, 1), high = MAX(div_up(longest, page), low);
    while (low < high) {
        const gint64 middle = (low + high) / 2;
        if (chunks_of(rows, lens, middle * page) > most)
            low = middle + 1;
        else
            high = middle;
    }
    return low * page;
}

/* Longest task, in tokens, by the route's way of cutting. */
static gint64 cut(const Route *route, const AttnShape *shape, gint workers, gint32 rows,
                  const gint32 *lens, gint64 longest)
{
    const char *name = route->ops->info.name;
    if (route->config.split > 0)
        return MIN(longest, route->config.split);
    if (strcmp(name, "vllm-pa1") == 0)
        return longest;
    if (strcmp(name, "vllm-pa2") == 0)
        return MIN(longest, 512);
    if (strcmp(name, "trtllm-xqa") == 0) {
        const gint64 told = MAX(route->config.factor, 1) * workers / 2;
        return div_up(longest, MAX(told / ((gint64)rows * shape->kv_heads), 1));
    }
    return fitting_chunk(rows, lens, longest, shape->page_size, MAX(workers / shape->kv_heads, 1));
}

static void even_shares(AttnCounts *ret, const AttnShape *shape, gint workers, gint32 rows,
                        const gint32 *lens)
{
    AttnPlanConfig config;
    attn_plan_config_init(&config, ATTN_PERSISTENT, workers);
    attn_plan_count(ret, &config, shape, rows, lens);
}

void peer_counts(AttnCounts *ret, const Route *route, const AttnShape *shape, gint workers,
                 gint32 rows, const gint32 *lens)
{
    const char *name = route->ops->info.name;
    gint64 longest = 0, sum = 0;
    *ret = (AttnCounts){0};
    for (gint32 r = 0; r < rows; r++) {
        longest = MAX(longest, lens[r]);
        sum += lens[r];
    }
    if (strcmp(name, "flashinfer-batch") == 0)
        even_shares(ret, shape, workers, rows, lens);
    ret->kv_bytes = ret->kv_bytes_touched = 4 * sum * shape->kv_heads * shape->head_dim;
    if (rows == 0 || strcmp(name, "flashinfer-batch") == 0)
        return;
    const gint64 chunk = MAX(cut(route, shape, workers, rows, lens, longest), 1);
    const gint64 heads = g_str_has_prefix(name, "vllm") ? shape->q_heads : shape->kv_heads;
    const gint64 tasks = chunks_of(rows, lens, chunk) * heads;
    const gboolean whole = tasks == rows * heads, one = strcmp(name, "trtllm-xqa") == 0;
    ret->tasks = ret->grid_tasks = tasks;
    ret->longest_tokens = chunk < longest ? chunk : longest;
    ret->launches = whole || one ? 1 : 2;
    ret->merge_launches = ret->launches - 1;
    if (!whole)
        ret->merge_state_bytes =
            tasks * (shape->q_heads / heads) * (2 + (gint64)shape->head_dim) * 4;
}
