#include "sim/model_info.h"
#include "base/error.h"
#include "base/json_read.h"

#include <json-glib/json-glib.h>

const ModelInfo model_infos[] = {
    {"llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, FALSE},
    {"llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, FALSE},
    {"llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, TRUE},
    {"llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, TRUE},
    {"llama-3.3-70b", 80, 8192, 64, 8, 128, 28672, 128256, FALSE},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, TRUE},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, TRUE},
    {"qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, TRUE},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, FALSE},
    {"qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064, FALSE},
    {"qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064, FALSE},
    {"qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064, FALSE},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, TRUE},
    {"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936, TRUE},
    {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, TRUE},
    {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, FALSE},
    {"qwen3-14b", 40, 5120, 40, 8, 128, 17408, 151936, FALSE},
    {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, FALSE},
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32768, FALSE},
    {"mistral-nemo-12b", 40, 5120, 32, 8, 128, 14336, 131072, FALSE},
    {"mistral-small-24b", 40, 5120, 32, 8, 128, 32768, 131072, FALSE},
    {"gemma-2-2b", 26, 2304, 8, 4, 256, 9216, 256000, TRUE},
    {"gemma-2-9b", 42, 3584, 16, 8, 256, 14336, 256000, TRUE},
    {"gemma-2-27b", 46, 4608, 32, 16, 128, 36864, 256000, TRUE},
    {"phi-3-mini", 32, 3072, 32, 32, 96, 8192, 32064, FALSE},
    {"phi-3-medium", 40, 5120, 40, 10, 128, 17920, 32064, FALSE},
    {"phi-4", 40, 5120, 40, 10, 128, 17920, 100352, FALSE},
    {NULL, 0, 0, 0, 0, 0, 0, 0, FALSE},
};

gboolean model_info_find(const char *name, ModelInfo *ret, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (const ModelInfo *m = model_infos; m->name; m++) {
        if (g_ascii_strcasecmp(m->name, name) == 0) {
            *ret = *m;
            return TRUE;
        }
        g_string_append_printf(known, " %s", m->name);
    }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "unknown model '%s', expected one of%s", name,
                known->str);
    return FALSE;
}

/* 0 when absent or not a sane number. */
static guint get_size(JsonObject *o, const char *key)
{
    JsonNode *n = json_object_get_member(o, key);
    if (n == NULL || !JSON_NODE_HOLDS_VALUE(n) || json_node_get_value_type(n) != G_TYPE_INT64)
        return 0;
    gint64 v = json_node_get_int(n);
    return v > 0 && v <= 1 << 24 ? (guint)v : 0;
}

static gboolean get_flag(JsonObject *o, const char *key)
{
    JsonNode *n = json_object_get_member(o, key);
    return n && JSON_NODE_HOLDS_VALUE(n) && json_node_get_value_type(n) == G_TYPE_BOOLEAN &&
           json_node_get_boolean(n);
}

static gboolean from_object(JsonObject *o, const char *path, ModelInfo *ret, GError **error)
{
    const char *const keys[] = {"num_hidden_layers", "hidden_size", "num_attention_heads",
                                "intermediate_size", "vocab_size"};
    guint v[G_N_ELEMENTS(keys)];
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        v[i] = get_size(o, keys[i]);
        if (v[i] == 0) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                        "%s: '%s' is missing or not a positive whole number", path, keys[i]);
            return FALSE;
        }
    }
    ModelInfo m = {"config.json", v[0], v[1], v[2], 0, 0, v[3], v[4], FALSE};
    m.kv_heads = get_size(o, "num_key_value_heads");
    m.kv_heads = m.kv_heads ? m.kv_heads : m.q_heads;
    m.head_dim = get_size(o, "head_dim");
    m.head_dim = m.head_dim ? m.head_dim : m.hidden / m.q_heads;
    m.tied = get_flag(o, "tie_word_embeddings");
    *ret = m;
    return TRUE;
}

gboolean model_info_read(const char *path, ModelInfo *ret, GError **error)
{
    g_autoptr(JsonNode) root = json_read_file(path, "a model's config.json", error);
    if (root == NULL)
        return FALSE;
    JsonObject *o = json_node_get_object(root);
    JsonObject *inner = json_member_object(o, "text_config"); /* multimodal models */
    return from_object(inner != NULL ? inner : o, path, ret, error);
}

static double layer_parameters(const ModelInfo *m)
{
    double h = m->hidden, q = (double)m->q_heads * m->head_dim,
           kv = (double)m->kv_heads * m->head_dim;
    return h * q + 2 * h * kv + q * h + 3 * h * m->feed_forward;
}

double model_info_step_parameters(const ModelInfo *m)
{
    return m->layers * layer_parameters(m) + (double)m->hidden * m->vocabulary;
}

double model_info_parameters(const ModelInfo *m)
{
    double embedding = (double)m->hidden * m->vocabulary;
    return model_info_step_parameters(m) + (m->tied ? 0 : embedding);
}

double model_info_entry_bytes(const ModelInfo *m, double element)
{
    return 2.0 * m->layers * m->kv_heads * m->head_dim * element;
}

double number_bytes(NumberType type)
{
    switch (type) {
    case NUMBER_FP16:
        return 2;
    case NUMBER_FP8:
    case NUMBER_INT8:
        return 1;
    case NUMBER_INT4:
        return 4.25 / 8;
    }
    return 2;
}
