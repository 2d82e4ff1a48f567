/* AIBrix workloads (Apache-2.0): {"timestamp": ms, "requests": [{"Prompt Length", "Output Length",
 * "prompt"}]}, several requests a line at one time. */
#include "workloads/format.h"

#include "workloads/formats/formats.h"
#include "workloads/json_input.h"

typedef struct AibrixReader {
    FormatReader base;
    JsonInput *json;
    const JNode *list, *at; /* requests of the line at hand */
    kv_ns time;
    const JNode *time_node;
} AibrixReader;

static int aibrix_probe(const char *head, gsize size)
{
    static const char *const texts[] = {"\"requests\"", "\"Prompt Length\"", NULL};
    return format_first_char(head, size) == '{' && format_head_has(head, size, texts) ? 90 : 0;
}

static void aibrix_free(FormatReader *base)
{
    json_input_free(((AibrixReader *)base)->json);
    g_free(base);
}

static FormatReader *aibrix_open(Input *input, const FormatArgs *args, GError **error)
{
    AibrixReader *self = g_new0(AibrixReader, 1);
    self->base.ops = &format_aibrix;
    self->json = json_input_new(input);
    return &self->base;
}

static int next_line(AibrixReader *self, GError **error)
{
    int got = json_input_next(self->json, error);
    if (got != 1)
        return got;
    const JNode *root = json_root(self->json);
    self->time_node = json_member(self->json, root, "timestamp");
    self->list = json_member(self->json, root, "requests");
    if (self->list == NULL || self->list->type != JDOC_ARRAY) {
        json_error(self->json, self->list, "requests", "an array of requests", error);
        return -1;
    }
    self->at = json_first(self->json, self->list);
    return json_time(self->json, self->time_node, "timestamp", KV_MS, &self->time, error) ? 1 : -1;
}

static int aibrix_next(FormatReader *base, LogRecord *ret, GError **error)
{
    AibrixReader *self = (AibrixReader *)base;
    while (self->at == NULL) {
        int got = next_line(self, error);
        if (got != 1)
            return got;
    }
    const JNode *output = json_any(self->json, self->at, "Output Length|output_length");
    log_record_init(ret);
    ret->line = json_line(self->json, NULL);
    ret->arrival = self->time;
    ret->arrival_text = self->time_node->text;
    ret->arrival_len = self->time_node->len;
    if (!json_tokens(self->json, json_any(self->json, self->at, "Prompt Length|prompt_length"),
                     "Prompt Length", &ret->prompt, error) ||
        (output != NULL && !json_tokens(self->json, output, "Output Length", &ret->output, error)))
        return -1;
    self->at = json_next(self->json, self->list, self->at);
    return 1;
}

const FormatOps format_aibrix = {
    .info = {"aibrix", "AIBrix workloads (JSON lines, several requests each)", NULL, 0},
    .probe = aibrix_probe,
    .open = aibrix_open,
    .next = aibrix_next,
    .free = aibrix_free,
};
