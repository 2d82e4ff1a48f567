/* Peers: other projects' paged decode kernels behind one small interface.
 *
 * A peer is compiled from the headers of a package that the user fetches (tools/get-peers); none of
 * its code is in this tree. Each is a PeerOps in a translation unit of its own, kernels/peers/; a
 * twin takes their place where they are not built, so that callers are the same either way: they
 * look at `built` and `why_not`.
 *
 * Life, the same for all and with the same pages, tables and queries as the built-in routes:
 *   create()  once per (shape, pool): workspace, pinned buffers, and, for a peer that wants another
 *             order of elements inside a page (own_layout), its own copy of the pool.
 *   tables()  a new batch: builds on the host the form of block table that the peer reads (CSR
 *             indptr + page ids + last page length, or a dense table) and uploads it. A serving
 *             engine keeps that form itself, so this is timed apart from the plan.
 *   plan()    the peer's own planner, uploads included: what it must do once a step.
 *   run()     queues its launches on the stream, over a pool of the same strides and pages as the
 *             one it was created with (another layer's), or, where NULL, that one; a peer with
 *             own_layout has a copy of that one alone. Neither allocates nor synchronises, so that
 *             it can be captured; with settings.graph the peer is told to plan for capture.
 * Pointers in PeerConfig.pool and those given to run() are device pointers; lens, table and offset
 * given to tables() are host pointers, only read during the call. A stream is a cudaStream_t.
 *
 * Errors: a status, and one line in PeerError. C++ exceptions stop at the shim. Nothing here
 * prints. Not for several threads at once. Pure C, no GLib, no CUDA header needed.
 */
#ifndef KV_KERNELS_PEERS_PEERS_H
#define KV_KERNELS_PEERS_PEERS_H

#include "kernels/attn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PeerError {
    char text[256];
} PeerError;

typedef struct PeerSettings {
    int32_t
        split_tokens;  /* flashinfer-tc: chunk length, a multiple of the page size; 0 = its own */
    int32_t sm_factor; /* trtllm-xqa: times the processor count it is told; 0 = 1 */
    int32_t graph;     /* 1 = plan for replay from a CUDA graph */
    int32_t no_pdl;    /* 1 = without programmatic dependent launch (on by default from sm_90) */
} PeerSettings;

typedef struct PeerConfig {
    AttnShape shape;
    AttnPool pool;     /* on the device, filled before create() where own_layout */
    int32_t device;    /* ordinal */
    int32_t max_rows;  /* of a batch */
    int32_t max_len;   /* of a row */
    int64_t max_pages; /* table entries of a batch */
    PeerSettings settings;
} PeerConfig;

typedef struct Peer Peer;
typedef struct PeerOps {
    const char *name;      /* the route's name */
    const char *package;   /* "flashinfer-python 0.7.4" */
    const char *kernel;    /* what runs, in the package's words */
    const char *built_for; /* shapes compiled in, in words */
    int built;             /* 0: the twin; everything below is NULL */
    const char *why_not;   /* not built: what to do about it */
    int own_layout;        /* keeps its own copy of the pool: as many bytes again */
    /* ATTN_OK, or ATTN_UNSUPPORTED_SHAPE and the reason. `arch`: 86, 90, ...; `shared`: the most
     * shared memory a CTA may have, bytes. Touches no device. */
    AttnStatus (*supports)(const PeerConfig *config, int arch, int64_t shared, PeerError *error);
    /* Device bytes that create() takes, an upper bound. */
    int64_t (*workspace)(const PeerConfig *config);
    AttnStatus (*create)(Peer **ret, const PeerConfig *config, PeerError *error);
    AttnStatus (*tables)(Peer *self, int32_t rows, const int32_t *lens, const int32_t *table,
                         const int32_t *offset, void *stream, PeerError *error);
    AttnStatus (*plan)(Peer *self, void *stream, PeerError *error);
    AttnStatus (*run)(Peer *self, const AttnPool *pool, const void *q, void *out, float scale,
                      void *stream, PeerError *error);
    /* Of the last plan: kernel launches that run() makes, and bytes that plan() copied. */
    int32_t (*launches)(const Peer *self);
    int64_t (*plan_bytes)(const Peer *self);
    void (*free)(Peer *self);
} PeerOps;

extern const PeerOps *const peers[]; /* NULL-ended; the same names whether built or not */
const PeerOps *peer_find(const char *name);

/* supports() with the device's own limits: what callers with a device use. `device` as in config.
 */
AttnStatus peer_supports(const PeerOps *ops, const PeerConfig *config, PeerError *error);

#ifdef __cplusplus
}
#endif
#endif
