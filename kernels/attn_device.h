/* Small device jobs around the attention kernels: contents, poison, block-table deltas, and the
 * measurements that a floor is made of. Pure C; streams are cudaStream_t; nothing synchronises.
 *
 * Contents are those of kernels/content.h, so that a host can reproduce any entry of the pool.
 */
#ifndef KV_KERNELS_ATTN_DEVICE_H
#define KV_KERNELS_ATTN_DEVICE_H

#include "kernels/attn_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* K and V of all pages of the pool. */
AttnStatus attn_device_fill(const AttnShape *shape, const AttnPool *pool, uint64_t seed,
                            void *stream, AttnCudaError *error);
/* q[row][head][i] = attn_content(seed, 2, key, head, 0, i), key = keys[row] (on the device), or the
 * row where keys is NULL. */
AttnStatus attn_device_queries(const AttnShape *shape, void *q, int32_t rows, const int64_t *keys,
                               uint64_t seed, void *stream, AttnCudaError *error);
/* NaN in every element of `count` halves. */
AttnStatus attn_device_poison(void *to, int64_t count, void *stream, AttnCudaError *error);

/* table[where[i]] = what[i] for n pairs; all device pointers. */
AttnStatus attn_device_scatter(int32_t *table, const int32_t *where, const int32_t *what, int32_t n,
                               void *stream, AttnCudaError *error);

/* Keeps the device busy for about `ns`, so that what is queued behind starts without a gap. */
AttnStatus attn_device_spin(int64_t ns, void *stream, AttnCudaError *error);
/* A kernel that does nothing, of one CTA. */
AttnStatus attn_device_empty(void *stream, AttnCudaError *error);
/* Reads `bytes` (a multiple of 16) once; `sink` is never written in practice. Its loads mark what
 * they bring as first to leave L2, so other lines stay there. */
AttnStatus attn_device_read(const void *from, int64_t bytes, void *sink, int32_t sms, void *stream,
                            AttnCudaError *error);
/* The same by ordinary loads, which displace lines of any kind: to empty a cache, read twice its
 * size. */
AttnStatus attn_device_displace(const void *from, int64_t bytes, void *sink, int32_t sms,
                                void *stream, AttnCudaError *error);

#ifdef __cplusplus
}
#endif
#endif
