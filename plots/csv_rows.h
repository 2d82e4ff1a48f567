/* Rows of a CSV file that kvreplay itself wrote (or a person edited): columns by name, typed
 * fields.
 *
 * One line is one row; fields may be quoted ("a, ""b"""), but hold no line ends. Lines that begin
 * with '#' before the header are skipped. The file may be gzip or zstd. Columns are found by their
 * name in the header, so order and extra columns do not matter. Every error is an INPUT error
 * "FILE:LINE: what, offending text, what was expected". Memory: one line. Cost: about 10 ns a field
 * that is not read, 20 ns one that is.
 */
#ifndef KV_PLOTS_CSV_ROWS_H
#define KV_PLOTS_CSV_ROWS_H

#include "base/ns.h"

typedef struct CsvRows CsvRows;
CsvRows *csv_rows_open(const char *path, GError **error);
void csv_rows_free(CsvRows *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CsvRows, csv_rows_free)

guint csv_rows_n_columns(const CsvRows *self);
const char *csv_rows_name(const CsvRows *self, guint column);
/* Index of a column, or -1. */
int csv_rows_find(const CsvRows *self, const char *name);
/* Indices of `n` columns that must be there; the error names the first one that is not. */
gboolean csv_rows_need(const CsvRows *self, const char *const *names, guint n, int *ret,
                       GError **error);

/* 1 = a row, 0 = end, -1 = error. Blank lines are skipped. */
int csv_rows_next(CsvRows *self, GError **error);
guint64 csv_rows_line(const CsvRows *self);
/* Field of the row last read, unquoted; valid until the next row. */
const char *csv_rows_text(const CsvRows *self, int column);
/* A whole number. */
gboolean csv_rows_int(const CsvRows *self, int column, gint64 *ret, GError **error);
/* A whole number, or `absent` where the field is empty or the column is -1. */
gboolean csv_rows_int_or(const CsvRows *self, int column, gint64 absent, gint64 *ret,
                         GError **error);
/* A finite number, or NaN where the field is empty, "nan", or the column is -1. */
gboolean csv_rows_real(const CsvRows *self, int column, double *ret, GError **error);

/* Exact text to number; FALSE unless all of `text` is one. */
gboolean csv_parse_int(const char *text, gint64 *ret);
gboolean csv_parse_real(const char *text, double *ret);

#endif
