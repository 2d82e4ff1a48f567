/* Backends: where a step's attention is executed. cuda, cpu, counters: one file each, a registry.
 *
 * Life: create (pool, queries), then for every step in order begin_step() (deltas only, cheap),
 * then for some steps and routes execute(). A backend that is not built or cannot run here has a
 * fallback twin whose create() fails with the reason (UNSUPPORTED or MACHINE).
 *
 * Measuring rules (DESIGN section 7): outputs poisoned before each run; kernel, plan and wall kept
 * apart; every output of a checked step compared with the fp64 reference; NaN never passes.
 */
#ifndef KV_REPLAY_BACKEND_H
#define KV_REPLAY_BACKEND_H

#include <json-glib/json-glib.h>

#include "base/spec.h"
#include "kernels/plan.h"
#include "replay/route.h"
#include "sim/steps_file.h"

typedef struct BackendConfig {
    AttnShape shape;
    gint64 pool_pages; /* highest page id + 1 */
    guint64 seed;
    gint layers;        /* L launches share one plan; 1 */
    gint threads;       /* cpu; 0 = all */
    gint sms;           /* cuda: limit to N SMs; 0 = all */
    gint tp;            /* cuda: tensor-parallel degree; 1 */
    gint device;        /* cuda: ordinal */
    gboolean graphs;    /* cuda: replay captured graphs */
    gboolean verify_launches;
} BackendConfig;

/* One execution of one step by one route: medians over `repeats`. Negative = not measured. */
typedef struct Execution {
    gint repeats;
    double kernel_us, wall_us, plan_us;
    gint64 upload_bytes;
    gint copies, memsets;
    gint64 launches_seen;  /* counted by the backend under verify_launches; -1 otherwise */
    gboolean checked;
    double max_abs_err, mean_abs_err;
} Execution;

typedef struct Backend Backend;

typedef struct BackendOps {
    PluginInfo info;
    gboolean executes; /* FALSE: counters */
    Backend *(*create)(const BackendConfig *config, GError **error);
    /* Why this backend was or was not chosen by `auto`: a sentence. TRUE when it can run here. */
    gboolean (*available)(char **ret_why);
    /* CTAs (or threads) that run at once, for balanced splits. */
    gint (*workers)(Backend *self);
    /* NULL when the route can be run; else the reason (static or owned by the backend). */
    const char *(*refuses)(Backend *self, const RouteOps *route);
    gboolean (*begin_step)(Backend *self, const Step *step, const StepRow *rows, guint32 n_rows,
                           GError **error);
    /* Executes the step last begun. Peers get plan == NULL. `check`: compare with the reference. */
    gboolean (*execute)(Backend *self, const RouteOps *route, const AttnPlan *plan, gint repeats,
                        gboolean check, Execution *ret, GError **error);
    /* Device name, driver, toolkit, clocks ... into the object under construction. */
    void (*describe)(Backend *self, JsonBuilder *builder);
    void (*free)(Backend *self);
} BackendOps;

struct Backend {
    const BackendOps *ops;
};

extern const PluginInfo *const backends[]; /* each is a BackendOps; the order is `auto`'s order */
void backend_free(Backend *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Backend, backend_free)

#endif
