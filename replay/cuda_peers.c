#include "replay/cuda_peers.h"

#include <string.h>

#include "base/error.h"
#include "kernels/peers/peers.h"

typedef struct Lane {
    char *label;
    const PeerOps *ops;
    PeerConfig config;
    Peer *peer;
    gboolean current; /* tables are those of the step in hand */
} Lane;

struct CudaPeers {
    PeerConfig config; /* without settings and sizes */
    GPtrArray *lanes;
    const CudaTable *table; /* of the step in hand */
    PeerError refusal;
};

static void lane_free(gpointer data)
{
    Lane *lane = data;
    if (lane->peer != NULL)
        lane->ops->free(lane->peer);
    g_free(lane->label);
    g_free(lane);
}

CudaPeers *cuda_peers_new(const AttnShape *shape, const AttnPool *pool, gint device)
{
    CudaPeers *self = g_new0(CudaPeers, 1);
    self->config = (PeerConfig){.shape = *shape, .pool = *pool, .device = device};
    self->lanes = g_ptr_array_new_with_free_func(lane_free);
    return self;
}

void cuda_peers_free(CudaPeers *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->lanes);
    g_free(self);
}

static PeerSettings settings_of(const Route *route)
{
    return (PeerSettings){.split_tokens = (int32_t)route->config.split,
                          .sm_factor = (int32_t)route->config.factor};
}

const char *cuda_peers_refuses(CudaPeers *self, const Route *route)
{
    const PeerOps *ops = peer_find(route->ops->info.name);
    if (ops == NULL)
        return "no such peer in this build";
    if (!ops->built)
        return ops->why_not;
    PeerConfig config = self->config;
    config.settings = settings_of(route);
    config.max_rows = 1, config.max_len = 1, config.max_pages = 1;
    return peer_supports(ops, &config, &self->refusal) == ATTN_OK ? NULL : self->refusal.text;
}

gboolean cuda_peers_step(CudaPeers *self, const CudaTable *table, void *stream, GError **error)
{
    self->table = table;
    for (guint i = 0; i < self->lanes->len; i++)
        ((Lane *)self->lanes->pdata[i])->current = FALSE;
    return TRUE;
}

static gboolean failed(const Lane *lane, const char *what, const PeerError *e, GError **error)
{
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "route %s: %s: %s", lane->label, what, e->text);
    return FALSE;
}

static Lane *lane_of(CudaPeers *self, const Route *route)
{
    for (guint i = 0; i < self->lanes->len; i++)
        if (strcmp(((Lane *)self->lanes->pdata[i])->label, route->label) == 0)
            return self->lanes->pdata[i];
    Lane *lane = g_new0(Lane, 1);
    lane->label = g_strdup(route->label);
    lane->ops = peer_find(route->ops->info.name);
    lane->config = self->config;
    lane->config.settings = settings_of(route);
    g_ptr_array_add(self->lanes, lane);
    return lane;
}

/* A peer for the step in hand, with its tables. */
static gboolean make_current(CudaPeers *self, Lane *lane, void *stream, GError **error)
{
    PeerError e = {""};
    const gint32 *lens = cuda_table_host_lens(self->table);
    const gint32 rows = (gint32)cuda_table_rows(self->table), page = self->config.shape.page_size;
    gint64 pages = 0;
    gint32 longest = (gint32)cuda_table_max_length(self->table);
    if (lane->current)
        return TRUE;
    for (gint32 r = 0; r < rows; r++)
        pages += (lens[r] + page - 1) / page;
    PeerConfig *c = &lane->config;
    if (lane->peer == NULL || rows > c->max_rows || longest > c->max_len || pages > c->max_pages) {
        if (lane->peer != NULL)
            lane->ops->free(lane->peer);
        lane->peer = NULL;
        c->max_rows = MAX(c->max_rows, rows + rows / 2);
        c->max_len = MAX(c->max_len, longest + longest / 2);
        c->max_pages = MAX(c->max_pages, pages + pages / 2);
        if (lane->ops->create(&lane->peer, c, &e) != ATTN_OK)
            return failed(lane, "setting up", &e, error);
    }
    if (lane->ops->tables(lane->peer, rows, lens, cuda_table_host_ids(self->table),
                          cuda_table_host_offset(self->table), stream, &e) != ATTN_OK)
        return failed(lane, "block tables", &e, error);
    lane->current = TRUE;
    return TRUE;
}

gboolean cuda_peers_plan(CudaPeers *self, const Route *route, void *stream, gint64 *ret_bytes,
                         GError **error)
{
    Lane *lane = lane_of(self, route);
    PeerError e = {""};
    if (!make_current(self, lane, stream, error))
        return FALSE;
    if (lane->ops->plan(lane->peer, stream, &e) != ATTN_OK)
        return failed(lane, "plan", &e, error);
    *ret_bytes = lane->ops->plan_bytes(lane->peer);
    return TRUE;
}

gboolean cuda_peers_run(CudaPeers *self, const Route *route, const AttnBatch *batch, void *stream,
                        GError **error)
{
    Lane *lane = lane_of(self, route);
    PeerError e = {""};
    if (lane->ops->run(lane->peer, batch->q, batch->out, batch->scale, stream, &e) != ATTN_OK)
        return failed(lane, "launch", &e, error);
    return TRUE;
}

gint64 cuda_peers_launches(CudaPeers *self, const Route *route)
{
    const Lane *lane = lane_of(self, route);
    return lane->peer != NULL ? lane->ops->launches(lane->peer) : -1;
}
