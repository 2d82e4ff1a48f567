#include "replay/peer_route.h"

#include <string.h>

#include "base/error.h"

typedef struct Seat { /* one peer with its settings */
    const RouteOps *ops;
    RouteConfig config;
    const PeerOps *peer;
    PeerConfig set_up; /* what `live` was created for */
    Peer *live;        /* NULL until a step needs it */
    guint made;        /* how often a peer was set up before and with it, over all seats */
    char *refusal;
    gboolean asked;
} Seat;

struct PeerRoutes {
    AttnShape shape;
    const AttnPool *pools; /* [layers] */
    gint layers, device;
    gboolean graph;
    guint made;
    GPtrArray *seats; /* Seat * */
};

static void seat_close(Seat *seat)
{
    if (seat->live != NULL)
        seat->peer->free(seat->live);
    seat->live = NULL;
}

static void seat_free(gpointer data)
{
    Seat *seat = data;
    seat_close(seat);
    g_free(seat->refusal);
    g_free(seat);
}

PeerRoutes *peer_routes_new(const AttnShape *shape, const AttnPool *pools, gint layers, gint device,
                            gboolean graph)
{
    PeerRoutes *self = g_new0(PeerRoutes, 1);
    self->shape = *shape;
    self->pools = pools;
    self->layers = layers;
    self->device = device;
    self->graph = graph;
    self->seats = g_ptr_array_new_with_free_func(seat_free);
    return self;
}

void peer_routes_free(PeerRoutes *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->seats);
    g_free(self);
}

static PeerConfig config_for(const PeerRoutes *self, const Seat *seat, gint32 rows, gint32 len,
                             gint64 pages)
{
    return (PeerConfig){
        .shape = self->shape,
        .pool = self->pools[0],
        .device = self->device,
        .max_rows = rows,
        .max_len = len,
        .max_pages = pages,
        .settings = {.split_tokens = (int32_t)seat->config.split,
                     .sm_factor = (int32_t)seat->config.factor,
                     .graph = self->graph || seat->config.graph},
    };
}

static Seat *seat_of(PeerRoutes *self, const Route *route)
{
    for (guint i = 0; i < self->seats->len; i++) {
        Seat *seat = self->seats->pdata[i];
        if (seat->ops == route->ops && seat->config.split == route->config.split &&
            seat->config.factor == route->config.factor &&
            seat->config.graph == route->config.graph)
            return seat;
    }
    Seat *seat = g_new0(Seat, 1);
    seat->ops = route->ops;
    seat->config = route->config;
    seat->peer = peer_find(route->ops->info.name);
    g_ptr_array_add(self->seats, seat);
    return seat;
}

const char *peer_routes_refuses(PeerRoutes *self, const Route *route)
{
    Seat *seat = seat_of(self, route);
    if (seat->asked)
        return seat->refusal;
    seat->asked = TRUE;
    PeerError why = {{0}};
    const PeerConfig config = config_for(self, seat, 1, 1, 1);
    if (seat->peer == NULL)
        seat->refusal = g_strdup("no peer of this name");
    else if (!seat->peer->built)
        seat->refusal = g_strdup(seat->peer->why_not);
    else if (self->layers > 1 && seat->peer->own_layout)
        seat->refusal = g_strdup_printf(
            "keeps its own copy of one layer's pool: not with %d layers", self->layers);
    else if (peer_supports(seat->peer, &config, &why) != ATTN_OK)
        seat->refusal = g_strdup(why.text);
    return seat->refusal;
}

static gboolean failed(const Seat *seat, AttnStatus status, const PeerError *why, GError **error)
{
    const gint code = status == ATTN_UNSUPPORTED_SHAPE ? KV_ERROR_UNSUPPORTED : KV_ERROR_MACHINE;
    g_set_error(error, KV_ERROR, code, "route %s: %s", seat->ops->info.name,
                why->text[0] != '\0' ? why->text : attn_strerror(status));
    return FALSE;
}

/* Room for the step, with some to spare, so that a growing batch sets it up a few times only. */
static gboolean seat_open(PeerRoutes *self, Seat *seat, gint32 rows, gint32 longest, gint64 pages,
                          GError **error)
{
    PeerError why = {{0}};
    const PeerConfig *now = &seat->set_up;
    if (seat->live != NULL && rows <= now->max_rows && longest <= now->max_len &&
        pages <= now->max_pages)
        return TRUE;
    PeerConfig want = config_for(self, seat, rows, longest, pages);
    AttnStatus status = peer_supports(seat->peer, &want, &why);
    if (status != ATTN_OK)
        return failed(seat, status, &why, error);
    PeerConfig wide = config_for(self, seat, MAX(2 * rows, 16), MAX(longest + longest / 2, 4096),
                                 2 * pages + 1024);
    seat_close(seat);
    status = ATTN_NO_MEMORY;
    if (peer_supports(seat->peer, &wide, NULL) == ATTN_OK)
        status = seat->peer->create(&seat->live, &wide, &why);
    if (status == ATTN_OK)
        want = wide;
    else
        status = seat->peer->create(&seat->live, &want, &why);
    if (status != ATTN_OK)
        return failed(seat, status, &why, error);
    seat->set_up = want;
    seat->made = ++self->made;
    return TRUE;
}

gboolean peer_routes_tables(PeerRoutes *self, const Route *route, gint32 rows, const gint32 *lens,
                            const gint32 *table, const gint32 *offset, gpointer stream,
                            GError **error)
{
    Seat *seat = seat_of(self, route);
    const char *refusal = peer_routes_refuses(self, route);
    PeerError why = {{0}};
    if (refusal != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "route %s: %s", route->ops->info.name,
                    refusal);
        return FALSE;
    }
    gint32 longest = 1;
    gint64 pages = 0;
    for (gint32 r = 0; r < rows; r++) {
        longest = MAX(longest, lens[r]);
        pages += (lens[r] + self->shape.page_size - 1) / self->shape.page_size;
    }
    if (!seat_open(self, seat, rows, longest, pages, error))
        return FALSE;
    const AttnStatus status =
        seat->peer->tables(seat->live, rows, lens, table, offset, stream, &why);
    return status == ATTN_OK || failed(seat, status, &why, error);
}

gboolean peer_routes_plan(PeerRoutes *self, const Route *route, gpointer stream, gint64 *ret_bytes,
                          GError **error)
{
    Seat *seat = seat_of(self, route);
    PeerError why = {{0}};
    g_assert(seat->live != NULL);
    const AttnStatus status = seat->peer->plan(seat->live, stream, &why);
    if (status != ATTN_OK)
        return failed(seat, status, &why, error);
    if (ret_bytes != NULL)
        *ret_bytes = seat->peer->plan_bytes(seat->live);
    return TRUE;
}

gboolean peer_routes_run(PeerRoutes *self, const Route *route, gint layer, gconstpointer q,
                         gpointer out, gfloat scale, gpointer stream, GError **error)
{
    Seat *seat = seat_of(self, route);
    PeerError why = {{0}};
    g_assert(seat->live != NULL);
    const AttnStatus status =
        seat->peer->run(seat->live, &self->pools[layer], q, out, scale, stream, &why);
    return status == ATTN_OK || failed(seat, status, &why, error);
}

gboolean peer_routes_replays(PeerRoutes *self, const Route *route)
{
    const Seat *seat = seat_of(self, route);
    return self->graph || seat->config.graph || strcmp(seat->ops->info.name, "trtllm-xqa") == 0;
}

guint peer_routes_identity(PeerRoutes *self, const Route *route)
{
    return seat_of(self, route)->made;
}

gint peer_routes_launches(PeerRoutes *self, const Route *route)
{
    const Seat *seat = seat_of(self, route);
    return seat->live != NULL ? seat->peer->launches(seat->live) : -1;
}
