/* Steps files as text: totals, CSV, JSON lines, one step's block tables, comparison.
 *
 * CSV columns: step, start_ns, duration_ns, rows, paused, prefill_rows, prefill_tokens, max_len,
 * sum_len, waiting, pages_used, tokens_held, left, joined, appended (counts).
 */
#ifndef KV_CLI_STEPS_PRINT_H
#define KV_CLI_STEPS_PRINT_H

#include <stdio.h>

#include "base/outfile.h"
#include "sim/steps_file.h"

typedef struct StepsRange {
    guint64 from, to; /* [from, to) */
} StepsRange;

gboolean steps_print_csv(StepsReader *reader, StepsRange range, OutFile *out, GError **error);
gboolean steps_print_jsonl(StepsReader *reader, StepsRange range, OutFile *out, GError **error);
gboolean steps_print_rows(StepsReader *reader, guint64 step, FILE *out, GError **error);
/* Header and totals; `check` recounts rows, sums and pages of every step against its record:
 * an INPUT error names the first step that is wrong. */
gboolean steps_print_totals(StepsReader *reader, gboolean check, gboolean json, FILE *out,
                            GError **error);
/* TRUE when every step is equal; else an error (MACHINE: exit 1) that names the first difference.
 */
gboolean steps_compare(StepsReader *a, StepsReader *b, const char *name_a, const char *name_b,
                       FILE *out, GError **error);

#endif
