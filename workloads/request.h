/* A request, and a source of requests: what every log, generator and transform boils down to.
 *
 * Order: a source gives requests sorted by `arrival` (equal times in file order) and numbers them
 * 0, 1, 2 ... Time zero is the first arrival. Memory: O(what is active), not O(log).
 *
 * Open and closed loop: next() gives the requests that have an arrival of their own. A request
 * that waits for another (turn k+1 of a session after turn k and its tool wait; the next request of
 * one of N users) is asked for by next_turn() when its predecessor has finished.
 *
 * Lengths: P prompt and D >= 1 output tokens; P+D-1 entries are stored in the end.
 *
 * A log may also say how its server really did (`observed`); that is for describing a log, and
 * never moves the simulation.
 */
#ifndef KV_WORKLOADS_REQUEST_H
#define KV_WORKLOADS_REQUEST_H

#include "base/ns.h"

#define KV_NO_SESSION ((gint64)-1)

/* How a recorded request was served, relative to `sent`; KV_NS_NONE where the log does not say. */
typedef struct Observed {
    gboolean has_sent; /* Request.sent is recorded, and so is the client's wait before it */
    kv_ns queue;       /* sent to first scheduled */
    kv_ns ttft;        /* sent to first token */
    kv_ns e2e;         /* sent to last token */
    guint32 n_itl; /* gaps between tokens (or chunks), the first token's own wait not among them */
    const kv_ns *itl; /* [n_itl] */
} Observed;

typedef struct Request {
    guint64 id;      /* 0, 1, 2 ... in the order given out */
    kv_ns arrival;   /* intended arrival; latencies count from here */
    kv_ns sent;      /* when the client really sent it; == arrival where not recorded */
    gint32 prompt;   /* tokens, >= 1 */
    gint32 output;   /* tokens, >= 1 */
    gint32 priority; /* lower is served first; 0 where there is none */
    guint32 klass;   /* class of service: index into the workload's class names; 0 = the only one */
    kv_ns deadline;  /* from arrival, for edf; KV_NS_NONE where there is none */
    gint64 session;  /* KV_NO_SESSION, or a number that its turns share */
    gint32 turn;     /* 0, 1, 2 ... within the session */
    gint32 block_tokens; /* tokens per block key; 0 = no keys */
    guint32 n_blocks;    /* keys given: floor or ceil of prompt/block_tokens by the format's rule */
    const guint64 *blocks; /* [n_blocks], chain order; valid until the source is asked again */
    kv_ns wait; /* from the end of its predecessor to its arrival; KV_NS_NONE: arrives by itself */
    guint64 mark;             /* the source's own; whoever passes a request on leaves it alone */
    const Observed *observed; /* NULL where not recorded; valid as long as `blocks` */
} Request;

typedef struct RequestSource RequestSource;

typedef struct RequestSourceOps {
    const char *name;
    /* 1 = filled *ret, 0 = end, -1 = error. */
    int (*next)(RequestSource *self, Request *ret, GError **error);
    /* The request that follows `finished` in its session or user; its `arrival` is >= now.
     * 1 = filled, 0 = none follows, -1 = error. NULL where nothing ever waits. */
    int (*next_turn)(RequestSource *self, const Request *finished, kv_ns now, Request *ret,
                     GError **error);
    void (*free)(RequestSource *self);
} RequestSourceOps;

/* Every source embeds this first. */
struct RequestSource {
    const RequestSourceOps *ops;
};

static inline int request_source_next(RequestSource *self, Request *ret, GError **error)
{
    return self->ops->next(self, ret, error);
}
static inline int request_source_next_turn(RequestSource *self, const Request *finished, kv_ns now,
                                           Request *ret, GError **error)
{
    return self->ops->next_turn ? self->ops->next_turn(self, finished, now, ret, error) : 0;
}
void request_source_free(RequestSource *self); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RequestSource, request_source_free)

#endif
