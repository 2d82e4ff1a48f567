/* A request on its way through the simulator.
 *
 * A decode row that is scheduled in every step is never touched: its numbers follow from the tick
 * (the index of the step being made). With `stored` = P+D-1 entries in the end,
 *     length in step `tick` = stored - (finish_tick - tick)
 * and it produces its last token in step finish_tick; page_tick is the step in which it next needs
 * a page. A step that it sits out moves both by one.
 *
 * Objects are recycled: page tables keep their memory from one request to the next.
 */
#ifndef KV_SIM_SIM_REQUEST_H
#define KV_SIM_SIM_REQUEST_H

#include "workloads/request.h"

#define TICK_NEVER G_MAXUINT64

typedef struct SimRequest SimRequest;
struct SimRequest {
    /* hot: looked at in every step that is made in full */
    guint64 finish_tick, page_tick; /* while decoding */
    guint32 n_pages, cap_pages;
    guint32 *pages;
    guint32 stored;     /* P+D-1 */
    guint32 slot;       /* while in_batch */
    guint64 sched_tick; /* step for which it was last scheduled */
    guint8 decoding;    /* all known tokens but the last are computed: one token a step */
    guint8 in_batch;    /* is a decode row of the step before */
    guint8 paused;      /* sits out, while in_batch */
    guint8 irregular; /* its last token is older than the end of the step before: see last_token */
    guint8 measured;  /* counts in the metrics (arrived after the warm-up) */
    guint8 clipped;
    /* while not decoding */
    guint32 computed;   /* entries in the cache */
    guint32 target;     /* entries after which the next token comes: prompt + outputs */
    guint32 outputs;    /* tokens given so far */
    guint32 high_water; /* most entries ever computed: below it a chunk is recomputation */
    guint32 swapped;    /* entries kept in host memory (vllm-v0 swap) */
    /* prefix cache */
    guint32 n_keys; /* full pages of the prompt with a key */
    guint32 cap_keys;
    guint64 *keys;
    guint32 n_named; /* pages of the table that were given their key */
    guint32 keyless; /* TRUE: the log gave no keys; all keys are its own */
    /* account */
    Request request; /* `output` as served (after clipping); `blocks` is NULL */
    gint32 asked_output;
    kv_ns enqueued, first_scheduled, first_token, last_token;
    gint64 cached_tokens, recomputed_tokens;
    guint32 preemptions;
    SimRequest *next_free;
};

static inline guint32 sim_request_length(const SimRequest *r, guint64 tick)
{
    return (guint32)(r->stored - (r->finish_tick - tick));
}

/* When the server gets it. */
static inline kv_ns request_entry_time(const Request *q)
{
    return MAX(q->arrival, q->sent);
}

#endif
