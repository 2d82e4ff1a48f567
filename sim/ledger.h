/* The ledger: one JSON line a step with every decision, in vLLM's terms, for comparing schedulers.
 *
 *   {"step":0,"sched":[[REQUEST,TOKENS,COMPUTED_BEFORE,[NEW BLOCKS],HIT BLOCKS],...],
 *    "preempted":[REQUEST,...],"finished":[REQUEST,...],"free":N,"free_head":[8 BLOCKS],
 *    "waiting":[REQUEST,...]}
 *
 * `sched` in order of scheduling (running ones, then admissions; COMPUTED_BEFORE counts the hits);
 * `preempted` and `finished` in order; `free`, `free_head` (next to be taken first) and `waiting`
 * as they stand after the step. Block numbers are page ids + 1: vLLM's block 0 is its null block. A
 * run with a ledger makes every step in full. */
#ifndef KV_SIM_LEDGER_H
#define KV_SIM_LEDGER_H

#include "sim/scheduler.h"

#include <stdio.h>

typedef struct SimLedger {
    FILE *out; /* borrowed; write errors show when it is committed */
    guint64 lines;
} SimLedger;

void ledger_scheduled(SimLedger *self, const Engine *engine);
void ledger_finished(SimLedger *self, const Engine *engine);

#endif
