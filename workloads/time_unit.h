/* Which unit a log's bare numbers of time are in.
 *
 * Two signs are used. A number that would be a UNIX time between 1985 and 2128 in exactly one unit
 * is one. Otherwise the mean rate of arrivals tells: between one in 100 s and 1000 a second is
 * plausible. A unit the format prescribes is kept while it gives no more than 1000 a second (or one
 * in 11 days).
 */
#ifndef KV_WORKLOADS_TIME_UNIT_H
#define KV_WORKLOADS_TIME_UNIT_H

#include "base/ns.h"

/* Of `n` times in file order. `prescribed` 0 = none. 0 when two readings are equally likely or none
 * is; *ret_reason says why the unit was chosen or what the readings are (free it). */
kv_ns time_unit_choose(const double *times, guint n, kv_ns prescribed, char **ret_reason);
const char *time_unit_name(kv_ns unit);

#endif
