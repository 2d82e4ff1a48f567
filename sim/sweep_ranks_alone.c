#include "sim/sweep_ranks.h"
#include "sim/sweep.h"

struct SweepRanks {
    GMutex lock;
    guint64 next;
};

SweepRanks *sweep_ranks_open(void)
{
    SweepRanks *self = g_new0(SweepRanks, 1);
    g_mutex_init(&self->lock);
    return self;
}

void sweep_ranks_close(SweepRanks *self)
{
    g_mutex_clear(&self->lock);
    g_free(self);
}

guint sweep_ranks_rank(const SweepRanks *self)
{
    return 0;
}

guint64 sweep_ranks_take(SweepRanks *self)
{
    g_mutex_lock(&self->lock);
    guint64 value = self->next++;
    g_mutex_unlock(&self->lock);
    return value;
}

gboolean sweep_ranks_agree(SweepRanks *self, gboolean ok)
{
    return ok;
}

gboolean sweep_is_first_rank(void)
{
    return TRUE;
}
