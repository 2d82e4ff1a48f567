/* LLMServingSim's output: one CSV line a request in order of completion; ns; ITL is a quoted list.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/table.h"

typedef struct OutReader {
    FormatReader base;
    Table *table;
    int input, output, arrival, latency, queue, ttft, itl;
    GArray *gaps; /* kv_ns */
    Observed observed;
} OutReader;

static int out_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"instance id", "request id", "arrival",
                                          "end_time",    "TTFT",       NULL};
    return format_head_score(head, size, columns, 95);
}

static void out_free(FormatReader *base)
{
    OutReader *self = (OutReader *)base;
    table_free(self->table);
    g_array_unref(self->gaps);
    g_free(self);
}

static FormatReader *out_open(Input *input, const FormatArgs *args, GError **error)
{
    OutReader *self = g_new0(OutReader, 1);
    self->base.ops = &format_llmservingsim_out;
    self->gaps = g_array_new(FALSE, FALSE, sizeof(kv_ns));
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL || !table_require(self->table, "input", &self->input, error) ||
        !table_require(self->table, "output", &self->output, error) ||
        !table_require(self->table, "arrival", &self->arrival, error) ||
        !table_require(self->table, "latency", &self->latency, error) ||
        !table_require(self->table, "TTFT", &self->ttft, error)) {
        out_free(&self->base);
        return NULL;
    }
    self->queue = table_find(self->table, "queuing_delay");
    self->itl = table_find(self->table, "ITL");
    return &self->base;
}

/* "[1, 2, 3]" */
static gboolean read_gaps(OutReader *self, GError **error)
{
    gsize len;
    const char *p = table_field(self->table, self->itl, &len), *end = p + len;
    g_array_set_size(self->gaps, 0);
    while (p < end) {
        while (p < end && strchr("[], ", *p) != NULL)
            p++;
        const char *start = p;
        while (p < end && strchr("[], ", *p) == NULL)
            p++;
        gint64 gap;
        if (p == start)
            break;
        if (!field_i64(start, (gsize)(p - start), &gap) || gap < 0)
            return table_error(self->table, self->itl, error, "a list of nanoseconds");
        g_array_append_val(self->gaps, gap);
    }
    return TRUE;
}

static int out_next(FormatReader *base, LogRecord *ret, GError **error)
{
    OutReader *self = (OutReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    Observed *o = &self->observed;
    *o = (Observed){.queue = KV_NS_NONE};
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival_text = table_field(self->table, self->arrival, &ret->arrival_len);
    if (!table_tokens(self->table, self->input, &ret->prompt, error) ||
        !table_tokens(self->table, self->output, &ret->output, error) ||
        !table_time(self->table, self->arrival, 1, &ret->arrival, error) ||
        !table_time(self->table, self->latency, 1, &o->e2e, error) ||
        !table_time(self->table, self->ttft, 1, &o->ttft, error) ||
        (self->queue >= 0 && !table_time(self->table, self->queue, 1, &o->queue, error)) ||
        (self->itl >= 0 && !read_gaps(self, error)))
        return -1;
    o->n_itl = self->gaps->len;
    o->itl = (const kv_ns *)(gpointer)self->gaps->data;
    ret->observed = o;
    return 1;
}

const FormatOps format_llmservingsim_out = {
    .info = {"llmservingsim-out", "LLMServingSim's per-request output (CSV)", NULL, 0},
    .probe = out_probe,
    .open = out_open,
    .next = out_next,
    .free = out_free,
};
