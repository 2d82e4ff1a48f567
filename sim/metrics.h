/* What a run is judged by: per-request latencies, pooled inter-token times, integrals over time.
 *
 * All sums are integers (128 bits for integrals), so that steps advanced together and one at a time
 * give the same bytes. Memory: exact samples up to METRICS_EXACT requests, then histograms.
 */
#ifndef KV_SIM_METRICS_H
#define KV_SIM_METRICS_H

#include "sim/sim.h"

#define METRICS_EXACT 2000000

typedef struct ClassMetrics {
    Sampler *ttft, *tpot, *e2e, *queue_delay;
} ClassMetrics;

typedef struct SimMetrics {
    SimResult result; /* counts; the summaries are made at the end */
    kv_ns good_ttft, good_tpot, good_e2e;
    ClassMetrics classes[SIM_CLASSES]; /* made when a second class is met; NULL members before */
    kv_ns first_arrival, last_finish;
    unsigned __int128 rows_time, pages_time, tokens_time, waiting_time;
    guint64 asked_output; /* outputs of the finished, as served: must equal output_tokens */
    guint64 itl_expected; /* D-1 over the measured finished */
    guint64 same_sent;    /* requests whose sending is their arrival, until one differs */
    gboolean sent_differs;
    LogHist *itl;
    Sampler *ttft, *server_ttft, *client_wait, *tpot, *e2e, *queue_delay;
} SimMetrics;

/* Takes the goodput limits of the config. */
SimMetrics *metrics_new(const SimConfig *config);
void metrics_free(SimMetrics *m);
void metrics_arrived(SimMetrics *m, const Request *request);
void metrics_refused(SimMetrics *m, const Request *request, const char *reason);
/* `record` of a finished request; `measured` = its latencies count. */
void metrics_finished(SimMetrics *m, const RequestRecord *record, gboolean measured);
/* One step: rows, tokens and pages held during `duration`. */
static inline void metrics_step(SimMetrics *m, guint32 rows, guint64 pages, guint64 tokens,
                                kv_ns duration)
{
    m->result.steps++;
    m->result.row_steps += rows;
    m->result.busy += duration;
    m->rows_time += (unsigned __int128)rows * (guint64)duration;
    m->pages_time += (unsigned __int128)pages * (guint64)duration;
    m->tokens_time += (unsigned __int128)tokens * (guint64)duration;
    if (pages > m->result.pages_peak)
        m->result.pages_peak = pages;
    if (rows > m->result.rows_peak)
        m->result.rows_peak = rows;
}
/* Summaries and means. */
void metrics_close(SimMetrics *m, guint32 page_size, guint64 pages_end, SimResult *ret);
/* Adds another run's figures, for a fleet: counts and integrals add up, peaks are the largest
 * one's. */
void metrics_merge(SimMetrics *into, const SimMetrics *from);
/* Conservation: NULL, or what does not add up. */
const char *metrics_check(const SimMetrics *m);

#endif
