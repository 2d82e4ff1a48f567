/* What a peer makes of a batch, told from outside: its published way of cutting rows, in the same
 * counters as a plan's, so that the models can rank peers beside the built-in routes.
 *
 * These are estimates for models alone: what a peer launches is known once it has run, and no
 * output shows them as counted. By route, with P CTAs that run at once (two an SM, as `workers`):
 *   flashinfer, flashinfer-tc       one chunk for the batch, the smallest with which all chunks of
 * a KV head fit into P / KV heads CTAs; none where there are as many rows; a second launch merges
 *   flashinfer-tc:split=N           chunks of N tokens
 *   flashinfer-batch                even shares, as `persistent`
 *   trtllm-xqa[:factor=F]           every row the same number of parts: F P / 2 / (rows KV heads)
 *   vllm-pa1, vllm-pa2              no cut, of every query head; partitions of 512
 * Cost O(rows log longest). Pure.
 */
#ifndef KV_REPLAY_PEER_COUNTS_H
#define KV_REPLAY_PEER_COUNTS_H

#include "replay/route.h"

/* kv_bytes, kv_bytes_touched, launches, tasks, grid_tasks, longest_tokens, merge_state_bytes; the
 * rest is 0. `route` is of kind ROUTE_PEER. */
void peer_counts(AttnCounts *ret, const Route *route, const AttnShape *shape, gint workers,
                 gint32 rows, const gint32 *lens);

#endif
