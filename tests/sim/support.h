/* Helpers of the simulator's tests: a workload in memory, one-call runs, results kept as bytes. */
#ifndef KV_TESTS_SIM_SUPPORT_H
#define KV_TESTS_SIM_SUPPORT_H

#include "sim/sim.h"
#include "sim/steps_file.h"

/* A workload in memory: requests with ids by position, block keys owned by it. */
typedef struct Log {
    RequestSource base;
    GArray *requests; /* Request */
    guint next;
} Log;

void log_init(Log *log);
void log_clear(Log *log);
/* Ids follow the order of adding; arrivals must not go back. Returns it for further fields. */
Request *log_add(Log *log, kv_ns arrival, gint32 prompt, gint32 output);
/* Names blocks of `tokens` tokens by these numbers, for the request added last. */
void log_blocks(Log *log, gint32 tokens, const guint64 *ids, guint n);
RequestSource *log_source(Log *log); /* from the beginning */

/* What a run leaves behind. */
typedef struct Outcome {
    SimResult result;
    char *csv;   /* requests.csv */
    char *steps; /* bytes of the steps file */
    gsize steps_size;
    GError *error;
} Outcome;
void outcome_clear(Outcome *o);

/* Sets up a config: checks on, the scheduler and pool as given. */
void config_for(SimConfig *config, const char *scheduler, guint64 pool_pages);
/* Runs; `outcome->error` is set when it fails. */
void run_log(const SimConfig *config, Log *log, const char *clock, Outcome *outcome);
/* The same, and it must succeed. */
void run_log_ok(const SimConfig *config, Log *log, const char *clock, Outcome *outcome);
/* The ledger's text. Free it. */
char *run_ledger(const SimConfig *config, Log *log, const char *clock);

/* A random workload: `rand` decides lengths, arrivals, priorities and shared beginnings. */
void log_random(Log *log, GRand *rand, guint n, gint32 page_size, gint32 max_tokens,
                gboolean blocks);

#endif
