/* The published PersistentKV experiments (arXiv 2606.26666): their traces, steps and counters.
 *
 * An experiment is a trace family, the number of row slots and a seed; requests, steps and the
 * split counts that the published runs used follow from the first two (paper_presets) and can be
 * replaced. Everything here is exact and needs no GPU: steps come from the `paper:` workload and
 * scheduler seed for seed, counters from the planner. The shape is the published one: 32 query
 * heads, 8 KV heads, d 128, fp16, page 16.
 */
#ifndef KV_REPLAY_PAPER_H
#define KV_REPLAY_PAPER_H

#include "kernels/peers/peers.h"
#include "replay/replay.h"

typedef struct PaperPreset {
    const char *trace;
    gint max_active;
    gint requests, steps;
    gint buckets_s; /* splits a row by exact buckets ... */
    gint queue_s;   /* ... and by the work queue beside them */
    const char *about;
} PaperPreset;
extern const PaperPreset paper_presets[]; /* ends with trace NULL */

typedef struct PaperExperiment {
    char *trace; /* bucketed, homogeneous, bimodal, uniform, zipf */
    gint64 max_active, seed;
    gint64 requests, steps; /* steps 0 = until all requests have ended */
    gint64 buckets_s, queue_s;
    gint q_heads;   /* 32, or of a sweep over G = q_heads / 8 */
    gdouble holes;  /* share of page ids never used; 0 in the serving traces */
    gint64 context; /* > 0: not a trace, but rows of this length (paper_experiment_one_row) */
    gint64 decode;  /* with context: steps of a request */
} PaperExperiment;
/* From the preset of (trace, max_active), or the nearest sense where no run was published (then
 * *ret_published is FALSE). USAGE error for an unknown trace. */
gboolean paper_experiment_init(PaperExperiment *ret, const char *trace, gint64 max_active,
                               gint64 seed, gboolean *ret_published, GError **error);
/* One row of `context` entries at a time: `requests` requests one after another, each on its own
 * pages and for `decode` steps, in which it grows by one a step. S = 32 and 24, as in B1. */
void paper_experiment_one_row(PaperExperiment *ret, gint64 context, gint64 requests, gint64 decode,
                              gint64 seed);
/* "20" (the route that the published policy takes: buckets with one row slot, else the work queue)
 * or "buckets=32,workqueue=20". */
gboolean paper_parse_splits(PaperExperiment *self, const char *text, GError **error);
void paper_experiment_clear(PaperExperiment *self);

typedef struct PaperRouteCounts {
    const char *route;
    gint s; /* splits a row; 0 where the route has none */
    double launches, merge_launches, tasks, merge_mib; /* means a step */
} PaperRouteCounts;

#define PAPER_ROUTES ATTN_ROUTE_MAX
typedef struct PaperCounters {
    guint64 physical_pages, steps, rows;
    double mean_active, mean_exact_buckets, kv_mib_per_step;
    PaperRouteCounts route[PAPER_ROUTES];
} PaperCounters;
gboolean paper_counters(const PaperExperiment *self, PaperCounters *ret, GError **error);
/* Adds physical_pages, steps, mean_active, mean_exact_buckets, kv_mib_per_step and routes,
 * unrounded, and the experiment they are of. */
void paper_counters_to_json(const PaperExperiment *self, const PaperCounters *counters,
                            JsonBuilder *builder);

/* The experiment's steps to any sink (a StepsWriter's, for replay), or to a new steps file. */
gboolean paper_run_steps(const PaperExperiment *self, StepSink *sink, GError **error);
gboolean paper_write_steps(const PaperExperiment *self, const char *path, GError **error);
/* Routes at the published split counts (all built-in ones), policy `text`; the caller sets backend
 * and execution. Clear it with replay_config_clear. */
gboolean paper_replay_config(const PaperExperiment *self, const char *policy, ReplayConfig *ret,
                             GError **error);

/* Names (static) of the routes that are other projects' kernels and are built: all that a GPU's
 * tables take, in the order of `routes`. `find` is peer_find, or a test's. */
GPtrArray *paper_peer_routes(const PeerOps *(*find)(const char *name));

#endif
