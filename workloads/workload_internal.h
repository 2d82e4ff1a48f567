/* For files of this folder: a Workload around any source. */
#ifndef KV_WORKLOADS_WORKLOAD_INTERNAL_H
#define KV_WORKLOADS_WORKLOAD_INTERNAL_H

#include "workloads/workload.h"

/* Takes the source; copies the rest. `classes` (char *) may be NULL. */
Workload *workload_from_source(RequestSource *source, const char *name, const char *format,
                               const GPtrArray *classes);

/* Before the first request: lengths that the log lacks are given as 0, and no request is no error.
 */
void workload_be_lenient(Workload *self);

#endif
