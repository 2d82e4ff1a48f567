/* report.html of `kvreplay paper --out`: tiles, ratios, pictures, every table. */
#include "plots/paper_pictures.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/outfile.h"
#include "plots/csv_rows.h"
#include "plots/html.h"
#include "plots/page_parts.h"
#include "plots/paper_table.h"
#include "plots/report_parts.h"

typedef struct Section {
    const char *file, *title, *text;
} Section;

static const Section tables[] = {
    {"ratios.csv", "Ratios",
     "Time of the baseline over the time of the policy's routes. The published figures are of one "
     "RTX 3060 and stand in lines of their own; both versions of the paper are shown."},
    {"main.csv", "Serving traces",
     "Five held-out seeds at the published split counts, and with balanced splits. Deviations are "
     "over seeds. The plan is read twice: paid in each layer, and once a step and shared by all "
     "layers."},
    {"corrected.csv", "Corrected: rows that are as long as they are called",
     "Four of five held-out B1 seeds spend all their steps in one row of 8 Ki. Here each row has "
     "the "
     "length of its name; every executed step is checked on a CPU and a GPU alike; intervals are "
     "95 %, by bootstrap over steps."},
    {"plan.csv", "Planning: each layer, or once a step",
     "Both readings measured: one layer a plan, and L layers that share one. Times are per layer."},
    {"isolated.csv", "Isolated kernels",
     "One row, half of the page ids unused, another request's pages in every step."},
    {"splits.csv", "Split sensitivity", "Fixed split counts beside balanced splits."},
    {"gqa.csv", "Query heads a KV head", "One row of 8 Ki, 8 KV heads, G = 1, 4, 8."},
    {"merge.csv", "Fused and two-launch merge", "The same splits, merged inside or after."},
    {"graph.csv", "CUDA graph replay", "Launches one by one, and a captured graph replayed."},
    {"padding.csv", "Bucket padding",
     "Rows whose lengths round up to the same multiple share a launch; single = one bucket."},
    {"layer.csv", "Whole decode steps",
     "Embedding, L layers (norms, QKV, rotation, attention, O, gate and up, SiLU, down), LM head "
     "and "
     "the choice of a token, in one CUDA graph. attention = the graph less the one without "
     "attention; gemm = a graph of the products alone; scheduling = the step on the host's clock "
     "less the graph. Estimates and counts say so."},
    {"counters.csv", "Counters",
     "What follows from the scheduler and the planner alone, beside what was printed; CTA per SM "
     "is "
     "tasks / 28, as published."},
};

static const struct {
    const char *name, *title, *caption;
} figures[] = {
    {"paper_times", "Event and wall time of a step",
     "Left this machine, right the published card, each with its own axes. Bars: deviation over "
     "seeds, where more than one was executed."},
    {"paper_launches", "Launches", "Kernel launches a step and layer, mean over held-out seeds."},
    {"paper_merge", "Merge state",
     "Partial states written (and read once) a step and layer. The published reduction is the "
     "ratio "
     "of two split counts; balanced splits write less with neither."},
    {"paper_splits", "Split sensitivity", "Lines: fixed S; dashed: balanced splits."},
    {"paper_padding", "Bucket padding", "What wider buckets save in launches, and what they cost."},
    {"paper_corrected", "One long row", "Read rate by context, with 95 % intervals."},
    {"paper_layer", "A whole step: who takes the time",
     "Shares of a step's time, persistent route: attention, products, the small kernels between "
     "them, and scheduling (tables, plan, launch, waiting for the end)."},
    {"paper_layer_host", "A whole step: the host's side",
     "What the host does a step before the graph runs, by route, over batch."},
};

static gboolean is_there(const char *folder, const char *file)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* summary.json, or layer.json where there are whole steps alone. */
static JsonNode *read_summary(const char *folder, GError **error)
{
    static const char *const files[] = {"summary.json", "layer.json"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i], NULL);
        if (is_there(folder, files[i]))
            return json_read_file(path, "what kvreplay paper wrote", error);
    }
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: neither summary.json nor layer.json is there: expected a folder that kvreplay "
                "paper --out made",
                folder);
    return NULL;
}

/* A name, or in layer.json an object that holds it. */
static const char *device_of(JsonObject *summary)
{
    JsonObject *device = json_member_object(summary, "device");
    return device != NULL ? json_member_text(device, "name", "")
                          : json_member_text(summary, "device", "");
}

static void write_head(GString *page, const char *folder, JsonObject *summary)
{
    g_string_append(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, "
                          "initial-scale=1\">\n<meta name=\"color-scheme\" "
                          "content=\"light dark\">\n<title>kvreplay: the PersistentKV "
                          "experiments</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    g_string_append(page, page_css);
    g_string_append(page, "</style></head>\n<body>\n<header><h1>The PersistentKV experiments, "
                          "reproduced and corrected</h1>\n<p>kvreplay · backend ");
    html_text(page, json_member_text(summary, "backend", ""));
    g_string_append(page, " · ");
    html_text(page, device_of(summary));
    if (json_member_flag(summary, "quick"))
        g_string_append(page, " · quick: few steps executed, all counted");
    g_string_append(page, "</p>\n<nav><a href=\"#pictures\">Pictures</a>");
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++) {
        if (!is_there(folder, tables[i].file))
            continue;
        g_string_append_printf(page, " <a href=\"#t%u\">", i);
        html_text(page, tables[i].title);
        g_string_append(page, "</a>");
    }
    g_string_append(page, "</nav></header>\n<main>\n");
}

static void tile(GString *page, const char *label, const char *value)
{
    g_string_append_printf(page, "<div><dt>%s<dd>", label);
    html_text(page, value);
    g_string_append(page, "</dd></div>\n");
}

static gboolean write_tiles(GString *page, const char *folder, JsonObject *summary, GError **error)
{
    g_autoptr(PaperTable) counters = paper_table_read(folder, "counters.csv", error);
    if (counters == NULL)
        return FALSE;
    guint yes = 0, all = 0;
    for (guint row = 0; row < counters->rows->len; row++) {
        yes += paper_table_is(counters, row, "match", "yes");
        all += !paper_table_is(counters, row, "match", "");
    }
    g_autofree char *match = g_strdup_printf("%u of %u", yes, all);
    g_autofree char *checked =
        g_strdup_printf("%" G_GINT64_FORMAT, json_member_int(summary, "executions_checked", 0));
    const gint64 wrong = json_member_int(summary, "series_wrong", 0);
    g_string_append(page, "<section id=\"summary\"><dl class=\"tiles\">\n");
    tile(page, "lines that match what was printed", match);
    tile(page, "outputs checked (fp64)", checked);
    tile(page, "outside the tolerance", wrong == 0 ? "none" : "some: see the tables");
    const double largest = json_member_real(summary, "max_abs_err", (double)NAN);
    if (isfinite(largest)) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        tile(page, "largest error", g_ascii_formatd(text, sizeof text, "%.2e", largest));
    }
    g_string_append(page, "</dl></section>\n");
    return TRUE;
}

static void write_figure(GString *page, const char *plots, guint i)
{
    g_autofree char *file = g_strconcat(figures[i].name, ".svg", NULL);
    g_autofree char *path = g_build_filename(plots, file, NULL);
    g_autofree char *content = NULL;
    gsize size = 0;
    if (!g_file_get_contents(path, &content, &size, NULL))
        return;
    g_autofree char *hover = report_hover_json(plots, figures[i].name);
    g_string_append_printf(page,
                           "<figure class=\"wide\">\n<h3>%s</h3>\n<div class=\"plot\"><img "
                           "alt=\"%s\" src=\"",
                           figures[i].title, figures[i].title);
    html_data_uri(page, "image/svg+xml", content, size);
    g_string_append(page, "\"></div>\n");
    if (hover != NULL) {
        g_string_append(page, "<script type=\"application/json\">");
        html_json(page, hover);
        g_string_append(page, "</script>\n");
    }
    g_string_append_printf(page,
                           "<figcaption>%s <span class=\"files\">plots/%s.svg, .pdf, .png, .dat, "
                           ".gp</span></figcaption></figure>\n",
                           figures[i].caption, figures[i].name);
}

static void write_cell(GString *page, const char *text)
{
    double value;
    if (!csv_parse_real(text, &value)) {
        g_string_append(page, "<td>");
        html_text(page, text);
        return;
    }
    g_string_append(page, "<td data-v=\"");
    html_text(page, text);
    g_string_append(page, "\">");
    html_text(page, text); /* as in the file: published figures keep the digits printed */
}

static gboolean write_table(GString *page, const char *folder, guint i, GError **error)
{
    g_autoptr(PaperTable) table = paper_table_read(folder, tables[i].file, error);
    if (table == NULL)
        return FALSE;
    g_string_append_printf(page,
                           "<section id=\"t%u\"><h2>%s</h2>\n<p>%s <span class=\"files\">%s: all "
                           "columns and lines</span></p>\n<div class=\"scroll\" tabindex=\"0\">"
                           "<table class=\"sortable\"><thead><tr>",
                           i, tables[i].title, tables[i].text, tables[i].file);
    for (guint k = 0; k < table->names->len; k++) {
        g_autofree char *head = g_strdelimit(g_strdup(table->names->pdata[k]), "_", ' ');
        g_string_append(page, "<th>");
        html_text(page, head);
    }
    g_string_append(page, "</tr></thead>\n<tbody>\n");
    for (guint row = 0; row < table->rows->len; row++) {
        g_string_append(page, "<tr>");
        for (guint k = 0; k < table->names->len; k++)
            write_cell(page, ((char **)table->rows->pdata[row])[k]);
        g_string_append_c(page, '\n');
    }
    g_string_append(page, "</tbody></table></div></section>\n");
    return TRUE;
}

gboolean paper_report_write(const char *folder, GError **error)
{
    g_autoptr(JsonNode) root = read_summary(folder, error);
    if (root == NULL)
        return FALSE;
    JsonObject *summary = json_node_get_object(root);
    g_autoptr(GString) page = g_string_new(NULL);
    g_autofree char *plots = g_build_filename(folder, "plots", NULL);
    write_head(page, folder, summary);
    if (is_there(folder, "counters.csv") && !write_tiles(page, folder, summary, error))
        return FALSE;
    g_string_append(page, "<section id=\"pictures\"><h2>Pictures</h2>\n<div class=\"gallery\">\n");
    for (guint i = 0; i < G_N_ELEMENTS(figures); i++)
        write_figure(page, plots, i);
    g_string_append(page, "</div></section>\n");
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        if (is_there(folder, tables[i].file) && !write_table(page, folder, i, error))
            return FALSE;
    g_string_append(page, "</main>\n<script>\n");
    g_string_append(page, page_js);
    g_string_append(page, "</script>\n</body></html>\n");
    g_autofree char *path = g_build_filename(folder, "report.html", NULL);
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    fwrite(page->str, 1, page->len, out_file_stream(out));
    return out_file_commit(out, error);
}
