/* Text logs of a vLLM server with request logging on, of all its generations.
 *
 * A request is a line with "Received request ID: prompt: ..., [sampling_]params:
 * SamplingParams(...), prompt[_ ]token[_ ]ids: [...]|None". The prompt's own text may hold
 * anything, so the ids and max_tokens are those of the last such words on the line. Prompt tokens =
 * number of ids, unknown where the list is None; the output is not in this log: unknown, and
 * max_tokens only bounds it (output=max_tokens takes the bound, and says so). Times are MM-DD
 * HH:MM:SS without a year: a step back of more than half a year is the next year. Colour codes and
 * prefixes (journald, "(APIServer pid=1)") are passed over; other lines are no rows.
 */
#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"

#define FIRST_YEAR 2024 /* a leap year, so that 29 February is one */
#define HALF_YEAR (183 * 86400 * KV_SECOND)

typedef struct VllmLogConfig {
    int output;
} VllmLogConfig;

typedef struct LogReader {
    FormatReader base;
    Input *input;
    FormatNotes *notes;
    gboolean bound;
    int year;
    kv_ns last;
} LogReader;

static int log_probe(const char *head, gsize size)
{
    static const char *const request[] = {"Received request ", "SamplingParams(", NULL};
    static const char *const engine[] = {"INFO ", "vllm", NULL};
    if (format_head_has(head, size, request))
        return 85;
    return format_head_has(head, size, engine) && format_first_char(head, size) != '{' ? 30 : 0;
}

static void log_free(FormatReader *base)
{
    g_free(base);
}

static FormatReader *log_open(Input *input, const FormatArgs *args, GError **error)
{
    LogReader *self = g_new0(LogReader, 1);
    self->base.ops = &format_vllm_log;
    self->input = input;
    self->notes = args->notes;
    self->bound = ((const VllmLogConfig *)args->config)->output == 1;
    self->year = FIRST_YEAR;
    self->last = KV_NS_NONE;
    return &self->base;
}

/* Takes ESC [ ... m out of the line. */
static gsize without_colours(char *line, gsize len)
{
    gsize out = 0;
    for (gsize i = 0; i < len; i++) {
        if (line[i] == 0x1b && i + 1 < len && line[i + 1] == '[') {
            while (i < len && line[i] != 'm')
                i++;
            continue;
        }
        line[out++] = line[i];
    }
    return out;
}

static const char *last_of(const char *text, gsize len, const char *word)
{
    gsize n = strlen(word);
    for (gsize i = len >= n ? len - n + 1 : 0; i > 0; i--)
        if (memcmp(text + i - 1, word, n) == 0)
            return text + i - 1;
    return NULL;
}

/* "MM-DD HH:MM:SS", the last one before `stop`. */
static const char *find_time(const char *line, const char *stop)
{
    static const char shape[] = "dd-dd dd:dd:dd";
    for (const char *p = stop - 14; p >= line; p--) {
        gsize i = 0;
        while (i < 14 && (shape[i] == 'd' ? g_ascii_isdigit(p[i]) : p[i] == shape[i]))
            i++;
        if (i == 14)
            return p;
    }
    return NULL;
}

static gboolean read_time(LogReader *self, const char *text, LogRecord *r, GError **error)
{
    char full[24];
    for (;;) {
        g_snprintf(full, sizeof full, "%04d-%.14s", self->year, text);
        gboolean leap = self->year % 4 == 0;
        if (!leap && memcmp(text, "02-29", 5) == 0)
            full[6] = '3', full[8] = '0', full[9] = '1';
        if (!field_calendar(full, 19, &r->arrival))
            return field_error(self->input, input_line_number(self->input), error, "time", text, 14,
                               "MM-DD HH:MM:SS");
        if (self->last == KV_NS_NONE || self->last - r->arrival < HALF_YEAR)
            break;
        self->year++;
        format_note(self->notes,
                    "the date steps back by more than half a year: taken as the next year");
    }
    self->last = r->arrival;
    r->arrival_text = text;
    r->arrival_len = 14;
    return TRUE;
}

/* Numbers in the list that begins at `p`; -1 for None. */
static gint64 count_ids(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    if (p == end || *p != '[')
        return -1;
    gint64 n = 0;
    gboolean in_number = FALSE;
    for (p++; p < end && *p != ']'; p++) {
        gboolean digit = g_ascii_isdigit(*p);
        n += digit && !in_number;
        in_number = digit;
    }
    return n;
}

static gboolean read_request(LogReader *self, const char *line, gsize len, const char *at,
                             LogRecord *r, GError **error)
{
    const char *ids = last_of(at, (gsize)(line + len - at), "prompt_token_ids: ");
    const char *spaced = last_of(at, (gsize)(line + len - at), "prompt token ids: ");
    if (ids == NULL || (spaced != NULL && spaced > ids))
        ids = spaced;
    const char *time = find_time(line, at);
    if (time == NULL)
        return field_error(self->input, input_line_number(self->input), error, "request", line,
                           (gsize)(at - line), "a time MM-DD HH:MM:SS before it");
    if (!read_time(self, time, r, error))
        return FALSE;
    if (ids != NULL)
        r->prompt = count_ids(ids + strlen("prompt_token_ids: "), line + len);
    const char *stop = ids != NULL ? ids : line + len;
    const char *max = last_of(at, (gsize)(stop - at), "max_tokens=");
    if (!self->bound || max == NULL)
        return TRUE;
    max += strlen("max_tokens=");
    gsize digits = 0;
    while (max + digits < stop && g_ascii_isdigit(max[digits]))
        digits++;
    if (field_i64(max, digits, &r->output) && r->output <= G_MAXINT32)
        format_note(self->notes,
                    "output length taken from max_tokens, its upper bound (output=max_tokens)");
    else
        r->output = -1;
    return TRUE;
}

static int log_next(FormatReader *base, LogRecord *ret, GError **error)
{
    LogReader *self = (LogReader *)base;
    char *line;
    gsize len;
    int got;
    while ((got = input_line(self->input, &line, &len, error)) == 1) {
        len = without_colours(line, len);
        const char *at = memmem(line, len, "Received request ", 17);
        if (at == NULL)
            continue;
        log_record_init(ret);
        ret->line = input_line_number(self->input);
        return read_request(self, line, len, at, ret, error) ? 1 : -1;
    }
    return got;
}

static const SpecOption log_options[] = {
    {"output", SPEC_CHOICE, G_STRUCT_OFFSET(VllmLogConfig, output), "unknown", 0, 0,
     "unknown|max_tokens", "what stands for the output length, which the log lacks"},
    {NULL},
};

const FormatOps format_vllm_log = {
    .info = {"vllm-log", "text logs of a vLLM server with request logging", log_options,
             sizeof(VllmLogConfig)},
    .probe = log_probe,
    .open = log_open,
    .next = log_next,
    .free = log_free,
};
