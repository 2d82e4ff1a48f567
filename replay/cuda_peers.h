/* Peers' kernels (kernels/peers/) as routes of the cuda backend.
 *
 * A peer is made when its route first runs, for the largest batch seen so far, and made again when
 * a batch outgrows that. Tables are its own form of block table, built once a step and route,
 * untimed (a serving engine keeps that form itself).
 */
#ifndef KV_REPLAY_CUDA_PEERS_H
#define KV_REPLAY_CUDA_PEERS_H

#include "replay/cuda_table.h"
#include "replay/route.h"

typedef struct CudaPeers CudaPeers;
/* Borrows the pool. */
CudaPeers *cuda_peers_new(const AttnShape *shape, const AttnPool *pool, gint device);
void cuda_peers_free(CudaPeers *self);

/* NULL, or why not; valid until the next call. */
const char *cuda_peers_refuses(CudaPeers *self, const Route *route);
/* The batch of the table is the step in hand. */
gboolean cuda_peers_step(CudaPeers *self, const CudaTable *table, void *stream, GError **error);
gboolean cuda_peers_plan(CudaPeers *self, const Route *route, void *stream, gint64 *ret_bytes,
                         GError **error);
gboolean cuda_peers_run(CudaPeers *self, const Route *route, const AttnBatch *batch, void *stream,
                        GError **error);
gint64 cuda_peers_launches(CudaPeers *self, const Route *route); /* -1 = not known */

#endif
