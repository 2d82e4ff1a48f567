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
    PluginInfo info; /* options: `buckets` takes width=, all built-in ones tile= */
    RouteKind kind;
    AttnRoute builtin; /* ROUTE_BUILTIN */
    const char *launches; /* in words, for `list routes` */
} RouteOps;

extern const PluginInfo *const routes[]; /* each is a RouteOps */

/* `--splits`: "balanced[:min=...]" or "fixed:s=20". */
extern const PluginInfo *const split_rules[];

#endif
