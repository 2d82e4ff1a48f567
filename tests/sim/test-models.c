/* Models, GPUs and the clocks made of them: parameter counts as published, a real engine's pool,
 * and step times against the arithmetic done by hand. */
#include "base/error.h"
#include "sim/clock.h"
#include "sim/pool_size.h"

#include <glib/gstdio.h>
#include <string.h>

static void test_parameters(void)
{
    const struct {
        const char *name;
        double billions; /* as the publishers give them */
    } published[] = {{"llama-3.1-8b", 8.03}, {"llama-3.1-70b", 70.55}, {"llama-3.2-1b", 1.236},
                     {"qwen2.5-7b", 7.616},  {"qwen2.5-0.5b", 0.494},  {"qwen3-8b", 8.19},
                     {"mistral-7b", 7.248},  {"gemma-2-9b", 9.242},    {"gemma-2-2b", 2.614},
                     {"phi-3-mini", 3.821},  {"phi-4", 14.66}};
    for (gsize i = 0; i < G_N_ELEMENTS(published); i++) {
        ModelInfo m;
        g_assert_true(model_info_find(published[i].name, &m, NULL));
        g_assert_cmpfloat_with_epsilon(model_info_parameters(&m) / 1e9, published[i].billions,
                                       1e-3 * published[i].billions);
    }
    g_autoptr(GError) error = NULL;
    ModelInfo m;
    g_assert_false(model_info_find("llama-9", &m, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
}

/* vLLM 0.19 on an RTX 4090 of 25,250,627,584 bytes made 2,588 pages of 16 (LLMServingSim's run). */
static void test_pool(void)
{
    ModelInfo m;
    g_assert_true(model_info_find("llama-3.1-8b", &m, NULL));
    PoolSizeConfig c;
    pool_size_config_init(&c, 25250627584.0 / 1073741824.0);
    PoolSize s = pool_size(&c, &m);
    g_assert_cmpfloat(s.page_bytes, ==, 2097152);
    g_assert_cmpfloat_with_epsilon((double)s.pages, 2588, 26);
    c.memory_gib = 8;
    g_assert_cmpuint(pool_size(&c, &m).pages, ==, 0); /* the weights alone do not fit */
    g_autofree char *text = pool_size_text(&c, &m);
    g_assert_nonnull(strstr(text, "= pages                              0 (0 entries)"));
}

static void test_config_file(void)
{
    g_autofree char *dir = g_dir_make_tmp("kvmodel-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "config.json", NULL);
    const char *text = "{\"text_config\": {\"hidden_size\": 4096, \"num_hidden_layers\": 32,"
                       "\"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
                       "\"intermediate_size\": 14336, \"vocab_size\": 128256}}";
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    ModelInfo m, llama;
    g_autoptr(GError) error = NULL;
    g_assert_true(model_info_read(path, &m, &error));
    model_info_find("llama-3.1-8b", &llama, NULL);
    g_assert_cmpuint(m.head_dim, ==, 128);
    g_assert_cmpfloat(model_info_parameters(&m), ==, model_info_parameters(&llama));
    g_assert_true(g_file_set_contents(path, "{\"hidden_size\": 4096}", -1, NULL));
    g_assert_false(model_info_read(path, &m, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "num_hidden_layers"));
    g_remove(path);
    g_rmdir(dir);
}

static kv_ns step_length(const char *text, StepLoad load)
{
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0};
    g_assert_true(plugin_choice_parse(&choice, "clock", step_clocks, text, &error));
    g_autoptr(StepClock) clock = step_clock_new(&choice, &error);
    g_assert_no_error(error);
    kv_ns t = clock->ops->length(clock, &load, &error);
    plugin_choice_clear(&choice);
    return t;
}

static void test_roofline(void)
{
    const char *h100 = "roofline:gpu=h100,host=0s,flop_share=0.5,memory_share=0.8";
    /* one row of one entry: reading 7.504e9 parameters of 2 bytes at 2680 GB/s */
    g_assert_cmpfloat_with_epsilon((double)step_length(h100, (StepLoad){.rows = 1}), 5.6e6, 0.02e6);
    /* a prompt of 8192: 2 x 7.504e9 x 8192 / 494.7e12, and attention 4 x 32 x 128 x 32 x 33.56e6 /
     * ... */
    StepLoad prompt = {.prefill_rows = 1, .prefill_tokens = 8192, .prefill_attended = 33558528};
    g_assert_cmpfloat_with_epsilon((double)step_length(h100, prompt), 248.5e6 + 35.6e6, 1e6);
    /* a million entries: 131072 bytes each */
    StepLoad rows = {.rows = 1, .sum_length = 1000000};
    g_assert_cmpfloat_with_epsilon((double)step_length(h100, rows), 5.6e6 + 48.9e6, 0.1e6);
}

static void test_profile(void)
{
    g_autofree char *dir = g_dir_make_tmp("kvprof-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "p.json", NULL);
    g_assert_true(g_file_set_contents(
        path, "{\"kvreplay_profile\": 1, \"cost\": {\"bandwidth_gbps\": 2680}}", -1, NULL));
    g_autofree char *text =
        g_strdup_printf("profile:file=%s,gpu=h100,host=0s,flop_share=0.5", path);
    g_assert_cmpint(step_length(text, (StepLoad){.rows = 1}), ==,
                    step_length("roofline:gpu=h100,host=0s,flop_share=0.5,memory_share=0.8",
                                (StepLoad){.rows = 1}));
    g_remove(path);
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/parameters", test_parameters);
    g_test_add_func("/models/pool", test_pool);
    g_test_add_func("/models/config-file", test_config_file);
    g_test_add_func("/models/roofline", test_roofline);
    g_test_add_func("/models/profile", test_profile);
    return g_test_run();
}
