/* Shapes, work and memory of a decode step: against published sizes and sums made by hand; what
 * cannot be is refused in words. No GPU. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/layer.h"

static LayerShape shape_of(const char *name, gint tp)
{
    g_autoptr(GError) error = NULL;
    ModelInfo model;
    LayerShape shape;
    g_assert_true(model_info_find(name, &model, &error));
    g_assert_true(layer_shape_init(&shape, &model, tp, 16, ATTN_F16, &error));
    return shape;
}

/* Weights of a layer and of the head, from the products' sizes. */
static gint64 weights(const LayerShape *s, gboolean head)
{
    gint64 sum = 0;
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++) {
        gint32 m, k;
        layer_gemm_size(s, g, &m, &k);
        if ((g == LAYER_HEAD) == head)
            sum += (gint64)m * k;
    }
    return sum;
}

/* Meta's Llama 3.1 8B has 8.03 thousand million parameters, embedding and head apart, norms in. */
static void test_sizes(void)
{
    const LayerShape s = shape_of("llama-3.1-8b", 1);
    const gint64 norms = (2 * 32 + 1) * 4096;
    g_assert_cmpint(32 * weights(&s, FALSE) + 2 * weights(&s, TRUE) + norms, ==, 8030261248);
    gint32 m, k;
    layer_gemm_size(&s, LAYER_QKV, &m, &k);
    g_assert_cmpint(m, ==, 6144);
    g_assert_cmpint(k, ==, 4096);
    /* An eighth of a 70B's heads and widths; the residual stream stays whole. */
    const LayerShape t = shape_of("llama-3.1-70b", 8);
    g_assert_cmpint(t.attn.q_heads, ==, 8);
    g_assert_cmpint(t.attn.kv_heads, ==, 1);
    g_assert_cmpint(t.feed_forward, ==, 3584);
    g_assert_cmpint(t.vocabulary, ==, 16032);
    g_assert_cmpint(t.hidden, ==, 8192);
    g_assert_cmpint(weights(&t, FALSE), ==,
                    8192 * (8 + 2) * 128 + 8 * 128 * 8192 + 3 * 8192 * 3584);
    /* What the simulator's clocks count is the same. */
    ModelInfo model;
    g_assert_true(model_info_find("qwen2.5-7b", &model, NULL));
    const LayerShape q = shape_of("qwen2.5-7b", 1);
    g_assert_cmpfloat(model_info_step_parameters(&model), ==,
                      28.0 * (double)weights(&q, FALSE) + (double)weights(&q, TRUE));
}

static void test_bucket(void)
{
    static const gint32 want[][2] = {{1, 1}, {2, 2}, {3, 4}, {8, 8}, {9, 16}, {64, 64}, {65, 128}};
    for (guint i = 0; i < G_N_ELEMENTS(want); i++)
        g_assert_cmpint(layer_bucket(want[i][0]), ==, want[i][1]);
}

/* By hand: 2 FLOP a weight and row; 4 FLOP an entry, query head and element; K and V of the entries
 * attended to. */
static void test_work(void)
{
    const LayerShape s = shape_of("llama-3.1-8b", 1);
    static const gint32 lens[] = {2048, 1000, 1};
    LayerWork w, twice;
    layer_work(&s, 32, 4, 3, lens, &w);
    const double all = 32.0 * (double)weights(&s, FALSE) + (double)weights(&s, TRUE);
    g_assert_cmpfloat(w.gemm_flop, ==, 2 * 4 * all);
    g_assert_cmpfloat(w.attention_flop, ==, 32 * 4.0 * 3049 * 32 * 128);
    g_assert_cmpfloat(w.attention_bytes, ==, 32 * (2 * 2.0 * 3049 * 8 * 128 + 3 * 2 * 2.0 * 4096));
    g_assert_cmpfloat(w.gemm_bytes, >, 2 * all); /* the weights, and activations besides */
    g_assert_cmpfloat(w.gemm_bytes, <, 2 * all * 1.01);
    layer_work(&s, 64, 4, 3, lens, &twice); /* layers scale all but the head */
    g_assert_cmpfloat(twice.attention_flop, ==, 2 * w.attention_flop);
    g_assert_cmpfloat(twice.gemm_flop, ==, 2 * w.gemm_flop - 2.0 * 4 * (double)weights(&s, TRUE));
}

static void test_memory(void)
{
    const LayerShape s = shape_of("llama-3.1-8b", 1);
    const gint64 gib = 1 << 30, page = 2 * 16 * 8 * 128 * 2;
    static const gint32 lens[] = {8192 - LAYER_GROWTH};
    LayerMemory m;
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(layer_cell_pages(&s.attn, 1, lens), ==, 512);
    /* All fits: everything is there once a layer. */
    g_assert_true(layer_memory_plan(&s, 32, 8, 8192, 512, 8 * 512, 100 * gib, &m, &error));
    g_assert_cmpint(m.page, ==, page);
    g_assert_cmpint(m.weight_sets, ==, 32);
    g_assert_cmpint(layer_kv_sets(&m, 512), ==, 32);
    g_assert_cmpint(layer_kv_sets(&m, 8 * 512), ==, 32);
    g_assert_cmpint(m.kv, ==, 32 * 8 * 512 * page);
    g_assert_cmpint(layer_memory_needed(&m, 512), ==,
                    32 * (2 * weights(&s, FALSE) + 512 * page) + 2 * weights(&s, TRUE) +
                        m.activations);
    /* 12 GiB: not all layers' weights (13 GiB); half of the room is theirs, the rest the pages'. */
    g_assert_true(layer_memory_plan(&s, 32, 8, 8192, 512, 8 * 512, 12 * gib, &m, &error));
    g_assert_cmpint(m.weight_sets, >, 5);
    g_assert_cmpint(m.weight_sets, <, 16);
    g_assert_cmpint(m.weight_sets * m.weights + m.kv + m.head + m.activations, <=, m.free);
    g_assert_cmpint(layer_kv_sets(&m, 1 << 20), ==, 0); /* 64 GiB of one layer */
    g_autofree char *text = layer_memory_text(&m, 512);
    g_assert_nonnull(strstr(text, "GiB of 12.00"));
    /* Nothing fits: the sums. */
    g_assert_false(layer_memory_plan(&s, 32, 8, 8192, 512, 512, 2 * gib, &m, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_nonnull(strstr(error->message, "2.00 GiB are free"));
}

static void refused(const char *name, gint tp, gint code, const char *needle)
{
    g_autoptr(GError) error = NULL;
    ModelInfo model;
    LayerShape shape;
    g_assert_true(model_info_find(name, &model, NULL));
    g_assert_false(layer_shape_init(&shape, &model, tp, 16, ATTN_F16, &error));
    g_assert_error(error, KV_ERROR, code);
    g_assert_nonnull(strstr(error->message, needle));
    g_assert_null(strchr(error->message, '\n'));
}

static void test_refusals(void)
{
    refused("llama-3.1-8b", 3, KV_ERROR_USAGE, "--tp 3");
    refused("llama-3.1-8b", 16, KV_ERROR_USAGE, "8 KV"); /* heads are not copied */
    refused("phi-3-mini", 1, KV_ERROR_UNSUPPORTED, "head size 96");
}

/* The gate: a rounding passes, a wrong value and a NaN do not. */
static void test_verdict(void)
{
    LayerCheck c = {.norm = 4e-4, .rope = 3e-4, .silu = 4e-4, .attention_max = 1e-3};
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++)
        c.gemm[g] = 1e-3;
    g_assert_true(layer_check_passes(ATTN_F16, &c));
    LayerCheck d = c;
    d.gemm[LAYER_DOWN] = 0.01;
    g_assert_false(layer_check_passes(ATTN_F16, &d));
    g_assert_true(layer_check_passes(ATTN_BF16, &d));
    d = c;
    d.silu = (double)NAN;
    g_assert_false(layer_check_passes(ATTN_F16, &d));
    d = c;
    d.attention_mean = (double)NAN;
    g_assert_false(layer_check_passes(ATTN_F16, &d));
    d = c;
    d.tokens_wrong = 1;
    g_assert_false(layer_check_passes(ATTN_F16, &d));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layer/sizes", test_sizes);
    g_test_add_func("/layer/bucket", test_bucket);
    g_test_add_func("/layer/work", test_work);
    g_test_add_func("/layer/memory", test_memory);
    g_test_add_func("/layer/refusals", test_refusals);
    g_test_add_func("/layer/verdict", test_verdict);
    return g_test_run();
}
