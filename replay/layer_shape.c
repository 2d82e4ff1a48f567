/* Shapes, work and memory of a decode step: sums, no GPU. */
#include "base/error.h"
#include "replay/layer.h"

enum { WORKSPACE = 64 << 20, RESERVE = 1 << 30 }; /* cuBLAS; what stays free */

static gboolean unsupported(GError **error, const ModelInfo *m, const char *what)
{
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "model %s: %s", m->name, what);
    return FALSE;
}

gboolean layer_shape_init(LayerShape *ret, const ModelInfo *m, gint tp, gint page_size,
                          AttnDtype dtype, GError **error)
{
    const guint t = (guint)tp;
    if (tp < 1 || m->q_heads % t != 0 || m->kv_heads % t != 0 || m->feed_forward % t != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--tp %d: the heads (%u query, %u KV) and the feed-forward width %u of %s do "
                    "not divide into that many equal shares",
                    tp, m->q_heads, m->kv_heads, m->feed_forward, m->name);
        return FALSE;
    }
    *ret = (LayerShape){
        .layers = (gint32)m->layers,
        .tp = tp,
        .hidden = (gint32)m->hidden,
        .feed_forward = (gint32)(m->feed_forward / t),
        .vocabulary = (gint32)((m->vocabulary + 8 * t - 1) / (8 * t) * 8),
        .attn = {.q_heads = (int32_t)(m->q_heads / t),
                 .kv_heads = (int32_t)(m->kv_heads / t),
                 .head_dim = (int32_t)m->head_dim,
                 .page_size = page_size,
                 .dtype = dtype},
    };
    if (ret->hidden % 8 != 0 || ret->feed_forward % 8 != 0)
        return unsupported(error, m, "widths must be multiples of 8");
    if (attn_shape_check(&ret->attn) == ATTN_OK)
        return TRUE;
    g_autofree char *why = g_strdup_printf(
        "%d query heads, %d KV heads, head size %d, page size %d: %s", ret->attn.q_heads,
        ret->attn.kv_heads, ret->attn.head_dim, page_size, attn_strerror(ATTN_UNSUPPORTED_SHAPE));
    return unsupported(error, m, why);
}

void layer_gemm_size(const LayerShape *s, LayerGemm gemm, gint32 *ret_outputs, gint32 *ret_inputs)
{
    const gint32 q = s->attn.q_heads * s->attn.head_dim, kv = s->attn.kv_heads * s->attn.head_dim;
    const gint32 sizes[LAYER_GEMMS][2] = {
        [LAYER_QKV] = {q + 2 * kv, s->hidden},
        [LAYER_O] = {s->hidden, q},
        [LAYER_GATE_UP] = {2 * s->feed_forward, s->hidden},
        [LAYER_DOWN] = {s->hidden, s->feed_forward},
        [LAYER_HEAD] = {s->vocabulary, s->hidden},
    };
    *ret_outputs = sizes[gemm][0];
    *ret_inputs = sizes[gemm][1];
}

gint32 layer_bucket(gint32 rows)
{
    gint32 bucket = 1;
    while (bucket < rows)
        bucket *= 2;
    return bucket;
}

void layer_work(const LayerShape *s, gint layers, gint32 bucket, gint32 rows, const gint32 *lens,
                LayerWork *ret)
{
    *ret = (LayerWork){0};
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++) {
        gint32 m, k;
        layer_gemm_size(s, g, &m, &k);
        const double times = g == LAYER_HEAD ? 1 : layers, n = bucket;
        ret->gemm_flop += times * 2.0 * m * k * n;
        ret->gemm_bytes += times * 2.0 * ((double)m * k + (m + k) * n);
    }
    const double d = s->attn.head_dim, q = s->attn.q_heads * d, kv = s->attn.kv_heads * d;
    double entries = 0;
    for (gint32 r = 0; r < rows; r++)
        entries += lens[r];
    ret->attention_flop = layers * 4.0 * entries * q;
    ret->attention_bytes = layers * (4.0 * entries * kv + 4.0 * q * rows);
    /* In and out of: two norms with their additions, the rotation, the gate; then the last norm
     * and the logits once. */
    const double layer = 2 * 4.0 * s->hidden + 2.0 * (q + 2 * kv) + 3.0 * s->feed_forward;
    ret->other_bytes =
        2.0 * bucket * (layers * layer + 2.0 * s->hidden + 4.0 * s->hidden + s->vocabulary);
}

/* --- memory --- */

static gint64 matrix_bytes(const LayerShape *s, LayerGemm gemm)
{
    gint32 m, k;
    layer_gemm_size(s, gemm, &m, &k);
    return 2 * (gint64)m * k;
}

static double gib(gint64 bytes)
{
    return (double)bytes / (1 << 30);
}

gboolean layer_memory_plan(const LayerShape *s, gint layers, gint32 bucket, gint32 longest,
                           gint64 least, gint64 most, gint64 free, LayerMemory *ret, GError **error)
{
    *ret = (LayerMemory){.free = free, .layers = layers, .head = matrix_bytes(s, LAYER_HEAD)};
    gint64 widths = 4 * (gint64)s->hidden + 2 * (gint64)s->attn.q_heads * s->attn.head_dim;
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++) {
        gint32 m, k;
        layer_gemm_size(s, g, &m, &k);
        widths += m + k;
        if (g != LAYER_HEAD)
            ret->weights += matrix_bytes(s, g);
    }
    ret->page = 2 * attn_pool_bytes(&s->attn, 1);
    ret->activations =
        2 * bucket * widths +
        4 * (gint64)(longest + LAYER_GROWTH + 1) * s->attn.head_dim /* the rotary table */ +
        WORKSPACE + RESERVE;
    const gint64 left = free - ret->activations - ret->head;
    const gint64 half = MAX(left / 2, 0) / ret->weights;
    ret->weight_sets = (gint32)MIN(layers, MAX(half, 1));
    ret->kv = MIN(left - ret->weight_sets * ret->weights, layers * most * ret->page);
    if (ret->kv >= least * ret->page)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "%.2f GiB are free; LM head %.2f, one layer's weights %.2f, its K and V %.2f, work "
                "space %.2f: fewer rows or tokens, or a larger --tp",
                gib(free), gib(ret->head), gib(ret->weights), gib(least * ret->page),
                gib(ret->activations));
    return FALSE;
}

gint32 layer_kv_sets(const LayerMemory *self, gint64 pages)
{
    return (gint32)MIN(self->layers, self->kv / MAX(pages * self->page, 1));
}

gint64 layer_memory_needed(const LayerMemory *self, gint64 pages)
{
    return self->layers * (self->weights + pages * self->page) + self->head + self->activations;
}

char *layer_memory_text(const LayerMemory *self, gint64 pages)
{
    return g_strdup_printf("weights %.2f + K and V %.2f + work space %.2f = %.2f GiB of %.2f",
                           gib(self->layers * self->weights + self->head),
                           gib(self->layers * pages * self->page), gib(self->activations),
                           gib(layer_memory_needed(self, pages)), gib(self->free));
}

gint64 layer_cell_pages(const AttnShape *shape, gint32 rows, const gint32 *lens)
{
    gint64 pages = 0;
    for (gint32 r = 0; r < rows; r++)
        pages += (lens[r] + LAYER_GROWTH + shape->page_size - 1) / shape->page_size;
    return pages;
}

/* --- the check's verdict --- */

/* Outputs are rounded once to 11 bits (bf16: 8), and a product may be summed in several parts that
 * are rounded alike; a wrong one is off by about 1. */
gboolean layer_check_passes(AttnDtype dtype, const LayerCheck *c)
{
    const double unit = dtype == ATTN_BF16 ? 0x1p-8 : 0x1p-11;
    const double all[] = {c->norm, c->rope, c->silu};
    gboolean ok = c->tokens_wrong == 0 && c->embeddings_wrong == 0;
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        ok = ok && all[i] <= 2 * unit; /* NaN: not so */
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++)
        ok = ok && c->gemm[g] <= 4 * unit;
    const double scale = dtype == ATTN_BF16 ? 8 : 1;
    return ok && c->attention_max < 2e-3 * scale && c->attention_mean < 3e-4 * scale;
}
