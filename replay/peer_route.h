/* Peers as routes: what a backend with a device calls for a route of kind ROUTE_PEER.
 *
 * Keeps one peer per (route, settings), set up on first use for the backend's pool and shape and
 * set up again, larger, when a step outgrows it. The order of calls for a step: tables (the form of
 * block table that the peer reads; not part of its plan), plan, run; any number of runs may follow
 * a plan, and only plan and run are timed. Streams are cudaStream_t; pool, q and out are device
 * pointers; lens, table and offset are the host's (kernels/peers/peers.h).
 *
 * Without peers in the build everything here is present, and refuses() says how to get them.
 */
#ifndef KV_REPLAY_PEER_ROUTE_H
#define KV_REPLAY_PEER_ROUTE_H

#include "kernels/peers/peers.h"
#include "replay/route.h"

typedef struct PeerRoutes PeerRoutes;
/* `pools`: one a layer, borrowed. `graph`: plan for launches that are captured and replayed (routes
 * that cannot, refuse); a route's own option asks for the same. */
PeerRoutes *peer_routes_new(const AttnShape *shape, const AttnPool *pools, gint layers, gint device,
                            gboolean graph);
void peer_routes_free(PeerRoutes *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PeerRoutes, peer_routes_free)

/* NULL when the route can be run on this device and shape; else why not, owned by `self`. Limits
 * that depend on a step's lengths show in tables(). */
const char *peer_routes_refuses(PeerRoutes *self, const Route *route);

/* FALSE + MACHINE (memory, launch) or UNSUPPORTED (this step's lengths). */
gboolean peer_routes_tables(PeerRoutes *self, const Route *route, gint32 rows, const gint32 *lens,
                            const gint32 *table, const gint32 *offset, gpointer stream,
                            GError **error);
/* ret_bytes may be NULL: bytes uploaded. */
gboolean peer_routes_plan(PeerRoutes *self, const Route *route, gpointer stream, gint64 *ret_bytes,
                          GError **error);
gboolean peer_routes_run(PeerRoutes *self, const Route *route, gint layer, gconstpointer q,
                         gpointer out, gfloat scale, gpointer stream, GError **error);
/* Whether launches captured once serve other steps of as many rows, after tables and plan. */
gboolean peer_routes_replays(PeerRoutes *self, const Route *route);
/* Changes whenever the route's device arrays may have moved: a captured graph is then stale. */
guint peer_routes_identity(PeerRoutes *self, const Route *route);
gint peer_routes_launches(PeerRoutes *self, const Route *route); /* of the last plan */

#endif
