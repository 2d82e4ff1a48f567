#include "sim/sweep_ranks.h"
#include "sim/sweep.h"

#include <mpi.h>
#include <stdlib.h>

/* The counter lives in rank 0's window; every take is one MPI_Fetch_and_op. */
struct SweepRanks {
    GMutex lock; /* MPI is entered by one thread at a time (MPI_THREAD_SERIALIZED) */
    MPI_Win window;
    guint64 *counter;
    int rank;
};

static void start_mpi(void)
{
    int on = 0, given;
    MPI_Initialized(&on);
    if (!on) {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
        atexit((void (*)(void))MPI_Finalize);
    }
}

SweepRanks *sweep_ranks_open(void)
{
    SweepRanks *self = g_new0(SweepRanks, 1);
    g_mutex_init(&self->lock);
    start_mpi();
    MPI_Comm_rank(MPI_COMM_WORLD, &self->rank);
    MPI_Aint size = self->rank == 0 ? (MPI_Aint)sizeof *self->counter : 0;
    MPI_Win_allocate(size, sizeof *self->counter, MPI_INFO_NULL, MPI_COMM_WORLD, &self->counter,
                     &self->window);
    if (self->rank == 0)
        *self->counter = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, self->window);
    return self;
}

void sweep_ranks_close(SweepRanks *self)
{
    MPI_Win_unlock_all(self->window);
    MPI_Win_free(&self->window);
    g_mutex_clear(&self->lock);
    g_free(self);
}

guint sweep_ranks_rank(const SweepRanks *self)
{
    return (guint)self->rank;
}

guint64 sweep_ranks_take(SweepRanks *self)
{
    const guint64 one = 1;
    guint64 value = 0;
    g_mutex_lock(&self->lock);
    MPI_Fetch_and_op(&one, &value, MPI_UINT64_T, 0, 0, MPI_SUM, self->window);
    MPI_Win_flush(0, self->window);
    g_mutex_unlock(&self->lock);
    return value;
}

gboolean sweep_ranks_agree(SweepRanks *self, gboolean ok)
{
    int mine = ok, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

gboolean sweep_is_first_rank(void)
{
    int rank = 0;
    start_mpi();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}
