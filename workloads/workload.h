/* A workload: where the requests of a run come from, as the user named it.
 *
 * Either a recorded log (`file`, `format`) or a generator (`arrivals` x `lengths` x `requests`),
 * then transforms in a fixed order (slice, scale, thin, repeat, clamp ...). workload_open() gives a
 * Workload that is a RequestSource and knows what it read: rows, drops by reason, warnings, hash.
 *
 * `--workload` takes a path, "-", or a generator in the plug-in grammar
 * ("paper:trace=bimodal,seed=1").
 */
#ifndef KV_WORKLOADS_WORKLOAD_H
#define KV_WORKLOADS_WORKLOAD_H

#include "base/spec.h"
#include "workloads/request.h"

typedef enum {
    ZERO_OUTPUT_DROP, /* drop and count (the default) */
    ZERO_OUTPUT_KEEP, /* keep as one output token: the prefill alone, counted */
} ZeroOutput;

typedef struct WorkloadConfig {
    char
        *workload; /* path, "-", or NAME:key=value of a whole-workload generator; NULL = generate */
    char *format;  /* "auto" or a name of `list formats` */
    char *map;     /* column mapping for csv / jsonl; NULL */
    char *arrivals; /* plug-in text, used when `workload` is NULL, or to replace a log's arrivals */
    char *lengths;  /* plug-in text, likewise */
    char *sessions; /* plug-in text; NULL = none */
    gint64 requests; /* how many to give at most; 0 = all of a log */
    guint64 seed;
    guint32 replication;
    ZeroOutput zero_output;
    gboolean strict; /* refuse what would otherwise be repaired and counted (unsorted rows ...) */
    gboolean
        keep_unknown; /* give lengths that a log lacks as 0 (for describing), not drop the record */
    gboolean allow_empty; /* no request at all is an end and not an error (for describing) */
    int hash; /* SHA-256 of the log: 1, 0, -1 = of files up to 64 MiB (hashing is slower than
                 reading) */
    char *transforms; /* "scale=2;slice=300s..320s;thin=0.5" in order; NULL = none */
} WorkloadConfig;

void workload_config_init(WorkloadConfig *config);
void workload_config_clear(WorkloadConfig *config);

typedef struct Workload Workload; /* begins with a RequestSource */
Workload *workload_open(const WorkloadConfig *config, GError **error);
void workload_free(Workload *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Workload, workload_free)
RequestSource *workload_source(Workload *self);

/* What is known once reading has ended (or so far). Owned by the Workload. */
typedef struct WorkloadInfo {
    const char *name;   /* file name without folder, or the generator's text */
    const char *format; /* format or generator name */
    const char *sha256; /* of the stored bytes, known from the start (of a pipe: of what was read so
                         * far); NULL for generators, or not asked for */
    const char *first_arrival; /* as written in the log; NULL for generators */
    kv_ns first_arrival_ns;    /* ... on the log's own clock (UNIX time where it has a date) */
    guint64 rows;              /* data rows seen */
    guint64 requests;          /* given out */
    kv_ns recorded_duration;   /* of the measured run, where the log says; KV_NS_NONE */
    GHashTable *dropped;       /* reason (char *) -> guint64 *; iterate in sorted key order */
    GPtrArray *warnings;       /* char *: one per kind, with its count */
    GPtrArray *classes;        /* char *: class names by Request.klass; empty = one class */
} WorkloadInfo;
const WorkloadInfo *workload_info(Workload *self);

#endif
