#include "workloads/format.h"

#include <string.h>

#include "base/error.h"
#include "workloads/formats/formats.h"

const PluginInfo *const formats[] = {
    &format_kvreplay.info,      &format_azure.info,
    &format_vidur.info,         &format_burstgpt.info,
    &format_mooncake.info,      &format_bailian.info,
    &format_ragpulse.info,      &format_splitwise.info,
    &format_llmservingsim.info, &format_llmservingsim_out.info,
    &format_servegen.info,      &format_otel.info,
    &format_aiperf_export.info, &format_vllm_bench.info,
    &format_vllm_log.info,      &format_weka.info,
    &format_tracelab.info,      &format_tracelab_replay.info,
    &format_aibrix.info,        &format_tair.info,
    &format_blis.info,          &format_csv.info,
    &format_jsonl.info,         NULL,
};

void log_record_init(LogRecord *record)
{
    *record = (LogRecord){
        .arrival = KV_NS_NONE,
        .sent = KV_NS_NONE,
        .wait = KV_NS_NONE,
        .deadline = KV_NS_NONE,
        .prompt = -1,
        .output = -1,
        .session = KV_NO_SESSION,
    };
}

void format_reader_free(FormatReader *self)
{
    if (self != NULL)
        self->ops->free(self);
}

gboolean format_line_has(const char *head, gsize size, const char *const *texts)
{
    const char *end = memchr(head, '\n', size);
    return format_head_has(head, end != NULL ? (gsize)(end - head) : size, texts);
}

gboolean format_head_has(const char *head, gsize size, const char *const *texts)
{
    for (guint i = 0; texts[i] != NULL; i++)
        if (memmem(head, size, texts[i], strlen(texts[i])) == NULL)
            return FALSE;
    return TRUE;
}

static gboolean line_has_column(const char *line, gsize len, const char *name)
{
    gsize n = strlen(name);
    for (const char *p = line, *end = line + len; p <= end;) {
        const char *comma = memchr(p, ',', (gsize)(end - p));
        const char *stop = comma != NULL ? comma : end;
        const char *a = p, *b = stop;
        while (a < b && (*a == ' ' || *a == '"'))
            a++;
        while (b > a && (b[-1] == ' ' || b[-1] == '"' || b[-1] == '\r'))
            b--;
        if ((gsize)(b - a) == n && memcmp(a, name, n) == 0)
            return TRUE;
        p = stop + 1;
    }
    return FALSE;
}

int format_head_score(const char *head, gsize size, const char *const *columns, int sure)
{
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        head += 3, size -= 3;
    const char *end = memchr(head, '\n', size);
    gsize len = end != NULL ? (gsize)(end - head) : size;
    guint found = 0, n = 0;
    for (; columns[n] != NULL; n++)
        found += line_has_column(head, len, columns[n]);
    if (found == n)
        return sure;
    return found + 1 == n && n >= 3 ? FORMAT_ONE_COLUMN_SHORT : 0;
}

guint32 format_class(GPtrArray *classes, const char *name, gsize len)
{
    for (guint i = 0; i < classes->len; i++) {
        const char *known = g_ptr_array_index(classes, i);
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return i;
    }
    g_ptr_array_add(classes, g_strndup(name, len));
    return classes->len - 1;
}

char format_first_char(const char *head, gsize size)
{
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        head += 3, size -= 3;
    for (gsize i = 0; i < size; i++)
        if (!g_ascii_isspace(head[i]))
            return head[i];
    return 0;
}

static gboolean all_blank(const char *head, gsize size)
{
    return format_first_char(head, size) == 0;
}

/* What else it may be, for the message. NULL = no idea. */
static const char *look_alike(const char *head, gsize size)
{
    if (size == 0 || all_blank(head, size))
        return "the file is empty";
    if (g_str_has_prefix(head, "version https://git-lfs"))
        return "a git-lfs pointer in place of the data: fetch the file itself (git lfs pull)";
    if (size >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0))
        return "UTF-16 text; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)";
    if (size >= 4 && memcmp(head, "PAR1", 4) == 0)
        return "a parquet file; export it as CSV or JSON lines first";
    if (size >= 2 && memcmp(head, "PK", 2) == 0)
        return "a zip archive; unpack it first";
    if (memchr(head, '\0', size) != NULL)
        return "a NUL byte: binary data, expected text";
    if (format_first_char(head, size) == '<')
        return "an HTML or XML page and not a log";
    return NULL;
}

/* Looks at the first bytes; INPUT error when they are no log of any kind. */
static gboolean look(Input *input, const char **ret_head, gsize *ret_size, GError **error)
{
    if (!input_peek(input, ret_head, ret_size, error))
        return FALSE;
    g_autofree char *text = g_strndup(*ret_head, *ret_size); /* '\0'-ended for prefix tests */
    const char *alike = look_alike(text, *ret_size);
    if (alike == NULL)
        return TRUE;
    const char *nul = memchr(*ret_head, '\0', *ret_size);
    guint line = 1; /* of the NUL byte, where that is what is wrong */
    for (const char *p = *ret_head; nul != NULL && p < nul; p++)
        line += *p == '\n';
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:%u: %s", input_name(input), line, alike);
    return FALSE;
}

const FormatOps *format_mapped(Input *input, GError **error)
{
    const char *head;
    gsize size;
    if (!look(input, &head, &size, error))
        return NULL;
    return format_first_char(head, size) == '{' ? &format_jsonl : &format_csv;
}

const FormatOps *format_probe(Input *input, GError **error)
{
    const char *head;
    gsize size;
    if (!look(input, &head, &size, error))
        return NULL;
    const FormatOps *best = NULL;
    int best_score = 0;
    for (guint i = 0; formats[i] != NULL; i++) {
        const FormatOps *ops = (const FormatOps *)formats[i];
        int score = ops->probe != NULL ? ops->probe(head, size) : 0;
        if (score > best_score) {
            best = ops;
            best_score = score;
        }
    }
    if (best != NULL)
        return best;
    const char *end = memchr(head, '\n', size);
    gsize len = MIN(end != NULL ? (gsize)(end - head) : size, 80);
    g_autofree char *first = g_strndup(head, len);
    g_autofree char *shown = g_strescape(g_strchomp(first), NULL);
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s:1: \"%s\": no known log format begins like this; name one with --format "
                "(kvreplay list formats), or map columns with --format csv|jsonl --map",
                input_name(input), shown);
    return NULL;
}
