/* Halves to floats, inline, for loops that a compiler should vectorise. Private to kernels/; the
 * same results as attn_f16_to_f32 and attn_bf16_to_f32, which are these.
 */
#ifndef KV_KERNELS_HALF_H
#define KV_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t bits_of_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float half_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0; /* infinity, NaN */
    /* Shifted into place the exponent is 112 too small; the product is exact, subnormals too. */
    return float_of_bits(sign | special | bits_of_float(float_of_bits(magnitude << 13) * 0x1p112f));
}

static inline float half_bf16(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

#endif
