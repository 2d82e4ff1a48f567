/* The replay of a fleet: one steps file a replica, spread over devices (replay/devices.h).
 *
 * A host thread for each group of devices runs its replicas one after another, each with a backend,
 * a pool, block tables and outputs of its own; nothing is shared but the configuration, which is
 * read only. What a replica gives does not depend on where and beside whom it ran, times and device
 * numbers apart. With one group everything runs in the calling thread.
 *
 * A replica that fails ends alone: the others go on, so that nothing that can be measured is lost,
 * and the error then names the replicas and devices that failed. Interruption ends all after the
 * step in hand. Each run's `result` or `error` stays with the caller, who frees them.
 */
#ifndef KV_REPLAY_REPLAY_FLEET_H
#define KV_REPLAY_REPLAY_FLEET_H

#include "replay/replay.h"

typedef struct ReplicaRun {
    StepsReader *steps;         /* borrowed, like all of the inputs */
    OutFile *csv, *calibration; /* NULL = none */
    const char *resume;         /* what an interrupted run of this replica left; NULL */
    ReplayResult *result;       /* NULL where it failed */
    GError *error;
} ReplicaRun;

/* TRUE when all ended well. `config`'s own calibration, resume and on are not looked at. */
gboolean replay_fleet_run(const ReplayConfig *config, ReplicaRun *runs, guint n, Progress *progress,
                          GError **error);

#endif
