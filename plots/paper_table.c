#include "plots/paper_table.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"

static void row_free(gpointer row)
{
    g_strfreev(row);
}

PaperTable *paper_table_read(const char *folder, const char *file, GError **error)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL)
        return NULL;
    g_autoptr(PaperTable) self = g_new0(PaperTable, 1);
    self->names = g_ptr_array_new_with_free_func(g_free);
    self->rows = g_ptr_array_new_with_free_func(row_free);
    self->lines = g_array_new(FALSE, FALSE, sizeof(guint64));
    self->path = g_strdup(path);
    self->wrong = g_new0(GError *, 1);
    const guint n = csv_rows_n_columns(rows);
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(self->names, g_strdup(csv_rows_name(rows, i)));
    int got;
    while ((got = csv_rows_next(rows, error)) > 0) {
        char **row = g_new0(char *, n + 1);
        for (guint i = 0; i < n; i++)
            row[i] = g_strdup(csv_rows_text(rows, (int)i));
        g_ptr_array_add(self->rows, row);
        const guint64 line = csv_rows_line(rows);
        g_array_append_val(self->lines, line);
    }
    if (got == 0 && self->rows->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: no line follows the header, expected a table of kvreplay paper", path);
        return NULL;
    }
    return got == 0 ? g_steal_pointer(&self) : NULL;
}

void paper_table_free(PaperTable *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->names);
    g_ptr_array_unref(self->rows);
    g_array_unref(self->lines);
    g_free(self->path);
    g_clear_error(self->wrong);
    g_free(self->wrong);
    g_free(self);
}

const char *paper_table_text(const PaperTable *self, guint row, const char *column)
{
    for (guint i = 0; i < self->names->len; i++)
        if (strcmp(self->names->pdata[i], column) == 0)
            return ((char **)self->rows->pdata[row])[i];
    return "";
}

double paper_table_real(const PaperTable *self, guint row, const char *column)
{
    const char *text = paper_table_text(self, row, column);
    double value;
    if (csv_parse_real(text, &value))
        return value;
    if (text[0] != '\0' && *self->wrong == NULL)
        g_set_error(self->wrong, KV_ERROR, KV_ERROR_INPUT,
                    "%s:%" G_GUINT64_FORMAT ": column %s: '%.40s', expected a number", self->path,
                    g_array_index(self->lines, guint64, row), column, text);
    return (double)NAN;
}

gboolean paper_table_good(const PaperTable *self, const char *const *columns, GError **error)
{
    for (; *columns != NULL; columns++) {
        guint i = 0;
        while (i < self->names->len && strcmp(self->names->pdata[i], *columns) != 0)
            i++;
        if (i < self->names->len)
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:1: no column '%s' in the header",
                    self->path, *columns);
        return FALSE;
    }
    if (*self->wrong == NULL)
        return TRUE;
    g_propagate_error(error, g_error_copy(*self->wrong));
    return FALSE;
}

gboolean paper_table_is(const PaperTable *self, guint row, const char *column, const char *text)
{
    return strcmp(paper_table_text(self, row, column), text) == 0;
}
