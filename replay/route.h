/* Routes: the ways of executing one step's decode attention. A registry.
 *
 * A route is a name and either a built-in planner route (kernels/plan.h) or a peer's kernel. What a
 * route cannot do on a backend or shape is a reason in words, never silence.
 */
#ifndef KV_REPLAY_ROUTE_H
#define KV_REPLAY_ROUTE_H

#include "base/spec.h"
#include "kernels/plan.h"

typedef enum { ROUTE_BUILTIN, ROUTE_PEER } RouteKind;

typedef struct RouteOps {
    PluginInfo info; /* its config is a RouteConfig, of which `options` names the keys that apply */
    RouteKind kind;
    AttnRoute builtin;    /* ROUTE_BUILTIN */
    const char *launches; /* in words, for `list routes` */
} RouteOps;

/* One struct for all routes. 0 = the route's or the peer's own default. */
typedef struct RouteConfig {
    gint64 tile; /* built-in: tokens */
    gint64 s;    /* built-in: splits of every row, whatever --splits says; 0 = as it says */
    gint64
        width; /* buckets: lengths that round up to the same multiple share a launch; 0 = exact */
    gint64 c0; /* persistent: cost of a (row, KV head) in tiles; 0 = 12 at 256-byte entries,
                  18 on wide CTAs */
    gint64 split;   /* flashinfer-tc: tokens a split, a multiple of the page size */
    gint64 factor;  /* trtllm-xqa: times the processor count that it is told */
    gboolean graph; /* flashinfer-tc: planned as for a CUDA graph */
} RouteConfig;

/* A route as a run uses it. */
typedef struct Route {
    const RouteOps *ops;
    RouteConfig config;
    char *label; /* its name in replay.csv: the plain name, or with a number where two share it */
} Route;

/* "flashinfer-tc:split=2048": the name and the options that tell settings apart, with ';' between
 * them, one and the same in bench, calibration tables and profiles. Free it. */
char *route_setting(const Route *route);
/* FALSE + USAGE error where two of the PluginChoice * have the same setting: lines of the one could
 * not be told from lines of the other. */
gboolean routes_differ(const GPtrArray *choices, GError **error);

extern const PluginInfo *const routes[]; /* each is a RouteOps */
const RouteOps *route_find(const char *name);

/* `--splits`: "balanced[:min=...]" or "fixed:s=20". */
typedef struct SplitConfig {
    gint64 s;          /* fixed */
    gint64 min_tokens; /* balanced; 0 = the planner's default */
} SplitConfig;

typedef struct SplitOps {
    PluginInfo info; /* config: a SplitConfig */
    AttnSplitRule rule;
} SplitOps;
extern const PluginInfo *const split_rules[]; /* each is a SplitOps */

/* The planner's configuration for a built-in route; workers = CTAs (or threads) that run at once.
 */
void route_plan_config(AttnPlanConfig *ret, const Route *route, const PluginChoice *splits,
                       const AttnShape *shape, gint workers);

#endif
