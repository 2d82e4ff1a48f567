/* Tensor parallelism: one backend made of N, each with its share of the heads.
 *
 * Rank r holds q heads and KV heads of its share on device devices[r mod D]; a host thread a device
 * begins steps and executes, the ranks of one device after one another. All ranks get the same
 * plan, as they have the same lengths and the same shape. Contents of rank r are those of seed
 * backend_rank_seed(seed, r), so that results do not depend on how many devices there are.
 *
 * An execution's times are the slowest rank's (the step ends when all have ended), its errors the
 * largest and the mean over all, its counts those of one rank; `rank_us` has each one's kernel
 * time. Ranks on one device are timed apart, as if each had its own: the step's time is then a
 * model of N devices, made of N measurements. What the ranks exchange (all-reduce) is not executed.
 *
 * Errors are those of the rank's backend, with rank and device named. Owns its ranks.
 */
#ifndef KV_REPLAY_BACKEND_RANKS_H
#define KV_REPLAY_BACKEND_RANKS_H

#include "replay/devices.h"

/* `config` has one rank's shape, tp >= 2, and the ranks' common seed. */
Backend *backend_ranks_new(const BackendOps *ops, const BackendConfig *config,
                           const Devices *devices, GError **error);
guint64 backend_rank_seed(guint64 seed, gint rank);

#endif
