/* Checks a JSON value against the part of JSON Schema that docs/summary.schema.json uses. */
#ifndef KV_TESTS_SCHEMA_H
#define KV_TESTS_SCHEMA_H

#include <json-glib/json-glib.h>
#include <string.h>

static gboolean schema_type_is(JsonNode *value, const char *type)
{
    if (strcmp(type, "object") == 0)
        return JSON_NODE_HOLDS_OBJECT(value);
    if (strcmp(type, "array") == 0)
        return JSON_NODE_HOLDS_ARRAY(value);
    if (strcmp(type, "null") == 0)
        return JSON_NODE_HOLDS_NULL(value);
    if (!JSON_NODE_HOLDS_VALUE(value))
        return FALSE;
    GType held = json_node_get_value_type(value);
    return (strcmp(type, "string") == 0 && held == G_TYPE_STRING) ||
           (strcmp(type, "boolean") == 0 && held == G_TYPE_BOOLEAN) ||
           (strcmp(type, "integer") == 0 && held == G_TYPE_INT64) ||
           (strcmp(type, "number") == 0 && (held == G_TYPE_INT64 || held == G_TYPE_DOUBLE));
}

static gboolean schema_types_allow(JsonObject *schema, JsonNode *value)
{
    if (!json_object_has_member(schema, "type"))
        return TRUE;
    JsonNode *types = json_object_get_member(schema, "type");
    if (!JSON_NODE_HOLDS_ARRAY(types))
        return schema_type_is(value, json_node_get_string(types));
    JsonArray *array = json_node_get_array(types);
    for (guint i = 0; i < json_array_get_length(array); i++)
        if (schema_type_is(value, json_array_get_string_element(array, i)))
            return TRUE;
    return FALSE;
}

static void schema_check(JsonObject *root, JsonObject *schema, JsonNode *value, const char *where);

static void schema_check_object(JsonObject *root, JsonObject *schema, JsonObject *object,
                                const char *where)
{
    JsonArray *required = json_object_has_member(schema, "required")
                              ? json_object_get_array_member(schema, "required")
                              : NULL;
    for (guint i = 0; required != NULL && i < json_array_get_length(required); i++)
        if (!json_object_has_member(object, json_array_get_string_element(required, i)))
            g_error("%s: no key '%s'", where, json_array_get_string_element(required, i));
    JsonObject *properties = json_object_has_member(schema, "properties")
                                 ? json_object_get_object_member(schema, "properties")
                                 : NULL;
    g_autoptr(GList) members = json_object_get_members(object);
    for (GList *m = members; m != NULL; m = m->next) {
        g_autofree char *inner = g_strconcat(where, ".", m->data, NULL);
        JsonObject *of = NULL;
        if (properties != NULL && json_object_has_member(properties, m->data))
            of = json_object_get_object_member(properties, m->data);
        else if (json_object_has_member(schema, "additionalProperties"))
            of = json_object_get_object_member(schema, "additionalProperties");
        if (of != NULL)
            schema_check(root, of, json_object_get_member(object, m->data), inner);
    }
}

/* g_error() with the place and the reason where `value` does not fit. */
static void schema_check(JsonObject *root, JsonObject *schema, JsonNode *value, const char *where)
{
    if (json_object_has_member(schema, "$ref")) {
        const char *name = strrchr(json_object_get_string_member(schema, "$ref"), '/') + 1;
        schema = json_object_get_object_member(json_object_get_object_member(root, "$defs"), name);
    }
    if (!schema_types_allow(schema, value)) {
        g_autofree char *text = json_to_string(value, FALSE);
        g_error("%s: %.80s has the wrong type", where, text);
    }
    if (JSON_NODE_HOLDS_OBJECT(value))
        schema_check_object(root, schema, json_node_get_object(value), where);
    if (!schema_type_is(value, "number"))
        return;
    double number = json_node_get_double(value);
    if ((json_object_has_member(schema, "minimum") &&
         number < json_object_get_double_member(schema, "minimum")) ||
        (json_object_has_member(schema, "maximum") &&
         number > json_object_get_double_member(schema, "maximum")))
        g_error("%s: %g is out of range", where, number);
}

#endif
