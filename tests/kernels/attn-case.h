/* One random batch over a paged pool for tests and benchmarks: permuted page ids, contents from the
 * hash where a row has entries, NaN everywhere else (page tails, unused pages), so that whatever
 * reads beside a row's entries shows. */
#ifndef KV_TESTS_ATTN_CASE_H
#define KV_TESTS_ATTN_CASE_H

#include <glib.h>
#include <string.h>

#include "kernels/attn.h"
#include "kernels/cpu_engine.h"

typedef struct AttnCase {
    AttnShape shape;
    AttnPool pool;
    AttnBatch batch;
    gint32 *lens, *table, *offset;
    gsize out_bytes;
} AttnCase;

static inline void attn_case_clear(AttnCase *c)
{
    g_aligned_free(c->pool.k);
    g_aligned_free(c->pool.v);
    g_free(c->lens);
    g_free(c->table);
    g_free(c->offset);
    g_free((void *)c->batch.q);
    g_free(c->batch.out);
}

static inline void attn_case_fill_token(AttnCase *c, guint64 seed, gint32 page, gint32 token)
{
    const AttnShape *s = &c->shape;
    for (int which = 0; which < 2; which++)
        for (gint32 h = 0; h < s->kv_heads; h++) {
            guint16 *to = (guint16 *)(which ? c->pool.v : c->pool.k) + page * c->pool.page_stride +
                          (gint64)h * c->pool.head_stride + (gint64)token * c->pool.token_stride;
            for (gint32 i = 0; i < s->head_dim; i++) {
                const float f = attn_content(seed, which, page, h, token, i);
                to[i] = s->dtype == ATTN_F16 ? attn_f32_to_f16(f) : attn_f32_to_bf16(f);
            }
        }
}

static inline void attn_case_init(AttnCase *c, const AttnShape *shape, gint rows,
                                  const gint32 *lens, guint64 seed)
{
    *c = (AttnCase){.shape = *shape};
    c->lens = g_memdup2(lens, sizeof *lens * (gsize)rows);
    c->offset = g_new(gint32, rows);
    gint32 pages = 0;
    for (gint r = 0; r < rows; r++) {
        c->offset[r] = pages;
        pages += (lens[r] + shape->page_size - 1) / shape->page_size;
    }
    c->table = g_new(gint32, pages + 1);
    c->pool.pages = pages + 3;
    g_autofree gint32 *ids = g_new(gint32, c->pool.pages);
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)seed);
    for (gint32 i = 0; i < c->pool.pages; i++) {
        const gint32 j = g_rand_int_range(rand, 0, i + 1);
        ids[i] = ids[j];
        ids[j] = i;
    }
    memcpy(c->table, ids, sizeof *ids * (gsize)pages);
    attn_pool_strides(&c->pool, shape);
    const gsize bytes = (gsize)attn_pool_bytes(shape, c->pool.pages);
    c->pool.k = g_aligned_alloc(1, bytes, 4096), c->pool.v = g_aligned_alloc(1, bytes, 4096);
    attn_cpu_advise(c->pool.k, (int64_t)bytes);
    attn_cpu_advise(c->pool.v, (int64_t)bytes);
    memset(c->pool.k, 0xff, bytes); /* NaN in both formats */
    memset(c->pool.v, 0xff, bytes);
    for (gint r = 0; r < rows; r++)
        for (gint32 t = 0; t < lens[r]; t++)
            attn_case_fill_token(c, seed, c->table[c->offset[r] + t / shape->page_size],
                                 t % shape->page_size);
    const gsize row_bytes = (gsize)shape->q_heads * (gsize)shape->head_dim * 2;
    guint8 *q = g_malloc(row_bytes * (gsize)rows + 1);
    for (gint r = 0; r < rows; r++)
        attn_fill_query(shape, seed, r, q + row_bytes * (gsize)r);
    c->out_bytes = row_bytes * (gsize)rows;
    c->batch = (AttnBatch){
        .rows = rows,
        .lens = c->lens,
        .table = c->table,
        .offset = c->offset,
        .q = q,
        .out = g_malloc(c->out_bytes + 1),
        .scale = 1.0f / sqrtf((float)shape->head_dim),
    };
}

#endif
