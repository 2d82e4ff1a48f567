/* The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014): a bijection of 64 bits that mixes all of them. For keys and hashing,
 * not for random numbers (base/rng.h). */
#ifndef KV_SIM_MIX_H
#define KV_SIM_MIX_H

#include <glib.h>

static inline guint64 mix64(guint64 x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
