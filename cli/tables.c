#include "cli/tables.h"

#include <string.h>

static JsonObject *member_object(JsonObject *o, const char *name)
{
    JsonNode *n = o != NULL ? json_object_get_member(o, name) : NULL;
    return n != NULL && JSON_NODE_HOLDS_OBJECT(n) ? json_node_get_object(n) : NULL;
}

static void print_number(FILE *out, JsonObject *o, const char *name, int width, int decimals)
{
    JsonNode *n = o != NULL ? json_object_get_member(o, name) : NULL;
    if (n == NULL || !JSON_NODE_HOLDS_VALUE(n))
        fprintf(out, " %*s", width, "n/a");
    else
        fprintf(out, " %*.*f", width, decimals, json_node_get_double(n));
}

/* How far apart the shares of the heads were; nothing where there are none. */
static void print_shares(FILE *out, JsonObject *routes)
{
    g_autoptr(GList) names = json_object_get_members(routes);
    gboolean any = FALSE;
    for (GList *l = names; l != NULL; l = l->next) {
        JsonObject *r = member_object(routes, l->data);
        JsonNode *n = r != NULL ? json_object_get_member(r, "rank_kernel_us_mean") : NULL;
        if (n == NULL || !JSON_NODE_HOLDS_ARRAY(n))
            continue;
        if (!any)
            fprintf(out, "%-18s %12s %12s   %s\n", "shares", "skew us", "worst",
                    "kernel us of each");
        any = TRUE;
        fprintf(out, "%-18s", (const char *)l->data);
        print_number(out, r, "rank_skew_us_mean", 12, 2);
        print_number(out, r, "rank_skew_us_max", 12, 2);
        fputs("  ", out);
        JsonArray *each = json_node_get_array(n);
        for (guint k = 0; k < json_array_get_length(each); k++)
            fprintf(out, " %.1f", json_array_get_double_element(each, k));
        fputs("\n", out);
    }
}

static void print_one(FILE *out, JsonObject *replay)
{
    JsonObject *all = member_object(replay, "routes");
    if (all == NULL)
        return;
    JsonObject *policy = member_object(replay, "policy");
    JsonObject *shares = member_object(policy, "shares");
    fprintf(out, "%-18s %13s %11s %14s %14s %12s %12s %8s\n", "route", "launches/step",
            "tasks/step", "merge MiB/step", "read MiB/step", "kernel us", "wall us", "share %");
    g_autoptr(GList) names = json_object_get_members(all);
    for (GList *l = names; l != NULL; l = l->next) {
        JsonObject *r = member_object(all, l->data);
        fprintf(out, "%-18s", (const char *)l->data);
        print_number(out, r, "launches_per_step", 13, 2);
        print_number(out, r, "tasks_per_step", 11, 1);
        print_number(out, r, "merge_mib_per_step", 14, 4);
        print_number(out, r, "kv_touched_mib_per_step", 14, 2);
        print_number(out, r, "kernel_us_mean", 12, 1);
        print_number(out, r, "wall_us_mean", 12, 1);
        JsonNode *share = shares != NULL ? json_object_get_member(shares, l->data) : NULL;
        fprintf(out, " %8.2f\n", share != NULL ? 100.0 * json_node_get_double(share) : 0.0);
    }
    print_shares(out, all);
    const char *note =
        policy != NULL ? json_object_get_string_member_with_default(policy, "note", NULL) : NULL;
    if (note != NULL)
        fprintf(out, "policy %s: %s\n",
                json_object_get_string_member_with_default(policy, "name", "?"), note);
}

void print_replay_table(FILE *out, JsonBuilder *finished)
{
    g_autoptr(JsonNode) root = json_builder_get_root(finished);
    JsonObject *top = json_node_get_object(root);
    JsonNode *others = json_object_get_member(top, "replays");
    if (others == NULL) {
        print_one(out, member_object(top, "replay"));
        return;
    }
    JsonArray *array = json_node_get_array(others);
    for (guint k = 0; k <= json_array_get_length(array); k++) {
        JsonObject *one = k == 0 ? top : json_array_get_object_element(array, k - 1);
        JsonObject *replay = member_object(one, "replay");
        fprintf(out, "replica %" G_GINT64_FORMAT " on device %s\n",
                json_object_get_int_member_with_default(replay, "replica", k),
                json_object_get_string_member_with_default(replay, "devices", "?"));
        print_one(out, replay);
    }
}
