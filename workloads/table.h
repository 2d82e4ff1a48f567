/* Delimited text with named columns: the base of every CSV format.
 *
 * The first line names the columns (a byte order mark before it is taken off); columns are found by
 * name, in any order, so that variants with inserted columns read alike. A row must have as many
 * fields as the header: a cut line is an error, not a short row. Blank lines are passed over.
 *
 * Lines without a quote are split in place, at a few hundred MB/s; a line with one goes through
 * libcsv (RFC 4180: quoted commas, doubled quotes, line ends inside quotes).
 */
#ifndef KV_WORKLOADS_TABLE_H
#define KV_WORKLOADS_TABLE_H

#include "base/input.h"
#include "base/ns.h"

typedef struct Table Table;
/* Reads the header line, unless `names` (NULL-ended) gives the columns of a file without one. The
 * Input is borrowed. */
Table *table_new(Input *input, char delimiter, const char *const *names, GError **error);
void table_free(Table *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Table, table_free)

/* Index of the first of "a|b|c" that the header has; -1 if none. */
int table_find(const Table *self, const char *names);
/* The same, and an INPUT error that lists what was found. */
gboolean table_require(const Table *self, const char *names, int *ret, GError **error);
guint table_columns(const Table *self);
const char *table_column_name(const Table *self, int column);

int table_next(Table *self, GError **error); /* 1 = a row, 0 = end, -1 = error */
guint64 table_line(const Table *self);       /* line on which the row begins */
/* Field of the row, not '\0'-ended; valid until the next row. Column -1 gives an empty field. */
const char *table_field(const Table *self, int column, gsize *ret_len);
gboolean table_is_empty(const Table *self, int column);
/* Whole number in [min, max]; an INPUT error says which column and what was expected. */
gboolean table_i64(const Table *self, int column, gint64 min, gint64 max, gint64 *ret,
                   GError **error);
/* Tokens: 0 .. 2^31-1. */
gboolean table_tokens(const Table *self, int column, gint64 *ret, GError **error);
/* Decimal number of `unit` ns. */
gboolean table_time(const Table *self, int column, kv_ns unit, kv_ns *ret, GError **error);
gboolean table_error(const Table *self, int column, GError **error, const char *expected);

#endif
