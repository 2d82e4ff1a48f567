/* `csv` and `jsonl`: any log of lines, with the user's own column mapping (column_map.h).
 *
 * csv finds its columns by name and its delimiter (comma, tab, semicolon) from the header; jsonl
 * takes dotted paths ("usage.prompt_tokens"). Both read any format that has a prompt length
 * somewhere.
 */
#include <string.h>

#include "base/error.h"
#include "workloads/column_map.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/names.h"
#include "workloads/table.h"

#define SURVEY_ROWS 1000

typedef struct Mapped {
    FormatReader base;
    Table *table;    /* csv */
    JsonInput *json; /* jsonl */
    int columns[MAP_TARGETS];
    MapState state;
} Mapped;

static void mapped_free(FormatReader *base)
{
    Mapped *self = (Mapped *)base;
    table_free(self->table);
    json_input_free(self->json);
    column_map_free(self->state.map);
    session_names_free(self->state.names);
    g_free(self);
}

/* --- one row's fields --- */

static const char *fetch_csv(gpointer row, MapTarget t, gsize *ret_len)
{
    Mapped *self = row;
    const char *text = table_field(self->table, self->columns[t], ret_len);
    return *ret_len > 0 ? text : NULL;
}

static const char *fetch_json(gpointer row, MapTarget t, gsize *ret_len)
{
    Mapped *self = row;
    const JNode *node = json_root(self->json);
    const char *path = self->state.map->names[t];
    const JNode *whole = json_member(self->json, node, path); /* a name may hold dots */
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    for (guint i = 0; whole == NULL && parts[i] != NULL; i++)
        node = json_member(self->json, node, parts[i]);
    if (whole != NULL)
        node = whole;
    if (node == NULL || (node->type != JDOC_NUMBER && node->type != JDOC_STRING) || node->len == 0)
        return NULL;
    *ret_len = node->len;
    return node->text;
}

/* --- opening --- */

static char delimiter_of(const char *head, gsize size)
{
    const char *end = memchr(head, '\n', size);
    gsize len = end != NULL ? (gsize)(end - head) : size;
    if (memchr(head, ',', len) != NULL)
        return ',';
    return memchr(head, '\t', len) != NULL ? '\t' : memchr(head, ';', len) != NULL ? ';' : ',';
}

static gboolean open_rows(Mapped *self, Input *input, gboolean csv, const char *head, gsize size,
                          GError **error)
{
    if (!csv) {
        self->json = json_input_new(input);
        return TRUE;
    }
    self->table = table_new(input, delimiter_of(head, size), NULL, error);
    if (self->table == NULL)
        return FALSE;
    for (guint t = 0; t < MAP_TARGETS; t++) {
        g_autofree char *name = g_strdup(self->state.map->names[t]);
        self->columns[t] = -1;
        if (name != NULL && !table_require(self->table, name, &self->columns[t], error))
            return FALSE;
    }
    return TRUE;
}

static int next_row(Mapped *self, GError **error)
{
    return self->table != NULL ? table_next(self->table, error)
                               : json_input_next(self->json, error);
}

/* Bare numbers of the time columns in the first rows. */
static gboolean survey(Mapped *self, gboolean csv, const char *head, gsize size, Input *input,
                       FormatNotes *notes, GError **error)
{
    const char *last = memrchr(head, '\n', size);
    g_autoptr(Input) memory =
        input_open_memory(input_name(input), head, last != NULL ? (gsize)(last - head) + 1 : size);
    GArray *times[MAP_TIMES];
    Mapped ahead = {.state.map = self->state.map};
    for (guint t = 0; t < MAP_TIMES; t++)
        times[t] = g_array_new(FALSE, FALSE, sizeof(double));
    gboolean good = open_rows(&ahead, memory, csv, head, size, error);
    for (guint i = 0; good && i < SURVEY_ROWS && next_row(&ahead, NULL) == 1; i++) {
        for (MapTarget t = 0; t < MAP_TIMES; t++) {
            gsize len;
            double v;
            const char *text = self->state.map->names[t] == NULL ? NULL
                               : csv                             ? fetch_csv(&ahead, t, &len)
                                                                 : fetch_json(&ahead, t, &len);
            if (text != NULL && field_real(text, len, &v))
                g_array_append_val(times[t], v);
        }
    }
    good = good && map_units(self->state.map, times, input, notes, error);
    for (guint t = 0; t < MAP_TIMES; t++)
        g_array_unref(times[t]);
    table_free(ahead.table);
    json_input_free(ahead.json);
    return good;
}

static FormatReader *mapped_open(Input *input, const FormatArgs *args, const FormatOps *ops,
                                 gboolean csv, GError **error)
{
    Mapped *self = g_new0(Mapped, 1);
    const char *head;
    gsize size;
    self->base.ops = ops;
    self->state =
        (MapState){.input = input, .classes = args->classes, .names = session_names_new()};
    self->state.map = column_map_parse(args->map, error);
    if (self->state.map == NULL || !input_peek(input, &head, &size, error) ||
        !survey(self, csv, head, size, input, args->notes, error) ||
        !open_rows(self, input, csv, head, size, error)) {
        mapped_free(&self->base);
        return NULL;
    }
    if (self->state.map->names[MAP_ARRIVAL] == NULL)
        format_note(args->notes, "no arrival times mapped: every request is at time 0 unless "
                                 "--arrivals gives them");
    return &self->base;
}

static FormatReader *csv_open(Input *input, const FormatArgs *args, GError **error)
{
    return mapped_open(input, args, &format_csv, TRUE, error);
}

static FormatReader *jsonl_open(Input *input, const FormatArgs *args, GError **error)
{
    return mapped_open(input, args, &format_jsonl, FALSE, error);
}

static int mapped_next(FormatReader *base, LogRecord *ret, GError **error)
{
    Mapped *self = (Mapped *)base;
    int got = next_row(self, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = self->table != NULL ? table_line(self->table) : json_line(self->json, NULL);
    return map_record(&self->state, self->table != NULL ? fetch_csv : fetch_json, self, ret, error)
               ? 1
               : -1;
}

const FormatOps format_csv = {
    .info = {"csv", "any delimited log, with --map prompt=COLUMN,output=COLUMN,arrival=COLUMN:unit",
             NULL, 0},
    .open = csv_open,
    .next = mapped_next,
    .free = mapped_free,
};

const FormatOps format_jsonl = {
    .info = {"jsonl", "any JSON lines log, with --map prompt=FIELD,output=FIELD,arrival=FIELD:unit",
             NULL, 0},
    .open = jsonl_open,
    .next = mapped_next,
    .free = mapped_free,
};
