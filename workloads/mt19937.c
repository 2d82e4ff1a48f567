#include "workloads/mt19937.h"

#define N 624
#define M 397

void mt19937_seed(Mt19937 *self, guint32 seed)
{
    self->state[0] = seed;
    for (guint i = 1; i < N; i++) {
        guint32 previous = self->state[i - 1];
        self->state[i] = 1812433253u * (previous ^ (previous >> 30)) + i;
    }
    self->index = N;
}

static void generate(Mt19937 *self)
{
    guint32 *s = self->state;
    for (guint i = 0; i < N; i++) {
        guint32 y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);
        s[i] = s[(i + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    self->index = 0;
}

guint32 mt19937_next(Mt19937 *self)
{
    if (self->index >= N)
        generate(self);
    guint32 y = self->state[self->index++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
