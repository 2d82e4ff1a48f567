#include "sim/steps_file.h"
#include "sim/steps_header.h"
#include "base/error.h"
#include "base/json_read.h"

#include <json-glib/json-glib.h>
#include <string.h>

void steps_header_clear(StepsHeader *h)
{
    g_free(h->workload);
    g_free(h->workload_sha256);
    g_free(h->scenario);
    g_free(h->model);
    g_free(h->dtype);
    memset(h, 0, sizeof *h);
}

void steps_header_copy(StepsHeader *to, const StepsHeader *from)
{
    *to = *from;
    to->workload = g_strdup(from->workload);
    to->workload_sha256 = g_strdup(from->workload_sha256);
    to->scenario = g_strdup(from->scenario);
    to->model = g_strdup(from->model);
    to->dtype = g_strdup(from->dtype);
}

static void put_text(JsonBuilder *b, const char *key, const char *text)
{
    json_builder_set_member_name(b, key);
    if (text)
        json_builder_add_string_value(b, text);
    else
        json_builder_add_null_value(b);
}

static void put_int(JsonBuilder *b, const char *key, guint64 v)
{
    json_builder_set_member_name(b, key);
    json_builder_add_int_value(b, (gint64)v);
}

char *steps_header_to_json(const StepsHeader *h)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    put_text(b, "workload", h->workload);
    put_text(b, "workload_sha256", h->workload_sha256);
    put_text(b, "model", h->model);
    put_int(b, "layers", h->layers);
    put_int(b, "q_heads", h->q_heads);
    put_int(b, "kv_heads", h->kv_heads);
    put_int(b, "head_dim", h->head_dim);
    put_text(b, "dtype", h->dtype);
    put_int(b, "page_size", h->page_size);
    put_int(b, "pool_pages", h->pool_pages);
    put_int(b, "seed", h->seed);
    put_int(b, "replica", h->replica);
    put_text(b, "scenario", h->scenario);
    json_builder_end_object(b);
    g_autoptr(JsonNode) root = json_builder_get_root(b);
    return json_to_string(root, FALSE);
}

static char *get_text(JsonObject *o, const char *key)
{
    JsonNode *n = json_object_get_member(o, key);
    if (n == NULL || !JSON_NODE_HOLDS_VALUE(n) || json_node_get_value_type(n) != G_TYPE_STRING)
        return NULL;
    return g_strdup(json_node_get_string(n));
}

/* FALSE when absent or outside [min, max]. */
static gboolean get_int(JsonObject *o, const char *key, gint64 min, gint64 max, gint64 *ret,
                        const char **bad)
{
    JsonNode *n = json_object_get_member(o, key);
    if (n == NULL || !JSON_NODE_HOLDS_VALUE(n) || json_node_get_value_type(n) != G_TYPE_INT64 ||
        json_node_get_int(n) < min || json_node_get_int(n) > max) {
        *bad = key;
        return FALSE;
    }
    *ret = json_node_get_int(n);
    return TRUE;
}

gboolean steps_header_from_json(StepsHeader *ret, const char *text, gsize size, const char *name,
                                GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root = NULL;
    if (json_too_deep(text, size) == 0 &&
        json_parser_load_from_data(parser, text, (gssize)size, NULL))
        root = json_parser_get_root(parser);
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: the header is not a JSON object", name);
        return FALSE;
    }
    JsonObject *o = json_node_get_object(root);
    gint64 layers, q, kv, d, page, pool, seed, replica;
    const char *bad = NULL;
    if (!get_int(o, "layers", 0, 1 << 20, &layers, &bad) ||
        !get_int(o, "q_heads", 0, 1 << 20, &q, &bad) ||
        !get_int(o, "kv_heads", 0, 1 << 20, &kv, &bad) ||
        !get_int(o, "head_dim", 0, 1 << 20, &d, &bad) ||
        !get_int(o, "page_size", 1, 1 << 20, &page, &bad) ||
        !get_int(o, "pool_pages", 0, G_MAXUINT32, &pool, &bad) ||
        !get_int(o, "seed", G_MININT64, G_MAXINT64, &seed, &bad) ||
        !get_int(o, "replica", 0, G_MAXUINT32, &replica, &bad)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: the header's '%s' is missing or out of range", name, bad);
        return FALSE;
    }
    *ret = (StepsHeader){
        .workload = get_text(o, "workload"),
        .workload_sha256 = get_text(o, "workload_sha256"),
        .scenario = get_text(o, "scenario"),
        .model = get_text(o, "model"),
        .dtype = get_text(o, "dtype"),
        .layers = (guint32)layers,
        .q_heads = (guint32)q,
        .kv_heads = (guint32)kv,
        .head_dim = (guint32)d,
        .page_size = (guint32)page,
        .pool_pages = (guint64)pool,
        .seed = (guint64)seed,
        .replica = (guint32)replica,
    };
    return TRUE;
}
