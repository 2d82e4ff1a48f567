/* Every piece of a step made again in fp64 from what the device gave it. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "replay/backend.h"
#include "replay/layer_engine.h"

enum { SAMPLE = 96, ROWS = 2 }; /* values of a piece that are compared, unless whole; rows */

typedef struct Check {
    LayerEngine *self;
    LayerCheck *ret;
    gboolean whole;
    RngStream stream;
    guint16 *in, *out, *kept; /* a piece's inputs and outputs; the residual stream before it */
    gsize room;               /* halves of each */
} Check;

static double value(const Check *c, guint16 half)
{
    return c->self->config.shape.attn.dtype == ATTN_BF16 ? (double)attn_bf16_to_f32(half)
                                                         : (double)attn_f16_to_f32(half);
}

static gboolean fetch(Check *c, guint16 *to, gconstpointer from, gint64 n, GError **error)
{
    g_assert((gsize)n <= c->room);
    TRY_CUDA(cudaStreamSynchronize(c->self->stream), "piece");
    TRY_CUDA(cudaMemcpy(to, from, 2 * (gsize)n, cudaMemcpyDeviceToHost), "piece");
    return TRUE;
}

/* Rows and columns to look at: all, or some drawn ones. */
typedef struct Picks {
    gint64 n, width;
    gboolean whole;
    gint32 rows;
} Picks;

static Picks picks(const Check *c, gint32 width)
{
    const gint32 rows = c->self->cell.bucket;
    const gint64 all = (gint64)rows * width;
    return (Picks){.n = c->whole ? all : MIN(all, SAMPLE),
                   .width = width,
                   .whole = c->whole || all <= SAMPLE,
                   .rows = rows};
}

static void pick(Check *c, const Picks *p, gint64 i, gint32 *ret_row, gint32 *ret_column)
{
    const gint64 at = p->whole ? i : (gint64)rng_below(&c->stream, (guint64)(p->rows * p->width));
    *ret_row = (gint32)(at / p->width);
    *ret_column = (gint32)(at % p->width);
}

static double magnitude(const Check *c, const guint16 *x, gint64 n)
{
    double sum = 0;
    for (gint64 i = 0; i < n; i++)
        sum += fabs(value(c, x[i]));
    return sum / (double)n;
}

/* NaN stays: it must not pass. */
static void keep_worst(double *worst, double e)
{
    if (!(e <= *worst) && !isnan(*worst))
        *worst = e;
}

static void note(Check *c, double *worst, double got, double want, double scale)
{
    keep_worst(worst, fabs(got - want) / (fabs(want) + scale));
    c->ret->values++;
}

static gconstpointer gemm_input(const LayerEngine *self, LayerGemm gemm)
{
    return gemm == LAYER_O ? self->attended : gemm == LAYER_DOWN ? self->activated : self->normed;
}

static gpointer gemm_output(const LayerEngine *self, LayerGemm gemm)
{
    const gpointer all[LAYER_GEMMS] = {self->qkv, self->delta, self->gate_up, self->delta,
                                       self->logits};
    return all[gemm];
}

static gboolean check_gemm(Check *c, LayerGemm gemm, LayerStage stage, gint layer, GError **error)
{
    LayerEngine *self = c->self;
    gint32 m, k;
    layer_gemm_size(&self->config.shape, gemm, &m, &k);
    const gint64 rows = self->cell.bucket;
    if (!fetch(c, c->in, gemm_input(self, gemm), rows * k, error) ||
        !layer_run_stage(self, stage, layer, error) ||
        !fetch(c, c->out, gemm_output(self, gemm), rows * m, error))
        return FALSE;
    const double scale = magnitude(c, c->out, rows * m);
    const gboolean bf16 = self->config.shape.attn.dtype == ATTN_BF16;
    const gint64 id = layer_weights_id(self, gemm, gemm == LAYER_HEAD ? 0 : layer);
    const Picks p = picks(c, m);
    for (gint64 i = 0; i < p.n; i++) {
        gint32 row, column;
        double sum = 0;
        pick(c, &p, i, &row, &column);
        for (gint32 j = 0; j < k; j++) {
            const float w = layer_weight(self->config.seed, id, column, j, 1.0f / sqrtf((float)k));
            const double rounded = bf16 ? (double)attn_bf16_to_f32(attn_f32_to_bf16(w))
                                        : (double)attn_f16_to_f32(attn_f32_to_f16(w));
            sum += rounded * value(c, c->in[(gint64)row * k + j]);
        }
        note(c, &c->ret->gemm[gemm], value(c, c->out[(gint64)row * m + column]), sum, scale);
    }
    return TRUE;
}

/* The sum is rounded to the stream's halves before it is used; the rounding is made here too. */
static gboolean check_norm(Check *c, LayerStage stage, gint layer, GError **error)
{
    LayerEngine *self = c->self;
    const gint32 hidden = self->config.shape.hidden, rows = self->cell.bucket;
    const gint64 n = (gint64)rows * hidden;
    const gboolean adds = stage != STAGE_NORM_ATTENTION || layer > 0;
    if (!fetch(c, c->kept, self->residual, n, error) ||
        (adds && !fetch(c, c->in, self->delta, n, error)) ||
        !layer_run_stage(self, stage, layer, error) || !fetch(c, c->out, self->normed, n, error))
        return FALSE;
    const gboolean bf16 = self->config.shape.attn.dtype == ATTN_BF16;
    for (gint32 r = 0; r < rows; r++) {
        double squares = 0;
        for (gint32 i = 0; i < hidden; i++) {
            guint16 *x = &c->kept[(gint64)r * hidden + i];
            const float sum =
                (float)(value(c, *x) + (adds ? value(c, c->in[(gint64)r * hidden + i]) : 0));
            *x = bf16 ? attn_f32_to_bf16(sum) : attn_f32_to_f16(sum);
            squares += value(c, *x) * value(c, *x);
        }
        const double factor = 1 / sqrt(squares / hidden + 1e-5);
        for (gint32 i = 0; i < hidden; i++)
            note(c, &c->ret->norm, value(c, c->out[(gint64)r * hidden + i]),
                 value(c, c->kept[(gint64)r * hidden + i]) * factor, 1e-3);
    }
    return TRUE;
}

static gboolean check_silu(Check *c, GError **error)
{
    LayerEngine *self = c->self;
    const gint64 width = self->config.shape.feed_forward, rows = self->cell.bucket;
    if (!fetch(c, c->in, self->gate_up, 2 * rows * width, error) ||
        !layer_run_stage(self, STAGE_SILU, 0, error) ||
        !fetch(c, c->out, self->activated, rows * width, error))
        return FALSE;
    for (gint64 r = 0; r < rows; r++)
        for (gint64 i = 0; i < width; i++) {
            const double g = value(c, c->in[r * 2 * width + i]);
            const double u = value(c, c->in[r * 2 * width + width + i]);
            note(c, &c->ret->silu, value(c, c->out[r * width + i]), g / (1 + exp(-g)) * u, 1e-3);
        }
    return TRUE;
}

/* --- rotation and the new entry --- */

static void turned(const Check *c, const guint16 *x, gint32 half, gint64 position, gint32 i,
                   double *ret_a, double *ret_b)
{
    const double angle = (double)position * pow(LAYER_THETA, -(double)i / half);
    const double a = value(c, x[i]), b = value(c, x[half + i]);
    *ret_a = a * cos(angle) - b * sin(angle);
    *ret_b = b * cos(angle) + a * sin(angle);
}

static void compare_head(Check *c, const guint16 *got, const guint16 *from, gint64 position,
                         gboolean turn)
{
    const gint32 half = c->self->config.shape.attn.head_dim / 2;
    for (gint32 i = 0; i < half; i++) {
        double a = value(c, from[i]), b = value(c, from[half + i]);
        if (turn)
            turned(c, from, half, position, i, &a, &b);
        note(c, &c->ret->rope, value(c, got[i]), a, 0.5);
        note(c, &c->ret->rope, value(c, got[half + i]), b, 0.5);
    }
}

/* A row's new entry of one KV head, from the pool into `to`. */
static gboolean fetch_entry(Check *c, const AttnPool *pool, gconstpointer of, gint32 row,
                            gint32 head, guint16 *to, GError **error)
{
    const LayerEngine *self = c->self;
    const gint32 position = cuda_table_host_lens(self->table)[row] - 1;
    const gint32 page_size = self->config.shape.attn.page_size;
    const gint32 page = cuda_table_host_ids(
        self->table)[cuda_table_host_offset(self->table)[row] + position / page_size];
    const gint64 at = page * pool->page_stride + (gint64)head * pool->head_stride +
                      (gint64)(position % page_size) * pool->token_stride;
    TRY_CUDA(cudaMemcpy(to, (const guint16 *)of + at, 2 * (gsize)self->config.shape.attn.head_dim,
                        cudaMemcpyDeviceToHost),
             "new entry");
    return TRUE;
}

static gboolean check_rope(Check *c, gint layer, GError **error)
{
    LayerEngine *self = c->self;
    const AttnShape *s = &self->config.shape.attn;
    const gint64 d = s->head_dim, width = (s->q_heads + 2 * s->kv_heads) * d;
    const gint32 rows = self->cell.rows;
    const AttnPool pool = layer_pool(self, layer);
    if (!fetch(c, c->in, self->qkv, rows * width, error) ||
        !layer_run_stage(self, STAGE_ROPE, layer, error) ||
        !fetch(c, c->out, self->q, rows * s->q_heads * d, error))
        return FALSE;
    for (gint32 r = 0; r < (c->whole ? rows : MIN(rows, ROWS)); r++) {
        const guint16 *from = c->in + r * width;
        const gint64 position = cuda_table_host_lens(self->table)[r] - 1;
        guint16 entry[256];
        for (gint32 h = 0; h < s->q_heads; h++)
            compare_head(c, c->out + (r * s->q_heads + h) * d, from + h * d, position, TRUE);
        for (gint32 h = 0; h < s->kv_heads; h++) {
            if (!fetch_entry(c, &pool, pool.k, r, h, entry, error))
                return FALSE;
            compare_head(c, entry, from + (s->q_heads + h) * d, position, TRUE);
            if (!fetch_entry(c, &pool, pool.v, r, h, entry, error))
                return FALSE;
            compare_head(c, entry, from + (s->q_heads + s->kv_heads + h) * d, position, FALSE);
        }
    }
    return TRUE;
}

/* --- attention --- */

/* Host copies of the first rows' pages in a set, by the formula, renumbered from 0; kept for the
 * cell. */
static void host_pages(LayerCell *cell, const AttnShape *s, guint64 seed, gint32 set, gint32 rows)
{
    gint64 pages = 0, n = 0;
    if (cell->host_rows == rows && cell->host_set == set)
        return;
    for (gint32 r = 0; r < rows; r++)
        pages += (cell->lens[r] + s->page_size - 1) / s->page_size;
    AttnPool *pool = &cell->host;
    pool->k = g_realloc(pool->k, (gsize)attn_pool_bytes(s, pages));
    pool->v = g_realloc(pool->v, (gsize)attn_pool_bytes(s, pages));
    pool->pages = pages;
    attn_pool_strides(pool, s);
    cell->host_table = g_renew(gint32, cell->host_table, pages);
    cell->host_offset = g_renew(gint32, cell->host_offset, rows);
    for (gint32 r = 0; r < rows; r++) {
        cell->host_offset[r] = (gint32)n;
        for (gint32 p = 0; p * s->page_size < cell->lens[r]; p++, n++) {
            const gint64 id = set * cell->pages + cell->row[r].pages[p]; /* in the arena */
            AttnPool one = *pool; /* in which that page lies at place n */
            one.k = (guint16 *)pool->k + (n - id) * pool->page_stride;
            one.v = (guint16 *)pool->v + (n - id) * pool->page_stride;
            attn_fill_page(s, &one, seed, id);
            cell->host_table[n] = (gint32)n;
        }
    }
    cell->host_rows = rows;
    cell->host_set = set;
}

/* The rows' new entries are what the layer computed: taken from the device. */
static gboolean host_entries(Check *c, gint layer, gint32 rows, GError **error)
{
    const LayerEngine *self = c->self;
    const AttnShape *s = &self->config.shape.attn;
    const AttnPool device = layer_pool(self, layer), *host = &self->cell.host;
    for (gint32 r = 0; r < rows; r++) {
        const gint32 position = self->cell.lens[r] - 1;
        const gint64 page = self->cell.host_offset[r] + position / s->page_size;
        for (gint32 h = 0; h < s->kv_heads; h++) {
            const gint64 at = page * host->page_stride + (gint64)h * host->head_stride +
                              (gint64)(position % s->page_size) * host->token_stride;
            if (!fetch_entry(c, &device, device.k, r, h, (guint16 *)host->k + at, error) ||
                !fetch_entry(c, &device, device.v, r, h, (guint16 *)host->v + at, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Of rows at the cell's own lengths. */
static gboolean compare_attention(Check *c, gint layer, gint32 rows, double *ret_max,
                                  double *ret_mean, GError **error)
{
    LayerEngine *self = c->self;
    LayerCell *cell = &self->cell;
    const AttnShape *s = &self->config.shape.attn;
    const gsize width = (gsize)s->q_heads * (gsize)s->head_dim;
    g_autofree double *want = g_new(double, (gsize)rows *width);
    if (self->cpu == NULL)
        self->cpu = attn_cpu_new(0);
    if (self->cpu == NULL) {
        g_set_error_literal(error, KV_ERROR, KV_ERROR_MACHINE, "no threads for the reference");
        return FALSE;
    }
    host_pages(cell, s, self->config.seed, layer % cell->kv_sets, rows);
    if (!fetch(c, c->in, self->q, rows * (gint64)width, error) ||
        !fetch(c, c->out, self->attended, rows * (gint64)width, error) ||
        !host_entries(c, layer, rows, error))
        return FALSE;
    const AttnBatch batch = {rows,  cell->lens, cell->host_table, cell->host_offset,
                             c->in, NULL,       self->batch.scale};
    attn_cpu_reference(self->cpu, s, &cell->host, &batch, want);
    backend_errors(s->dtype, c->out, want, (gsize)rows * width, ret_max, ret_mean);
    c->ret->values += (gint64)((gsize)rows * width);
    return TRUE;
}

static void check_open(Check *c, LayerEngine *self, LayerCheck *ret, gboolean whole)
{
    const LayerShape *s = &self->config.shape;
    const gint64 q = s->attn.q_heads * s->attn.head_dim, kv = s->attn.kv_heads * s->attn.head_dim;
    const gint64 widest =
        MAX(MAX(2 * (gint64)s->feed_forward, s->vocabulary), MAX((gint64)s->hidden, q + 2 * kv));
    *c = (Check){.self = self, .ret = ret, .whole = whole};
    c->room = (gsize)(widest * self->cell.bucket);
    c->in = g_new(guint16, c->room);
    c->out = g_new(guint16, c->room);
    c->kept = g_new(guint16, c->room);
    rng_init(&c->stream, self->config.seed, RNG_TEST, 0, 0);
}

static void check_close(Check *c)
{
    g_free(c->in);
    g_free(c->out);
    g_free(c->kept);
}

gboolean layer_check_attention(LayerEngine *self, gint64 bytes, gint *ret_rows, double *ret_max,
                               double *ret_mean, GError **error)
{
    const AttnShape *s = &self->config.shape.attn;
    const gint64 token = 4 * (gint64)s->kv_heads * s->head_dim;
    gint64 left = bytes;
    LayerCheck counted = {{0}};
    Check c;
    *ret_rows = 0;
    *ret_max = *ret_mean = (double)NAN;
    while (*ret_rows < MIN(self->cell.rows, ROWS) && left >= self->cell.lens[*ret_rows] * token)
        left -= self->cell.lens[(*ret_rows)++] * token;
    if (*ret_rows == 0)
        return TRUE;
    check_open(&c, self, &counted, FALSE);
    const gboolean ok =
        compare_attention(&c, self->config.layers - 1, *ret_rows, ret_max, ret_mean, error);
    check_close(&c);
    return ok;
}

/* --- embedding and the choice --- */

static gboolean check_embed(Check *c, GError **error)
{
    LayerEngine *self = c->self;
    const gint32 hidden = self->config.shape.hidden, rows = self->cell.bucket;
    g_autofree uint64_t *best = g_new(uint64_t, rows);
    TRY_CUDA(cudaStreamSynchronize(self->stream), "tokens");
    TRY_CUDA(cudaMemcpy(best, self->best, 8 * (gsize)rows, cudaMemcpyDeviceToHost), "tokens");
    if (!layer_run_stage(self, STAGE_EMBED, 0, error) ||
        !fetch(c, c->out, self->residual, (gint64)rows * hidden, error))
        return FALSE;
    for (gint32 r = 0; r < rows; r++) {
        const char *from =
            (const char *)self->weights[LAYER_HEAD] + 2 * (gint64)layer_token(best[r]) * hidden;
        if (!fetch(c, c->in, from, hidden, error))
            return FALSE;
        c->ret->embeddings_wrong +=
            memcmp(c->in, c->out + (gint64)r * hidden, 2 * (gsize)hidden) != 0;
    }
    return TRUE;
}

static double noisy(const Check *c, gint32 row, gint32 index, gint32 vocabulary)
{
    const LayerEngine *self = c->self;
    const double x = value(c, c->in[(gint64)row * vocabulary + index]);
    if (self->config.greedy)
        return x;
    const uint64_t bits =
        layer_noise_bits(self->config.seed, row, cuda_table_host_lens(self->table)[row], index);
    return x - log(-log(((double)(bits >> 41) + 0.5) * 0x1p-23));
}

/* A token that is as good as the best one to within fp32 rounding is right. */
static gboolean check_sample(Check *c, GError **error)
{
    LayerEngine *self = c->self;
    const gint32 vocabulary = self->config.shape.vocabulary, rows = self->cell.bucket;
    g_autofree uint64_t *best = g_new(uint64_t, rows);
    if (!fetch(c, c->in, self->logits, (gint64)rows * vocabulary, error) ||
        !layer_run_stage(self, STAGE_SAMPLE, 0, error))
        return FALSE;
    TRY_CUDA(cudaStreamSynchronize(self->stream), "tokens");
    TRY_CUDA(cudaMemcpy(best, self->best, 8 * (gsize)rows, cudaMemcpyDeviceToHost), "tokens");
    for (gint32 r = 0; r < (c->whole ? rows : MIN(rows, ROWS)); r++) {
        const gint32 token = layer_token(best[r]);
        double top = -(double)INFINITY;
        for (gint32 i = 0; i < vocabulary; i++) {
            const double x = noisy(c, r, i, vocabulary);
            top = x <= top ? top : x; /* NaN wins */
        }
        c->ret->tokens_wrong += token < 0 || token >= vocabulary ||
                                !(noisy(c, r, token, vocabulary) >= top - 1e-4 * (1 + fabs(top)));
    }
    c->ret->values += rows;
    return TRUE;
}

/* --- a step --- */

static gboolean check_stage(Check *c, LayerStage stage, gint layer, GError **error)
{
    switch (stage) {
    case STAGE_EMBED:
        return check_embed(c, error);
    case STAGE_QKV:
        return check_gemm(c, LAYER_QKV, stage, layer, error);
    case STAGE_O:
        return check_gemm(c, LAYER_O, stage, layer, error);
    case STAGE_GATE_UP:
        return check_gemm(c, LAYER_GATE_UP, stage, layer, error);
    case STAGE_DOWN:
        return check_gemm(c, LAYER_DOWN, stage, layer, error);
    case STAGE_HEAD:
        return check_gemm(c, LAYER_HEAD, stage, layer, error);
    case STAGE_ROPE:
        return check_rope(c, layer, error);
    case STAGE_SILU:
        return check_silu(c, error);
    case STAGE_SAMPLE:
        return check_sample(c, error);
    case STAGE_ATTENTION: {
        double max = 0, mean = 0;
        if (!layer_run_stage(c->self, stage, layer, error) ||
            !compare_attention(c, layer, c->whole ? c->self->cell.rows : 1, &max, &mean, error))
            return FALSE;
        keep_worst(&c->ret->attention_max, max);
        keep_worst(&c->ret->attention_mean, mean);
        return TRUE;
    }
    default:
        return check_norm(c, stage, layer, error);
    }
}

static gboolean check_step(Check *c, GError **error)
{
    const gint layers = c->self->config.layers;
    gboolean ok = check_stage(c, STAGE_EMBED, 0, error);
    for (gint layer = 0; ok && layer < layers; layer++) {
        const gboolean looked_at = c->whole || layer < 2 || layer == layers - 1;
        for (LayerStage s = STAGE_NORM_ATTENTION; ok && s <= STAGE_DOWN; s++)
            ok = looked_at ? check_stage(c, s, layer, error)
                           : layer_run_stage(c->self, s, layer, error);
    }
    for (LayerStage s = STAGE_NORM_HEAD; ok && s <= STAGE_SAMPLE; s++)
        ok = check_stage(c, s, layers, error);
    return ok;
}

gboolean layer_engine_check(LayerEngine *self, const Route *route, const PluginChoice *splits,
                            gboolean whole, LayerCheck *ret, GError **error)
{
    AttnPlanConfig config;
    Check c;
    *ret = (LayerCheck){{0}};
    route_plan_config(&config, route, splits, &self->config.shape.attn,
                      layer_engine_workers(self, route));
    if (!layer_cell_begin(self, error) || !layer_plan(self, &config, &self->plan, error) ||
        !layer_make_room(self, self->plan.n_tasks, self->plan.counts.partial_slots, error) ||
        !layer_upload(self, NULL, error))
        return FALSE;
    check_open(&c, self, ret, whole);
    /* Twice: the second step begins with the tokens that the first one chose. */
    const gboolean ok = check_step(&c, error) && check_step(&c, error);
    check_close(&c);
    return ok;
}
