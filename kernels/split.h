/* The arithmetic that planning and counting share: units, splits, buckets, CTA ranges.
 *
 * Private to kernels/. A unit is the granule of split bounds in tokens. Everything is int64 or
 * smaller integers; nothing depends on the order of evaluation.
 */
#ifndef KV_KERNELS_SPLIT_H
#define KV_KERNELS_SPLIT_H

#include "kernels/plan.h"

/* Quotients of numbers that are seldom over 32 bits: a 64-bit division takes several times longer
 * on many processors. a >= 0, b > 0. */
static inline int64_t div_down(int64_t a, int64_t b)
{
    return ((uint64_t)a | (uint64_t)b) >> 32 == 0 ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}

static inline int64_t div_up(int64_t a, int64_t b)
{
    return div_down(a + b - 1, b);
}

/* The longer of `longest` and the longest of n parts of `units`: few rows are the longest so far,
 * and only they are divided. n > 0. */
static inline int64_t longest_part(int64_t longest, int64_t units, int64_t n)
{
    return units > longest * n ? div_up(units, n) : longest;
}

/* Units (or tiles) of `len` tokens. They are of a power of two nearly always. */
static inline int32_t units_of(int32_t len, int32_t unit)
{
    const uint32_t up = (uint32_t)len + (uint32_t)unit - 1;
    if ((unit & (unit - 1)) == 0)
        return (int32_t)(up >> __builtin_ctz((uint32_t)unit));
    return (int32_t)(up / (uint32_t)unit);
}

/* The shortest task that is planned, in units. */
static inline int64_t least_units(const AttnPlanConfig *config, int32_t unit)
{
    return config->min_tokens > unit ? div_up(config->min_tokens, unit) : 1;
}

/* `persistent`: how many parts of at most `part` tiles a row is cut into; 1, a task, of no entries.
 */
static inline int32_t row_parts(int32_t tiles, int32_t part)
{
    return tiles > 0 ? (int32_t)div_up(tiles, part) : 1;
}

/* Tokens a unit. */
int32_t split_unit(const AttnPlanConfig *config, const AttnShape *shape);

/* The balanced chunk, in units, for `n` rows that each stand `copies` times. 1 when all are empty,
 * or no row is cut by it. */
int32_t split_chunk(const AttnPlanConfig *config, const AttnShape *shape, int32_t unit, int32_t n,
                    const int32_t *lens, int32_t copies);

/* Splits asked of a row of `units` (padded) units: >= 1. `chunk` is for the balanced rule. */
static inline int32_t split_asked(const AttnPlanConfig *config, int32_t chunk, int32_t units)
{
    if (config->route == ATTN_SINGLE || units == 0)
        return 1;
    return config->rule == ATTN_SPLITS_FIXED ? config->s : (units + chunk - 1) / chunk;
}

/* How many of `asked` splits over `padded` units hold any of the row's first `units` units. */
static inline int32_t split_nonempty(int32_t asked, int32_t padded, int32_t units)
{
    if (asked >= padded)
        return units;
    return units == padded ? asked : (int32_t)div_up((int64_t)units * asked, padded);
}

/* attn_plan_count() that also tells what the build needs too: the chunk of the routes in batch
 * order (single, masked, workqueues), or the part of `persistent` (0: ranges). */
AttnStatus split_count(AttnCounts *ret, int32_t *ret_chunk, const AttnPlanConfig *config,
                       const AttnShape *shape, int32_t rows, const int32_t *lens);

/* Rows grouped by length rounded up to a multiple of the width, in order of first appearance. */
typedef struct Bucket {
    int32_t length; /* of its longest row */
    int32_t rows;
    int32_t first; /* its rows are order[first .. first+rows) */
} Bucket;

typedef struct BucketSet {
    Bucket *bucket;
    int32_t *of_row; /* [rows] bucket of a row */
    int32_t *order;  /* [rows] rows by bucket, ascending within one */
    int32_t *hash;
    uint32_t hash_mask;
    int32_t n;
} BucketSet;
size_t bucket_scratch_size(int32_t rows);
/* `scratch` has bucket_scratch_size(rows) bytes, aligned for int32_t. */
void bucket_group(BucketSet *set, void *scratch, int32_t width, int32_t rows, const int32_t *lens);

/* First unit of CTA c out of n over v units: the first v mod n CTAs have one more than the others
 * (the GPU's rule too, kernels/attn_stream.cuh: 32-bit divisions only). */
static inline int64_t cta_begin(int64_t v, int32_t n, int32_t c)
{
    const int64_t extra = v % n;
    return c * (v / n) + (c < extra ? c : extra);
}

#endif
