/* report.html: one page that holds all it needs. */
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "plots/html.h"
#include "plots/page_parts.h"
#include "plots/plot.h"
#include "plots/report_parts.h"

static void write_head(GString *page, const RunData *run)
{
    const char *name = run_data_string(run, "workload.name");
    const char *version = run_data_string(run, "kvreplay.version");
    const char *backend = run_data_string(run, "replay.backend");
    const char *device = run_data_string(run, "replay.device.name");
    g_string_append(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, "
                          "initial-scale=1\">\n<meta name=\"color-scheme\" "
                          "content=\"light dark\">\n<title>kvreplay: ");
    html_text(page, name != NULL ? name : run->label);
    g_string_append(page, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    g_string_append(page, page_css);
    g_string_append(page, "</style></head>\n<body>\n<header><h1>");
    html_text(page, name != NULL ? name : run->label);
    g_string_append(page, "</h1>\n<p>kvreplay");
    const char *const parts[] = {version, backend, device};
    const char *const before[] = {" ", " · backend ", " · "};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i] != NULL) {
            g_string_append(page, before[i]);
            html_text(page, parts[i]);
        }
    g_string_append(page, "</p>\n<nav><a href=\"#summary\">Summary</a> <a "
                          "href=\"#pictures\">Pictures</a> <a href=\"#scenario\">Scenario</a> <a "
                          "href=\"#provenance\">Provenance</a> <a href=\"#requests\">Requests</a> "
                          "<a href=\"#steps\">Steps</a></nav></header>\n<main>\n");
}

static gboolean write_image(GString *page, const char *folder, const char *name, const char *alt)
{
    static const char *const kinds[][2] = {{".svg", "image/svg+xml"}, {".png", "image/png"}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *file = g_strconcat(name, kinds[i][0], NULL);
        g_autofree char *path = g_build_filename(folder, file, NULL);
        g_autofree char *content = NULL;
        gsize size = 0;
        if (!g_file_get_contents(path, &content, &size, NULL))
            continue;
        g_string_append(page, "<div class=\"plot\"><img alt=\"");
        html_text(page, alt);
        g_string_append(page, "\" src=\"");
        html_data_uri(page, kinds[i][1], content, size);
        g_string_append(page, "\"></div>\n");
        return TRUE;
    }
    return FALSE;
}

static void write_figure(GString *page, const char *folder, const PlotOps *ops)
{
    g_autoptr(GString) image = g_string_new(NULL);
    if (!write_image(image, folder, ops->info.name, ops->info.summary))
        return;
    g_autofree char *hover = report_hover_json(folder, ops->info.name);
    g_string_append_printf(page, "<figure id=\"plot-%s\" class=\"%s\">\n<h3>%c%s</h3>\n",
                           ops->info.name, ops->wide ? "wide" : "column",
                           g_ascii_toupper(ops->info.summary[0]), ops->info.summary + 1);
    g_string_append(page, image->str);
    if (hover != NULL) {
        g_string_append(page, "<script type=\"application/json\">");
        html_json(page, hover);
        g_string_append(page, "</script>\n");
    }
    g_string_append_printf(page,
                           "<figcaption>%s <span class=\"files\">plots/%s.svg, .pdf, .png, "
                           ".dat, .gp</span></figcaption></figure>\n",
                           ops->caption, ops->info.name);
}

void report_pictures(GString *page, const RunData *run)
{
    g_autofree char *folder = g_build_filename(run->folder, "plots", NULL);
    gsize before;
    g_string_append(page,
                    "<section id=\"pictures\"><h2>Pictures</h2>\n<p class=\"hint\">Point at a "
                    "picture, or tab to it and use the arrow keys, to read its "
                    "values.</p>\n<div class=\"gallery\">\n");
    before = page->len;
    for (guint i = 0; plots[i] != NULL; i++)
        write_figure(page, folder, (const PlotOps *)plots[i]);
    if (page->len == before)
        g_string_append(page, "<p>No pictures have been drawn (kvreplay plot draws them).</p>\n");
    g_string_append(page, "</div></section>\n");
}

gboolean report_write(const char *run_folder, const char *path, GError **error)
{
    g_autoptr(RunData) run = run_data_open(run_folder, error);
    if (run == NULL)
        return FALSE;
    g_autoptr(GString) page = g_string_new(NULL);
    write_head(page, run);
    report_summary(page, run);
    report_pictures(page, run);
    report_scenario(page, run);
    report_provenance(page, run);
    if (!report_tables(page, run, error))
        return FALSE;
    g_string_append(page, "</main>\n<script>\n");
    g_string_append(page, page_js);
    g_string_append(page, "</script>\n</body></html>\n");
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    fwrite(page->str, 1, page->len, out_file_stream(out));
    return out_file_commit(out, error);
}
