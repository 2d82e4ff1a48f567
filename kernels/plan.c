/* Building the task lists. The counters are those of plan_count.c, which shares split.c with this.
 */
#include "kernels/plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "kernels/split.h"

const char *attn_route_name(AttnRoute route)
{
    static const char *const names[ATTN_ROUTE_MAX] = {
        [ATTN_SINGLE] = "single",
        [ATTN_BUCKETS] = "buckets",
        [ATTN_MASKED] = "masked",
        [ATTN_WORKQUEUE] = "workqueue",
        [ATTN_WORKQUEUE_FUSED] = "workqueue-fused",
        [ATTN_PERSISTENT] = "persistent",
    };
    return route >= 0 && route < ATTN_ROUTE_MAX ? names[route] : "?";
}

void attn_plan_config_init(AttnPlanConfig *config, AttnRoute route, int32_t workers)
{
    *config = (AttnPlanConfig){
        .route = route,
        .rule = ATTN_SPLITS_BALANCED,
        .s = 1,
        .tile = route == ATTN_PERSISTENT ? 16 : 32,
        .workers = workers < 1 ? 1 : workers,
        .min_tokens = route == ATTN_PERSISTENT ? 64 : 128,
        .c0_tiles = 12,
    };
}

void attn_plan_init(AttnPlan *plan)
{
    *plan = (AttnPlan){0};
}

void attn_plan_free(AttnPlan *plan)
{
    free(plan->tasks);
    free(plan->merges);
    free(plan->launches);
    free(plan->scratch);
    attn_plan_init(plan);
}

static bool grow(void **array, int32_t *cap, int64_t want, size_t size)
{
    if (want <= *cap)
        return true;
    int64_t next = *cap < 64 ? 64 : (int64_t)*cap * 2;
    next = next > want ? next : want;
    if (next > INT32_MAX)
        next = want;
    void *bigger = next > INT32_MAX ? NULL : realloc(*array, (size_t)next * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *cap = (int32_t)next;
    return true;
}

static bool reserve(AttnPlan *plan, int64_t tasks, int64_t merges, int64_t launches)
{
    return grow((void **)&plan->tasks, &plan->cap_tasks, tasks, sizeof(AttnTask)) &&
           grow((void **)&plan->merges, &plan->cap_merges, merges, sizeof(AttnMerge)) &&
           grow((void **)&plan->launches, &plan->cap_launches, launches, sizeof(AttnLaunch));
}

static void add_task(AttnPlan *plan, int32_t row, int32_t head, int64_t begin, int64_t end,
                     int32_t slot)
{
    plan->tasks[plan->n_tasks++] = (AttnTask){row, head, (int32_t)begin, (int32_t)end, slot};
}

/* The splits of one (row, KV head). `padded` units are cut into `asked` parts, clipped to the row's
 * `len` tokens; with `neutral` all `width` (>= asked) parts become tasks, empty or not. Returns the
 * next free slot. */
static int32_t add_splits(AttnPlan *plan, int32_t row, int32_t head, int32_t len, int32_t unit,
                          int32_t padded, int32_t asked, int32_t width, bool neutral, int32_t slot)
{
    const int32_t units = units_of(len, unit);
    if (!neutral && split_nonempty(asked, padded, units) <= 1) {
        add_task(plan, row, head, 0, len, -1);
        return slot;
    }
    const int32_t first = slot;
    int64_t begin = 0;
    for (int32_t s = 0; s < width; s++) {
        int64_t end = len;
        if (s + 1 < asked)
            end = div_down((int64_t)padded * (s + 1), asked) * unit;
        end = end > len ? len : end;
        if (begin < end || neutral)
            add_task(plan, row, head, begin, end, slot++);
        begin = end;
    }
    plan->merges[plan->n_merges++] = (AttnMerge){row, head, first, slot - first};
    return slot;
}

/* All KV heads of a row are cut alike: the first is worked out, the others are its copies. */
static int32_t add_row(AttnPlan *plan, int32_t heads, int32_t row, int32_t len, int32_t unit,
                       int32_t padded, int32_t asked, int32_t width, bool neutral, int32_t slot)
{
    const int32_t first_task = plan->n_tasks, first_slot = slot;
    const int32_t merges = plan->n_merges;
    slot = add_splits(plan, row, 0, len, unit, padded, asked, width, neutral, slot);
    const int32_t n = plan->n_tasks - first_task, slots = slot - first_slot;
    for (int32_t i = 0; i < n; i++) {
        const AttnTask from = plan->tasks[first_task + i];
        AttnTask *to = &plan->tasks[first_task + i];
        for (int32_t h = 1; h < heads; h++)
            *(to += n) = (AttnTask){row, h, from.begin, from.end, from.slot + h * slots};
    }
    plan->n_tasks += (heads - 1) * n;
    if (plan->n_merges > merges) {
        AttnMerge *to = &plan->merges[merges];
        for (int32_t h = 1; h < heads; h++)
            to[h] = (AttnMerge){row, h, first_slot + h * slots, slots};
        plan->n_merges += heads - 1;
    }
    return first_slot + heads * slots;
}

static void add_launch(AttnPlan *plan, AttnLaunchKind kind, int32_t first, int32_t end,
                       int32_t length)
{
    plan->launches[plan->n_launches++] = (AttnLaunch){kind, first, end - first, length};
}

/* All routes whose attention is one launch over rows in batch order: single, masked, workqueues. */
static void build_rows(AttnPlan *plan, const AttnShape *shape, int32_t chunk, const int32_t *lens)
{
    const AttnPlanConfig *config = &plan->config;
    const int32_t unit = split_unit(config, shape);
    const bool neutral = config->route == ATTN_MASKED && plan->max_splits > 1;
    int32_t slot = 0;
    for (int32_t r = 0; r < plan->rows; r++) {
        const int32_t units = units_of(lens[r], unit);
        const int32_t asked = split_asked(config, chunk, units);
        slot = add_row(plan, shape->kv_heads, r, lens[r], unit, units, asked,
                       neutral ? plan->max_splits : asked, neutral, slot);
    }
    if (config->route == ATTN_WORKQUEUE_FUSED) {
        add_launch(plan, ATTN_LAUNCH_FUSED, 0, plan->n_tasks, 0);
        return;
    }
    add_launch(plan, ATTN_LAUNCH_ATTENTION, 0, plan->n_tasks, 0);
    if (plan->n_merges > 0)
        add_launch(plan, ATTN_LAUNCH_MERGE, 0, plan->n_merges, 0);
}

static bool build_buckets(AttnPlan *plan, const AttnShape *shape, const int32_t *lens)
{
    const AttnPlanConfig *config = &plan->config;
    const int32_t unit = split_unit(config, shape);
    const size_t need = bucket_scratch_size(plan->rows);
    if (need > plan->cap_scratch) {
        void *bigger = realloc(plan->scratch, need);
        if (bigger == NULL)
            return false;
        plan->scratch = bigger;
        plan->cap_scratch = need;
    }
    BucketSet set;
    bucket_group(&set, plan->scratch, config->bucket_width, plan->rows, lens);
    int32_t slot = 0;
    for (int32_t b = 0; b < set.n; b++) {
        const Bucket *bucket = &set.bucket[b];
        const int32_t padded = units_of(bucket->length, unit);
        const int32_t chunk = split_chunk(config, shape, unit, 1, &bucket->length, bucket->rows);
        const int32_t asked = split_asked(config, chunk, padded);
        const int32_t first_task = plan->n_tasks, first_merge = plan->n_merges;
        for (int32_t i = 0; i < bucket->rows; i++) {
            const int32_t r = set.order[bucket->first + i];
            slot =
                add_row(plan, shape->kv_heads, r, lens[r], unit, padded, asked, asked, false, slot);
        }
        add_launch(plan, ATTN_LAUNCH_ATTENTION, first_task, plan->n_tasks, bucket->length);
        if (plan->n_merges > first_merge)
            add_launch(plan, ATTN_LAUNCH_MERGE, first_merge, plan->n_merges, bucket->length);
    }
    return true;
}

double attn_plan_evenness(const AttnPlanConfig *config, const AttnShape *shape, int32_t rows,
                          const int32_t *lens)
{
    if (config->rule != ATTN_SPLITS_BALANCED || config->route == ATTN_SINGLE)
        return 0;
    int64_t full = 0; /* rows with entries: as many tasks a KV head at the least */
    for (int32_t r = 0; r < rows; r++)
        full += lens[r] > 0;
    if (full * shape->kv_heads > config->workers)
        return 0;
    const int32_t unit = split_unit(config, shape);
    const int32_t chunk = split_chunk(config, shape, unit, rows, lens, 1);
    int64_t tasks = 0, longest = 0, sum = 0;
    for (int32_t r = 0; r < rows; r++) {
        const int64_t units = units_of(lens[r], unit), n = div_up(units, chunk);
        tasks += n, sum += units;
        longest = n > 0 ? longest_part(longest, units, n) : longest;
    }
    if (longest == 0 || tasks * shape->kv_heads > config->workers)
        return 0;
    return (double)(sum * shape->kv_heads) / (double)(longest * config->workers);
}

int32_t attn_plan_persistent_part(const AttnPlanConfig *config, const AttnShape *shape,
                                  int32_t rows, const int32_t *lens, int64_t *ret_parts)
{
    const int64_t budget = config->workers / shape->kv_heads;
    if (ret_parts != NULL)
        *ret_parts = 0;
    if (rows > ATTN_PART_ROWS || rows > budget)
        return 0;
    int64_t sum = 0;
    for (int32_t r = 0; r < rows; r++)
        sum += units_of(lens[r], config->tile);
    const int64_t mean =
        sum * (int64_t)attn_plan_part_scale(config->workers, shape->kv_heads) >> 31;
    for (int64_t i = sum > 0 ? 0 : 4; i < 4; i++) {
        const int64_t part = mean + 1 + (mean * i >> 6);
        int64_t parts = 0;
        for (int32_t r = 0; r < rows; r++)
            parts += div_up(units_of(lens[r], config->tile), part);
        if (parts > budget || part < least_units(config, config->tile))
            continue;
        if (ret_parts != NULL)
            *ret_parts = parts * shape->kv_heads;
        return (int32_t)part;
    }
    return 0;
}

int32_t attn_plan_persistent_ctas(const AttnPlanConfig *config, const AttnShape *shape,
                                  int32_t rows, const int32_t *lens, int64_t *ret_units)
{
    int64_t v = 0;
    for (int32_t r = 0; r < rows; r++)
        if (lens[r] > 0)
            v += units_of(lens[r], config->tile) + config->c0_tiles;
    v *= shape->kv_heads;
    if (ret_units != NULL)
        *ret_units = v;
    const int64_t n = v / least_units(config, config->tile);
    return n < 1 ? 1 : n > config->workers ? config->workers : (int32_t)n;
}

/* `persistent`, ranges. */
static void build_ranges(AttnPlan *plan, const AttnShape *shape, const int32_t *lens)
{
    const AttnPlanConfig *config = &plan->config;
    int64_t v, at = 0; /* `at`: first unit of the pair in hand */
    const int32_t n = attn_plan_persistent_ctas(config, shape, plan->rows, lens, &v);
    int32_t cta = 0, slot = 0;
    int64_t next = cta_begin(v, n, 1); /* where the CTA after `cta` begins */
    for (int32_t r = 0; r < plan->rows; r++) {
        const int64_t tiles = units_of(lens[r], config->tile);
        for (int32_t h = 0; h < shape->kv_heads; h++) {
            if (tiles == 0) {
                add_task(plan, r, h, 0, 0, -1);
                continue;
            }
            const int64_t begin = at + config->c0_tiles, end = begin + tiles;
            const int32_t first_task = plan->n_tasks, first_slot = slot;
            for (int64_t u = begin; u < end;) {
                while (next <= u)
                    next = cta_begin(v, n, ++cta + 1);
                const int64_t stop = next < end ? next : end;
                const int64_t last = (stop - begin) * config->tile;
                add_task(plan, r, h, (u - begin) * config->tile, last < lens[r] ? last : lens[r],
                         slot++);
                u = stop;
            }
            if (slot - first_slot == 1) {
                plan->tasks[first_task].slot = -1;
                slot = first_slot;
            } else {
                plan->merges[plan->n_merges++] = (AttnMerge){r, h, first_slot, slot - first_slot};
            }
            at = end;
        }
    }
}

/* `persistent`, parts: a task a CTA. */
static void build_parts(AttnPlan *plan, const AttnShape *shape, const int32_t *lens, int32_t part)
{
    const int32_t tile = plan->config.tile;
    int32_t slot = 0;
    for (int32_t r = 0; r < plan->rows; r++) {
        const int32_t tiles = units_of(lens[r], tile), n = row_parts(tiles, part);
        slot = add_row(plan, shape->kv_heads, r, lens[r], tile, tiles, n, n, false, slot);
    }
}

static void build_persistent(AttnPlan *plan, const AttnShape *shape, int32_t part,
                             const int32_t *lens)
{
    if (part > 0)
        build_parts(plan, shape, lens, part);
    else
        build_ranges(plan, shape, lens);
    add_launch(plan, ATTN_LAUNCH_FUSED, 0, plan->n_tasks, 0);
}

AttnStatus attn_plan_build(AttnPlan *plan, const AttnPlanConfig *config, const AttnShape *shape,
                           int32_t rows, const int32_t *lens)
{
    plan->config = *config;
    plan->rows = rows;
    plan->n_tasks = plan->n_merges = plan->n_launches = 0;
    plan->max_splits = 0;
    int32_t chunk; /* or part */
    AttnStatus status = split_count(&plan->counts, &chunk, config, shape, rows, lens);
    if (status != ATTN_OK || rows == 0)
        return status;
    plan->max_splits = plan->counts.max_splits;
    if (!reserve(plan, plan->counts.grid_tasks, (int64_t)rows * shape->kv_heads, 2 * (int64_t)rows))
        return ATTN_NO_MEMORY;
    if (config->route == ATTN_PERSISTENT)
        build_persistent(plan, shape, chunk, lens);
    else if (config->route != ATTN_BUCKETS)
        build_rows(plan, shape, chunk, lens);
    else if (!build_buckets(plan, shape, lens))
        return ATTN_NO_MEMORY;
    return ATTN_OK;
}
