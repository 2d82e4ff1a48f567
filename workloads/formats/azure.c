/* Azure LLM inference traces 2023, 2024 (one week) and LMM 2025 (multimodal), CC-BY-4.0.
 *
 * Columns by name: TIMESTAMP, ContextTokens, GeneratedTokens, and in 2025 NumImages in between. The
 * timestamp is calendar time with 0 to 9 fractional digits, with or without a zone, mixed in one
 * file; rows of 2023 end in CRLF and the last one in nothing. Lengths and arrivals are all there
 * is.
 */
#include "workloads/format.h"

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/table.h"

typedef struct AzureReader {
    FormatReader base;
    Table *table;
    int timestamp, context, generated;
} AzureReader;

static int azure_probe(const char *head, gsize size)
{
    static const char *const columns[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL};
    return format_head_score(head, size, columns, 95);
}

static void azure_free(FormatReader *base)
{
    AzureReader *self = (AzureReader *)base;
    table_free(self->table);
    g_free(self);
}

static FormatReader *azure_open(Input *input, const FormatArgs *args, GError **error)
{
    AzureReader *self = g_new0(AzureReader, 1);
    self->base.ops = &format_azure;
    self->table = table_new(input, ',', NULL, error);
    if (self->table == NULL || !table_require(self->table, "TIMESTAMP", &self->timestamp, error) ||
        !table_require(self->table, "ContextTokens", &self->context, error) ||
        !table_require(self->table, "GeneratedTokens", &self->generated, error)) {
        azure_free(&self->base);
        return NULL;
    }
    return &self->base;
}

static int azure_next(FormatReader *base, LogRecord *ret, GError **error)
{
    AzureReader *self = (AzureReader *)base;
    int got = table_next(self->table, error);
    if (got != 1)
        return got;
    log_record_init(ret);
    ret->line = table_line(self->table);
    ret->arrival_text = table_field(self->table, self->timestamp, &ret->arrival_len);
    if (!field_calendar(ret->arrival_text, ret->arrival_len, &ret->arrival)) {
        table_error(self->table, self->timestamp, error, "a time like 2023-11-16 18:15:46.6805900");
        return -1;
    }
    if (!table_tokens(self->table, self->context, &ret->prompt, error) ||
        !table_tokens(self->table, self->generated, &ret->output, error))
        return -1;
    return 1;
}

const FormatOps format_azure = {
    .info = {"azure", "Azure LLM inference traces 2023, 2024 and LMM 2025 (CSV)", NULL, 0},
    .probe = azure_probe,
    .open = azure_open,
    .next = azure_next,
    .free = azure_free,
};
