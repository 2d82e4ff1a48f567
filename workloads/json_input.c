#include "workloads/json_input.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"

struct JsonInput {
    Input *input;
    JDoc *doc;
    GByteArray *whole; /* a document's text */
    const JNode *nodes;
    guint32 n;
    guint64 line; /* of the record; of a document: 0 */
};

JsonInput *json_input_new(Input *input)
{
    JsonInput *self = g_new0(JsonInput, 1);
    self->input = input;
    self->doc = jdoc_new();
    g_assert(self->doc != NULL);
    return self;
}

void json_input_free(JsonInput *self)
{
    if (self == NULL)
        return;
    jdoc_free(self->doc);
    if (self->whole != NULL)
        g_byte_array_unref(self->whole);
    g_free(self);
}

static guint64 count_lines(const char *text, gsize len)
{
    guint64 n = 1;
    for (const char *p = text, *end = text + len; (p = memchr(p, '\n', (gsize)(end - p))) != NULL;
         p++)
        n++;
    return n;
}

/* `line` of the first byte; a document (line 0) counts its own. */
static gboolean parse(JsonInput *self, const char *text, gsize len, guint64 line, GError **error)
{
    gsize offset;
    const char *problem = jdoc_parse(self->doc, text, len, &offset);
    self->nodes = jdoc_nodes(self->doc, &self->n);
    self->line = line;
    if (problem == NULL)
        return TRUE;
    offset = MIN(offset, len);
    if (line == 0)
        line = count_lines(text, offset);
    g_autofree char *what = g_strdup_printf("JSON: %s", problem);
    const char *newline = memchr(text + offset, '\n', len - offset);
    gsize rest = newline != NULL ? (gsize)(newline - text) - offset : len - offset;
    return field_error(self->input, line, error, what, text + offset, rest, "a JSON object");
}

int json_input_next(JsonInput *self, GError **error)
{
    char *line;
    gsize len, skip;
    do {
        int got = input_line(self->input, &line, &len, error);
        if (got != 1)
            return got;
        skip = 0;
        if (input_line_number(self->input) == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
            skip = 3;
        while (skip < len && g_ascii_isspace(line[skip]))
            skip++;
    } while (skip == len);
    guint64 number = input_line_number(self->input);
    if (!parse(self, line + skip, len - skip, number, error))
        return -1;
    if (self->nodes[0].type != JDOC_OBJECT) {
        field_error(self->input, number, error, "JSON", line, len, "an object on each line");
        return -1;
    }
    return 1;
}

gboolean json_input_document(JsonInput *self, GError **error)
{
    const char *data;
    gsize size;
    int got;
    self->whole = g_byte_array_new();
    while ((got = input_read(self->input, &data, &size, error)) == 1) {
        if (self->whole->len + (guint64)size > G_MAXUINT32 / 2)
            return field_error(self->input, 1, error, "JSON document", NULL, 0, "at most 2 GiB");
        g_byte_array_append(self->whole, (const guint8 *)data, (guint)size);
    }
    if (got < 0)
        return FALSE;
    const char *text = self->whole->len > 0 ? (const char *)self->whole->data : "";
    gsize skip = self->whole->len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return parse(self, text + skip, self->whole->len - skip, 0, error);
}

JsonInput *json_input_nested(const JsonInput *outer, const char *text, gsize len, const JNode *at,
                             GError **error)
{
    g_autoptr(JsonInput) self = json_input_new(outer->input);
    if (!parse(self, text, len, json_line(outer, at), error))
        return NULL;
    return g_steal_pointer(&self);
}

const JNode *json_root(const JsonInput *self)
{
    return &self->nodes[0];
}

guint64 json_line(const JsonInput *self, const JNode *node)
{
    if (self->line > 0 || self->whole == NULL)
        return self->line;
    /* Nodes point into the parser's copy: count in it, from its first node with a text. */
    if (node == NULL)
        node = &self->nodes[0];
    const char *base = jdoc_text(self->doc);
    for (const JNode *n = node; n < self->nodes + self->n; n++) {
        const char *at = n->text != NULL ? n->text : n->key;
        if (at != NULL)
            return count_lines(base, (gsize)(at - base));
    }
    return 1;
}

static const JNode *find(const JsonInput *self, const JNode *object, const char *name, gsize len)
{
    if (object == NULL || object->type != JDOC_OBJECT)
        return NULL;
    guint32 i = (guint32)(object - self->nodes) + 1;
    for (guint64 k = 0; k < object->len; k++, i = self->nodes[i].next) {
        const JNode *child = &self->nodes[i];
        if (child->key_len == len && memcmp(child->key, name, len) == 0)
            return child->type == JDOC_NULL ? NULL : child;
    }
    return NULL;
}

const JNode *json_member(const JsonInput *self, const JNode *object, const char *name)
{
    return find(self, object, name, strlen(name));
}

const JNode *json_any(const JsonInput *self, const JNode *object, const char *names)
{
    for (const char *p = names;; p++) {
        gsize len = strcspn(p, "|");
        const JNode *node = find(self, object, p, len);
        if (node != NULL || p[len] == '\0')
            return node;
        p += len;
    }
}

const JNode *json_first(const JsonInput *self, const JNode *parent)
{
    if (parent == NULL || (parent->type != JDOC_OBJECT && parent->type != JDOC_ARRAY) ||
        parent->len == 0)
        return NULL;
    return parent + 1;
}

const JNode *json_next(const JsonInput *self, const JNode *parent, const JNode *child)
{
    return child->next < parent->next ? &self->nodes[child->next] : NULL;
}

gboolean json_error(const JsonInput *self, const JNode *node, const char *name,
                    const char *expected, GError **error)
{
    g_autofree char *what = g_strdup_printf(node != NULL ? "field '%s'" : "no field '%s'", name);
    const char *text = NULL;
    gsize len = 0;
    if (node != NULL && (node->type == JDOC_NUMBER || node->type == JDOC_STRING)) {
        text = node->text;
        len = node->len;
    } else if (node != NULL) {
        static const char *const shown[] = {"null", "false", "true",  "",
                                            "",     "[...]", "[...]", "{...}"};
        text = shown[node->type];
        len = strlen(text);
    }
    return field_error(self->input, json_line(self, node), error, what, text, len, expected);
}

static gboolean is_scalar(const JNode *node)
{
    return node != NULL && (node->type == JDOC_NUMBER || node->type == JDOC_STRING);
}

gboolean json_i64(const JsonInput *self, const JNode *node, const char *name, gint64 min,
                  gint64 max, gint64 *ret, GError **error)
{
    gint64 v;
    if (is_scalar(node) && field_i64(node->text, node->len, &v) && v >= min && v <= max) {
        *ret = v;
        return TRUE;
    }
    g_autofree char *expected =
        g_strdup_printf("a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
    return json_error(self, node, name, expected, error);
}

gboolean json_tokens(const JsonInput *self, const JNode *node, const char *name, gint64 *ret,
                     GError **error)
{
    return json_i64(self, node, name, 0, G_MAXINT32, ret, error);
}

gboolean json_time(const JsonInput *self, const JNode *node, const char *name, kv_ns unit,
                   kv_ns *ret, GError **error)
{
    if (is_scalar(node) && field_time(node->text, node->len, unit, ret))
        return TRUE;
    return json_error(self, node, name,
                      unit == KV_SECOND ? "a time in seconds"
                      : unit == KV_MS   ? "a time in milliseconds"
                      : unit == KV_US   ? "a time in microseconds"
                                        : "a time in nanoseconds",
                      error);
}

gboolean json_real(const JsonInput *self, const JNode *node, const char *name, double *ret,
                   GError **error)
{
    return (is_scalar(node) && field_real(node->text, node->len, ret)) ||
           json_error(self, node, name, "a number", error);
}

gboolean json_ids(const JsonInput *self, const JNode *node, const char *name,
                  const guint64 **ret_ids, gsize *ret_n, GError **error)
{
    *ret_ids = NULL;
    *ret_n = 0;
    if (node == NULL || (node->type == JDOC_ARRAY && node->len == 0))
        return TRUE;
    if (node->type != JDOC_INTS)
        return json_error(self, node, name, "an array of whole numbers", error);
    *ret_ids = jdoc_ints(self->doc) + node->ints;
    *ret_n = node->len;
    return TRUE;
}

guint64 json_length(const JNode *array)
{
    return array != NULL && (array->type == JDOC_INTS || array->type == JDOC_ARRAY) ? array->len
                                                                                    : 0;
}

void json_cursor_init(JsonCursor *self, const JsonInput *json, const JNode *array)
{
    *self = (JsonCursor){.json = json, .array = array, .child = json_first(json, array)};
}

const JNode *json_cursor_node(JsonCursor *self)
{
    const JNode *node = self->child;
    if (node != NULL)
        self->child = json_next(self->json, self->array, node);
    self->i++;
    return node;
}

gboolean json_cursor_i64(JsonCursor *self, const char *name, gint64 min, gint64 max, gint64 *ret,
                         GError **error)
{
    if (self->array == NULL || self->array->type != JDOC_INTS)
        return json_i64(self->json, json_cursor_node(self), name, min, max, ret, error);
    guint64 bits = jdoc_ints(self->json->doc)[self->array->ints + self->i++];
    *ret = (gint64)bits;
    if (*ret >= min && *ret <= max && (self->array->negative || bits <= G_MAXINT64))
        return TRUE;
    return json_error(self->json, self->array, name, "whole numbers within range", error);
}

gboolean json_cursor_time(JsonCursor *self, const char *name, kv_ns unit, kv_ns *ret,
                          GError **error)
{
    gint64 v;
    if (self->array == NULL || self->array->type != JDOC_INTS) {
        const JNode *node = json_cursor_node(self);
        if (node != NULL && node->type == JDOC_NULL) {
            *ret = KV_NS_NONE;
            return TRUE;
        }
        return json_time(self->json, node, name, unit, ret, error);
    }
    if (!json_cursor_i64(self, name, G_MININT64, G_MAXINT64, &v, error))
        return FALSE;
    if (__builtin_mul_overflow(v, unit, ret) || *ret > LOG_TIME_MAX || *ret < -LOG_TIME_MAX)
        return json_error(self->json, self->array, name, "times within 126 years", error);
    return TRUE;
}

static const char *unescape_unicode(const char *p, const char *end, GString *out)
{
    gunichar code = 0;
    for (int i = 0; i < 4 && p + i < end; i++)
        code = code << 4 | (gunichar)MAX(g_ascii_xdigit_value(p[i]), 0);
    p = MIN(p + 4, end);
    if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        gunichar low = 0;
        for (int i = 2; i < 6; i++)
            low = low << 4 | (gunichar)MAX(g_ascii_xdigit_value(p[i]), 0);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }
    if (code >= 0xd800 && code < 0xe000)
        code = 0xfffd; /* half of a pair */
    g_string_append_unichar(out, code);
    return p;
}

char *json_text(const JNode *node)
{
    if (node == NULL || node->type != JDOC_STRING)
        return NULL;
    GString *out = g_string_sized_new(node->len + 1);
    for (const char *p = node->text, *end = p + node->len; p < end;) {
        if (*p != '\\' || p + 1 == end) {
            g_string_append_c(out, *p++);
            continue;
        }
        static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
        const char *known = p[1] != '\0' ? strchr(from, p[1]) : NULL;
        if (p[1] == 'u') {
            p = unescape_unicode(p + 2, end, out);
            continue;
        }
        g_string_append_c(out, known != NULL ? to[known - from] : p[1]);
        p += 2;
    }
    return g_string_free(out, FALSE);
}

gboolean json_text_is(const JNode *node, const char *text)
{
    return node != NULL && node->type == JDOC_STRING && node->len == strlen(text) &&
           memcmp(node->text, text, node->len) == 0;
}
