#include "replay/near_json.h"

#include <stddef.h>

static const struct {
    const char *name;
    gsize at;
} fields[] = {{"kv_bytes", offsetof(NearPoint, kv_bytes)},
              {"tasks", offsetof(NearPoint, tasks)},
              {"longest_percent", offsetof(NearPoint, longest_percent)},
              {"group", offsetof(NearPoint, group)},
              {"head_dim", offsetof(NearPoint, head_dim)},
              {"off_per_mille", offsetof(NearPoint, off_per_mille)},
              {"weight_percent", offsetof(NearPoint, weight_percent)}};

static gint64 *field_of(NearPoint *point, guint f)
{
    return (gint64 *)(void *)((char *)point + fields[f].at);
}

static JsonArray *array_of(JsonObject *object, guint f)
{
    JsonNode *node = json_object_get_member(object, fields[f].name);
    return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static gboolean take(JsonArray *array, guint i, gint64 *ret)
{
    JsonNode *node = json_array_get_element(array, i);
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64)
        return FALSE;
    *ret = json_node_get_int(node);
    return TRUE;
}

Near *near_from_json(JsonObject *object, const char **ret_wrong)
{
    JsonArray *array[G_N_ELEMENTS(fields)];
    guint n = 0;
    for (guint f = 0; f < G_N_ELEMENTS(fields); f++) {
        *ret_wrong = fields[f].name;
        array[f] = array_of(object, f);
        if (array[f] == NULL)
            return NULL;
        if (f == 0)
            n = json_array_get_length(array[0]);
        if (n > NEAR_JSON_MOST || json_array_get_length(array[f]) != n)
            return NULL;
    }
    Near *self = near_new();
    for (guint i = 0; i < n; i++) {
        NearPoint point = {0};
        gboolean ok = TRUE;
        for (guint f = 0; f < G_N_ELEMENTS(fields) && ok; f++) {
            *ret_wrong = fields[f].name;
            ok = take(array[f], i, field_of(&point, f));
        }
        if (ok) {
            *ret_wrong = near_point_fault(&point);
            ok = *ret_wrong == NULL;
        }
        if (!ok) {
            near_free(self);
            return NULL;
        }
        near_add(self, &point);
    }
    near_settle(self);
    return self;
}

void near_to_json(const Near *self, JsonBuilder *b)
{
    json_builder_begin_object(b);
    for (guint f = 0; f < G_N_ELEMENTS(fields); f++) {
        json_builder_set_member_name(b, fields[f].name);
        json_builder_begin_array(b);
        for (guint i = 0; i < near_points(self); i++) {
            NearPoint point = *near_point(self, i);
            json_builder_add_int_value(b, *field_of(&point, f));
        }
        json_builder_end_array(b);
    }
    json_builder_end_object(b);
}
