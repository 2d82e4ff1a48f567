/* RAGPulse (MIT): timestamp (a string of whole seconds from 12:00:00, over a week), input_length,
 * output_length, hash_ids (an object of five lists: the pieces of the prompt, of no fixed size),
 * session_id.
 *
 * The clock wraps after a week: a step back of more than half a week is taken as the next week and
 * noted. The pieces have no token counts in the log, so there are no block keys.
 */
#include "workloads/format.h"

#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/names.h"

#define WEEK (7 * 86400 * KV_SECOND)

typedef struct RagReader {
    FormatReader base;
    JsonInput *json;
    SessionNames *names;
    FormatNotes *notes;
    kv_ns last, weeks;
} RagReader;

static int rag_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"sys_prompt\"", "\"user_input\"", "\"timestamp\"", NULL};
    return format_first_char(head, size) == '{' && format_line_has(head, size, texts) ? 95 : 0;
}

static void rag_free(FormatReader *base)
{
    RagReader *self = (RagReader *)base;
    json_input_free(self->json);
    session_names_free(self->names);
    g_free(self);
}

static FormatReader *rag_open(Input *input, const FormatArgs *args, GError **error)
{
    RagReader *self = g_new0(RagReader, 1);
    self->base.ops = &format_ragpulse;
    self->json = json_input_new(input);
    self->names = session_names_new();
    self->notes = args->notes;
    self->last = KV_NS_NONE;
    return &self->base;
}

static int rag_next(FormatReader *base, LogRecord *ret, GError **error)
{
    RagReader *self = (RagReader *)base;
    JsonInput *json = self->json;
    int got = json_input_next(json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(json), *time = json_member(json, root, "timestamp");
    const JNode *session = json_member(json, root, "session_id");
    kv_ns t;
    log_record_init(ret);
    ret->line = json_line(json, NULL);
    if (!json_time(json, time, "timestamp", KV_SECOND, &t, error) ||
        !json_tokens(json, json_member(json, root, "input_length"), "input_length", &ret->prompt,
                     error) ||
        !json_tokens(json, json_member(json, root, "output_length"), "output_length", &ret->output,
                     error))
        return -1;
    if (t < 0 || t > WEEK) {
        json_error(json, time, "timestamp", "seconds within a week, 0 to 604800", error);
        return -1;
    }
    if (self->last != KV_NS_NONE && self->last - t > WEEK / 2) {
        self->weeks += WEEK;
        format_note(self->notes,
                    "the clock steps back by more than half a week: taken as the next week");
    }
    self->last = t;
    ret->arrival = t + self->weeks;
    ret->arrival_text = time->text;
    ret->arrival_len = time->len;
    if (session != NULL && session->text != NULL)
        ret->session = session_number(self->names, session->text, session->len, &ret->turn);
    return 1;
}

const FormatOps format_ragpulse = {
    .info = {"ragpulse", "RAGPulse (JSON lines, a week's clock, sessions)", NULL, 0},
    .probe = rag_probe,
    .open = rag_open,
    .next = rag_next,
    .free = rag_free,
};
