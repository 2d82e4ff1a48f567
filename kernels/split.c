#include "kernels/split.h"

#include <string.h>

int32_t split_unit(const AttnPlanConfig *config, const AttnShape *shape)
{
    if (config->route == ATTN_PERSISTENT)
        return config->tile;
    return config->tile > shape->page_size ? config->tile : shape->page_size;
}

static int64_t tasks_at(int64_t tokens, int32_t n, const int32_t *lens)
{
    int64_t sum = 0;
    if (tokens > INT32_MAX / 2)
        tokens = INT32_MAX / 2;
    const uint32_t by = (uint32_t)tokens;
    for (int32_t r = 0; r < n; r++)
        sum += ((uint32_t)lens[r] + by - 1) / by;
    return sum;
}

/* The smallest chunk >= low for which at most `budget` tasks (of one KV head) come out. */
static int64_t chunk_for_budget(int64_t low, int64_t high, int64_t budget, int32_t unit, int32_t n,
                                const int32_t *lens, int32_t copies)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tasks_at(middle * unit, n, lens) * copies <= budget)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int32_t split_chunk(const AttnPlanConfig *config, const AttnShape *shape, int32_t unit, int32_t n,
                    const int32_t *lens, int32_t copies)
{
    if (config->route == ATTN_SINGLE || config->rule == ATTN_SPLITS_FIXED)
        return 1;
    int64_t units = 0, longest = 0, rows = 0;
    for (int32_t r = 0; r < n; r++) {
        const int64_t t = units_of(lens[r], unit);
        units += t;
        rows += t > 0;
        longest = t > longest ? t : longest;
    }
    if (units == 0)
        return 1;
    units *= copies;
    rows *= copies;
    const int64_t heads = shape->kv_heads, workers = config->workers;
    const int64_t least = least_units(config, unit);
    int64_t many = div_up(units * heads, 4 * workers);
    many = many > least ? many : least;
    const int64_t budget = workers / heads; /* tasks of one KV head that run at once */
    if (rows > budget)
        return (int32_t)many;

    int64_t low = div_up(units, budget);
    low = low > least ? low : least;
    /* sum ceil(t/c) <= (units - rows)/c + rows, which is within the budget from this chunk on. */
    int64_t high = budget > rows ? div_up(units - rows, budget - rows) : longest;
    high = high > low ? high : low;
    const int64_t once = chunk_for_budget(low, high, budget, unit, n, lens, copies);
    /* Ends of the two, in units: the longest task; an even share and half a task. Times 2. */
    const int64_t end_once = 2 * (once < longest ? once : longest);
    const int64_t end_many = 2 * div_up(units * heads, workers) + many;
    return (int32_t)(end_once <= end_many ? once : many);
}

static uint32_t hash_size(int32_t rows)
{
    uint32_t size = 16;
    while (size < 2u * (uint32_t)rows)
        size *= 2;
    return size;
}

size_t bucket_scratch_size(int32_t rows)
{
    return (sizeof(Bucket) + 2 * sizeof(int32_t)) * (size_t)rows +
           sizeof(int32_t) * hash_size(rows);
}

static int32_t padded_length(int32_t len, int32_t width)
{
    const int64_t padded = width > 1 ? div_up(len, width) * width : len;
    return padded > INT32_MAX ? INT32_MAX : (int32_t)padded;
}

/* Index of the bucket of this length, made when new. */
static int32_t bucket_find(BucketSet *set, int32_t length)
{
    uint32_t at = (uint32_t)length * 0x9e3779b1u >> 7 & set->hash_mask;
    while (set->hash[at] >= 0 && set->bucket[set->hash[at]].length != length)
        at = (at + 1) & set->hash_mask;
    if (set->hash[at] < 0) {
        set->bucket[set->n] = (Bucket){.length = length};
        set->hash[at] = set->n++;
    }
    return set->hash[at];
}

void bucket_group(BucketSet *set, void *scratch, int32_t width, int32_t rows, const int32_t *lens)
{
    const uint32_t size = hash_size(rows);
    set->bucket = scratch;
    set->of_row = (int32_t *)(set->bucket + rows);
    set->order = set->of_row + rows;
    set->hash = set->order + rows;
    set->hash_mask = size - 1;
    set->n = 0;
    memset(set->hash, 0xff, sizeof *set->hash * size);
    for (int32_t r = 0; r < rows; r++) {
        const int32_t b = bucket_find(set, padded_length(lens[r], width));
        set->of_row[r] = b;
        set->bucket[b].rows++;
    }
    int32_t first = 0;
    for (int32_t b = 0; b < set->n; b++) {
        set->bucket[b].first = first;
        first += set->bucket[b].rows;
        set->bucket[b].rows = 0; /* counted again below */
        set->bucket[b].length = 0;
    }
    for (int32_t r = 0; r < rows; r++) {
        Bucket *b = &set->bucket[set->of_row[r]];
        set->order[b->first + b->rows++] = r;
        b->length = lens[r] > b->length ? lens[r] : b->length;
    }
}
