#include "plots/paper_table.h"

#include <math.h>
#include <string.h>

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
    const guint n = csv_rows_n_columns(rows);
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(self->names, g_strdup(csv_rows_name(rows, i)));
    int got;
    while ((got = csv_rows_next(rows, error)) > 0) {
        char **row = g_new0(char *, n + 1);
        for (guint i = 0; i < n; i++)
            row[i] = g_strdup(csv_rows_text(rows, (int)i));
        g_ptr_array_add(self->rows, row);
    }
    return got == 0 ? g_steal_pointer(&self) : NULL;
}

void paper_table_free(PaperTable *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->names);
    g_ptr_array_unref(self->rows);
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
    double value;
    return csv_parse_real(paper_table_text(self, row, column), &value) ? value : (double)NAN;
}

gboolean paper_table_is(const PaperTable *self, guint row, const char *column, const char *text)
{
    return strcmp(paper_table_text(self, row, column), text) == 0;
}
