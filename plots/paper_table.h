/* A small table of `kvreplay paper --out`, whole in memory: fields by row and column name.
 *
 * Errors are INPUT errors that name file and line; a table without lines is one. A column that is
 * not there reads as "" and NaN, so that pictures and page do not depend on columns that they can
 * do without. A text where a number was asked for reads as NaN and is remembered:
 * paper_table_good() says so, once all is drawn from it.
 */
#ifndef KV_PLOTS_PAPER_TABLE_H
#define KV_PLOTS_PAPER_TABLE_H

#include <glib.h>

typedef struct PaperTable {
    GPtrArray *names; /* char * */
    GPtrArray *rows;  /* char ** */
    GArray *lines;    /* guint64: of each row, in the file */
    char *path;
    GError **wrong; /* the first number that was none */
} PaperTable;
PaperTable *paper_table_read(const char *folder, const char *file, GError **error);
void paper_table_free(PaperTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PaperTable, paper_table_free)

const char *paper_table_text(const PaperTable *self, guint row, const char *column);
/* NaN = none */
double paper_table_real(const PaperTable *self, guint row, const char *column);
gboolean paper_table_is(const PaperTable *self, guint row, const char *column, const char *text);

/* `columns` (NULL-ended) must be there, and what was read as a number so far must have been one. */
gboolean paper_table_good(const PaperTable *self, const char *const *columns, GError **error);

#endif
