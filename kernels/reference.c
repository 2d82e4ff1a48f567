/* The fp64 reference: two passes over a row, nothing shared with any engine but the page walk. */
#include "kernels/attn.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 8 };

static double half_value(AttnDtype dtype, uint16_t h)
{
    return (double)(dtype == ATTN_F16 ? attn_f16_to_f32(h) : attn_bf16_to_f32(h));
}

/* Eight running sums, added in a fixed order at the end. */
static double dot(const double *a, const double *b, int32_t d)
{
    double lane[LANES] = {0};
    for (int32_t i = 0; i < d; i += LANES)
        for (int32_t k = 0; k < LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

static void load_entry(const AttnShape *s, const AttnPool *pool, const void *of, int32_t page,
                       int32_t head, int32_t token, double *ret)
{
    const uint16_t *p = (const uint16_t *)of + page * pool->page_stride +
                        (int64_t)head * pool->head_stride + (int64_t)token * pool->token_stride;
    for (int32_t i = 0; i < s->head_dim; i++)
        ret[i] = half_value(s->dtype, p[i]);
}

/* One KV head's group: score[G][len], then the weighted sum of V. */
static void reference_group(const AttnShape *s, const AttnPool *pool, const AttnBatch *batch,
                            int32_t row, int32_t head, double *score, double *ret)
{
    const int32_t len = batch->lens[row], d = s->head_dim, group = attn_group(s);
    const int32_t *pages = batch->table + batch->offset[row];
    const uint16_t *q = (const uint16_t *)batch->q + ((int64_t)row * s->q_heads + head * group) * d;
    double x[256], qd[16][256], top[16], sum[16] = {0};

    for (int32_t g = 0; g < group; g++) {
        top[g] = -INFINITY;
        for (int32_t i = 0; i < d; i++)
            qd[g][i] = half_value(s->dtype, q[g * d + i]);
    }
    for (int32_t t = 0; t < len; t++) {
        load_entry(s, pool, pool->k, pages[t / s->page_size], head, t % s->page_size, x);
        for (int32_t g = 0; g < group; g++) {
            double *to = &score[(int64_t)g * len + t];
            *to = (double)batch->scale * dot(qd[g], x, d);
            top[g] = fmax(top[g], *to);
        }
    }
    for (int32_t i = 0; i < group * d; i++)
        ret[i] = 0;
    for (int32_t t = 0; t < len; t++) {
        load_entry(s, pool, pool->v, pages[t / s->page_size], head, t % s->page_size, x);
        for (int32_t g = 0; g < group; g++) {
            const double p = exp(score[(int64_t)g * len + t] - top[g]);
            sum[g] += p;
            for (int32_t i = 0; i < d; i++)
                ret[g * d + i] += p * x[i];
        }
    }
    for (int32_t g = 0; g < group; g++)
        for (int32_t i = 0; i < d; i++)
            ret[g * d + i] /= sum[g];
}

AttnStatus attn_reference_row(const AttnShape *s, const AttnPool *pool, const AttnBatch *batch,
                              int32_t row, double *ret)
{
    const int32_t len = batch->lens[row], d = s->head_dim, group = attn_group(s);
    if (len == 0) {
        for (int32_t i = 0; i < s->q_heads * d; i++)
            ret[i] = 0;
        return ATTN_OK;
    }
    double *score = malloc(sizeof *score * (size_t)group * (size_t)len);
    if (score == NULL)
        return ATTN_NO_MEMORY;
    for (int32_t h = 0; h < s->kv_heads; h++)
        reference_group(s, pool, batch, row, h, score, ret + (int64_t)h * group * d);
    free(score);
    return ATTN_OK;
}
