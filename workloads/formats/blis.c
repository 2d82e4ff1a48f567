/* BLIS traces v2 and v3 (inference-sim, Apache-2.0): the CSV beside a YAML header.
 *
 * Columns by name; needed: input_tokens, output_tokens, and arrival_time_us or send_time_us.
 * Arrivals and send times may be on different clocks (relative, and UNIX): where the two are more
 * than a year apart, the first row's sending is taken as its arrival and the others follow from it;
 * otherwise the client's wait is send - arrival. A row with another status than ok is dropped as
 * "failed"; 0 in a time is "not recorded". A header NAME.yaml beside NAME.csv is looked at for its
 * time_unit.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/names.h"
#include "workloads/table.h"

#define YEAR (365 * 86400 * KV_SECOND)

typedef struct BlisReader {
    FormatReader base;
    Table *table;
    SessionNames *names;
    GPtrArray *classes;
    int arrival, send, first, last, input, output, status, session, round, klass, deadline;
    gboolean begun, apart; /* two clocks */
    kv_ns shift;           /* send clock minus arrival clock */
    Observed observed;
} BlisReader;

static int blis_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"arrival_time_us", "send_time_us", "input_tokens",
                                          "output_tokens", NULL};
    return format_head_score(head, size, columns, 90);
}

static void blis_free(FormatReader *base)
{
    BlisReader *self = (BlisReader *)base;
    table_free(self->table);
    session_names_free(self->names);
    g_free(self);
}

/* time_unit of the YAML header beside the file, if there is one. */
static gboolean check_header(const Input *input, GError **error)
{
    const char *name = input_name(input);
    if (!g_str_has_suffix(name, ".csv"))
        return TRUE;
    g_autofree char *stem = g_strndup(name, strlen(name) - 4);
    g_autofree char *path = g_strconcat(stem, ".yaml", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return TRUE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (!g_str_has_prefix(lines[i], "time_unit:"))
            continue;
        const char *unit = g_strstrip(lines[i] + strlen("time_unit:"));
        if (strcmp(unit, "microseconds") != 0 && strcmp(unit, "us") != 0) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                        "%s:%u: time_unit: '%s': expected microseconds", path, i + 1, unit);
            return FALSE;
        }
    }
    return TRUE;
}

static FormatReader *blis_open(Input *input, const FormatArgs *args, GError **error)
{
    BlisReader *self = g_new0(BlisReader, 1);
    self->base.ops = &format_blis;
    self->names = session_names_new();
    self->classes = args->classes;
    if (!check_header(input, error) || (self->table = table_new(input, ',', NULL, error)) == NULL ||
        !table_require(self->table, "arrival_time_us", &self->arrival, error) ||
        !table_require(self->table, "input_tokens", &self->input, error) ||
        !table_require(self->table, "output_tokens", &self->output, error)) {
        blis_free(&self->base);
        return NULL;
    }
    self->send = table_find(self->table, "send_time_us");
    self->first = table_find(self->table, "first_chunk_time_us");
    self->last = table_find(self->table, "last_chunk_time_us");
    self->status = table_find(self->table, "status");
    self->session = table_find(self->table, "session_id");
    self->round = table_find(self->table, "round_index");
    self->klass = table_find(self->table, "slo_class");
    self->deadline = table_find(self->table, "deadline_us");
    return &self->base;
}

static gboolean optional_time(BlisReader *self, int column, kv_ns *ret, GError **error)
{
    *ret = KV_NS_NONE;
    return table_is_empty(self->table, column) ||
           table_time(self->table, column, KV_US, ret, error);
}

static gboolean read_times(BlisReader *self, LogRecord *r, gboolean good, GError **error)
{
    kv_ns first, last, deadline;
    if (!table_time(self->table, self->arrival, KV_US, &r->arrival, error) ||
        !optional_time(self, self->send, &r->sent, error) ||
        !optional_time(self, self->first, &first, error) ||
        !optional_time(self, self->last, &last, error) ||
        !optional_time(self, self->deadline, &deadline, error))
        return FALSE;
    r->arrival_text = table_field(self->table, self->arrival, &r->arrival_len);
    if (deadline > 0)
        r->deadline = MAX(deadline - r->arrival, 0);
    kv_ns sent = r->sent;
    if (sent != KV_NS_NONE && !self->begun) {
        self->begun = TRUE;
        self->apart = ABS(sent / 2 - r->arrival / 2) > YEAR / 2;
        self->shift = self->apart ? sent - r->arrival : 0;
    }
    if (sent != KV_NS_NONE)
        r->sent = sent - self->shift;
    if (!good || sent == KV_NS_NONE || first <= 0)
        return TRUE;
    self->observed = (Observed){.has_sent = TRUE,
                                .queue = KV_NS_NONE,
                                .ttft = first - sent,
                                .e2e = last > 0 ? last - sent : KV_NS_NONE};
    r->observed = &self->observed;
    return TRUE;
}

static int blis_next(FormatReader *base, LogRecord *ret, GError **error)
{
    BlisReader *self = (BlisReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    gsize len;
    gint64 round = 0;
    log_record_init(ret);
    ret->line = table_line(self->table);
    const char *status = table_field(self->table, self->status, &len);
    gboolean good = self->status < 0 || (len == 2 && memcmp(status, "ok", 2) == 0);
    if (!table_tokens(self->table, self->input, &ret->prompt, error) ||
        !table_tokens(self->table, self->output, &ret->output, error) ||
        !read_times(self, ret, good, error) ||
        (!table_is_empty(self->table, self->round) &&
         !table_i64(self->table, self->round, 0, G_MAXINT32, &round, error)))
        return -1;
    if (!good)
        ret->fault = "failed";
    if (!table_is_empty(self->table, self->session)) {
        const char *name = table_field(self->table, self->session, &len);
        ret->session = session_number(self->names, name, len, NULL);
        ret->turn = (gint32)round;
    }
    if (!table_is_empty(self->table, self->klass)) {
        const char *name = table_field(self->table, self->klass, &len);
        ret->klass = format_class(self->classes, name, len);
    }
    return 1;
}

const FormatOps format_blis = {
    .info = {"blis", "BLIS (inference-sim) traces v2 and v3 (CSV)", NULL, 0},
    .probe = blis_probe,
    .open = blis_open,
    .next = blis_next,
    .free = blis_free,
};
