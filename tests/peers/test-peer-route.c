/* Peers as routes, over stand-ins that only note what they are asked: set up on first use, again
 * and larger when a step outgrows them, one for each setting, every layer's own pool. The table of
 * peers and peer_supports() here take the place of the library's.
 */
#include <glib.h>
#include <string.h>

#include "base/error.h"
#include "replay/peer_route.h"

typedef struct StandIn {
    PeerConfig config;
    gint rows, runs, plans;
    const AttnPool *last_pool;
} StandIn;

/* What the stand-ins did, over all of them. */
static struct {
    gint created, freed;
    StandIn *last;
} seen;

static AttnStatus supports(const PeerConfig *config, int arch, int64_t shared, PeerError *error)
{
    if (config->settings.split_tokens % config->shape.page_size == 0 && config->max_len <= 1 << 20)
        return ATTN_OK;
    g_strlcpy(error->text, "too long for the stand-in", sizeof error->text);
    return ATTN_UNSUPPORTED_SHAPE;
}

static AttnStatus create(Peer **ret, const PeerConfig *config, PeerError *error)
{
    if (config->max_rows > 1000) /* no room to spare */
        return ATTN_NO_MEMORY;
    seen.last = g_new0(StandIn, 1);
    seen.last->config = *config;
    seen.created++;
    *ret = (Peer *)seen.last;
    return ATTN_OK;
}

static AttnStatus tables(Peer *self, int32_t rows, const int32_t *lens, const int32_t *table,
                         const int32_t *offset, void *stream, PeerError *error)
{
    StandIn *peer = (StandIn *)self;
    int64_t pages = 0;
    for (int32_t r = 0; r < rows; r++) {
        g_assert_cmpint(lens[r], <=, peer->config.max_len);
        g_assert_cmpint(table[offset[r]], ==, r);
        pages += (lens[r] + 15) / 16;
    }
    g_assert_cmpint(rows, <=, peer->config.max_rows);
    g_assert_cmpint(pages, <=, peer->config.max_pages);
    peer->rows = rows;
    return ATTN_OK;
}

static AttnStatus plan(Peer *self, void *stream, PeerError *error)
{
    ((StandIn *)self)->plans++;
    return ATTN_OK;
}

static AttnStatus run(Peer *self, const AttnPool *pool, const void *q, void *out, float scale,
                      void *stream, PeerError *error)
{
    ((StandIn *)self)->runs++;
    ((StandIn *)self)->last_pool = pool;
    return ATTN_OK;
}

static int32_t launches(const Peer *self)
{
    return ((const StandIn *)self)->plans > 0 ? 2 : 1;
}

static int64_t plan_bytes(const Peer *self)
{
    return 64;
}

static void free_peer(Peer *self)
{
    seen.freed++;
    g_free(self);
}

#define STAND_IN(route, copy)                                                                      \
    {                                                                                              \
        .name = route, .package = "stand-in", .kernel = "none", .built_for = "tests", .built = 1,  \
        .own_layout = copy, .supports = supports, .create = create, .tables = tables,              \
        .plan = plan, .run = run, .launches = launches, .plan_bytes = plan_bytes,                  \
        .free = free_peer                                                                          \
    }
static const PeerOps tc = STAND_IN("flashinfer-tc", 0), xqa = STAND_IN("trtllm-xqa", 0),
                     paged = STAND_IN("vllm-pa2", 1);
const PeerOps *const peers[] = {&tc, &xqa, &paged, NULL};

AttnStatus peer_supports(const PeerOps *ops, const PeerConfig *config, PeerError *error)
{
    PeerError local;
    return ops->supports(config, 90, 227 << 10, error != NULL ? error : &local);
}

/* --- */

static const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};

typedef struct Fixture {
    AttnPool pool[2];
    PeerRoutes *routes;
    gint32 lens[2000], table[2000], offset[2000];
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    memset(&seen, 0, sizeof seen);
    for (guint l = 0; l < 2; l++) {
        f->pool[l].pages = 64;
        attn_pool_strides(&f->pool[l], &shape);
    }
    f->routes = peer_routes_new(&shape, f->pool, GPOINTER_TO_INT(data), 0, FALSE);
    for (gint32 r = 0; r < 2000; r++) {
        f->lens[r] = 100;
        f->table[r] = f->offset[r] = r;
    }
}

static void tear_down(Fixture *f, gconstpointer data)
{
    peer_routes_free(f->routes);
    g_assert_cmpint(seen.created, ==, seen.freed);
}

static Route route_of(const char *name, gint64 split, gint64 factor, gboolean graph)
{
    return (Route){.ops = route_find(name),
                   .config = {.split = split, .factor = factor, .graph = graph}};
}

static gboolean step(Fixture *f, const Route *route, gint32 rows, GError **error)
{
    return peer_routes_tables(f->routes, route, rows, f->lens, f->table, f->offset, NULL, error);
}

static void test_grows(Fixture *f, gconstpointer data)
{
    const Route route = route_of("flashinfer-tc", 0, 0, FALSE);
    g_autoptr(GError) error = NULL;
    gint64 bytes = 0;
    g_assert_null(peer_routes_refuses(f->routes, &route));
    g_assert_cmpint(peer_routes_launches(f->routes, &route), ==, -1); /* not set up yet */
    g_assert_true(step(f, &route, 3, &error));
    const guint first = peer_routes_identity(f->routes, &route);
    g_assert_true(peer_routes_plan(f->routes, &route, NULL, &bytes, &error));
    g_assert_cmpint(bytes, ==, 64);
    g_assert_cmpint(peer_routes_launches(f->routes, &route), ==, 2);
    g_assert_true(step(f, &route, 16, &error)); /* within what was to spare */
    g_assert_cmpuint(peer_routes_identity(f->routes, &route), ==, first);
    g_assert_cmpint(seen.created, ==, 1);
    g_assert_true(step(f, &route, 600, &error)); /* 1200 to spare is too much: just enough */
    g_assert_cmpint(seen.created, ==, 2);
    g_assert_cmpuint(peer_routes_identity(f->routes, &route), !=, first);
    g_assert_cmpint(seen.last->config.max_rows, ==, 600);
    f->lens[1] = 5000;
    g_assert_true(step(f, &route, 2, &error)); /* a longer row */
    g_assert_cmpint(seen.last->config.max_len, ==, 7500);
    f->lens[1] = (1 << 20) + 1; /* what only shows with the lengths */
    g_assert_false(step(f, &route, 2, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "too long for the stand-in"));
}

/* Each setting is a peer of its own, with its settings. */
static void test_settings(Fixture *f, gconstpointer data)
{
    const Route route[] = {
        route_of("flashinfer-tc", 0, 0, FALSE), route_of("flashinfer-tc", 2048, 0, FALSE),
        route_of("flashinfer-tc", 0, 0, TRUE), route_of("trtllm-xqa", 0, 8, FALSE)};
    static const gboolean replays[] = {FALSE, FALSE, TRUE, TRUE};
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(route); i++) {
        g_assert_true(step(f, &route[i], 1, &error));
        g_assert_cmpint(seen.created, ==, i + 1);
        g_assert_cmpint(seen.last->config.settings.split_tokens, ==, route[i].config.split);
        g_assert_cmpint(seen.last->config.settings.sm_factor, ==, route[i].config.factor);
        g_assert_cmpint(seen.last->config.settings.graph, ==, route[i].config.graph);
        g_assert_cmpint(peer_routes_replays(f->routes, &route[i]), ==, replays[i]);
    }
    const Route odd = route_of("flashinfer-tc", 2040, 0, FALSE);
    g_assert_nonnull(peer_routes_refuses(f->routes, &odd));
}

static void test_layers(Fixture *f, gconstpointer data)
{
    const Route route = route_of("trtllm-xqa", 0, 1, FALSE), copy = route_of("vllm-pa2", 0, 0, 0);
    g_autoptr(GError) error = NULL;
    g_assert_true(step(f, &route, 1, &error));
    for (gint l = 0; l < 2; l++) {
        g_assert_true(peer_routes_run(f->routes, &route, l, NULL, NULL, 1, NULL, &error));
        g_assert_true(seen.last->last_pool == &f->pool[l]);
    }
    g_assert_nonnull(strstr(peer_routes_refuses(f->routes, &copy), "2 layers"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/peer-route/grows", Fixture, GINT_TO_POINTER(1), set_up, test_grows, tear_down);
    g_test_add("/peer-route/settings", Fixture, GINT_TO_POINTER(1), set_up, test_settings,
               tear_down);
    g_test_add("/peer-route/layers", Fixture, GINT_TO_POINTER(2), set_up, test_layers, tear_down);
    return g_test_run();
}
