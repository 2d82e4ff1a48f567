/* What a stream of requests looks like: totals, quantiles, gaps, rate over time, sessions,
 * prefixes, and what the log recorded about its server.
 *
 * workload_describe() reads a workload to its end once, in memory that does not grow with it except
 * for the distinct block keys (16 bytes each) and the open sessions. Closed-loop turns are counted
 * right after their predecessor (they have no arrival, so they have no part in span, gaps and
 * rate).
 *
 * A log without a usable request, or one that lacks lengths, is described all the same: unknown
 * lengths are counted and left out of sums and quantiles.
 *
 * Definitions. span = last - first arrival. Gap CV = standard deviation (population) / mean of the
 * gaps between neighbours in order of arrival. Quantiles: linear rule, exact up to 2 million
 * requests, then within 0.1 %. Prefix hits: an endless cache of full blocks; a request hits its
 * longest known chain from the start, but at least one token is always computed; then all its full
 * blocks are known. Recorded metrics: ttft from the sending, itl = gaps after the first token,
 * pooled; tpot per request = (e2e - ttft)/(output - 1) where output > 1; speed = 1/tpot per
 * request; failed records have none.
 */
#ifndef KV_WORKLOADS_DESCRIBE_H
#define KV_WORKLOADS_DESCRIBE_H

#include "base/outfile.h"
#include "base/progress.h"
#include "base/stats.h"
#include "workloads/workload.h"

#define DESCRIBE_BINS                                                                              \
    512 /* at most, over the whole span; they double in width when it outgrows them */
#define DESCRIBE_POINTS                                                                            \
    4000 /* of the prompt/output scatter: every request up to it, then a fair sample */

typedef struct DescribePoint {
    gint32 prompt, output;
} DescribePoint;

typedef struct Description {
    Workload *workload; /* borrowed: for its WorkloadInfo */
    guint64 requests, closed_turns, unknown_prompts, unknown_outputs;
    guint64 prompt_tokens, output_tokens;
    gint32 total_max;       /* largest prompt + output */
    kv_ns last_arrival;     /* = span, since the first is at 0 */
    Summary prompt, output; /* tokens */
    Summary gap;            /* seconds */
    double gap_cv;          /* NAN under two gaps */
    guint64 sessions, session_requests;
    gint32 turns_max;
    gint32 block_tokens; /* 0 = no keys */
    guint64 keyed_requests, blocks, distinct_blocks, hit_tokens;
    kv_ns bin_width;
    guint n_bins;
    guint64 bins[DESCRIBE_BINS]; /* arrivals in [i*width, (i+1)*width) */
    guint n_points;
    DescribePoint points[DESCRIBE_POINTS];
    Summary ttft, itl, tpot, e2e, queue, client_wait; /* seconds; n = 0: not recorded */
    Summary speed;                                    /* tokens a second of one request */
} Description;

/* Reads to the end. Free with g_free. `progress` may be NULL. */
Description *workload_describe(Workload *workload, Progress *progress, GError **error);
/* One JSON object, keys as in docs/workloads.md. Free it. */
char *description_json(const Description *self);
/* The same for people. Free it. */
char *description_text(const Description *self);
/* Tables for pictures: "time_s rate_per_s" by bin, and "prompt output" by point. */
gboolean description_write_rate(const Description *self, OutFile *out, GError **error);
gboolean description_write_scatter(const Description *self, OutFile *out, GError **error);

#endif
