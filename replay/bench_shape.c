/* The backend, the pool and the routes for the cells of one shape. */
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/peers/peers.h"
#include "replay/bench_private.h"

/* Other pages are used until this many bytes have gone by, so that no cache still holds the first:
 * last-level caches of today's machines are below a third of it. */
#define COLD_BYTES ((gint64)600 << 20)
#define ONE_SET ((gint64)8 << 30) /* a run of so much leaves under 1 % of itself behind */
enum { MAX_SETS = 12 };

/* Elements a tensor that 32 bits can tell apart. */
#define NARROW ((gint64)1 << 32)

gint64 bench_pages(const BenchCell *cell, const gint32 *lens)
{
    gint64 pages = 0;
    for (gint32 r = 0; r < cell->rows; r++)
        pages += (lens[r] + cell->shape.page_size - 1) / cell->shape.page_size;
    return pages;
}

gboolean bench_is_wide(const BenchCell *cell, gint64 pages)
{
    return pages * (attn_pool_bytes(&cell->shape, 1) / 2) >= NARROW;
}

guint bench_sets(const AttnShape *shape, gint64 pages)
{
    const gint64 bytes = 2 * attn_pool_bytes(shape, pages);
    if (bytes >= ONE_SET)
        return 1;
    return (guint)CLAMP(COLD_BYTES / bytes + 2, 2, MAX_SETS);
}

static void lanes_free(Bench *self)
{
    for (guint i = 0; i < self->n; i++) {
        BenchLane *lane = &self->lane[i];
        attn_plan_free(&lane->plan);
        g_free(lane->route.label);
        g_free(lane->time[0]);
        bench_line_clear(&lane->line);
    }
    g_clear_pointer(&self->lane, g_free);
    self->n = 0;
}

void bench_shape_close(Bench *self)
{
    lanes_free(self);
    g_clear_pointer(&self->backend, backend_free);
    g_clear_pointer(&self->permutation, g_free);
    self->n_left = 0;
}

static gint64 limit_of(const Bench *self)
{
    if (self->config->max_bytes > 0)
        return self->config->max_bytes;
    const gint64 memory = self->ops->memory != NULL ? self->ops->memory(&self->config->config) : 0;
    return memory > 0 ? memory : (gint64)1 << 30;
}

/* Pool for the largest cell of `shape` that the limit lets through, and its other sets. */
static gint64 pool_for(const Bench *self, const AttnShape *shape, gboolean wide, gint64 limit)
{
    const gint64 cold = COLD_BYTES / (2 * attn_pool_bytes(shape, 1));
    const gint64 narrow = (NARROW - 1) / (attn_pool_bytes(shape, 1) / 2);
    gint64 most = 1;
    for (guint i = 0; i < self->config->cells->len; i++) {
        const BenchCell *cell = &g_array_index(self->config->cells, BenchCell, i);
        if (memcmp(&cell->shape, shape, sizeof *shape) != 0)
            continue;
        g_autofree gint32 *lens = g_new(gint32, cell->rows);
        bench_cell_lens(cell, self->config->config.seed, lens);
        const gint64 pages = bench_pages(cell, lens);
        if (bench_is_wide(cell, pages) == wide && 2 * attn_pool_bytes(shape, pages) <= limit)
            most = MAX(most, MIN(pages * bench_sets(shape, pages), 2 * pages + cold));
    }
    most = MIN(most, limit / (2 * attn_pool_bytes(shape, 1)));
    return wide ? most : MIN(most, narrow);
}

static void permute(Bench *self)
{
    RngStream rng;
    rng_init(&rng, self->config->config.seed, RNG_PAGES, 0, 0);
    self->permutation = g_new(guint32, self->pool_pages);
    for (gint64 i = 0; i < self->pool_pages; i++)
        self->permutation[i] = (guint32)i;
    for (gint64 i = self->pool_pages - 1; i > 0; i--) {
        const gint64 j = (gint64)rng_below(&rng, (guint64)i + 1);
        const guint32 x = self->permutation[i];
        self->permutation[i] = self->permutation[j];
        self->permutation[j] = x;
    }
}

static void add_lane(Bench *self, const PluginChoice *choice)
{
    BenchLane *lane = &self->lane[self->n++];
    *lane = (BenchLane){.route = {.ops = (const RouteOps *)choice->info,
                                  .config = *(const RouteConfig *)choice->config}};
    lane->route.label = route_setting(&lane->route);
    lane->time[0] = g_new0(double, TIMES *BENCH_MAX_ROUNDS);
    for (guint t = 1; t < TIMES; t++)
        lane->time[t] = lane->time[0] + t * BENCH_MAX_ROUNDS;
    lane->replays = self->ops->replays != NULL && self->ops->replays(self->backend, &lane->route);
    attn_plan_init(&lane->plan);
    const gboolean builtin = lane->route.ops->kind == ROUTE_BUILTIN;
    if (builtin)
        route_plan_config(&lane->plan_config, &lane->route, &self->config->splits, &self->shape,
                          self->workers);
}

/* What is compared where nothing is named: all routes, and the settings of peers that their users
 * could choose for a batch. */
static const char *const variants[] = {"flashinfer-tc:graph=yes", "flashinfer-tc:split=2048",
                                       "flashinfer-tc:split=4096", "trtllm-xqa:factor=8"};

static gboolean add_default(Bench *self, const char *text, GError **error)
{
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "route", routes, text, error))
        return FALSE;
    const RouteOps *ops = (const RouteOps *)choice.info;
    const PeerOps *peer = ops->kind == ROUTE_PEER ? peer_find(ops->info.name) : NULL;
    if (ops->kind == ROUTE_BUILTIN || (peer != NULL && peer->built && self->ops != &backend_cpu))
        add_lane(self, &choice);
    plugin_choice_clear(&choice);
    return TRUE;
}

static gboolean lanes_open(Bench *self, GError **error)
{
    const GPtrArray *named = self->config->routes;
    guint all = 0;
    while (routes[all] != NULL)
        all++;
    self->lane = g_new0(BenchLane, MAX(named->len, all + G_N_ELEMENTS(variants)));
    for (guint i = 0; i < named->len; i++)
        add_lane(self, named->pdata[i]);
    for (guint i = 0; named->len == 0 && i < all; i++)
        if (!add_default(self, routes[i]->name, error))
            return FALSE;
    for (guint i = 0; named->len == 0 && i < G_N_ELEMENTS(variants); i++)
        if (!add_default(self, variants[i], error))
            return FALSE;
    return TRUE;
}

static void describe(Bench *self)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    self->ops->describe(self->backend, builder);
    json_builder_end_object(builder);
    self->result->about = json_builder_get_root(builder);
    JsonObject *about = json_node_get_object(self->result->about);
    self->result->device = g_strdup(json_object_get_string_member_with_default(about, "name", "?"));
}

/* CTAs that run at once, or a CPU's threads. */
static gint workers_of(const Bench *self)
{
    const gint workers = self->ops->workers(self->backend), threads = self->config->config.threads;
    return workers > 0 ? workers : threads > 0 ? threads : (gint)g_get_num_processors();
}

/* A pool too large for the device is tried at half the size, and so on: the cells that then do not
 * fit say so. */
gboolean bench_shape_open(Bench *self, const AttnShape *shape, gboolean wide, GError **error)
{
    self->shape = *shape;
    self->wide = wide;
    gint64 limit = limit_of(self);
    for (;;) {
        g_autoptr(GError) local = NULL;
        BackendConfig config = self->config->config;
        config.shape = *shape;
        config.pool_pages = self->pool_pages = pool_for(self, shape, wide, limit);
        config.check_bytes = config.check_bytes > 0 ? config.check_bytes : (gint64)64 << 20;
        self->backend = self->ops->create(&config, &local);
        if (self->backend != NULL)
            break;
        limit /= 2;
        if (local->code != KV_ERROR_MACHINE || limit < (gint64)64 << 20) {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
    }
    self->workers = workers_of(self);
    self->result->workers = self->workers;
    permute(self);
    if (self->result->about == NULL)
        describe(self);
    if (self->result->read_rate <= 0 && self->ops->read_rate != NULL)
        self->result->read_rate = self->ops->read_rate(self->backend);
    if (self->result->empty_us <= 0 && self->ops->empty_wall != NULL)
        self->result->empty_us = self->ops->empty_wall(self->backend);
    return lanes_open(self, error);
}
