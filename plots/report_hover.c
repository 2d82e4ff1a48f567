/* Hovering over a picture: its data and where its axes lie, as JSON for report.js: a panel each of
 *
 * {"place":[left,right,top,bottom],"x":[min,max,log],"y":[min,max,log],
 *  "series":[{"label":"workqueue","map":false,"columns":["time_s","MiB_mean",...],
 *             "rows":[[..],..]}]}
 */
#include "plots/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json-glib/json-glib.h>

#include "plots/csv_rows.h"
#include "plots/picture.h"

#define HOVER_ROWS 600 /* of one series; more are thinned evenly */

typedef struct Block {
    guint panel;
    char *label;
    char **columns;
    gboolean map;
    GPtrArray *rows; /* char *: a line of numbers */
} Block;

static void block_free(gpointer data)
{
    Block *block = data;
    g_free(block->label);
    g_strfreev(block->columns);
    g_ptr_array_unref(block->rows);
    g_free(block);
}

/* Reads a .dat file as picture.h lays it out. */
static GPtrArray *read_blocks(char **lines)
{
    GPtrArray *blocks = g_ptr_array_new_with_free_func(block_free);
    Block *now = NULL;
    for (guint i = 0; lines[i] != NULL; i++) {
        guint number, panel;
        int at = 0;
        if (sscanf(lines[i], "# block %u panel %u: %n", &number, &panel, &at) == 2 && at > 0) {
            now = g_new0(Block, 1);
            now->panel = panel;
            now->label = g_strdup(lines[i] + at);
            now->rows = g_ptr_array_new();
            g_ptr_array_add(blocks, now);
        } else if (now != NULL && g_str_has_prefix(lines[i], "# columns: ")) {
            g_strfreev(now->columns);
            now->columns = g_strsplit(lines[i] + strlen("# columns: "), " ", -1);
        } else if (now != NULL && strcmp(lines[i], "# map") == 0) {
            now->map = TRUE;
        } else if (now != NULL && lines[i][0] != '#' && lines[i][0] != '\0') {
            g_ptr_array_add(now->rows, lines[i]);
        }
    }
    return blocks;
}

/* The numbers of a .dat line as they are written there; what is no number is null. */
static void add_row(GString *json, const char *line)
{
    g_auto(GStrv) fields = g_strsplit(line, " ", -1);
    for (guint i = 0; fields[i] != NULL; i++) {
        double value;
        g_string_append(json, i > 0 ? "," : "[");
        g_string_append(json, csv_parse_real(fields[i], &value) ? fields[i] : "null");
    }
    g_string_append_c(json, ']');
}

static void add_text(GString *json, const char *text)
{
    g_autoptr(JsonNode) node = json_node_init_string(json_node_alloc(), text);
    g_autofree char *quoted = json_to_string(node, FALSE);
    g_string_append(json, quoted);
}

static void add_series(GString *json, const Block *block)
{
    g_string_append(json, "{\"label\":");
    add_text(json, block->label);
    g_string_append_printf(json, ",\"map\":%s,\"columns\":[", block->map ? "true" : "false");
    for (guint i = 0; block->columns != NULL && block->columns[i] != NULL; i++) {
        g_string_append(json, i > 0 ? "," : "");
        add_text(json, block->columns[i]);
    }
    g_string_append(json, "],\"rows\":[");
    guint stride = block->map ? 1 : block->rows->len / HOVER_ROWS + 1;
    for (guint i = 0, written = 0; i < block->rows->len; i += stride) {
        const char *line = g_ptr_array_index(block->rows, i);
        if (block->map && g_str_has_suffix(line, " NaN"))
            continue; /* an empty cell */
        g_string_append(json, written++ > 0 ? "," : "");
        add_row(json, line);
    }
    g_string_append(json, "]}");
}

static void add_range(GString *json, const char *name, const double *values, guint n)
{
    g_string_append_printf(json, "\"%s\":", name);
    for (guint i = 0; i < n; i++) {
        g_string_append(json, i > 0 ? "," : "[");
        append_real(json, values[i]);
    }
    g_string_append(json, "],");
}

/* One line of a .axes file: panel, "xy" flags, then ten numbers. */
static gboolean parse_axes(const char *line, guint *ret_panel, double v[10], gboolean logs[2])
{
    g_auto(GStrv) fields = g_strsplit(line, " ", -1);
    gint64 panel;
    if (g_strv_length(fields) != 12 || !csv_parse_int(fields[0], &panel) || strlen(fields[1]) != 2)
        return FALSE;
    for (guint i = 0; i < 10; i++)
        if (!csv_parse_real(fields[i + 2], &v[i]))
            return FALSE;
    *ret_panel = (guint)panel;
    logs[0] = fields[1][0] == 'x';
    logs[1] = fields[1][1] == 'y';
    return v[4] > 0 && v[5] > 0;
}

static void add_panel(GString *json, const char *line, const GPtrArray *blocks)
{
    guint panel;
    double v[10];
    gboolean logs[2];
    if (!parse_axes(line, &panel, v, logs))
        return;
    /* Fractions of the picture, from its upper left corner. */
    const double place[] = {v[0] / v[4], v[1] / v[4], 1 - v[3] / v[5], 1 - v[2] / v[5]};
    const double x[] = {v[6], v[7], logs[0]}, y[] = {v[8], v[9], logs[1]};
    g_string_append(json, json->len > 1 ? ",{" : "{");
    add_range(json, "place", place, 4);
    add_range(json, "x", x, 3);
    add_range(json, "y", y, 3);
    g_string_append(json, "\"series\":[");
    for (guint i = 0, written = 0; i < blocks->len; i++) {
        const Block *block = g_ptr_array_index(blocks, i);
        if (block->panel != panel)
            continue;
        g_string_append(json, written++ > 0 ? "," : "");
        add_series(json, block);
    }
    g_string_append(json, "]}");
}

static char **read_lines(const char *folder, const char *name, const char *ending)
{
    g_autofree char *file = g_strconcat(name, ending, NULL);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autofree char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strsplit(text, "\n", -1) : NULL;
}

char *report_hover_json(const char *folder, const char *name)
{
    g_auto(GStrv) data = read_lines(folder, name, ".dat"), axes = read_lines(folder, name, ".axes");
    if (data == NULL || axes == NULL)
        return NULL;
    g_autoptr(GPtrArray) blocks = read_blocks(data);
    GString *json = g_string_new("[");
    for (guint i = 0; axes[i] != NULL; i++)
        add_panel(json, axes[i], blocks);
    g_string_append_c(json, ']');
    return g_string_free(json, FALSE);
}
