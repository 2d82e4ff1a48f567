/* The request traces of the PersistentKV experiments (arXiv 2606.26666), seed for seed.
 *
 * Families bucketed, homogeneous, bimodal, uniform and zipf, drawn from a 32-bit Mersenne Twister
 * with randint(lo, hi) = u32 % (hi - lo) + lo. For each request in order: prompt, then (zipf) its
 * jitter, then decode; the prompt is rounded up to 16 and is at least 16.
 *
 * Arrival step of request i = i / max_active. As a source of requests (`paper:` generator) that
 * step is given as the arrival in nanoseconds: one step is 1 ns of arrival time. The `paper`
 * scheduler reads it back as a step; other schedulers see all requests arrive practically at once.
 */
#ifndef KV_WORKLOADS_PAPER_TRACE_H
#define KV_WORKLOADS_PAPER_TRACE_H

#include "workloads/generator.h"
#include "workloads/mt19937.h"

typedef enum {
    PAPER_BUCKETED,
    PAPER_HOMOGENEOUS,
    PAPER_BIMODAL,
    PAPER_UNIFORM,
    PAPER_ZIPF
} PaperFamily;

typedef struct PaperTrace {
    PaperFamily family;
    Mt19937 mt;
    guint32 index; /* of the next request */
} PaperTrace;

void paper_trace_init(PaperTrace *self, PaperFamily family, guint32 seed);
void paper_trace_next(PaperTrace *self, gint32 *ret_prompt, gint32 *ret_decode);

extern const GeneratorOps generator_paper;

#endif
