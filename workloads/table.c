#include "workloads/table.h"

#include <csv.h>
#include <string.h>

#include "base/error.h"
#include "workloads/field.h"

typedef struct Field {
    const char *text;
    gsize len;
} Field;

struct Table {
    Input *input;
    char delimiter;
    GPtrArray *names; /* char * */
    GArray *fields;   /* Field; `n_fields` of them in use */
    guint n_fields;
    guint64 line;
    struct csv_parser csv;
    gboolean csv_ready, csv_row_done;
    GByteArray *quoted; /* texts of a row that went through libcsv */
    GArray *offsets;    /* gsize: ends of its fields in `quoted` */
};

/* 0x80 in each byte of the word that equals c, 0 in the others. */
static guint64 equal_bytes(guint64 word, char c)
{
    const guint64 low = G_GUINT64_CONSTANT(0x7f7f7f7f7f7f7f7f);
    guint64 x = word ^ (G_GUINT64_CONSTANT(0x0101010101010101) * (guchar)c);
    return ~(((x & low) + low) | x | low);
}

/* Splits in place, eight bytes at a time; stops at the first quote. */
static void split_plain(Table *self, const char *line, gsize len, gboolean *ret_quote)
{
    const char *start = line, *end = line + len, *p = line;
    guint n = 0, max = self->fields->len;
    Field *fields = (Field *)(gpointer)self->fields->data;
    char delimiter = self->delimiter;
    for (; end - p >= 8; p += 8) {
        guint64 word;
        memcpy(&word, p, 8);
        word = GUINT64_FROM_LE(word);
        if (G_UNLIKELY(equal_bytes(word, '"') != 0)) {
            *ret_quote = TRUE;
            return;
        }
        for (guint64 m = equal_bytes(word, delimiter); m != 0; m &= m - 1) {
            const char *at = p + __builtin_ctzll(m) / 8;
            if (n < max)
                fields[n] = (Field){start, (gsize)(at - start)};
            n++;
            start = at + 1;
        }
    }
    for (; p <= end; p++) {
        if (p == end || *p == delimiter) {
            if (n < max)
                fields[n] = (Field){start, (gsize)(p - start)};
            n++;
            start = p + 1;
        } else if (*p == '"') {
            *ret_quote = TRUE;
            return;
        }
    }
    self->n_fields = n;
}

static void on_field(void *text, size_t len, void *user)
{
    Table *self = user;
    if (len > 0)
        g_byte_array_append(self->quoted, text, (guint)len);
    gsize end = self->quoted->len;
    g_array_append_val(self->offsets, end);
}

static void on_row(int c, void *user)
{
    ((Table *)user)->csv_row_done = TRUE;
}

/* The row that begins with this line, by libcsv; takes more lines while a quote is open. */
static gboolean split_quoted(Table *self, char *line, gsize len, GError **error)
{
    if (!self->csv_ready) {
        csv_init(&self->csv, CSV_STRICT | CSV_STRICT_FINI);
        csv_set_blk_size(&self->csv, 1 << 18); /* it grows linearly: 10 MB fields exist */
        csv_set_delim(&self->csv, (unsigned char)self->delimiter);
        self->csv_ready = TRUE;
    }
    g_byte_array_set_size(self->quoted, 0);
    g_array_set_size(self->offsets, 0);
    self->csv_row_done = FALSE;
    for (;;) {
        if (csv_parse(&self->csv, line, len, on_field, on_row, self) != len ||
            csv_parse(&self->csv, "\n", 1, on_field, on_row, self) != 1)
            return input_error(self->input, error, "%s in a quoted field",
                               csv_strerror(csv_error(&self->csv)));
        if (self->csv_row_done)
            break;
        int got = input_line(self->input, &line, &len, error);
        if (got < 0)
            return FALSE;
        if (got == 0)
            return field_error(self->input, self->line, error, "quoted field", NULL, 0,
                               "a closing quote before the end of the file");
    }
    self->n_fields = self->offsets->len;
    gsize begin = 0;
    const char *texts = self->quoted->len > 0 ? (const char *)self->quoted->data : "";
    for (guint i = 0; i < self->n_fields; i++) {
        gsize end = g_array_index(self->offsets, gsize, i);
        if (i < self->fields->len)
            g_array_index(self->fields, Field, i) = (Field){texts + begin, end - begin};
        begin = end;
    }
    return TRUE;
}

static gboolean is_blank(const char *line, gsize len)
{
    for (gsize i = 0; i < len; i++)
        if (!g_ascii_isspace(line[i]))
            return FALSE;
    return TRUE;
}

/* Next line that is not blank, split. */
static int next_split(Table *self, GError **error)
{
    char *line;
    gsize len;
    int got;
    do {
        got = input_line(self->input, &line, &len, error);
    } while (got == 1 && is_blank(line, len));
    if (got != 1)
        return got;
    self->line = input_line_number(self->input);
    if (self->names == NULL && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3, len -= 3;
    gboolean quote = FALSE;
    split_plain(self, line, len, &quote);
    if (quote && !split_quoted(self, line, len, error))
        return -1;
    return 1;
}

static char *trimmed(const Field *field)
{
    return g_strstrip(g_strndup(field->text, field->len));
}

static gboolean read_header(Table *self, GError **error)
{
    g_array_set_size(self->fields, 4096);
    int got = next_split(self, error);
    if (got < 0)
        return FALSE;
    if (got == 0)
        return field_error(self->input, 1, error, "the file is empty", NULL, 0,
                           "a line of column names");
    if (self->n_fields > self->fields->len)
        return field_error(self->input, self->line, error, "header", NULL, 0,
                           "at most 4096 columns");
    self->names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < self->n_fields; i++)
        g_ptr_array_add(self->names, trimmed(&g_array_index(self->fields, Field, i)));
    return TRUE;
}

Table *table_new(Input *input, char delimiter, const char *const *names, GError **error)
{
    g_autoptr(Table) self = g_new0(Table, 1);
    self->input = input;
    self->delimiter = delimiter;
    self->fields = g_array_new(FALSE, TRUE, sizeof(Field));
    self->quoted = g_byte_array_new();
    self->offsets = g_array_new(FALSE, FALSE, sizeof(gsize));
    if (names == NULL) {
        if (!read_header(self, error))
            return NULL;
    } else {
        self->names = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; names[i] != NULL; i++)
            g_ptr_array_add(self->names, g_strdup(names[i]));
    }
    g_array_set_size(self->fields, self->names->len);
    return g_steal_pointer(&self);
}

void table_free(Table *self)
{
    if (self == NULL)
        return;
    if (self->csv_ready)
        csv_free(&self->csv);
    g_clear_pointer(&self->names, g_ptr_array_unref);
    g_array_unref(self->fields);
    g_byte_array_unref(self->quoted);
    g_array_unref(self->offsets);
    g_free(self);
}

int table_find(const Table *self, const char *names)
{
    g_auto(GStrv) wanted = g_strsplit(names, "|", -1);
    for (guint w = 0; wanted[w] != NULL; w++)
        for (guint i = 0; i < self->names->len; i++)
            if (g_str_equal(g_ptr_array_index(self->names, i), wanted[w]))
                return (int)i;
    return -1;
}

gboolean table_require(const Table *self, const char *names, int *ret, GError **error)
{
    *ret = table_find(self, names);
    if (*ret >= 0)
        return TRUE;
    GString *found = g_string_new(NULL);
    for (guint i = 0; i < self->names->len && found->len < 300; i++)
        g_string_append_printf(found, "%s%s", i > 0 ? "," : "",
                               (char *)g_ptr_array_index(self->names, i));
    g_autofree char *what = g_strdup_printf("no column '%s'; the columns are", names);
    field_error(self->input, self->line, error, what, found->str, found->len, "one with that name");
    g_string_free(found, TRUE);
    return FALSE;
}

guint table_columns(const Table *self)
{
    return self->names->len;
}

const char *table_column_name(const Table *self, int column)
{
    return column < 0 ? "" : g_ptr_array_index(self->names, column);
}

int table_next(Table *self, GError **error)
{
    int got = next_split(self, error);
    if (got != 1)
        return got;
    if (self->n_fields != self->names->len) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_INPUT,
            "%s:%" G_GUINT64_FORMAT ": %u field%s in this line%s, expected %u as in the header",
            input_name(self->input), self->line, self->n_fields, self->n_fields == 1 ? "" : "s",
            self->n_fields < self->names->len ? " (cut off?)" : "", self->names->len);
        return -1;
    }
    return 1;
}

guint64 table_line(const Table *self)
{
    return self->line;
}

const char *table_field(const Table *self, int column, gsize *ret_len)
{
    if (column < 0) {
        *ret_len = 0;
        return "";
    }
    const Field *field = &g_array_index(self->fields, Field, column);
    *ret_len = field->len;
    return field->text;
}

gboolean table_is_empty(const Table *self, int column)
{
    return column < 0 || g_array_index(self->fields, Field, column).len == 0;
}

gboolean table_error(const Table *self, int column, GError **error, const char *expected)
{
    gsize len;
    const char *text = table_field(self, column, &len);
    g_autofree char *what = g_strdup_printf("column '%s'", table_column_name(self, column));
    return field_error(self->input, self->line, error, what, text, len, expected);
}

gboolean table_i64(const Table *self, int column, gint64 min, gint64 max, gint64 *ret,
                   GError **error)
{
    gsize len;
    const char *text = table_field(self, column, &len);
    gint64 v;
    if (field_i64(text, len, &v) && v >= min && v <= max) {
        *ret = v;
        return TRUE;
    }
    g_autofree char *expected =
        g_strdup_printf("a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
    return table_error(self, column, error, expected);
}

gboolean table_tokens(const Table *self, int column, gint64 *ret, GError **error)
{
    return table_i64(self, column, 0, G_MAXINT32, ret, error);
}

gboolean table_time(const Table *self, int column, kv_ns unit, kv_ns *ret, GError **error)
{
    gsize len;
    const char *text = table_field(self, column, &len);
    if (field_time(text, len, unit, ret))
        return TRUE;
    return table_error(self, column, error,
                       unit == KV_SECOND ? "a time in seconds"
                       : unit == KV_MS   ? "a time in milliseconds"
                       : unit == KV_US   ? "a time in microseconds"
                                         : "a time in nanoseconds");
}
