/* The simulator: a workload through a scheduler, a page pool and a clock, step by step.
 *
 * Integer time, one seed, no globals: the same config and workload give the same bytes. Cost
 * follows events (arrivals, finishes, page edges under pressure, preemptions), not rows x steps,
 * where the clock allows; memory is O(active requests). Progress is proved, not hoped for: a
 * request that can never fit is refused at arrival with the number, and a watchdog ends a run in
 * which requests wait and nothing can happen, naming the state (a bug, reported as such).
 */
#ifndef KV_SIM_SIM_H
#define KV_SIM_SIM_H

#include "base/progress.h"
#include "base/stats.h"
#include "sim/clock.h"
#include "sim/step.h"
#include "workloads/request.h"

#include <stdio.h>

typedef struct SimConfig {
    PluginChoice scheduler; /* of `schedulers` */
    guint32 page_size;      /* entries a page; 16 */
    guint64 pool_pages;     /* usable pages, ids 0 .. N-1; 2560 */
    gint64 context_limit;   /* largest P+D-1; 0 = none */
    gint64 max_model_len;   /* vLLM's rule, largest P+D; 0 = none */
    gboolean
        clip; /* cut the output (never the prompt) to the limits instead of refusing; counted */
    int prefix_cache;      /* -1 = only when the log has block keys, 0, 1 */
    gboolean fast_forward; /* TRUE; FALSE = one step at a time, same result */
    char *pool_layout;     /* "fresh" | "churned" | "holes:fraction=0.5"; NULL = fresh */
    kv_ns warmup;          /* requests that arrive before are served but not in the metrics */
    kv_ns good_ttft, good_tpot, good_e2e; /* goodput: at most; 0 = not asked for */
    guint64 seed;
    guint32 replica;
    gboolean check;     /* recount everything after every step; slow. Default: in debug builds */
    gint64 entry_bytes; /* of one stored token, all layers: what swapping and offloading move */
} SimConfig;
void sim_config_init(SimConfig *config); /* the documented defaults */
void sim_config_clear(SimConfig *config);

extern const PluginInfo *const schedulers[];

typedef enum {
    REQUEST_FINISHED,
    REQUEST_REFUSED,
    REQUEST_CUT /* finished, output clipped */
} RequestStatus;

/* One line of requests.csv. Times KV_NS_NONE where they did not happen. */
typedef struct RequestRecord {
    Request request;
    guint32 replica;
    kv_ns first_scheduled, first_token, finish;
    gint64 cached_tokens, recomputed_tokens;
    guint32 preemptions;
    RequestStatus status;
    const char *reason; /* static text: "context_limit", "max_model_len", "pool" ...; NULL */
} RequestRecord;

typedef struct RequestSink RequestSink;
struct RequestSink {
    gboolean (*request)(RequestSink *self, const RequestRecord *record, GError **error);
};
/* requests.csv, rows in order of request id: a row waits until all lower ids have ended, so memory
 * follows the requests in the system. `out` is borrowed and must live until the last row. */
struct OutFile;
RequestSink *request_csv_sink_new(struct OutFile *out);
/* After an interrupted run: also writes the rows that still wait for lower ids. */
void request_csv_sink_flush(RequestSink *self);
void request_csv_sink_free(RequestSink *self);

typedef struct RefusedCount {
    const char *reason;
    guint64 count;
} RefusedCount;

/* One class of service (Request.klass), where the workload has several. */
#define SIM_CLASSES 16 /* those from SIM_CLASSES-1 on count as one */
typedef struct ClassResult {
    guint64 requests, finished, refused, good;
    guint64 output_tokens; /* of the finished */
    Summary ttft, tpot, e2e, queue_delay;
} ClassResult;

/* Conservation, checked before it is returned: requests = finished + refused; output tokens = sum
 * of the outputs of the finished; pages_end = 0. */
typedef struct SimResult {
    guint64 requests, finished, refused, clipped;
    RefusedCount refused_by[8];
    guint n_refused_by;
    guint64 steps, row_steps, prefill_tokens;
    guint64 prompt_tokens, output_tokens; /* of the finished */
    guint64 recomputed_tokens, preemptions;
    guint64 prefix_hit_tokens, prefix_queried_tokens;
    guint64 host_hit_tokens, host_bytes_in,
        host_bytes_out; /* host tier: brought back, copied out */
    kv_ns duration;     /* first arrival to last finish */
    kv_ns busy;         /* sum of step lengths */
    guint64 pages_peak, pages_end, waiting_peak, rows_peak;
    double pages_mean, rows_mean, waiting_mean; /* over time */
    double pages_filled_mean; /* tokens held / (pages used x page size), over busy time */
    Summary ttft, server_ttft, client_wait, itl, tpot, e2e, queue_delay; /* seconds */
    guint64 measured; /* finished, and not of the warm-up */
    guint64 good;     /* of these, those within all good_* limits */
    guint n_classes;  /* largest class seen + 1; 1 where there is only one */
    ClassResult classes[SIM_CLASSES];
    Summary itl_per_request; /* mean ITL of each request with D > 1 = its TPOT without preemption */
    double wall_seconds;     /* how long the simulation took */
} SimResult;

/* `steps`, `requests`, `progress` may be NULL. An interrupted run returns FALSE + INTERRUPTED after
 * the sinks got all whole steps. */
gboolean sim_run(const SimConfig *config, RequestSource *source, StepClock *clock, StepSink *steps,
                 RequestSink *requests, Progress *progress, SimResult *ret, GError **error);

/* The same run with every decision printed, one JSON line a step in vLLM's terms (block = page id +
 * 1); docs/simulator.md has the format. `out` is borrowed. All schedulers but `paper`. */
gboolean sim_run_ledger(const SimConfig *config, RequestSource *source, StepClock *clock, FILE *out,
                        Progress *progress, SimResult *ret, GError **error);

/* Adds the run's figures to the object under construction; docs/accounting.md has the keys. */
typedef struct _JsonBuilder JsonBuilder;
void sim_result_to_json(const SimResult *result, JsonBuilder *builder);

#endif
