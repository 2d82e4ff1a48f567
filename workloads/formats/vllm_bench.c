/* vLLM and SGLang benchmark results (JSON, --save-detailed): arrays with one element a request.
 *
 * input_lens, output_lens, and where present start_times (s, monotonic), ttfts (s), itls (s),
 * latencies (s), errors. Failed requests stay in the arrays with output 0 or a text in errors:
 * dropped as "failed". A file without start_times gives all requests at time 0, with a note.
 * duration is the run's. Memory: the document.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"

typedef struct BenchReader {
    FormatReader base;
    JsonInput *json;
    guint64 n, i;
    JsonCursor inputs, outputs, starts, ttfts, itls, latencies, errors;
    GArray *gaps; /* kv_ns */
    Observed observed;
} BenchReader;

static int bench_probe(const char *head, gsize size)
{
    static const char *const lens[] = {"\"input_lens\"", NULL};
    static const char *const summary[] = {"\"completed\"", "\"total_input_tokens\"", NULL};
    if (format_first_char(head, size) != '{')
        return 0;
    return format_head_has(head, size, lens) ? 90 : format_head_has(head, size, summary) ? 60 : 0;
}

static void bench_free(FormatReader *base)
{
    BenchReader *self = (BenchReader *)base;
    json_input_free(self->json);
    g_array_unref(self->gaps);
    g_free(self);
}

/* Points `cursor` at the array; a missing one stays without array. */
static gboolean find_array(BenchReader *self, const char *name, gboolean must, JsonCursor *cursor,
                           GError **error)
{
    const JNode *array = json_member(self->json, json_root(self->json), name);
    if (array == NULL && must)
        return json_error(self->json, NULL, name,
                          "arrays with one element a request (--save-detailed)", error);
    if (array != NULL && json_length(array) == 0 && (must || self->n == 0))
        array = NULL;
    if (array != NULL && !must && json_length(array) != self->n) {
        if (json_length(array) == 0)
            array = NULL;
        else
            return json_error(self->json, array, name, "as many elements as input_lens has", error);
    }
    json_cursor_init(cursor, self->json, array);
    return TRUE;
}

static gboolean find_arrays(BenchReader *self, const FormatArgs *args, GError **error)
{
    const JNode *root = json_root(self->json),
                *duration = json_member(self->json, root, "duration");
    kv_ns d;
    if (!find_array(self, "input_lens", TRUE, &self->inputs, error))
        return FALSE;
    self->n = json_length(self->inputs.array);
    if (!find_array(self, "output_lens", FALSE, &self->outputs, error) ||
        !find_array(self, "start_times", FALSE, &self->starts, error) ||
        !find_array(self, "ttfts", FALSE, &self->ttfts, error) ||
        !find_array(self, "itls", FALSE, &self->itls, error) ||
        !find_array(self, "latencies", FALSE, &self->latencies, error) ||
        !find_array(self, "errors", FALSE, &self->errors, error))
        return FALSE;
    if (self->starts.array == NULL && self->n > 0)
        format_note(args->notes, "no start_times in this file: every request is at time 0 unless "
                                 "--arrivals gives them");
    if (duration != NULL) {
        if (!json_time(self->json, duration, "duration", KV_SECOND, &d, error))
            return FALSE;
        format_notes_set_duration(args->notes, d);
    }
    return TRUE;
}

static FormatReader *bench_open(Input *input, const FormatArgs *args, GError **error)
{
    BenchReader *self = g_new0(BenchReader, 1);
    self->base.ops = &format_vllm_bench;
    self->json = json_input_new(input);
    self->gaps = g_array_new(FALSE, FALSE, sizeof(kv_ns));
    if (!json_input_document(self->json, error) || !find_arrays(self, args, error)) {
        bench_free(&self->base);
        return NULL;
    }
    return &self->base;
}

static gboolean read_gaps(BenchReader *self, GError **error)
{
    g_array_set_size(self->gaps, 0);
    if (self->itls.array == NULL)
        return TRUE;
    const JNode *list = json_cursor_node(&self->itls);
    JsonCursor gap;
    json_cursor_init(&gap, self->json, list);
    for (guint64 k = 0; k < json_length(list); k++) {
        kv_ns t;
        if (!json_cursor_time(&gap, "itls", KV_SECOND, &t, error))
            return FALSE;
        g_array_append_val(self->gaps, t);
    }
    return TRUE;
}

static gboolean read_times(BenchReader *self, LogRecord *r, GError **error)
{
    Observed *o = &self->observed;
    *o = (Observed){.queue = KV_NS_NONE, .ttft = KV_NS_NONE, .e2e = KV_NS_NONE};
    r->arrival = 0;
    if ((self->starts.array != NULL &&
         !json_cursor_time(&self->starts, "start_times", KV_SECOND, &r->arrival, error)) ||
        (self->ttfts.array != NULL &&
         !json_cursor_time(&self->ttfts, "ttfts", KV_SECOND, &o->ttft, error)) ||
        (self->latencies.array != NULL &&
         !json_cursor_time(&self->latencies, "latencies", KV_SECOND, &o->e2e, error)) ||
        !read_gaps(self, error))
        return FALSE;
    o->n_itl = self->gaps->len;
    o->itl = (const kv_ns *)(gpointer)self->gaps->data;
    if (o->e2e == KV_NS_NONE && o->ttft != KV_NS_NONE && self->itls.array != NULL) {
        o->e2e = o->ttft;
        for (guint k = 0; k < o->n_itl; k++)
            if (__builtin_add_overflow(o->e2e, o->itl[k], &o->e2e))
                return json_error(self->json, self->itls.array, "itls", "sums within 292 years",
                                  error);
    }
    r->observed = o;
    return TRUE;
}

static int bench_next(FormatReader *base, LogRecord *ret, GError **error)
{
    BenchReader *self = (BenchReader *)base;
    if (self->i == self->n)
        return 0;
    self->i++;
    log_record_init(ret);
    ret->line = self->i;
    const JNode *problem = self->errors.array != NULL ? json_cursor_node(&self->errors) : NULL;
    gboolean failed = problem != NULL && problem->type == JDOC_STRING && problem->len > 0;
    if (!json_cursor_i64(&self->inputs, "input_lens", 0, G_MAXINT32, &ret->prompt, error) ||
        (self->outputs.array != NULL &&
         !json_cursor_i64(&self->outputs, "output_lens", 0, G_MAXINT32, &ret->output, error)) ||
        !read_times(self, ret, error))
        return -1;
    if (failed || ret->output == 0)
        ret->fault = "failed";
    return 1;
}

const FormatOps format_vllm_bench = {
    .info = {"vllm-bench", "vLLM and SGLang benchmark results with details (JSON)", NULL, 0},
    .probe = bench_probe,
    .open = bench_open,
    .next = bench_next,
    .free = bench_free,
};
