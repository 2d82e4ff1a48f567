/* splitwise-sim traces (MIT): request_id, request_type, application_id, arrival_timestamp (s),
 * batch_size, prompt_size, token_size. Request type 2 is the only one that is an LLM request;
 * others are dropped as "not_llm". A batch_size above 1 is that many requests alike. */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/table.h"

typedef struct SplitReader {
    FormatReader base;
    Table *table;
    int type, time, batch, prompt, output;
    LogRecord record; /* being repeated */
    gint64 left;
} SplitReader;

static int split_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"arrival_timestamp", "prompt_size", "token_size", NULL};
    return format_head_score(head, size, columns, 95);
}

static void split_free(FormatReader *base)
{
    SplitReader *self = (SplitReader *)base;
    table_free(self->table);
    g_free(self);
}

static FormatReader *split_open(Input *input, const FormatArgs *args, GError **error)
{
    SplitReader *self = g_new0(SplitReader, 1);
    self->base.ops = &format_splitwise;
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL ||
        !table_require(self->table, "arrival_timestamp", &self->time, error) ||
        !table_require(self->table, "prompt_size", &self->prompt, error) ||
        !table_require(self->table, "token_size", &self->output, error)) {
        split_free(&self->base);
        return NULL;
    }
    self->type = table_find(self->table, "request_type");
    self->batch = table_find(self->table, "batch_size");
    return &self->base;
}

static int split_next(FormatReader *base, LogRecord *ret, GError **error)
{
    SplitReader *self = (SplitReader *)base;
    if (self->left > 0) {
        self->left--;
        *ret = self->record;
        return 1;
    }
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    gint64 type = 2, batch = 1;
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival_text = table_field(self->table, self->time, &ret->arrival_len);
    if (!table_time(self->table, self->time, KV_SECOND, &ret->arrival, error) ||
        !table_tokens(self->table, self->prompt, &ret->prompt, error) ||
        !table_tokens(self->table, self->output, &ret->output, error) ||
        (self->type >= 0 && !table_i64(self->table, self->type, 0, G_MAXINT32, &type, error)) ||
        (self->batch >= 0 && !table_i64(self->table, self->batch, 1, 65536, &batch, error)))
        return -1;
    if (type != 2)
        ret->fault = "not_llm";
    self->record = *ret;
    self->left = batch - 1;
    return 1;
}

const FormatOps format_splitwise = {
    .info = {"splitwise", "splitwise-sim traces (CSV)", NULL, 0},
    .probe = split_probe,
    .open = split_open,
    .next = split_next,
    .free = split_free,
};
