#include "sim/fleet.h"
#include "sim/mix.h"
#include "base/rng.h"

typedef struct AffinityConfig {
    gint64 blocks, slack;
} AffinityConfig;

static guint pick_round_robin(Router *self, const Request *request, const ReplicaView *views,
                              guint n)
{
    return (guint)(self->routed % n);
}

static guint pick_random(Router *self, const Request *request, const ReplicaView *views, guint n)
{
    RngStream rng;
    rng_init(&rng, self->seed, RNG_ROUTER, request->id, 0);
    return (guint)rng_below(&rng, n);
}

static guint pick_least_outstanding(Router *self, const Request *request, const ReplicaView *views,
                                    guint n)
{
    guint best = 0;
    for (guint i = 1; i < n; i++)
        if (views[i].outstanding < views[best].outstanding)
            best = i;
    return best;
}

/* Equal use goes to the shorter line. */
static guint pick_least_kv(Router *self, const Request *request, const ReplicaView *views, guint n)
{
    guint best = 0;
    for (guint i = 1; i < n; i++)
        if (views[i].pages_used < views[best].pages_used ||
            (views[i].pages_used == views[best].pages_used &&
             views[i].outstanding < views[best].outstanding))
            best = i;
    return best;
}

/* The replica whose number, mixed with the key, is largest: adding one moves 1/n of the keys. */
static guint rendezvous(guint64 key, guint n)
{
    guint best = 0;
    for (guint i = 1; i < n; i++)
        if (mix64(key ^ mix64(i + 1)) > mix64(key ^ mix64(best + 1)))
            best = i;
    return best;
}

static guint pick_session(Router *self, const Request *request, const ReplicaView *views, guint n)
{
    if (request->session == KV_NO_SESSION)
        return pick_least_outstanding(self, request, views, n);
    return rendezvous((guint64)request->session, n);
}

typedef struct AffinityRouter {
    Router base;
    AffinityConfig c;
} AffinityRouter;

static Router *create_affinity(gconstpointer config)
{
    AffinityRouter *self = g_new0(AffinityRouter, 1);
    self->c = *(const AffinityConfig *)config;
    return &self->base;
}

static guint pick_affinity(Router *router, const Request *request, const ReplicaView *views,
                           guint n)
{
    const AffinityConfig *c = &((AffinityRouter *)router)->c;
    guint least = pick_least_outstanding(router, request, views, n);
    guint32 known = (guint32)MIN((gint64)request->n_blocks, c->blocks);
    if (known == 0)
        return least;
    guint64 key = 0;
    for (guint32 i = 0; i < known; i++)
        key = mix64(key + request->blocks[i]);
    guint home = rendezvous(key, n);
    guint64 most = views[least].outstanding + (guint64)c->slack;
    return views[home].outstanding > most ? least : home;
}

#define AT(field) G_STRUCT_OFFSET(AffinityConfig, field)
static const SpecOption affinity_options[] = {
    {"blocks", SPEC_INT, AT(blocks), "4", 1, 1e6, NULL, "leading block keys that decide"},
    {"slack", SPEC_INT, AT(slack), "32", 0, 1e9, NULL,
     "requests more than the least loaded replica has, above which that one is taken"},
    {NULL},
};

static const RouterOps round_robin = {.info = {"round-robin", "one after the other", NULL, 0},
                                      .pick = pick_round_robin};
static const RouterOps at_random = {
    .info = {"random", "by the seed and the request's number", NULL, 0}, .pick = pick_random};
static const RouterOps least_outstanding = {
    .info = {"least-outstanding", "fewest requests waiting and running", NULL, 0},
    .pick = pick_least_outstanding};
static const RouterOps least_kv = {.info = {"least-kv", "fewest pages in use", NULL, 0},
                                   .pick = pick_least_kv};
static const RouterOps affinity = {
    .info = {"prefix-affinity", "by the first block keys, unless that replica is far behind",
             affinity_options, sizeof(AffinityConfig)},
    .create = create_affinity,
    .pick = pick_affinity};
static const RouterOps sticky = {
    .info = {"session-sticky", "by session; requests without one to the shortest line", NULL, 0},
    .pick = pick_session};

const PluginInfo *const routers[] = {&round_robin.info,
                                     &at_random.info,
                                     &least_outstanding.info,
                                     &least_kv.info,
                                     &affinity.info,
                                     &sticky.info,
                                     NULL};
