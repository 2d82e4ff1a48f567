/* A trace of simulated and measured steps for Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 * The Chrome trace event format, JSON object form: {"traceEvents": [...]}, `ts` and `dur` in
 * microseconds with three decimals, so every simulated nanosecond is kept. Tracks:
 *
 *   process "steps"     one slice a step ("decode 14 rows", "decode 14 + prefill 2048"), with its
 *                       numbers as arguments; counters: rows, waiting, pages used
 *   process "requests"  one track a request: queued, prefill chunks, and its stretches in the batch
 *   process "measured"  one track a route: a slice of kernel_us at the step's start, where executed
 *
 * The order of events does not matter to the viewers. Memory: O(requests in the batch). Size: about
 * 250 bytes a step and 600 a request; `from` and `to` cut a long run.
 */
#ifndef KV_PLOTS_PERFETTO_H
#define KV_PLOTS_PERFETTO_H

#include "base/progress.h"

typedef struct PerfettoRequest {
    const char *steps;    /* the steps file */
    const char *requests; /* requests.csv, for arrivals and waits; NULL = none */
    const char *replay;   /* replay.csv, for measured times; NULL = none */
    guint64 from, to;     /* steps [from, to); to 0 = end */
    const char *out;      /* the JSON file; "-" = standard output */
} PerfettoRequest;

gboolean perfetto_write(const PerfettoRequest *request, Progress *progress, GError **error);

#endif
