/* A recorded log as a source of requests: what every format has in common.
 *
 * Takes a reader's records and, in this order: drops what cannot be replayed (by reason, counted),
 * puts rows in order of arrival (reorder.h; rows above the one before them are counted, or refused
 * under strict), moves time zero to the first arrival, and keeps closed-loop turns until their
 * predecessor has finished. Reasons of drops: a format's own ("failed" ...), "zero_output",
 * "zero_prompt", "zero_prompt_and_output", "output_unknown", "prompt_unknown".
 *
 * Memory: the look-ahead window; a log with closed-loop turns is read whole before its first
 * request, since a turn may lie anywhere after its predecessor.
 */
#ifndef KV_WORKLOADS_LOG_SOURCE_H
#define KV_WORKLOADS_LOG_SOURCE_H

#include "workloads/format.h"
#include "workloads/workload.h"

typedef struct LogSource LogSource; /* begins with a RequestSource */

typedef struct LogSourceConfig {
    PluginChoice format; /* of `formats`; borrowed */
    const char *map;
    ZeroOutput zero_output;
    gboolean strict;
    gboolean keep_unknown; /* give lengths that the log lacks as 0 instead of dropping */
    guint64 seed;
    guint32 replication;
} LogSourceConfig;

/* Takes the Input, also on failure. */
LogSource *log_source_new(Input *input, const LogSourceConfig *config, GError **error);
/* Before the first request: as keep_unknown in the config. */
void log_source_keep_unknown(LogSource *self);
/* Brings rows, drops, warnings, hash and first arrival up to date; leaves the other fields alone.
 */
void log_source_info(LogSource *self, WorkloadInfo *info);

#endif
