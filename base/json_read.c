#include "base/json_read.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"

static GString *read_all(const char *path, const char *what, GError **error)
{
    g_autoptr(Input) input = input_open(path, error);
    g_autoptr(GString) text = g_string_new(NULL);
    const char *data;
    gsize size;
    int got = -1;
    while (input != NULL && (got = input_read(input, &data, &size, error)) == 1) {
        g_string_append_len(text, data, (gssize)size);
        if (text->len <= JSON_READ_MAX)
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: over %d MiB: too large for %s", path,
                    JSON_READ_MAX >> 20, what);
        return NULL;
    }
    return got == 0 ? g_steal_pointer(&text) : NULL;
}

/* json-glib's "<data>:LINE:COLUMN: Parse error: REASON". */
static void not_json(const char *path, const char *what, const char *message, GError **error)
{
    static const char begin[] = "<data>:";
    const char *at = g_str_has_prefix(message, begin) ? message + strlen(begin) : NULL;
    char *end = NULL;
    const guint64 line = at != NULL ? g_ascii_strtoull(at, &end, 10) : 1;
    const char *reason = at != NULL ? strstr(end, ": ") : NULL;
    reason = reason != NULL ? reason + 2 : message;
    if (g_str_has_prefix(reason, "Parse error: "))
        reason += strlen("Parse error: ");
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s:%" G_GUINT64_FORMAT ": not JSON: %s: expected %s", path, line, reason, what);
}

guint64 json_too_deep(const char *text, gsize size)
{
    guint64 line = 1;
    guint depth = 0;
    gboolean string = FALSE;
    for (gsize i = 0; i < size; i++) {
        const char c = text[i];
        line += c == '\n';
        if (string && c == '\\')
            i++;
        else if (c == '"')
            string = !string;
        else if (!string && (c == '{' || c == '['))
            depth++;
        else if (!string && depth > 0 && (c == '}' || c == ']'))
            depth--;
        if (depth > JSON_READ_DEPTH)
            return line;
    }
    return 0;
}

JsonNode *json_read_file(const char *path, const char *what, GError **error)
{
    g_autoptr(GString) text = read_all(path, what, error);
    if (text == NULL)
        return NULL;
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) local = NULL;
    if (memchr(text->str, '\0', text->len) != NULL || !g_utf8_validate(text->str, -1, NULL)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:1: not text: expected %s", path, what);
        return NULL;
    }
    const guint64 deep = json_too_deep(text->str, text->len);
    if (deep != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s:%" G_GUINT64_FORMAT ": over %d brackets within one another: expected %s",
                    path, deep, JSON_READ_DEPTH, what);
        return NULL;
    }
    if (!json_parser_load_from_data(parser, text->str, (gssize)text->len, &local)) {
        not_json(path, what, local->message, error);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (root != NULL && JSON_NODE_HOLDS_OBJECT(root))
        return json_node_copy(root);
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:1: %s: expected %s, a JSON object", path,
                root == NULL ? "empty" : "no object", what);
    return NULL;
}

/* --- members --- */

static JsonNode *value_of(JsonObject *o, const char *key)
{
    JsonNode *node = o != NULL ? json_object_get_member(o, key) : NULL;
    return node != NULL && JSON_NODE_HOLDS_VALUE(node) ? node : NULL;
}

const char *json_member_text(JsonObject *o, const char *key, const char *absent)
{
    JsonNode *node = value_of(o, key);
    return node != NULL && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : absent;
}

double json_member_real(JsonObject *o, const char *key, double absent)
{
    JsonNode *node = value_of(o, key);
    const GType type = node != NULL ? json_node_get_value_type(node) : G_TYPE_INVALID;
    if (type != G_TYPE_INT64 && type != G_TYPE_DOUBLE)
        return absent;
    const double value = json_node_get_double(node);
    return isfinite(value) ? value : absent;
}

gint64 json_member_int(JsonObject *o, const char *key, gint64 absent)
{
    JsonNode *node = value_of(o, key);
    return node != NULL && json_node_get_value_type(node) == G_TYPE_INT64 ? json_node_get_int(node)
                                                                          : absent;
}

gboolean json_member_flag(JsonObject *o, const char *key)
{
    JsonNode *node = value_of(o, key);
    return node != NULL && json_node_get_value_type(node) == G_TYPE_BOOLEAN &&
           json_node_get_boolean(node);
}

JsonObject *json_member_object(JsonObject *o, const char *key)
{
    JsonNode *node = o != NULL ? json_object_get_member(o, key) : NULL;
    return node != NULL && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}
