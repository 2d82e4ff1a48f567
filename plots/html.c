#include "plots/html.h"

#include <math.h>
#include <string.h>

void html_text(GString *page, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    for (const char *c = valid; *c != '\0'; c++) {
        switch (*c) {
        case '&':
            g_string_append(page, "&amp;");
            break;
        case '<':
            g_string_append(page, "&lt;");
            break;
        case '>':
            g_string_append(page, "&gt;");
            break;
        case '"':
            g_string_append(page, "&quot;");
            break;
        case '\'':
            g_string_append(page, "&#39;");
            break;
        default:
            if (*c == '\n' || *c == '\t' || !g_ascii_iscntrl(*c))
                g_string_append_c(page, *c);
        }
    }
}

void html_count(GString *page, gint64 value)
{
    char digits[32];
    g_snprintf(digits, sizeof digits, "%" G_GINT64_FORMAT, value);
    gsize n = strlen(digits), first = digits[0] == '-';
    for (gsize i = 0; i < n; i++) {
        if (i > first && (n - i) % 3 == 0)
            g_string_append_c(page, ',');
        g_string_append_c(page, digits[i]);
    }
}

void html_number(GString *page, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (!isfinite(value)) {
        g_string_append(page, "n/a");
        return;
    }
    if (fabs(value) >= 1000 && fabs(value) < 1e15) {
        html_count(page, llround(value));
        return;
    }
    g_string_append(page, g_ascii_formatd(text, sizeof text, "%.4g", value));
}

void html_json(GString *page, const char *json)
{
    for (const char *c = json; *c != '\0'; c++) {
        if (*c == '<')
            g_string_append(page, "\\u003c");
        else
            g_string_append_c(page, *c);
    }
}

void html_data_uri(GString *page, const char *type, const char *data, gsize size)
{
    g_autofree char *base64 = g_base64_encode((const guchar *)data, size);
    g_string_append_printf(page, "data:%s;base64,", type);
    g_string_append(page, base64);
}

/* {"value", "low95", "high95"}: a figure with its interval. */
static gboolean is_interval(JsonNode *node)
{
    if (!JSON_NODE_HOLDS_OBJECT(node))
        return FALSE;
    JsonObject *object = json_node_get_object(node);
    return json_object_has_member(object, "value") && json_object_has_member(object, "low95") &&
           json_object_has_member(object, "high95");
}

void html_json_value(GString *page, JsonNode *node)
{
    if (node == NULL || JSON_NODE_HOLDS_NULL(node)) {
        g_string_append(page, "n/a");
    } else if (is_interval(node)) {
        JsonObject *object = json_node_get_object(node);
        html_json_value(page, json_object_get_member(object, "value"));
        g_string_append(page, " (95 %: ");
        html_json_value(page, json_object_get_member(object, "low95"));
        g_string_append(page, " to ");
        html_json_value(page, json_object_get_member(object, "high95"));
        g_string_append_c(page, ')');
    } else if (!JSON_NODE_HOLDS_VALUE(node)) {
        g_autofree char *text = json_to_string(node, FALSE);
        html_text(page, text);
    } else if (json_node_get_value_type(node) == G_TYPE_INT64) {
        html_count(page, json_node_get_int(node));
    } else if (json_node_get_value_type(node) == G_TYPE_DOUBLE) {
        html_number(page, json_node_get_double(node));
    } else if (json_node_get_value_type(node) == G_TYPE_BOOLEAN) {
        g_string_append(page, json_node_get_boolean(node) ? "yes" : "no");
    } else {
        html_text(page, json_node_get_string(node));
    }
}
