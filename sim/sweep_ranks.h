/* The ranks of a sweep: who am I, who takes which cell. Two implementations: sweep_ranks_mpi.c
 * where MPI is built in, sweep_ranks_alone.c else (one rank). */
#ifndef KV_SIM_SWEEP_RANKS_H
#define KV_SIM_SWEEP_RANKS_H

#include <glib.h>

typedef struct SweepRanks SweepRanks;
SweepRanks *sweep_ranks_open(void);
void sweep_ranks_close(SweepRanks *self);
guint sweep_ranks_rank(const SweepRanks *self);
/* Next value of the counter that all ranks share: 0, 1, 2 ... each given once. Any thread. */
guint64 sweep_ranks_take(SweepRanks *self);
/* Waits for all ranks; TRUE when every one of them came with `ok`. */
gboolean sweep_ranks_agree(SweepRanks *self, gboolean ok);

#endif
