/* Whole-workload generators: plug-ins that make requests complete with arrivals and lengths, named
 * in
 * `--workload NAME:key=value,...`. */
#ifndef KV_WORKLOADS_GENERATOR_H
#define KV_WORKLOADS_GENERATOR_H

#include "base/spec.h"
#include "workloads/request.h"

typedef struct GeneratorArgs {
    gconstpointer config; /* parsed; must outlive the source */
    guint64 seed;         /* used where the generator's own seed is 0 */
    guint32 replication;
    gint64 requests; /* used where the generator's own count is 0 */
} GeneratorArgs;

typedef struct GeneratorOps {
    PluginInfo info;
    RequestSource *(*open)(const GeneratorArgs *args, GError **error);
} GeneratorOps;

extern const PluginInfo *const generators[]; /* of GeneratorOps */

#endif
