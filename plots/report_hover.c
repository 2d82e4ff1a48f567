/* Hovering over a picture: its data and where its axes lie, as JSON for report.js.
 *
 * {"w":336,"h":317,"panels":[{"px":[x0,x1,y0,y1],"x":[min,max,log],"y":[min,max,log],
 *   "series":[{"label":"workqueue","columns":["time_s","MiB_mean",...],"map":false,
 *              "rows":[[..],..]}]}]}
 */
#include "plots/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/csv_rows.h"

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

static void add_number(JsonBuilder *b, double value)
{
    if (isfinite(value))
        json_builder_add_double_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void add_row(JsonBuilder *b, const char *line)
{
    g_auto(GStrv) fields = g_strsplit(line, " ", -1);
    json_builder_begin_array(b);
    for (guint i = 0; fields[i] != NULL; i++) {
        double value = (double)NAN;
        if (!csv_parse_real(fields[i], &value))
            value = (double)NAN;
        add_number(b, value);
    }
    json_builder_end_array(b);
}

static void add_series(JsonBuilder *b, const Block *block)
{
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "label");
    json_builder_add_string_value(b, block->label);
    json_builder_set_member_name(b, "map");
    json_builder_add_boolean_value(b, block->map);
    json_builder_set_member_name(b, "columns");
    json_builder_begin_array(b);
    for (guint i = 0; block->columns != NULL && block->columns[i] != NULL; i++)
        json_builder_add_string_value(b, block->columns[i]);
    json_builder_end_array(b);
    json_builder_set_member_name(b, "rows");
    json_builder_begin_array(b);
    guint stride = block->map ? 1 : block->rows->len / HOVER_ROWS + 1;
    for (guint i = 0; i < block->rows->len; i += stride)
        add_row(b, g_ptr_array_index(block->rows, i));
    json_builder_end_array(b);
    json_builder_end_object(b);
}

static void add_range(JsonBuilder *b, const char *name, const double *values, guint n)
{
    json_builder_set_member_name(b, name);
    json_builder_begin_array(b);
    for (guint i = 0; i < n; i++)
        add_number(b, values[i]);
    json_builder_end_array(b);
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

static void add_panel(JsonBuilder *b, const char *line, const GPtrArray *blocks)
{
    guint panel;
    double v[10];
    gboolean logs[2];
    if (!parse_axes(line, &panel, v, logs))
        return;
    /* Fractions of the picture, from its upper left corner. */
    const double place[] = {v[0] / v[4], v[1] / v[4], 1 - v[3] / v[5], 1 - v[2] / v[5]};
    const double x[] = {v[6], v[7], logs[0]}, y[] = {v[8], v[9], logs[1]};
    json_builder_begin_object(b);
    add_range(b, "place", place, 4);
    add_range(b, "x", x, 3);
    add_range(b, "y", y, 3);
    json_builder_set_member_name(b, "series");
    json_builder_begin_array(b);
    for (guint i = 0; i < blocks->len; i++) {
        const Block *block = g_ptr_array_index(blocks, i);
        if (block->panel == panel)
            add_series(b, block);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
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
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_array(b);
    for (guint i = 0; axes[i] != NULL; i++)
        add_panel(b, axes[i], blocks);
    json_builder_end_array(b);
    g_autoptr(JsonNode) root = json_builder_get_root(b);
    return json_to_string(root, FALSE);
}
