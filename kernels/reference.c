/* The fp64 reference: two passes over a row, nothing shared with any engine but the page walk. */
#include "kernels/attn.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/half.h"

enum { LANES = 8 };

/* Wider vectors where the processor has them; the sums and their order are the same in every clone
 * (no contraction), so the bits are too. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

/* Eight running sums, added in a fixed order at the end. */
INLINE double dot(const double *a, const double *b, int32_t d)
{
    double lane[LANES] = {0};
    for (int32_t i = 0; i < d; i += LANES)
        for (int32_t k = 0; k < LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

INLINE void load_halves(AttnDtype dtype, const uint16_t *p, int32_t n, double *ret)
{
    if (dtype == ATTN_F16)
        for (int32_t i = 0; i < n; i++)
            ret[i] = (double)half_f16(p[i]);
    else
        for (int32_t i = 0; i < n; i++)
            ret[i] = (double)half_bf16(p[i]);
}

INLINE void load_entry(const AttnShape *s, const AttnPool *pool, const void *of, int32_t page,
                       int32_t head, int32_t token, double *ret)
{
    const uint16_t *p = (const uint16_t *)of + page * pool->page_stride +
                        (int64_t)head * pool->head_stride + (int64_t)token * pool->token_stride;
    load_halves(s->dtype, p, s->head_dim, ret);
}

/* One KV head's group: score[G][len], then the weighted sum of V. */
CLONES static void reference_group(const AttnShape *s, const AttnPool *pool, const AttnBatch *batch,
                                   int32_t row, int32_t head, double *score, double *ret)
{
    const int32_t len = batch->lens[row], d = s->head_dim, group = attn_group(s);
    const int32_t *pages = batch->table + batch->offset[row];
    const uint16_t *q = (const uint16_t *)batch->q + ((int64_t)row * s->q_heads + head * group) * d;
    double x[256], qd[16][256], top[16], sum[16] = {0};

    for (int32_t g = 0; g < group; g++) {
        top[g] = -INFINITY;
        load_halves(s->dtype, q + g * d, d, qd[g]);
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

AttnStatus attn_reference_group(const AttnShape *s, const AttnPool *pool, const AttnBatch *batch,
                                int32_t row, int32_t kv_head, double *ret)
{
    const int32_t len = batch->lens[row], d = s->head_dim, group = attn_group(s);
    if (len == 0) {
        for (int32_t i = 0; i < group * d; i++)
            ret[i] = 0;
        return ATTN_OK;
    }
    double *score = malloc(sizeof *score * (size_t)group * (size_t)len);
    if (score == NULL)
        return ATTN_NO_MEMORY;
    reference_group(s, pool, batch, row, kv_head, score, ret);
    free(score);
    return ATTN_OK;
}

AttnStatus attn_reference_row(const AttnShape *s, const AttnPool *pool, const AttnBatch *batch,
                              int32_t row, double *ret)
{
    const int64_t width = attn_group(s) * s->head_dim;
    AttnStatus status = ATTN_OK;
    for (int32_t h = 0; h < s->kv_heads && status == ATTN_OK; h++)
        status = attn_reference_group(s, pool, batch, row, h, ret + h * width);
    return status;
}
