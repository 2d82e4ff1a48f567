/* The arithmetic that planning and counting share: units, splits, buckets, CTA ranges.
 *
 * Private to kernels/. A unit is the granule of split bounds in tokens. Everything is int64 or
 * smaller integers; nothing depends on the order of evaluation.
 */
#ifndef KV_KERNELS_SPLIT_H
#define KV_KERNELS_SPLIT_H

#include "kernels/plan.h"

static inline int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Tokens a unit. */
int32_t split_unit(const AttnPlanConfig *config, const AttnShape *shape);

/* The balanced chunk, in units, for `n` rows that each stand `copies` times. 1 when all are empty.
 */
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
