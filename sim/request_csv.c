/* requests.csv: one line a request, in order of id.
 *
 * Requests end out of order; a record waits in a ring until all lower ids have ended. The ring
 * holds from the oldest request still in the system to the newest ended one. */
#include "sim/sim.h"
#include "base/outfile.h"

#include <string.h>

typedef struct Held {
    RequestRecord record;
    gboolean full;
} Held;

typedef struct CsvSink {
    RequestSink sink;
    OutFile *out;
    Held *ring;        /* place of an id: id mod cap */
    guint64 cap, next; /* ids below `next` are written */
} CsvSink;

static void print_time(FILE *f, kv_ns t)
{
    if (t != KV_NS_NONE)
        fprintf(f, "%" G_GINT64_FORMAT, t);
    fputc(',', f);
}

static const char *status_name(RequestStatus status)
{
    switch (status) {
    case REQUEST_FINISHED:
        return "finished";
    case REQUEST_REFUSED:
        return "refused";
    case REQUEST_CUT:
        return "cut";
    }
    return "";
}

static void print_record(FILE *f, const RequestRecord *r)
{
    const Request *q = &r->request;
    fprintf(f, "%" G_GUINT64_FORMAT ",", q->id);
    if (q->session != KV_NO_SESSION)
        fprintf(f, "%" G_GINT64_FORMAT, q->session);
    fprintf(f, ",%d,%u,%u,", q->turn, q->klass, r->replica);
    print_time(f, q->arrival);
    print_time(f, q->sent);
    print_time(f, r->first_scheduled);
    print_time(f, r->first_token);
    print_time(f, r->finish);
    fprintf(f, "%d,%d,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%u,%s,%s\n", q->prompt, q->output,
            r->cached_tokens, r->recomputed_tokens, r->preemptions, status_name(r->status),
            r->reason ? r->reason : "");
}

static void grow_ring(CsvSink *self, guint64 id)
{
    guint64 cap = MAX(256, self->cap);
    while (id - self->next >= cap)
        cap *= 2;
    if (cap == self->cap)
        return;
    Held *ring = g_new0(Held, cap);
    for (guint64 i = self->next; i < self->next + self->cap; i++)
        ring[i % cap] = self->ring[i % self->cap];
    g_free(self->ring);
    self->ring = ring;
    self->cap = cap;
}

static gboolean take_record(RequestSink *sink, const RequestRecord *record, GError **error)
{
    CsvSink *self = (CsvSink *)sink;
    FILE *f = out_file_stream(self->out);
    guint64 id = record->request.id;
    g_assert(id >= self->next);
    grow_ring(self, id);
    Held *held = &self->ring[id % self->cap];
    held->record = *record;
    held->full = TRUE;
    while (self->ring[self->next % self->cap].full) {
        held = &self->ring[self->next++ % self->cap];
        held->full = FALSE;
        print_record(f, &held->record);
    }
    return out_file_ok(self->out, error);
}

RequestSink *request_csv_sink_new(struct OutFile *out)
{
    CsvSink *self = g_new0(CsvSink, 1);
    self->sink.request = take_record;
    self->out = out;
    fputs("request_id,session_id,turn,class,replica,arrival_ns,sent_ns,first_scheduled_ns,"
          "first_token_ns,finish_ns,prompt_tokens,output_tokens,cached_tokens,recomputed_tokens,"
          "preemptions,status,reason\n",
          out_file_stream(out));
    return &self->sink;
}

void request_csv_sink_flush(RequestSink *sink)
{
    CsvSink *self = (CsvSink *)sink;
    FILE *f = out_file_stream(self->out);
    for (guint64 end = self->next + self->cap; self->next < end; self->next++) {
        Held *held = &self->ring[self->next % self->cap];
        if (held->full)
            print_record(f, &held->record);
        held->full = FALSE;
    }
}

void request_csv_sink_free(RequestSink *sink)
{
    CsvSink *self = (CsvSink *)sink;
    if (self == NULL)
        return;
    g_free(self->ring);
    g_free(self);
}
