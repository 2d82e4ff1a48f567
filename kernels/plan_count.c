/* The counters of a plan from lengths alone: O(rows + workers). */
#include "kernels/plan.h"

#include <stdlib.h>

#include "kernels/split.h"

/* What one KV head contributes; every KV head is cut alike, but in `persistent`. */
typedef struct Tally {
    int64_t tasks, slots, empty; /* `empty`: launched without an entry */
    int32_t launches, merge_launches;
    int32_t max_splits;
    int32_t chunk;          /* of all rows, where there is one; persistent: its part */
    int64_t longest;        /* task of the launch in hand, in units */
    int64_t longest_tokens; /* of the launches before */
} Tally;

static void tally_row(Tally *tally, int32_t asked, int32_t padded, int32_t units)
{
    tally->longest = longest_part(tally->longest, padded, asked);
    const int32_t n = split_nonempty(asked, padded, units);
    tally->tasks += n;
    tally->empty += n == 0;
    tally->slots += n > 1 ? n : 0;
    tally->max_splits = asked > tally->max_splits ? asked : tally->max_splits;
}

static void tally_rows(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                       int32_t rows, const int32_t *lens)
{
    const int32_t unit = split_unit(config, shape);
    const int32_t chunk = split_chunk(config, shape, unit, rows, lens, 1);
    tally->chunk = chunk;
    for (int32_t r = 0; r < rows; r++) {
        const int32_t units = units_of(lens[r], unit);
        tally_row(tally, split_asked(config, chunk, units), units, units);
    }
    if (config->route == ATTN_MASKED && tally->max_splits > 1) {
        tally->slots = (int64_t)rows * tally->max_splits;
        tally->empty = tally->slots - tally->tasks;
    }
    tally->merge_launches = config->route != ATTN_WORKQUEUE_FUSED && tally->slots > 0;
    tally->launches = 1 + tally->merge_launches;
    tally->longest_tokens = tally->longest * unit;
}

static void tally_buckets(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                          void *scratch, int32_t rows, const int32_t *lens)
{
    const int32_t unit = split_unit(config, shape);
    BucketSet set;
    bucket_group(&set, scratch, config->bucket_width, rows, lens);
    for (int32_t b = 0; b < set.n; b++) {
        const Bucket *bucket = &set.bucket[b];
        const int32_t padded = units_of(bucket->length, unit);
        const int32_t chunk = split_chunk(config, shape, unit, 1, &bucket->length, bucket->rows);
        const int32_t asked = split_asked(config, chunk, padded);
        const int64_t slots_before = tally->slots;
        for (int32_t i = 0; i < bucket->rows; i++) {
            const int32_t len = lens[set.order[bucket->first + i]];
            tally_row(tally, asked, padded, units_of(len, unit));
        }
        const int32_t merges = tally->slots > slots_before;
        tally->merge_launches += merges;
        tally->launches += 1 + merges;
        tally->longest_tokens += tally->longest * unit;
        tally->longest = 0;
    }
}

/* `persistent`, parts: counts all KV heads. */
static void tally_parts(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                        int32_t rows, const int32_t *lens, int32_t part)
{
    const int32_t heads = shape->kv_heads;
    for (int32_t r = 0; r < rows; r++) {
        const int32_t tiles = units_of(lens[r], config->tile);
        tally_row(tally, row_parts(tiles, part), tiles, tiles);
    }
    tally->tasks *= heads, tally->empty *= heads, tally->slots *= heads;
    tally->launches = 1;
    tally->longest_tokens = tally->longest * config->tile;
}

/* Walks the CTA borders, not the pairs: a border inside the tiles of a pair cuts it. Counts all KV
 * heads. */
static void tally_ranges(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                         int32_t rows, const int32_t *lens)
{
    int64_t v, row_begin = 0, row_end = 0, cost = 1, last_pair = -1;
    const int32_t n = attn_plan_persistent_ctas(config, shape, rows, lens, &v);
    const int32_t heads = shape->kv_heads;
    int32_t row = -1, pieces = 1;
    for (int32_t r = 0; r < rows; r++) {
        tally->tasks += lens[r] > 0 ? heads : 0;
        tally->empty += lens[r] > 0 ? 0 : heads;
    }
    tally->max_splits = 1;
    tally->launches = 1;
    tally->longest_tokens = div_up(v, n) * config->tile;
    for (int32_t c = 1; c < n; c++) {
        const int64_t border = cta_begin(v, n, c);
        while (border >= row_end) {
            row++;
            row_begin = row_end;
            cost = lens[row] > 0 ? units_of(lens[row], config->tile) + config->c0_tiles : 0;
            row_end += cost * heads;
        }
        const int64_t head = (border - row_begin) / cost;
        if (border - row_begin - head * cost <= config->c0_tiles)
            continue;
        const int64_t pair = (int64_t)row * heads + head;
        pieces = pair == last_pair ? pieces + 1 : 2;
        tally->slots += pair == last_pair ? 1 : 2;
        tally->tasks++;
        last_pair = pair;
        tally->max_splits = pieces > tally->max_splits ? pieces : tally->max_splits;
    }
}

static void tally_persistent(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                             int32_t rows, const int32_t *lens)
{
    tally->chunk = attn_plan_persistent_part(config, shape, rows, lens, NULL);
    if (tally->chunk > 0)
        tally_parts(tally, config, shape, rows, lens, tally->chunk);
    else
        tally_ranges(tally, config, shape, rows, lens);
}

static AttnStatus tally_route(Tally *tally, const AttnPlanConfig *config, const AttnShape *shape,
                              int32_t rows, const int32_t *lens)
{
    if (config->route != ATTN_BUCKETS) {
        (config->route == ATTN_PERSISTENT ? tally_persistent : tally_rows)(tally, config, shape,
                                                                           rows, lens);
        return ATTN_OK;
    }
    int32_t small[8 * 1024];
    const size_t need = bucket_scratch_size(rows);
    void *scratch = need <= sizeof small ? small : malloc(need);
    if (scratch == NULL)
        return ATTN_NO_MEMORY;
    tally_buckets(tally, config, shape, scratch, rows, lens);
    if (scratch != small)
        free(scratch);
    return ATTN_OK;
}

AttnStatus attn_plan_count(AttnCounts *ret, const AttnPlanConfig *config, const AttnShape *shape,
                           int32_t rows, const int32_t *lens)
{
    int32_t chunk;
    return split_count(ret, &chunk, config, shape, rows, lens);
}

AttnStatus split_count(AttnCounts *ret, int32_t *ret_chunk, const AttnPlanConfig *config,
                       const AttnShape *shape, int32_t rows, const int32_t *lens)
{
    *ret = (AttnCounts){0};
    *ret_chunk = 1;
    if (rows == 0)
        return ATTN_OK;
    Tally tally = {0};
    const AttnStatus status = tally_route(&tally, config, shape, rows, lens);
    if (status != ATTN_OK)
        return status;
    *ret_chunk = tally.chunk;
    int64_t entries = 0;
    for (int32_t r = 0; r < rows; r++)
        entries += lens[r];
    const int64_t heads = shape->kv_heads;
    const int64_t each = config->route == ATTN_PERSISTENT ? 1 : heads;
    ret->launches = tally.launches;
    ret->merge_launches = tally.merge_launches;
    ret->tasks = tally.tasks * each;
    ret->grid_tasks = (tally.tasks + tally.empty) * each;
    ret->max_splits = tally.max_splits;
    ret->nonempty_fraction = (double)ret->tasks / ((double)rows * (double)heads * tally.max_splits);
    ret->kv_bytes = 2 * entries * heads * shape->head_dim * 2;
    ret->kv_bytes_touched = ret->kv_bytes;
    ret->longest_tokens = tally.longest_tokens;
    ret->partial_slots = tally.slots * each;
    ret->merge_state_bytes =
        ret->partial_slots * attn_group(shape) * (2 + (int64_t)shape->head_dim) * 4;
    return ATTN_OK;
}
