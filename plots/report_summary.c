/* The head of report.html: the numbers first, then where they come from. */
#include "plots/report_parts.h"

#include <math.h>
#include <string.h>

#include "plots/csv_rows.h"
#include "plots/html.h"

typedef struct Tile {
    const char *path, *label, *unit;
    double scale;
} Tile;

static const Tile tiles[] = {
    {"simulate.requests", "requests", "", 1},
    {"simulate.finished", "finished", "", 1},
    {"simulate.duration_s", "simulated time", "s", 1},
    {"simulate.steps", "steps", "", 1},
    {"simulate.output_tokens", "tokens out", "", 1},
    {"simulate.preemptions", "preemptions", "", 1},
    {"simulate.ttft.p50", "TTFT, median", "s", 1},
    {"simulate.ttft.p99", "TTFT, p99", "s", 1},
    {"simulate.itl.p50", "ITL, median", "ms", 1e3},
    {"simulate.itl.p99", "ITL, p99", "ms", 1e3},
    {"simulate.pages_peak", "pages, peak", "", 1},
};

static void write_tiles(GString *page, const RunData *run)
{
    g_string_append(page, "<dl class=\"tiles\">\n");
    for (guint i = 0; i < G_N_ELEMENTS(tiles); i++) {
        double value = run_data_number(run, tiles[i].path);
        if (isnan(value))
            continue;
        g_string_append_printf(page, "<div><dt>%s<dd>", tiles[i].label);
        html_number(page, value * tiles[i].scale);
        if (tiles[i].unit[0] != '\0')
            g_string_append_printf(page, " <small>%s</small>", tiles[i].unit);
        g_string_append(page, "</dd></div>\n");
    }
    g_string_append(page, "</dl>\n");
}

typedef struct Column {
    const char *key, *head;
} Column;

static const Column route_columns[] = {
    {"launches_per_step", "launches a step"},
    {"tasks_per_step", "tasks a step"},
    {"nonempty_fraction_mean", "non-empty fraction"},
    {"kv_mib_per_step", "KV, MiB a step"},
    {"kv_touched_mib_per_step", "KV touched, MiB a step"},
    {"merge_mib_per_step", "merge state, MiB a step"},
    {"merge_traffic_to_kv", "merge / KV traffic"},
    {"executed_steps", "executed steps"},
    {"kernel_us_mean", "kernel, µs"},
    {"kernel_us_p99", "kernel p99, µs"},
    {"plan_us_mean", "plan, µs"},
    {"wall_us_mean", "wall, µs"},
    {"kernel_gb_per_s", "GB/s"},
    {"max_abs_err", "max error"},
    {"refused", "not possible here"},
    {NULL, NULL},
};

static const Column latency_columns[] = {{"mean", "mean"}, {"p50", "p50"}, {"p90", "p90"},
                                         {"p95", "p95"},   {"p99", "p99"}, {"max", "max"},
                                         {NULL, NULL}};

static JsonNode *member(JsonNode *row, const char *key)
{
    if (!JSON_NODE_HOLDS_OBJECT(row))
        return NULL;
    JsonObject *object = json_node_get_object(row);
    return json_object_has_member(object, key) ? json_object_get_member(object, key) : NULL;
}

static gboolean any_row_has(JsonObject *object, const GList *members, const char *key)
{
    for (const GList *m = members; m != NULL; m = m->next) {
        JsonNode *value = member(json_object_get_member(object, m->data), key);
        if (value != NULL && !JSON_NODE_HOLDS_NULL(value))
            return TRUE;
    }
    return FALSE;
}

/* A table from an object of objects: a row a member, and those of `columns` that any row has. */
static void write_matrix(GString *page, JsonNode *node, const char *caption, const char *first,
                         const Column *columns)
{
    if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
        return;
    JsonObject *object = json_node_get_object(node);
    g_autoptr(GList) members = json_object_get_members(object);
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    GString *heads = g_string_new(NULL);
    for (const Column *c = columns; c->key != NULL; c++)
        if (any_row_has(object, members, c->key)) {
            g_ptr_array_add(keys, (gpointer)c->key);
            g_string_append_printf(heads, "<th>%s", c->head);
        }
    if (keys->len > 0) {
        g_string_append_printf(page,
                               "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption>"
                               "<thead><tr><th>%s%s</tr></thead>\n<tbody>",
                               caption, first, heads->str);
        for (GList *m = members; m != NULL; m = m->next) {
            g_string_append(page, "<tr><th>");
            html_text(page, m->data);
            for (guint i = 0; i < keys->len; i++) {
                JsonNode *value = member(json_object_get_member(object, m->data), keys->pdata[i]);
                g_string_append(page, "<td>");
                if (value != NULL)
                    html_json_value(page, value);
            }
            g_string_append(page, "</tr>\n");
        }
        g_string_append(page, "</tbody></table></div>\n");
    }
    g_string_free(heads, TRUE);
}

/* The latency objects alone, out of everything the simulator says. */
static void write_latencies(GString *page, const RunData *run)
{
    static const char *const names[] = {"ttft", "itl", "tpot", "e2e", "queue_delay"};
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    json_node_take_object(node, object);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strconcat("simulate.", names[i], NULL);
        JsonNode *values = run_data_node(run, path);
        if (values != NULL && JSON_NODE_HOLDS_OBJECT(values))
            json_object_set_member(object, names[i], json_node_copy(values));
    }
    write_matrix(page, node, "Latency, seconds", "", latency_columns);
}

static void write_value(GString *page, const char *key, JsonNode *node)
{
    double value = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_double(node) : -1;
    if (key != NULL && json_node_get_value_type(node) == G_TYPE_DOUBLE && value >= 0 &&
        value <= 1 && strcmp(key, "share") == 0) {
        html_number(page, value * 100);
        g_string_append(page, " %");
        return;
    }
    html_json_value(page, node);
}

/* "What: name value, name value"; `as` "share" shows fractions as percent. */
static void write_line(GString *page, JsonNode *node, const char *what, const char *as)
{
    if (node == NULL)
        return;
    g_string_append_printf(page, "<p>%s: ", what);
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *object = json_node_get_object(node);
        g_autoptr(GList) keys = json_object_get_members(object);
        for (GList *k = keys; k != NULL; k = k->next) {
            g_autofree char *name = g_strdelimit(g_strdup(k->data), "_", ' ');
            g_string_append(page, k == keys ? "" : ", ");
            html_text(page, name);
            g_string_append_c(page, ' ');
            write_value(page, as, json_object_get_member(object, k->data));
        }
    } else {
        html_json_value(page, node);
    }
    g_string_append(page, "</p>\n");
}

void report_summary(GString *page, const RunData *run)
{
    g_string_append(page, "<section id=\"summary\"><h2>Summary</h2>\n");
    if (run->summary == NULL)
        g_string_append(page, "<p>This folder has no summary.json.</p>\n");
    write_tiles(page, run);
    JsonNode *refused = run_data_node(run, "simulate.refused");
    if (refused != NULL && JSON_NODE_HOLDS_OBJECT(refused) &&
        json_object_get_size(json_node_get_object(refused)) > 0)
        write_line(page, refused, "Refused, by reason", NULL);
    write_matrix(
        page, run_data_node(run, "replay.routes"),
        "Decode attention by route, one layer: means over steps with decode rows; times over "
        "the executed ones",
        "route", route_columns);
    write_line(page, run_data_node(run, "replay.policy.name"), "Policy", NULL);
    write_line(page, run_data_node(run, "replay.policy.note"), "Of the policy", NULL);
    write_line(page, run_data_node(run, "replay.policy.shares"), "Share of steps by chosen route",
               "share");
    write_line(page, run_data_node(run, "replay.policy.regret"),
               "Regret against the fastest executed route", NULL);
    write_latencies(page, run);
    if (run->summary != NULL) {
        g_autofree char *path = g_build_filename(run->folder, "summary.json", NULL), *all = NULL;
        g_file_get_contents(path, &all, NULL, NULL);
        g_string_append(page, "<details><summary>All of summary.json</summary><pre>");
        html_text(page, all != NULL ? all : "");
        g_string_append(page, "</pre></details>\n");
    }
    g_string_append(page, "</section>\n");
}

void report_scenario(GString *page, const RunData *run)
{
    if (run->scenario == NULL)
        return;
    g_autofree char *text = g_key_file_to_data(run->scenario, NULL, NULL);
    g_string_append(page, "<section id=\"scenario\"><h2>Scenario</h2>\n<p>Fully resolved: running "
                          "this file again gives the same simulation.</p>\n<pre tabindex=\"0\">");
    html_text(page, text);
    g_string_append(page, "</pre></section>\n");
}

/* How the publishers of recorded logs ask to be cited, by the name of the format. */
static const struct {
    const char *prefix, *text;
} citations[] = {
    {"azure", "Azure LLM inference traces (Azure Public Dataset, CC-BY-4.0): P. Patel et al., "
              "“Splitwise: Efficient Generative LLM Inference Using Phase Splitting”, ISCA 2024."},
    {"burstgpt",
     "BurstGPT (CC-BY-4.0): Y. Wang et al., “BurstGPT: A Real-world Workload Dataset to "
     "Optimize LLM Serving Systems”, KDD 2025."},
    {"mooncake",
     "Mooncake traces: R. Qin et al., “Mooncake: Trading More Storage for Less "
     "Computation — A KVCache-centric Architecture for Serving LLM Chatbot”, FAST 2025."},
    {"paper", "The PersistentKV workload families, generated by their published seeds."},
};

static void write_pair(GString *page, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    g_string_append(page, "<dt>");
    html_text(page, name);
    g_string_append(page, "<dd>");
    html_text(page, value);
}

static void write_object(GString *page, const RunData *run, const char *path, const char *prefix)
{
    JsonNode *node = run_data_node(run, path);
    if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
        return;
    JsonObject *object = json_node_get_object(node);
    g_autoptr(GList) keys = json_object_get_members(object);
    for (GList *k = keys; k != NULL; k = k->next) {
        g_autofree char *name = g_strdelimit(g_strconcat(prefix, k->data, NULL), "_", ' ');
        g_string_append(page, "<dt>");
        html_text(page, name);
        g_string_append(page, "<dd>");
        html_json_value(page, json_object_get_member(object, k->data));
    }
}

static void write_seeds(GString *page, const RunData *run)
{
    if (run->scenario == NULL)
        return;
    g_auto(GStrv) groups = g_key_file_get_groups(run->scenario, NULL);
    for (guint g = 0; groups[g] != NULL; g++) {
        g_auto(GStrv) keys = g_key_file_get_keys(run->scenario, groups[g], NULL, NULL);
        for (guint k = 0; keys != NULL && keys[k] != NULL; k++) {
            if (strstr(keys[k], "seed") == NULL)
                continue;
            g_autofree char *name = g_strdup_printf("%s (%s)", keys[k], groups[g]);
            g_autofree char *value = g_key_file_get_value(run->scenario, groups[g], keys[k], NULL);
            write_pair(page, name, value);
        }
    }
}

static void write_citation(GString *page, const RunData *run)
{
    const char *format = run_data_string(run, "workload.format");
    const char *name = run_data_string(run, "workload.name");
    for (guint i = 0; i < G_N_ELEMENTS(citations); i++)
        if ((format != NULL && g_str_has_prefix(format, citations[i].prefix)) ||
            (name != NULL && g_str_has_prefix(name, citations[i].prefix))) {
            write_pair(page, "cite the log", citations[i].text);
            return;
        }
    write_pair(page, "cite the log", "as its publisher asks; its name and hash are above");
}

void report_provenance(GString *page, const RunData *run)
{
    g_string_append(page, "<section id=\"provenance\"><h2>Provenance</h2>\n<dl class=\"pairs\">");
    write_object(page, run, "kvreplay", "kvreplay ");
    write_pair(page, "backend", run_data_string(run, "replay.backend"));
    write_object(page, run, "replay.device", "device ");
    write_pair(page, "workload", run_data_string(run, "workload.name"));
    write_pair(page, "format", run_data_string(run, "workload.format"));
    write_pair(page, "SHA-256", run_data_string(run, "workload.sha256"));
    write_seeds(page, run);
    write_citation(page, run);
    g_string_append(page, "</dl>\n<p>To repeat, in this folder:</p>\n"
                          "<pre tabindex=\"0\">kvreplay run scenario.ini          # all of it\n"
                          "kvreplay replay steps.kvsteps      # the measurements alone\n"
                          "kvreplay plot .                    # the pictures alone\n"
                          "gnuplot launches.gp                # one picture, in plots/</pre>\n"
                          "</section>\n");
}
