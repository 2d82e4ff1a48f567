/* The closed loop: N users, each with one request at a time and a think time between them. As an
 * arrival process it gives only each user's first arrival. */
#ifndef KV_WORKLOADS_USERS_H
#define KV_WORKLOADS_USERS_H

#include "workloads/arrivals.h"

kv_ns users_think(ArrivalProcess *self); /* of the `closed` process only */
extern const ArrivalOps arrivals_closed;

#endif
