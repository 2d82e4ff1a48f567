#include "kernels/attn.h"

#include "kernels/content.h"

const char *attn_strerror(AttnStatus status)
{
    switch (status) {
    case ATTN_OK:
        return "ok";
    case ATTN_UNSUPPORTED_SHAPE:
        return "attention shape not supported (q heads a multiple of kv heads with 1 to 16 each, "
               "head size 64, 128 or 256, page size a power of two up to 128)";
    case ATTN_NO_MEMORY:
        return "out of memory";
    case ATTN_LAUNCH_FAILED:
        return "kernel launch failed";
    case ATTN_CAPACITY:
        return "plan or workspace larger than what was set up";
    }
    return "unknown status";
}

AttnStatus attn_shape_check(const AttnShape *s)
{
    if (s->kv_heads < 1 || s->q_heads < s->kv_heads || s->q_heads % s->kv_heads != 0 ||
        s->q_heads / s->kv_heads > 16)
        return ATTN_UNSUPPORTED_SHAPE;
    if (s->head_dim != 64 && s->head_dim != 128 && s->head_dim != 256)
        return ATTN_UNSUPPORTED_SHAPE;
    if (s->page_size < 1 || s->page_size > 128 || (s->page_size & (s->page_size - 1)) != 0)
        return ATTN_UNSUPPORTED_SHAPE;
    if (s->dtype != ATTN_F16 && s->dtype != ATTN_BF16)
        return ATTN_UNSUPPORTED_SHAPE;
    if (s->layout != ATTN_HND && s->layout != ATTN_NHD)
        return ATTN_UNSUPPORTED_SHAPE;
    return ATTN_OK;
}

void attn_pool_strides(AttnPool *pool, const AttnShape *s)
{
    const int32_t d = s->head_dim;
    pool->page_stride = (int64_t)s->page_size * s->kv_heads * d;
    pool->head_stride = s->layout == ATTN_HND ? s->page_size * d : d;
    pool->token_stride = s->layout == ATTN_HND ? d : s->kv_heads * d;
}

int64_t attn_pool_bytes(const AttnShape *s, int64_t pages)
{
    return pages * s->page_size * s->kv_heads * s->head_dim * 2;
}

float attn_content(uint64_t seed, int which, int64_t page, int32_t head, int32_t token, int32_t i)
{
    const uint64_t key = attn_content_key(seed, which, page, head, token);
    return attn_content_value(attn_content_lanes(key, (uint32_t)i / 4), (uint32_t)i % 4);
}

static uint16_t to_half(AttnDtype dtype, float f)
{
    return dtype == ATTN_F16 ? attn_f32_to_f16(f) : attn_f32_to_bf16(f);
}

/* The 1021 values that an element can take, by lane sum. */
typedef struct Values {
    uint16_t half[2 * ATTN_CONTENT_MEAN + 1];
} Values;

static void values_init(Values *values, AttnDtype dtype)
{
    for (uint64_t sum = 0; sum <= 2 * ATTN_CONTENT_MEAN; sum++)
        values->half[sum] = to_half(dtype, attn_content_value(sum, 0));
}

static void fill_entry(const AttnShape *s, const Values *values, uint64_t key, uint16_t *to)
{
    for (int32_t j = 0; j < s->head_dim / 4; j++) {
        const uint64_t lanes = attn_content_lanes(key, (uint32_t)j);
        for (int32_t k = 0; k < 4; k++)
            to[4 * j + k] = values->half[lanes >> (16 * k) & 0xffff];
    }
}

void attn_fill_page(const AttnShape *s, const AttnPool *pool, uint64_t seed, int64_t page)
{
    Values values;
    values_init(&values, s->dtype);
    for (int which = 0; which < 2; which++) {
        uint16_t *base = (uint16_t *)(which == 0 ? pool->k : pool->v) + page * pool->page_stride;
        for (int32_t h = 0; h < s->kv_heads; h++)
            for (int32_t t = 0; t < s->page_size; t++)
                fill_entry(s, &values, attn_content_key(seed, which, page, h, t),
                           base + (int64_t)h * pool->head_stride + (int64_t)t * pool->token_stride);
    }
}

void attn_fill_query(const AttnShape *s, uint64_t seed, int64_t row_key, void *q)
{
    Values values;
    values_init(&values, s->dtype);
    for (int32_t h = 0; h < s->q_heads; h++)
        fill_entry(s, &values, attn_content_key(seed, 2, row_key, h, 0),
                   (uint16_t *)q + (int64_t)h * s->head_dim);
}
