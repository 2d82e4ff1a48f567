#include "replay/profile.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/outfile.h"
#include "replay/near_json.h"

#define PROFILE_MOST 1e12 /* of any figure: far beyond a device, far from overflow */

/* The published figures of an RTX 3060: 28 SMs, 302 GB/s measured (arXiv 2606.26666). */
DeviceProfile *device_profile_guess(void)
{
    DeviceProfile *self = g_new0(DeviceProfile, 1);
    self->guess = TRUE;
    self->terms = g_array_new(FALSE, TRUE, sizeof(RouteTerm));
    self->learned = g_array_new(FALSE, TRUE, sizeof(LearnedRoute));
    self->device = g_strdup("an RTX 3060-like GPU (guess)");
    self->workers = 28;
    self->bandwidth = 302e3;
    self->launch_us = 4;
    self->cmin = 28;
    self->worker_bandwidth = 3 * self->bandwidth / self->workers;
    return self;
}

void device_profile_free(DeviceProfile *self)
{
    if (self == NULL)
        return;
    g_free(self->device);
    for (guint i = 0; i < self->terms->len; i++)
        g_free(g_array_index(self->terms, RouteTerm, i).route);
    for (guint i = 0; i < self->learned->len; i++) {
        g_free(g_array_index(self->learned, LearnedRoute, i).route);
        near_free(g_array_index(self->learned, LearnedRoute, i).near);
    }
    g_array_unref(self->terms);
    g_array_unref(self->learned);
    g_clear_pointer(&self->measured, json_node_unref);
    g_free(self);
}

const LearnedRoute *device_profile_learned(const DeviceProfile *self, const char *route)
{
    for (guint i = 0; i < self->learned->len; i++) {
        const LearnedRoute *r = &g_array_index(self->learned, LearnedRoute, i);
        if (strcmp(r->route, route) == 0)
            return r;
    }
    return NULL;
}

double device_profile_term(const DeviceProfile *self, const char *route)
{
    for (guint i = 0; i < self->terms->len; i++) {
        const RouteTerm *t = &g_array_index(self->terms, RouteTerm, i);
        if (strcmp(t->route, route) == 0)
            return t->us;
    }
    return 0;
}

gboolean device_profile_has_term(const DeviceProfile *self, const char *route)
{
    for (guint i = 0; i < self->terms->len; i++)
        if (strcmp(g_array_index(self->terms, RouteTerm, i).route, route) == 0)
            return TRUE;
    return FALSE;
}

/* --- reading --- */

typedef struct Reader {
    const char *path;
    const char *route; /* that the keys are of; NULL = none */
    GError **error;
    gboolean failed;
} Reader;

static void fail(Reader *r, const char *key, const char *expected)
{
    if (!r->failed)
        g_set_error(r->error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: device profile: \"%s%s%s\": expected %s", r->path,
                    r->route != NULL ? r->route : "", r->route != NULL ? "." : "", key, expected);
    r->failed = TRUE;
}

static JsonObject *object_member(Reader *r, JsonObject *o, const char *key, gboolean needed)
{
    JsonNode *node = o != NULL ? json_object_get_member(o, key) : NULL;
    if (node != NULL && JSON_NODE_HOLDS_OBJECT(node))
        return json_node_get_object(node);
    if (node != NULL || needed)
        fail(r, key, "an object");
    return NULL;
}

static double number(Reader *r, JsonObject *o, const char *key, double min, const char *expected)
{
    JsonNode *node = json_object_get_member(o, key);
    const GType type = node != NULL && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node)
                                                                   : G_TYPE_INVALID;
    if (type == G_TYPE_INT64 || type == G_TYPE_DOUBLE) {
        const double x = json_node_get_double(node);
        if (x >= min && x <= PROFILE_MOST)
            return x;
        g_autofree char *found = g_strdup_printf("%s, not %g", expected, x);
        fail(r, key, found);
    }
    fail(r, key, expected);
    return 1;
}

static const char rate[] = "a rate above 0 that a device can have, GB/s";

static void read_cost(Reader *r, JsonObject *cost, DeviceProfile *self)
{
    self->bandwidth = 1e3 * number(r, cost, "bandwidth_gbps", 1e-3, rate);
    self->launch_us = number(r, cost, "launch_us", 0, "microseconds");
    self->cmin = number(r, cost, "cmin", 0, "a number of tasks");
    JsonObject *terms = object_member(r, cost, "routes", FALSE);
    if (terms == NULL)
        return;
    g_autoptr(GList) names = json_object_get_members(terms);
    for (GList *l = names; l != NULL; l = l->next) {
        const RouteTerm term = {g_strdup(l->data), number(r, terms, l->data, -1e9, "microseconds")};
        g_array_append_val(self->terms, term);
    }
}

static Near *read_near(Reader *r, JsonObject *route)
{
    JsonObject *near = object_member(r, route, "near", FALSE);
    const char *wrong = "";
    if (near == NULL)
        return NULL;
    Near *ret = near_from_json(near, &wrong);
    if (ret == NULL) {
        g_autofree char *key = g_strdup_printf("near.%s", wrong);
        g_autofree char *want = g_strdup_printf(
            "an array of whole numbers in its range, one a point, %d at most", NEAR_JSON_MOST);
        fail(r, key, want);
    }
    return ret;
}

static void read_learned(Reader *r, JsonObject *learned, DeviceProfile *self)
{
    self->has_learned = TRUE;
    self->worker_bandwidth = 1e3 * number(r, learned, "worker_gbps", 1e-6, rate);
    if (json_object_has_member(learned, "read_gbps"))
        self->read_rate = 1e3 * number(r, learned, "read_gbps", 1e-3, rate);
    JsonObject *all = object_member(r, learned, "routes", TRUE);
    if (all == NULL)
        return;
    g_autoptr(GList) names = json_object_get_members(all);
    for (GList *l = names; l != NULL; l = l->next) {
        JsonObject *o = object_member(r, all, l->data, TRUE);
        if (o == NULL)
            return;
        r->route = l->data;
        static const char want[] = "a coefficient, 0 or more";
        const LearnedRoute route = {
            g_strdup(l->data),
            number(r, o, "fixed_us", 0, want),
            number(r, o, "launch_us", 0, want),
            number(r, o, "stream", 0, want),
            json_object_has_member(o, "tail") ? number(r, o, "tail", 0, want) : 0,
            number(r, o, "merge", 0, want),
            number(r, o, "wave_us", 0, want),
            json_object_has_member(o, "host_us") ? number(r, o, "host_us", 0, want) : 0,
            json_object_has_member(o, "host_task_us") ? number(r, o, "host_task_us", 0, want) : 0,
            json_object_has_member(o, "excess") ? number(r, o, "excess", 0, want) : 0,
            read_near(r, o),
        };
        r->route = NULL;
        g_array_append_val(self->learned, route);
    }
}

/* `path` is for messages. */
static DeviceProfile *from_json(JsonNode *root, const char *path, GError **error)
{
    JsonObject *top = json_node_get_object(root);
    if (!json_object_has_member(top, "kvreplay_profile")) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: no device profile (expected an object with \"kvreplay_profile\": 1)",
                    path);
        return NULL;
    }
    g_autoptr(DeviceProfile) self = device_profile_guess();
    self->guess = FALSE;
    Reader r = {path, NULL, error, FALSE};
    if (number(&r, top, "kvreplay_profile", 1, "version 1") != 1)
        fail(&r, "kvreplay_profile", "version 1");
    g_free(self->device);
    self->device = g_strdup(json_member_text(top, "device", "unnamed device"));
    static const char ctas[] = "a whole number of CTAs, 1 to 1000000";
    const double workers = number(&r, top, "workers", 1, ctas);
    if (workers > 1e6 || workers != floor(workers))
        fail(&r, "workers", ctas);
    else
        self->workers = (gint)workers;
    JsonObject *cost = object_member(&r, top, "cost", FALSE);
    if (cost != NULL)
        read_cost(&r, cost, self);
    JsonObject *learned = object_member(&r, top, "learned", FALSE);
    if (learned != NULL)
        read_learned(&r, learned, self);
    if (object_member(&r, top, "measured", FALSE) != NULL)
        self->measured = json_node_copy(json_object_get_member(top, "measured"));
    return r.failed ? NULL : g_steal_pointer(&self);
}

DeviceProfile *device_profile_read(const char *path, GError **error)
{
    g_autoptr(JsonNode) root = json_read_file(path, "a device profile", error);
    return root != NULL ? from_json(root, path, error) : NULL;
}

/* --- writing --- */

static void add_number(JsonBuilder *b, const char *key, double value)
{
    json_builder_set_member_name(b, key);
    json_builder_add_double_value(b, value);
}

static void write_learned(const DeviceProfile *self, JsonBuilder *b)
{
    json_builder_set_member_name(b, "learned");
    json_builder_begin_object(b);
    add_number(b, "worker_gbps", self->worker_bandwidth / 1e3);
    if (self->read_rate > 0)
        add_number(b, "read_gbps", self->read_rate / 1e3);
    json_builder_set_member_name(b, "routes");
    json_builder_begin_object(b);
    for (guint i = 0; i < self->learned->len; i++) {
        const LearnedRoute *r = &g_array_index(self->learned, LearnedRoute, i);
        json_builder_set_member_name(b, r->route);
        json_builder_begin_object(b);
        add_number(b, "fixed_us", r->fixed_us);
        add_number(b, "launch_us", r->launch_us);
        add_number(b, "stream", r->stream);
        add_number(b, "tail", r->tail);
        add_number(b, "excess", r->excess);
        add_number(b, "merge", r->merge);
        add_number(b, "wave_us", r->wave_us);
        add_number(b, "host_us", r->host_us);
        add_number(b, "host_task_us", r->host_task_us);
        if (r->near != NULL) {
            json_builder_set_member_name(b, "near");
            near_to_json(r->near, b);
        }
        json_builder_end_object(b);
    }
    json_builder_end_object(b);
    json_builder_end_object(b);
}

/* An array in one line, as it is read by people; strings are left alone. */
static char *join_arrays(const char *json)
{
    GString *out = g_string_new(NULL);
    gboolean text = FALSE;
    guint depth = 0;
    for (const char *c = json; *c != '\0'; c++) {
        if (text && *c == '\\' && c[1] != '\0') {
            g_string_append_c(out, *c++);
        } else if (*c == '"') {
            text = !text;
        } else if (!text && (*c == '[' || *c == ']')) {
            depth += *c == '[' ? 1 : -1;
        } else if (!text && depth > 0 && (*c == '\n' || *c == ' ')) {
            continue;
        }
        g_string_append_c(out, *c);
    }
    return g_string_free(out, FALSE);
}

static JsonNode *to_json(const DeviceProfile *self)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "kvreplay_profile");
    json_builder_add_int_value(b, 1);
    json_builder_set_member_name(b, "device");
    json_builder_add_string_value(b, self->device);
    json_builder_set_member_name(b, "workers");
    json_builder_add_int_value(b, self->workers);
    json_builder_set_member_name(b, "cost");
    json_builder_begin_object(b);
    add_number(b, "bandwidth_gbps", self->bandwidth / 1e3);
    add_number(b, "launch_us", self->launch_us);
    add_number(b, "cmin", self->cmin);
    json_builder_set_member_name(b, "routes");
    json_builder_begin_object(b);
    for (guint i = 0; i < self->terms->len; i++) {
        const RouteTerm *t = &g_array_index(self->terms, RouteTerm, i);
        add_number(b, t->route, t->us);
    }
    json_builder_end_object(b);
    json_builder_end_object(b);
    if (self->has_learned)
        write_learned(self, b);
    if (self->measured != NULL) {
        json_builder_set_member_name(b, "measured");
        json_builder_add_value(b, json_node_copy(self->measured));
    }
    json_builder_end_object(b);
    return json_builder_get_root(b);
}

gboolean device_profile_write(const DeviceProfile *self, const char *path, GError **error)
{
    g_autoptr(JsonNode) root = to_json(self);
    g_autoptr(DeviceProfile) again = from_json(root, path, error);
    if (again == NULL) {
        g_prefix_error(error, "not written, for it could not be read: ");
        return FALSE;
    }
    g_autofree char *pretty = json_to_string(root, TRUE), *text = join_arrays(pretty);
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    fprintf(out_file_stream(out), "%s\n", text);
    return out_file_commit(out, error);
}
