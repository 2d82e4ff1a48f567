/* A look-ahead window that gives requests in order of arrival.
 *
 * Requests are pushed in file order and popped by (arrival, file order). A sorted log flows through
 * a ring; late rows go to a heap, so that any order within the window is O(log n) a row. Block keys
 * and observations are copied into shared chunks that are used again when their rows are gone.
 * Memory: the window (rows and bytes) and no more.
 */
#ifndef KV_WORKLOADS_REORDER_H
#define KV_WORKLOADS_REORDER_H

#include "workloads/request.h"

#define REORDER_ROWS 65536        /* full at so many rows ... */
#define REORDER_BYTES (64u << 20) /* ... or so many bytes of keys and observations */

typedef struct Reorder Reorder;
Reorder *reorder_new(void);
void reorder_free(Reorder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Reorder, reorder_free)

/* Copies the request with its keys and observation. TRUE when it came out of order. */
gboolean reorder_push(Reorder *self, const Request *request);
/* The earliest one; what it points to is valid until the next pop. FALSE when empty. */
gboolean reorder_pop(Reorder *self, Request *ret);
gboolean reorder_full(const Reorder *self);
gsize reorder_count(const Reorder *self);

#endif
