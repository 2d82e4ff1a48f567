/* A fleet: N equal replicas behind a router, in one simulated time.
 *
 * A request is routed when the server side gets it, by what the replicas look like at that instant
 * (every step that began before it has been made). Each replica has a pool, a line and a clock of
 * its own and its own steps file; request ids stay those of the workload, so one requests.csv holds
 * all. A fleet of one gives the bytes of sim_run().
 *
 * Cost: that of the replicas, and O(replicas) a request. With a closed-loop workload (sessions,
 * users) replicas go forward one step at a time, since a finish anywhere may send a request
 * everywhere.
 */
#ifndef KV_SIM_FLEET_H
#define KV_SIM_FLEET_H

#include "sim/sim.h"

/* What a router may look at. */
typedef struct ReplicaView {
    guint64 outstanding; /* requests that wait or run */
    guint64 pages_used;
} ReplicaView;

typedef struct Router Router;
typedef struct RouterOps {
    PluginInfo info;
    /* NULL = a Router without state. */
    Router *(*create)(gconstpointer config);
    guint (*pick)(Router *self, const Request *request, const ReplicaView *views, guint n);
} RouterOps;
struct Router {
    const RouterOps *ops;
    guint64 seed;
    guint64 routed; /* requests so far */
};
extern const PluginInfo *const routers[];

typedef struct FleetConfig {
    guint replicas;      /* >= 1 */
    PluginChoice router; /* of `routers` */
} FleetConfig;

/* `clocks` [replicas]; `steps` [replicas], or NULL. `ret_each` [replicas] may be NULL. In
 * *ret_total counts add up, peaks are the largest replica's, and means over time are sums over the
 * replicas. All schedulers but `paper`. */
gboolean sim_fleet_run(const SimConfig *config, const FleetConfig *fleet, RequestSource *source,
                       StepClock *const *clocks, StepSink *const *steps, RequestSink *requests,
                       Progress *progress, SimResult *ret_total, SimResult *ret_each,
                       GError **error);

#endif
