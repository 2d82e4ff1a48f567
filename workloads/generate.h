/* Generated requests: an arrival process x a length model (x a session model). */
#ifndef KV_WORKLOADS_GENERATE_H
#define KV_WORKLOADS_GENERATE_H

#include "base/spec.h"
#include "workloads/request.h"

typedef struct GenerateConfig {
    PluginChoice arrivals, lengths; /* borrowed, must outlive the source */
    PluginChoice sessions;          /* info NULL = none */
    guint64 requests;               /* at most so many, turns included */
    guint64 seed;
    guint32 replication;
} GenerateConfig;

RequestSource *generated_source_new(const GenerateConfig *config, GError **error);

#endif
