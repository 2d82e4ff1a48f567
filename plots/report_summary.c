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

/* A table from an object of objects: a row a member, a column a key of any of them. */
static void write_matrix(GString *page, JsonNode *node, const char *caption, const char *first,
                         const char *const *only)
{
    if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
        return;
    JsonObject *object = json_node_get_object(node);
    g_autoptr(GList) members = json_object_get_members(object);
    g_autoptr(GPtrArray) columns = g_ptr_array_new();
    for (GList *m = members; m != NULL; m = m->next) {
        JsonNode *row = json_object_get_member(object, m->data);
        if (!JSON_NODE_HOLDS_OBJECT(row))
            continue;
        g_autoptr(GList) keys = json_object_get_members(json_node_get_object(row));
        for (GList *k = keys; k != NULL; k = k->next)
            if (!g_ptr_array_find_with_equal_func(columns, k->data, g_str_equal, NULL) &&
                (only == NULL || g_strv_contains(only, k->data)))
                g_ptr_array_add(columns, k->data);
    }
    if (columns->len == 0)
        return;
    g_string_append_printf(page,
                           "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption>"
                           "<thead><tr><th>%s",
                           caption, first);
    for (guint i = 0; i < columns->len; i++) {
        g_autofree char *head = g_strdelimit(g_strdup(columns->pdata[i]), "_", ' ');
        g_string_append(page, "<th>");
        html_text(page, head);
    }
    g_string_append(page, "</tr></thead>\n<tbody>");
    for (GList *m = members; m != NULL; m = m->next) {
        JsonNode *row = json_object_get_member(object, m->data);
        if (!JSON_NODE_HOLDS_OBJECT(row))
            continue;
        g_string_append(page, "<tr><th>");
        html_text(page, m->data);
        for (guint i = 0; i < columns->len; i++) {
            JsonObject *values = json_node_get_object(row);
            g_string_append(page, "<td>");
            html_json_value(page, json_object_has_member(values, columns->pdata[i])
                                      ? json_object_get_member(values, columns->pdata[i])
                                      : NULL);
        }
        g_string_append(page, "</tr>\n");
    }
    g_string_append(page, "</tbody></table></div>\n");
}

/* The latency objects alone, out of everything the simulator says. */
static void write_latencies(GString *page, const RunData *run)
{
    static const char *const names[] = {"ttft", "itl", "tpot", "e2e", "queue_delay"};
    static const char *const quantiles[] = {"mean", "p50", "p90", "p95", "p99", "max", NULL};
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    json_node_take_object(node, object);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strconcat("simulate.", names[i], NULL);
        JsonNode *values = run_data_node(run, path);
        if (values != NULL && JSON_NODE_HOLDS_OBJECT(values))
            json_object_set_member(object, names[i], json_node_copy(values));
    }
    write_matrix(page, node, "Latency, seconds", "", quantiles);
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
    write_matrix(page, run_data_node(run, "replay.routes"),
                 "Decode attention by route (means over steps with decode rows unless said)",
                 "route", NULL);
    write_line(page, run_data_node(run, "replay.policy.name"), "Policy", NULL);
    write_line(page, run_data_node(run, "replay.policy.shares"), "Share of steps by chosen route",
               "share");
    write_line(page, run_data_node(run, "replay.policy.regret"),
               "Regret against the fastest executed route", NULL);
    write_latencies(page, run);
    if (run->summary != NULL) {
        g_autofree char *all = json_to_string(run->summary, TRUE);
        g_string_append(page, "<details><summary>All of summary.json</summary><pre>");
        html_text(page, all);
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
