/* Contents of K, V and queries from a hash: the formula, for the host and the device alike.
 *
 * An entry's key mixes (seed, which, page, head, token). Elements 4j .. 4j+3 of the entry come from
 * one 64-bit hash h of (key, j) and a second word g mixed from h: element k is the sum of byte 2k
 * and 2k+1 of h and of g, a sum of four uniform bytes (Irwin-Hall, n = 4), less its mean 510, over
 * its standard deviation sqrt(4 (256^2 - 1) / 12) = 147.8. So the values have mean 0 and variance
 * 1, lie within 3.46, and are a product of an integer and one fp32 constant: the same bits
 * everywhere, before they are rounded to half precision.
 *
 * Mixing steps: the finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA'14, with the constants of variant 13 by D. Stafford).
 */
#ifndef KV_KERNELS_CONTENT_H
#define KV_KERNELS_CONTENT_H

#include <stdint.h>

#ifdef __CUDACC__
#define ATTN_HOST_DEVICE __host__ __device__
#else
#define ATTN_HOST_DEVICE
#endif

#define ATTN_CONTENT_MEAN 510             /* of the lane sums 0 .. 1020 */
#define ATTN_CONTENT_SCALE 0x1.bb688cp-8f /* 1 / 147.8005 */

ATTN_HOST_DEVICE static inline uint64_t attn_content_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Key of one entry (a token of one head of one page). Taken once per head_dim elements. */
ATTN_HOST_DEVICE static inline uint64_t attn_content_key(uint64_t seed, int which, int64_t page,
                                                         int32_t head, int32_t token)
{
    const uint64_t place = ((uint64_t)(uint32_t)head << 34) | ((uint64_t)(uint32_t)token << 2) |
                           (uint64_t)(unsigned)which;
    return attn_content_mix(attn_content_mix(seed + 0x9e3779b97f4a7c15u * (uint64_t)page) ^ place);
}

/* Lane sums of elements 4j .. 4j+3: 16 bits each, element 4j lowest. */
ATTN_HOST_DEVICE static inline uint64_t attn_content_lanes(uint64_t key, uint32_t j)
{
    const uint64_t even = 0x00ff00ff00ff00ffu;
    const uint64_t h = attn_content_mix(key + 0x9e3779b97f4a7c15u * (uint64_t)(j + 1));
    const uint64_t g = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    const uint64_t f = g ^ (g >> 32);
    return (h & even) + ((h >> 8) & even) + (f & even) + ((f >> 8) & even);
}

ATTN_HOST_DEVICE static inline float attn_content_value(uint64_t lanes, uint32_t k)
{
    const int32_t sum = (int32_t)((lanes >> (16 * k)) & 0xffff);
    return (float)(sum - ATTN_CONTENT_MEAN) * ATTN_CONTENT_SCALE;
}

#endif
