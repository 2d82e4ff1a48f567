/* What was published of the PersistentKV experiments (arXiv 2606.26666), as printed.
 *
 * Facts of another machine (one RTX 3060, FlashInfer 0.2.5), kept for display beside one's own and
 * for the test of the counters. Texts are as printed, so that a count can be compared in the digits
 * that were printed; times are milliseconds a step. Nothing here is computed.
 */
#ifndef KV_REPLAY_PAPER_PUBLISHED_H
#define KV_REPLAY_PAPER_PUBLISHED_H

#include <glib.h>

#define PAPER_CARD "published, RTX 3060"
enum {
    PAPER_CARD_SMS = 28,
    PAPER_FIRST_HELD_OUT = 20260623,
    PAPER_HELD_OUT = 5,
    PAPER_CALIBRATION = 20260622,
};

typedef struct PaperPublishedRoute {
    const char *route;
    double event_ms, wall_ms;
    const char *count[4]; /* launches, CTA per SM, merge MiB, merge launches, a step */
} PaperPublishedRoute;
enum { PAPER_LAUNCHES, PAPER_CTA_PER_SM, PAPER_MERGE_MIB, PAPER_MERGE_LAUNCHES };

typedef struct PaperPublished { /* a published run: one trace and seed */
    const char *trace;
    gint max_active, seed, steps, requests;
    const char *figure[4]; /* pages, active rows, exact buckets, KV MiB a step */
    PaperPublishedRoute route[3];
    double max_abs_err, mean_abs_err;
} PaperPublished;
extern const PaperPublished paper_published[]; /* ends with trace NULL */
const PaperPublished *paper_published_find(const char *trace, gint64 max_active, gint64 seed);
const PaperPublishedRoute *paper_published_route(const PaperPublished *run, const char *route);

/* FlashInfer's time over the routed time. */
typedef struct PaperRatio {
    const char *trace;
    gint max_active;
    double latest_event, latest_wall; /* mean of five held-out seeds */
    double first_wall;                /* first version: one seed, another run */
} PaperRatio;
extern const PaperRatio paper_ratios[]; /* ends with trace NULL */

/* One row, half of the page ids unused: milliseconds at 8, 32 and 64 Ki. */
typedef struct PaperIsolated {
    const char *kernel;
    double ms[3];
} PaperIsolated;
extern const PaperIsolated paper_isolated[]; /* ends with kernel NULL */

/* Does `value` print as `printed`, in as many decimals as that has (trailing zeros may be left
 * out: at least `decimals`)? */
gboolean paper_prints_as(double value, const char *printed, guint decimals);

#endif
