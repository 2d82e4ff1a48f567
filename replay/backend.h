/* Backends: where a step's attention is executed. cuda, cpu, counters: one file each, a registry.
 *
 * Life: create (pool, queries), then for every step in order begin_step() (deltas only, cheap),
 * then for some steps and routes execute(). A backend that is not built or cannot run here has a
 * fallback twin whose create() fails with the reason (UNSUPPORTED or MACHINE).
 *
 * Measuring rules (docs/accounting.md): outputs poisoned before each run; kernel, plan and wall
 * kept apart; every output of a checked step compared with the fp64 reference; NaN never passes.
 */
#ifndef KV_REPLAY_BACKEND_H
#define KV_REPLAY_BACKEND_H

#include <json-glib/json-glib.h>

#include "base/spec.h"
#include "kernels/plan.h"
#include "replay/device_rates.h"
#include "replay/route.h"
#include "sim/steps_file.h"

typedef struct BackendConfig {
    AttnShape shape;
    gint64 pool_pages; /* highest page id + 1 */
    guint64 seed;
    gint layers;     /* L launches share one plan; 1 */
    gint threads;    /* cpu; 0 = all */
    gint sms;        /* cuda: limit to N SMs; 0 = all */
    gint tp;         /* tensor-parallel degree: the shape is one rank's share of the heads; 1 */
    gint device;     /* cuda: ordinal */
    gboolean graphs; /* cuda: replay captured graphs */
    gboolean verify_launches;
    gint64 check_bytes; /* K and V that a check reads: the longest and the shortest row whatever
                           they take, others while they fit; 0 = every row */
} BackendConfig;

/* Contents of the pool and the queries are those of kernels/content.h under the config's seed: K
 * and V by page id, a row's query by this key, on every backend. */
static inline gint64 backend_query_key(guint64 request, guint32 length)
{
    return (gint64)(request << 24 ^ length);
}

/* What execute() is asked for; 0 = wall and kernel times with caches emptied before each. */
enum {
    RUN_CHECK = 1 << 0,     /* compare the outputs with the reference */
    RUN_NO_WALL = 1 << 1,   /* leave out the wall and plan times */
    RUN_NO_KERNEL = 1 << 2, /* leave out the kernel time */
    RUN_COLD = 1 << 3,      /* the caller changes pages: caches are not emptied here */
    RUN_GRAPH = 1 << 4,     /* launch by a graph captured once, where `replays` says so */
};

enum { EXECUTION_RANKS = 64 }; /* most shares of a tensor-parallel step */

/* One execution of one step by one route: medians over `repeats`. Negative = not measured. Times
 * are of all `layers` launches-of-a-layer together. */
typedef struct Execution {
    gint repeats;
    double kernel_us; /* graph replay, or events around the launches alone */
    double wall_us;   /* uploads, launches, synchronised */
    double plan_us;   /* planning on the device and uploads */
    double tables_us; /* of both: the step's block-table deltas, which are no route's own */
    gint64 upload_bytes;
    gint copies, memsets;
    gint64 launches_seen; /* kernel launches of one layer: counted under verify_launches, or a
                             peer's own figure; -1 = not known */
    gboolean checked;
    gint checked_rows;
    double max_abs_err, mean_abs_err;
    gint ranks; /* shares executed (replay/backend_ranks.h); 0 = it was no share */
    double rank_us[EXECUTION_RANKS]; /* kernel time of each; kernel_us is the largest */
    double rank_skew_us;             /* largest less smallest */
} Execution;

/* Largest less smallest of rank_us; -1 where it was no share. */
double execution_skew(const Execution *execution);

/* Largest and mean absolute difference of `n` halves from `want`; NaN anywhere gives NaN. */
void backend_errors(AttnDtype dtype, const void *out, const double *want, gsize n, double *ret_max,
                    double *ret_mean);
/* Rows that a check of so many bytes looks at (BackendConfig.check_bytes), ascending; gint32. */
GArray *backend_rows_to_check(const AttnShape *shape, const gint32 *lens, gint32 rows,
                              gint64 bytes);
/* The gate, by dtype: fp16 max < 2e-3 and mean < 3e-4; bf16, whose outputs are rounded 8 times as
 * coarsely, 8 times that. NaN never passes. */
gboolean backend_errors_pass(AttnDtype dtype, double max, double mean);

typedef struct Backend Backend;

typedef struct BackendOps {
    PluginInfo info;
    gboolean executes; /* FALSE: counters */
    Backend *(*create)(const BackendConfig *config, GError **error);
    /* Why this backend was or was not chosen by `auto`: a sentence. TRUE when it can run here. */
    gboolean (*available)(const BackendConfig *config, char **ret_why);
    /* Devices on this machine; NULL = as many as are asked for (virtual ones: host threads). */
    gint (*devices)(void);
    gint default_repeats;
    /* Bytes that a pool may take, work space left aside, before one is created; 0 = not known. */
    gint64 (*memory)(const BackendConfig *config);
    /* CTAs (or threads) that run at once, for balanced splits; 0 = take the device profile's. */
    gint (*workers)(Backend *self);
    /* Sets a plan's workers (and c0, unless the route's setting names it) for one built-in route
     * and batch, where routes run with other CTAs; NULL = `workers`. */
    void (*fit_plan)(Backend *self, const Route *route, AttnPlanConfig *config, gint32 rows,
                     const gint32 *lens);
    /* `persistent` is planned on the device: execute() looks at plan->config and plan->counts
     * alone, and the host need not build the task list. */
    gboolean plans_persistent;
    /* Streaming read rate measured now, bytes a microsecond; NULL = cannot tell. A second or less.
     */
    double (*read_rate)(Backend *self);
    /* Wall time of launching and awaiting a kernel that does nothing, the least of what this
     * machine offers; microseconds; NULL = cannot tell. */
    double (*empty_wall)(Backend *self);
    /* Bandwidths and launch costs of config->device, without a backend; NULL = none to measure. */
    gboolean (*rates)(const BackendConfig *config, DeviceRates *ret, GError **error);
    /* NULL when the route can be run; else the reason (static or owned by the backend). */
    const char *(*refuses)(Backend *self, const Route *route);
    gboolean (*begin_step)(Backend *self, const Step *step, const StepRow *rows, guint32 n_rows,
                           GError **error);
    /* Executes the step last begun. Peers get plan == NULL. `what`: RUN_* together.
     * Called once a round with repeats = 1 where routes alternate, so it must be cheap to call
     * again for the same step. wall_us and plan_us leave out the host's plan build, which the
     * caller times and adds. */
    gboolean (*execute)(Backend *self, const Route *route, const AttnPlan *plan, gint repeats,
                        guint what, Execution *ret, GError **error);
    /* Outputs of the last execution, [rows][q_heads][head_dim] halves. */
    gboolean (*outputs)(Backend *self, guint16 *to, GError **error);
    /* Whether one captured graph of the route serves every step of as many rows; NULL = never. */
    gboolean (*replays)(Backend *self, const Route *route);
    /* Device name, driver, toolkit, clocks ... into the object under construction. */
    void (*describe)(Backend *self, JsonBuilder *builder);
    void (*free)(Backend *self);
} BackendOps;

struct Backend {
    const BackendOps *ops;
};

extern const BackendOps backend_counters, backend_cpu;
extern const BackendOps backend_cuda;      /* backend_cuda.c, or its twin backend_cuda_fallback.c */
extern const PluginInfo *const backends[]; /* each is a BackendOps; the order is `auto`'s order */
/* The backend named, or the first that can run here; *ret_reason says why, in words. Free it. */
const BackendOps *backend_choose(const PluginInfo *named, const BackendConfig *config,
                                 char **ret_reason);
void backend_free(Backend *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Backend, backend_free)

#endif
