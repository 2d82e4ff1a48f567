/* The layer runtime on a GPU: every piece against fp64, for shapes, dtypes, layouts and routes; a
 * graph against the same launches one by one, bit for bit; and a whole step of a tiny model against
 * one made in fp64 from the weights' formula, with no rounding on the way. Skipped (77) without a
 * GPU or cuBLAS. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "replay/layer_engine.h"

enum { SEED = 11 };

typedef struct Case {
    const char *name;
    ModelInfo model;
    AttnDtype dtype;
    AttnLayout layout;
    gint32 page, rows;
    gint32 lens[8];
    gboolean greedy;
} Case;

static const Case cases[] = {
    {"fp16 G2 d64",
     {"", 3, 256, 4, 2, 64, 512, 1000, FALSE},
     ATTN_F16,
     ATTN_HND,
     16,
     3,
     {130, 1, 77},
     FALSE},
    {"fp16 G4 d128 greedy",
     {"", 2, 512, 8, 2, 128, 1024, 2048, FALSE},
     ATTN_F16,
     ATTN_HND,
     16,
     5,
     {16, 17, 500, 1025, 15},
     TRUE},
    {"bf16 G8 d128",
     {"", 2, 512, 8, 1, 128, 768, 4104, FALSE},
     ATTN_BF16,
     ATTN_HND,
     32,
     2,
     {700, 33},
     FALSE},
    {"bf16 G1 d64 NHD",
     {"", 2, 320, 4, 4, 64, 640, 1008, FALSE},
     ATTN_BF16,
     ATTN_NHD,
     16,
     1,
     {2000},
     FALSE},
    {"fp16 G2 d256 NHD",
     {"", 2, 1024, 4, 2, 256, 2048, 2000, FALSE},
     ATTN_F16,
     ATTN_NHD,
     8,
     4,
     {300, 8, 9, 64},
     TRUE},
};
static const char *const route_names[] = {"single",    "buckets",         "masked",
                                          "workqueue", "workqueue-fused", "persistent"};

static PluginChoice balanced(void)
{
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "split rule", split_rules, "balanced", NULL);
    return choice;
}

static Route route_named(const char *name)
{
    return (Route){.ops = route_find(name), .label = (char *)name};
}

static LayerEngine *engine_for(const Case *c, GError **error)
{
    LayerConfig config = {.layers = (gint)c->model.layers,
                          .seed = SEED,
                          .max_rows = 8,
                          .max_len = 4096,
                          .greedy = c->greedy};
    if (!layer_shape_init(&config.shape, &c->model, 1, c->page, c->dtype, error))
        return NULL;
    config.shape.attn.layout = c->layout;
    config.least_pages = config.most_pages = layer_cell_pages(&config.shape.attn, c->rows, c->lens);
    return layer_engine_new(&config, error);
}

/* --- pieces --- */

static gboolean check_pieces(LayerEngine *engine, const Case *c, GError **error)
{
    PluginChoice splits = balanced();
    gboolean all = TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(route_names); i++) {
        const Route route = route_named(route_names[i]);
        LayerCheck k;
        if (!layer_engine_cell(engine, c->rows, c->lens, error) ||
            !layer_engine_check(engine, &route, &splits, TRUE, &k, error))
            return FALSE;
        const gboolean ok = layer_check_passes(c->dtype, &k);
        printf("%s  %-20s %-16s products %.1e %.1e %.1e %.1e %.1e norm %.1e rope %.1e gate %.1e "
               "attention %.1e %.1e tokens %d embeddings %d of %" G_GINT64_FORMAT "\n",
               ok ? "ok   " : "WRONG", c->name, route.label, k.gemm[0], k.gemm[1], k.gemm[2],
               k.gemm[3], k.gemm[4], k.norm, k.rope, k.silu, k.attention_max, k.attention_mean,
               k.tokens_wrong, k.embeddings_wrong, k.values);
        all = all && ok;
    }
    plugin_choice_clear(&splits);
    return all;
}

/* --- graph and direct --- */

static gboolean read_logits(LayerEngine *engine, guint16 *to, uint64_t *best, GError **error)
{
    const gsize rows = (gsize)engine->cell.bucket;
    TRY_CUDA(cudaStreamSynchronize(engine->stream), "step");
    TRY_CUDA(cudaMemcpy(to, engine->logits, 2 * rows * (gsize)engine->config.shape.vocabulary,
                        cudaMemcpyDeviceToHost),
             "logits");
    TRY_CUDA(cudaMemcpy(best, engine->best, 8 * rows, cudaMemcpyDeviceToHost), "tokens");
    return TRUE;
}

static gboolean prepare(LayerEngine *engine, const Case *c, const char *name, GError **error)
{
    PluginChoice splits = balanced();
    const Route route = route_named(name);
    AttnPlanConfig config;
    if (!layer_engine_cell(engine, c->rows, c->lens, error))
        return FALSE;
    route_plan_config(&config, &route, &splits, &engine->config.shape.attn,
                      layer_engine_workers(engine, &route));
    plugin_choice_clear(&splits);
    if (!layer_plan(engine, &config, &engine->plan, error) ||
        !layer_make_room(engine, engine->plan.n_tasks, engine->plan.counts.partial_slots, error) ||
        !layer_upload(engine, NULL, error))
        return FALSE;
    TRY_CUDA(cudaMemsetAsync(engine->best, 0, 8 * (gsize)engine->cell.bucket, engine->stream),
             "tokens");
    return TRUE;
}

static gboolean replay_graph(LayerEngine *engine, GError **error)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (!layer_capture(engine, GROUP_ALL, &graph, error))
        return FALSE;
    TRY_CUDA(cudaGraphInstantiate(&exec, graph, 0), "graph");
    cudaGraphDestroy(graph);
    TRY_CUDA(cudaGraphLaunch(exec, engine->stream), "graph");
    TRY_CUDA(cudaStreamSynchronize(engine->stream), "graph");
    cudaGraphExecDestroy(exec);
    return TRUE;
}

static gboolean check_graph(LayerEngine *engine, const Case *c, GError **error)
{
    gboolean all = TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(route_names); i++) {
        const gsize n = 8 * (gsize)engine->config.shape.vocabulary;
        g_autofree guint16 *a = g_new0(guint16, n), *b = g_new0(guint16, n);
        uint64_t best_a[8] = {0}, best_b[8] = {0};
        if (!prepare(engine, c, route_names[i], error) ||
            !layer_run_step(engine, GROUP_ALL, NULL, NULL, error) ||
            !read_logits(engine, a, best_a, error) || !prepare(engine, c, route_names[i], error) ||
            !replay_graph(engine, error) || !read_logits(engine, b, best_b, error))
            return FALSE;
        const gboolean ok = memcmp(a, b, 2 * n) == 0 && memcmp(best_a, best_b, sizeof best_a) == 0;
        printf("%s  %-20s %-16s graph = direct, bit for bit; token %d\n", ok ? "ok   " : "WRONG",
               c->name, route_names[i], layer_token(best_a[0]));
        all = all && ok;
    }
    return all;
}

/* --- a whole step in fp64 --- */

typedef struct Whole {
    LayerEngine *engine;
    const LayerShape *shape;
    AttnPool pool; /* host: all sets' pages */
    gint32 row, len;
    double *x, *h, *qkv, *att, *gate; /* of the row */
} Whole;

static double half_of(const Whole *w, float value)
{
    return w->shape->attn.dtype == ATTN_BF16 ? (double)attn_bf16_to_f32(attn_f32_to_bf16(value))
                                             : (double)attn_f16_to_f32(attn_f32_to_f16(value));
}

static double stored(const Whole *w, guint16 half)
{
    return w->shape->attn.dtype == ATTN_BF16 ? (double)attn_bf16_to_f32(half)
                                             : (double)attn_f16_to_f32(half);
}

static void linear(const Whole *w, LayerGemm gemm, gint layer, const double *in, double *out)
{
    gint32 m, k;
    layer_gemm_size(w->shape, gemm, &m, &k);
    const gint64 id = layer_weights_id(w->engine, gemm, gemm == LAYER_HEAD ? 0 : layer);
    for (gint32 i = 0; i < m; i++) {
        out[i] = 0;
        for (gint32 j = 0; j < k; j++)
            out[i] += half_of(w, layer_weight(SEED, id, i, j, 1 / sqrtf((float)k))) * in[j];
    }
}

static void normalise(const Whole *w)
{
    double squares = 0;
    for (gint32 i = 0; i < w->shape->hidden; i++)
        squares += w->x[i] * w->x[i];
    for (gint32 i = 0; i < w->shape->hidden; i++)
        w->h[i] = w->x[i] / sqrt(squares / w->shape->hidden + 1e-5);
}

static void rotate(const Whole *w, double *head)
{
    const gint32 half = w->shape->attn.head_dim / 2;
    for (gint32 i = 0; i < half; i++) {
        const double angle = (w->len - 1) * pow(LAYER_THETA, -(double)i / half);
        const double a = head[i], b = head[half + i];
        head[i] = a * cos(angle) - b * sin(angle);
        head[half + i] = b * cos(angle) + a * sin(angle);
    }
}

/* Entry of K (or V) at a position: the new one's is the row's own. */
static double entry(const Whole *w, gint layer, gboolean value, gint32 head, gint32 position,
                    gint32 i)
{
    const AttnShape *s = &w->shape->attn;
    const gint64 d = s->head_dim;
    if (position == w->len - 1)
        return w->qkv[(s->q_heads + (value ? s->kv_heads : 0) + head) * d + i];
    const gint64 page = (layer % w->engine->cell.kv_sets) * w->engine->cell.pages +
                        w->engine->cell.row[w->row].pages[position / s->page_size];
    const gint64 at = page * w->pool.page_stride + (gint64)head * w->pool.head_stride +
                      (gint64)(position % s->page_size) * w->pool.token_stride + i;
    return stored(w, ((const guint16 *)(value ? w->pool.v : w->pool.k))[at]);
}

static void attend(const Whole *w, gint layer)
{
    const AttnShape *s = &w->shape->attn;
    const gint32 d = s->head_dim;
    g_autofree double *score = g_new(double, w->len);
    for (gint32 h = 0; h < s->q_heads; h++) {
        const gint32 kv = h / attn_group(s);
        const double *q = w->qkv + h * d;
        double top = -(double)INFINITY, sum = 0;
        for (gint32 t = 0; t < w->len; t++) {
            score[t] = 0;
            for (gint32 i = 0; i < d; i++)
                score[t] += q[i] * entry(w, layer, FALSE, kv, t, i);
            score[t] /= sqrt(d);
            top = fmax(top, score[t]);
        }
        for (gint32 t = 0; t < w->len; t++)
            sum += score[t] = exp(score[t] - top);
        for (gint32 i = 0; i < d; i++) {
            double x = 0;
            for (gint32 t = 0; t < w->len; t++)
                x += score[t] * entry(w, layer, TRUE, kv, t, i);
            w->att[h * d + i] = x / sum;
        }
    }
}

static void one_layer(const Whole *w, gint layer)
{
    const LayerShape *s = w->shape;
    const gint32 ff = s->feed_forward;
    g_autofree double *delta = g_new(double, s->hidden);
    normalise(w);
    linear(w, LAYER_QKV, layer, w->h, w->qkv);
    for (gint32 h = 0; h < s->attn.q_heads + s->attn.kv_heads; h++)
        rotate(w, w->qkv + h * s->attn.head_dim);
    attend(w, layer);
    linear(w, LAYER_O, layer, w->att, delta);
    for (gint32 i = 0; i < s->hidden; i++)
        w->x[i] += delta[i];
    normalise(w);
    linear(w, LAYER_GATE_UP, layer, w->h, w->gate);
    for (gint32 i = 0; i < ff; i++)
        w->gate[i] = w->gate[i] / (1 + exp(-w->gate[i])) * w->gate[ff + i];
    linear(w, LAYER_DOWN, layer, w->gate, delta);
    for (gint32 i = 0; i < s->hidden; i++)
        w->x[i] += delta[i];
}

static void open_whole(Whole *w, LayerEngine *engine)
{
    const LayerShape *s = w->shape = &engine->config.shape;
    const gint32 heads = s->attn.q_heads + 2 * s->attn.kv_heads;
    w->engine = engine;
    w->pool.pages = engine->cell.kv_sets * engine->cell.pages;
    attn_pool_strides(&w->pool, &s->attn);
    w->pool.k = g_malloc((gsize)attn_pool_bytes(&s->attn, w->pool.pages));
    w->pool.v = g_malloc((gsize)attn_pool_bytes(&s->attn, w->pool.pages));
    for (gint64 p = 0; p < w->pool.pages; p++)
        attn_fill_page(&s->attn, &w->pool, SEED, p);
    w->x = g_new(double, s->hidden);
    w->h = g_new(double, s->hidden);
    w->qkv = g_new(double, heads * s->attn.head_dim);
    w->att = g_new(double, s->attn.q_heads * s->attn.head_dim);
    w->gate = g_new(double, 2 * s->feed_forward);
}

static void close_whole(Whole *w)
{
    gpointer all[] = {w->pool.k, w->pool.v, w->x, w->h, w->qkv, w->att, w->gate};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        g_free(all[i]);
}

static gboolean check_whole(LayerEngine *engine, const Case *c, GError **error)
{
    const gint32 vocabulary = engine->config.shape.vocabulary;
    g_autofree guint16 *got = g_new0(guint16, 8 * (gsize)vocabulary);
    g_autofree double *want = g_new(double, vocabulary);
    uint64_t best[8];
    double worst = 0, scale = 0;
    Whole w = {0};
    if (!prepare(engine, c, "persistent", error) || !replay_graph(engine, error) ||
        !read_logits(engine, got, best, error))
        return FALSE;
    open_whole(&w, engine);
    for (w.row = 0; w.row < c->rows; w.row++) {
        w.len = c->lens[w.row];
        for (gint32 i = 0; i < w.shape->hidden; i++) /* token 0 */
            w.x[i] = half_of(&w, layer_weight(SEED, layer_weights_id(engine, LAYER_HEAD, 0), 0, i,
                                              1 / sqrtf((float)w.shape->hidden)));
        for (gint layer = 0; layer < engine->config.layers; layer++)
            one_layer(&w, layer);
        normalise(&w);
        linear(&w, LAYER_HEAD, 0, w.h, want);
        for (gint32 i = 0; i < vocabulary; i++) {
            const double e = fabs(stored(&w, got[w.row * vocabulary + i]) - want[i]);
            worst = e <= worst ? worst : e; /* NaN stays */
            scale = fmax(scale, fabs(want[i]));
        }
    }
    close_whole(&w);
    const double part = worst / scale, limit = c->dtype == ATTN_BF16 ? 0.08 : 0.01;
    const gboolean ok = part <= limit;
    printf("%s  %-20s whole step against fp64: %.1e of the largest logit\n", ok ? "ok   " : "WRONG",
           c->name, part);
    return ok;
}

static gboolean check_case(const Case *c, gboolean shared, GError **error)
{
    g_autoptr(LayerEngine) engine = engine_for(c, error);
    if (engine == NULL)
        return FALSE;
    if (shared) { /* as on a device that has no room for all layers */
        engine->memory.weight_sets = 1;
        engine->memory.kv /= engine->config.layers;
    }
    const gboolean ok = check_pieces(engine, c, error);
    return (error != NULL && *error != NULL)
               ? FALSE
               : check_graph(engine, c, error) && check_whole(engine, c, error) && ok;
}

int main(void)
{
    g_autoptr(GError) missing = NULL;
    gboolean ok = TRUE;
    if (!layer_available(0, &missing)) {
        printf("%s: skipped\n", missing->message);
        return 77;
    }
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        const gboolean passed = check_case(&cases[i], i == 0 || i == 3, &error);
        if (error != NULL)
            printf("WRONG  %-20s %s\n", cases[i].name, error->message);
        ok = ok && passed;
    }
    printf("%s\n", ok ? "all right" : "WRONG");
    return ok ? 0 : 1;
}
