#include "plots/csv_rows.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"

struct CsvRows {
    Input *input;
    GPtrArray *names;  /* char * */
    GPtrArray *fields; /* char *, into the Input's line */
};

/* Cuts `line` at its commas, in place; takes quotes off. FALSE on an unclosed quote. */
static gboolean split(char *line, GPtrArray *fields)
{
    g_ptr_array_set_size(fields, 0);
    for (char *at = line;;) {
        g_ptr_array_add(fields, at);
        if (*at != '"') {
            char *comma = strchr(at, ',');
            if (comma == NULL)
                return TRUE;
            *comma = '\0';
            at = comma + 1;
            continue;
        }
        char *to = at, *from = at + 1;
        while (*from != '\0' && !(from[0] == '"' && from[1] != '"')) {
            if (from[0] == '"')
                from++;
            *to++ = *from++;
        }
        if (*from != '"')
            return FALSE;
        from++;
        char end = *from;
        *to = '\0';
        if (end == '\0')
            return TRUE;
        if (end != ',')
            return FALSE;
        at = from + 1;
    }
}

static gboolean read_header(CsvRows *self, GError **error)
{
    char *line = NULL;
    gsize length = 0;
    do {
        int got = input_line(self->input, &line, &length, error);
        if (got < 0)
            return FALSE;
        if (got == 0) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                        "%s:1: the file is empty, expected a header line with column names",
                        input_name(self->input));
            return FALSE;
        }
    } while (length == 0 || line[0] == '#');
    if (!g_utf8_validate(line, (gssize)length, NULL))
        return input_error(self->input, error, "the header is not text, expected column names");
    if (!split(line, self->fields))
        return input_error(self->input, error, "a quote is not closed in the header");
    for (guint i = 0; i < self->fields->len; i++)
        g_ptr_array_add(self->names, g_strdup(g_strstrip(g_ptr_array_index(self->fields, i))));
    return TRUE;
}

CsvRows *csv_rows_open(const char *path, GError **error)
{
    Input *input = input_open(path, error);
    if (input == NULL)
        return NULL;
    g_autoptr(CsvRows) self = g_new0(CsvRows, 1);
    self->input = input;
    self->names = g_ptr_array_new_with_free_func(g_free);
    self->fields = g_ptr_array_new();
    if (!read_header(self, error))
        return NULL;
    return g_steal_pointer(&self);
}

void csv_rows_free(CsvRows *self)
{
    if (self == NULL)
        return;
    input_free(self->input);
    g_ptr_array_unref(self->names);
    g_ptr_array_unref(self->fields);
    g_free(self);
}

guint csv_rows_n_columns(const CsvRows *self)
{
    return self->names->len;
}

const char *csv_rows_name(const CsvRows *self, guint column)
{
    return g_ptr_array_index(self->names, column);
}

int csv_rows_find(const CsvRows *self, const char *name)
{
    for (guint i = 0; i < self->names->len; i++)
        if (strcmp(g_ptr_array_index(self->names, i), name) == 0)
            return (int)i;
    return -1;
}

gboolean csv_rows_need(const CsvRows *self, const char *const *names, guint n, int *ret,
                       GError **error)
{
    for (guint i = 0; i < n; i++) {
        ret[i] = csv_rows_find(self, names[i]);
        if (ret[i] < 0)
            return input_error(self->input, error, "no column '%s' in the header", names[i]);
    }
    return TRUE;
}

int csv_rows_next(CsvRows *self, GError **error)
{
    char *line = NULL;
    gsize length = 0;
    do {
        int got = input_line(self->input, &line, &length, error);
        if (got <= 0)
            return got;
    } while (length == 0);
    if (memchr(line, '\0', length) != NULL) {
        input_error(self->input, error, "a NUL byte in the line, expected text");
        return -1;
    }
    if (!split(line, self->fields)) {
        input_error(self->input, error, "a quote is not closed");
        return -1;
    }
    if (self->fields->len != self->names->len) {
        input_error(self->input, error, "%u fields, expected the header's %u (is the file cut?)",
                    self->fields->len, self->names->len);
        return -1;
    }
    return 1;
}

guint64 csv_rows_line(const CsvRows *self)
{
    return input_line_number(self->input);
}

const char *csv_rows_text(const CsvRows *self, int column)
{
    return column < 0 ? "" : g_ptr_array_index(self->fields, (guint)column);
}

static gboolean field_error(const CsvRows *self, int column, const char *expected, GError **error)
{
    g_autofree char *text = g_strndup(csv_rows_text(self, column), 40);
    g_autofree char *shown = g_utf8_make_valid(text, -1);
    return input_error(self->input, error, "column %s: '%s', expected %s",
                       csv_rows_name(self, (guint)column), shown, expected);
}

gboolean csv_rows_int(const CsvRows *self, int column, gint64 *ret, GError **error)
{
    if (!csv_parse_int(csv_rows_text(self, column), ret))
        return field_error(self, column, "a whole number", error);
    return TRUE;
}

gboolean csv_rows_int_or(const CsvRows *self, int column, gint64 absent, gint64 *ret,
                         GError **error)
{
    *ret = absent;
    if (csv_rows_text(self, column)[0] == '\0')
        return TRUE;
    return csv_rows_int(self, column, ret, error);
}

gboolean csv_rows_real(const CsvRows *self, int column, double *ret, GError **error)
{
    const char *text = csv_rows_text(self, column);
    *ret = (double)NAN;
    if (text[0] == '\0' || g_ascii_strcasecmp(text, "nan") == 0)
        return TRUE;
    if (!csv_parse_real(text, ret))
        return field_error(self, column, "a number", error);
    return TRUE;
}

gboolean csv_parse_int(const char *text, gint64 *ret)
{
    gboolean negative = *text == '-';
    const char *at = text + negative;
    guint64 value = 0;
    if (*at == '\0')
        return FALSE;
    for (; *at != '\0'; at++) {
        guint digit = (guint)(*at - '0');
        if (digit > 9 || value > ((guint64)G_MAXINT64 - digit) / 10)
            return FALSE;
        value = value * 10 + digit;
    }
    *ret = negative ? -(gint64)value : (gint64)value;
    return TRUE;
}

/* Up to 15 digits with a point are exact as integer / power of ten; the rest goes to strtod. */
gboolean csv_parse_real(const char *text, double *ret)
{
    static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    gboolean negative = *text == '-';
    const char *at = text + negative;
    gint64 value = 0;
    int digits = 0, fraction = -1;
    for (; *at != '\0' && digits <= 15; at++) {
        if (*at == '.' && fraction < 0) {
            fraction = 0;
            continue;
        }
        if (*at < '0' || *at > '9')
            break;
        value = value * 10 + (*at - '0');
        digits++;
        fraction += fraction >= 0;
    }
    if (*at == '\0' && digits > 0 && digits <= 15) {
        double magnitude = (double)value / powers[MAX(fraction, 0)];
        *ret = negative ? -magnitude : magnitude;
        return TRUE;
    }
    char *end = NULL;
    if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
        return FALSE;
    *ret = g_ascii_strtod(text, &end);
    return *end == '\0' && isfinite(*ret);
}
