/* BurstGPT (data CC-BY-4.0), both layouts: v1 has Timestamp, Model, Request tokens, Response
 * tokens, Total tokens, Log Type; v2 inserts Session ID and Elapsed time after Timestamp. Columns
 * are found by name.
 *
 * Timestamp is in seconds of one clock across the files, whole seconds in effect, and does not
 * begin at zero. Response tokens 0 is a failed call (dropped as "zero_output", or kept as asked);
 * both 0 is counted apart. An empty Session ID is normal (API log). Model and log type make the
 * class. Elapsed time is to the last token, in whole seconds.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/names.h"
#include "workloads/table.h"

typedef struct BurstReader {
    FormatReader base;
    Table *table;
    SessionNames *names;
    GPtrArray *classes;
    int time, session, elapsed, model, request, response, type;
    Observed observed;
} BurstReader;

static int burst_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"Timestamp", "Request tokens", "Response tokens", NULL};
    return format_head_score(head, size, columns, 95);
}

static void burst_free(FormatReader *base)
{
    BurstReader *self = (BurstReader *)base;
    table_free(self->table);
    session_names_free(self->names);
    g_free(self);
}

static FormatReader *burst_open(Input *input, const FormatArgs *args, GError **error)
{
    BurstReader *self = g_new0(BurstReader, 1);
    self->base.ops = &format_burstgpt;
    self->names = session_names_new();
    self->classes = args->classes;
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL || !table_require(self->table, "Timestamp", &self->time, error) ||
        !table_require(self->table, "Request tokens", &self->request, error) ||
        !table_require(self->table, "Response tokens", &self->response, error)) {
        burst_free(&self->base);
        return NULL;
    }
    self->session = table_find(self->table, "Session ID");
    self->elapsed = table_find(self->table, "Elapsed time");
    self->model = table_find(self->table, "Model");
    self->type = table_find(self->table, "Log Type");
    return &self->base;
}

static void read_class(BurstReader *self, LogRecord *ret)
{
    char name[128];
    gsize m, t;
    const char *model = table_field(self->table, self->model, &m);
    const char *type = table_field(self->table, self->type, &t);
    if (m + t == 0 || m + t + 4 > sizeof name)
        return;
    memcpy(name, model, m);
    name[m] = '/';
    memcpy(name + m + 1, type, t);
    ret->klass = format_class(self->classes, name, m + 1 + t);
}

static int burst_next(FormatReader *base, LogRecord *ret, GError **error)
{
    BurstReader *self = (BurstReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival_text = table_field(self->table, self->time, &ret->arrival_len);
    if (!table_time(self->table, self->time, KV_SECOND, &ret->arrival, error) ||
        !table_tokens(self->table, self->request, &ret->prompt, error) ||
        !table_tokens(self->table, self->response, &ret->output, error))
        return -1;
    if (!table_is_empty(self->table, self->session)) {
        gsize len;
        const char *name = table_field(self->table, self->session, &len);
        ret->session = session_number(self->names, name, len, &ret->turn);
    }
    if (!table_is_empty(self->table, self->elapsed) && ret->output > 0) {
        self->observed = (Observed){.queue = KV_NS_NONE, .ttft = KV_NS_NONE};
        if (!table_time(self->table, self->elapsed, KV_SECOND, &self->observed.e2e, error))
            return -1;
        ret->observed = &self->observed;
    }
    read_class(self, ret);
    return 1;
}

const FormatOps format_burstgpt = {
    .info = {"burstgpt", "BurstGPT v1 and v2 (CSV; failed calls counted, sessions)", NULL, 0},
    .probe = burst_probe,
    .open = burst_open,
    .next = burst_next,
    .free = burst_free,
};
