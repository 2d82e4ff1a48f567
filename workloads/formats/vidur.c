/* vidur and sarathi-serve: processed traces and length lists, MIT and Apache-2.0.
 *
 * Columns num_prefill_tokens, num_decode_tokens, and where there are arrivals arrived_at (seconds
 * from the start; floats written by pandas, so 5.8926549999999995 is 5.892655). A list without
 * arrivals gives every request at time 0: arrivals are then the user's to choose. num_total_tokens,
 * where present, must be the sum.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/table.h"

typedef struct VidurReader {
    FormatReader base;
    Table *table;
    int arrived, prefill, decode, total;
} VidurReader;

static int vidur_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"num_prefill_tokens", "num_decode_tokens", NULL};
    return format_head_score(head, size, columns, 95);
}

static void vidur_free(FormatReader *base)
{
    VidurReader *self = (VidurReader *)base;
    table_free(self->table);
    g_free(self);
}

static FormatReader *vidur_open(Input *input, const FormatArgs *args, GError **error)
{
    VidurReader *self = g_new0(VidurReader, 1);
    self->base.ops = &format_vidur;
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL ||
        !table_require(self->table, "num_prefill_tokens", &self->prefill, error) ||
        !table_require(self->table, "num_decode_tokens", &self->decode, error)) {
        vidur_free(&self->base);
        return NULL;
    }
    self->arrived = table_find(self->table, "arrived_at");
    self->total = table_find(self->table, "num_total_tokens");
    if (self->arrived < 0)
        format_note(args->notes, "no arrival times in this log: every request is at time 0 unless "
                                 "--arrivals gives them");
    return &self->base;
}

static int vidur_next(FormatReader *base, LogRecord *ret, GError **error)
{
    VidurReader *self = (VidurReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival = 0;
    if (self->arrived >= 0) {
        ret->arrival_text = table_field(self->table, self->arrived, &ret->arrival_len);
        if (!table_time(self->table, self->arrived, KV_SECOND, &ret->arrival, error))
            return -1;
    }
    gint64 total;
    if (!table_tokens(self->table, self->prefill, &ret->prompt, error) ||
        !table_tokens(self->table, self->decode, &ret->output, error))
        return -1;
    if (self->total >= 0) {
        if (!table_i64(self->table, self->total, 0, G_MAXINT64, &total, error))
            return -1;
        if (total != ret->prompt + ret->output) {
            table_error(self->table, self->total, error, "prefill + decode tokens");
            return -1;
        }
    }
    return 1;
}

const FormatOps format_vidur = {
    .info = {"vidur", "vidur processed traces, vidur and sarathi length lists (CSV)", NULL, 0},
    .probe = vidur_probe,
    .open = vidur_open,
    .next = vidur_next,
    .free = vidur_free,
};
