/* The 32-bit Mersenne Twister (Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally
 * equidistributed uniform pseudo-random number generator", ACM TOMACS 8(1), 1998), seeded by its
 * authors' init_genrand. Only for the published traces, which were made with it; everything else
 * draws from base/rng.h.
 */
#ifndef KV_WORKLOADS_MT19937_H
#define KV_WORKLOADS_MT19937_H

#include <glib.h>

typedef struct Mt19937 {
    guint32 state[624];
    guint index;
} Mt19937;

void mt19937_seed(Mt19937 *self, guint32 seed);
guint32 mt19937_next(Mt19937 *self);

#endif
