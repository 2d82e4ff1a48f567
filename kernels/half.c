/* Half-precision conversions in integer arithmetic: exact, round to nearest even, NaN kept quiet.
 */
#include "kernels/attn.h"

#include "kernels/half.h"

float attn_f16_to_f32(uint16_t h)
{
    return half_f16(h);
}

uint16_t attn_f32_to_f16(float f)
{
    const uint32_t u = bits_of_float(f);
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Subnormal (or zero): adding 0.5 leaves the fraction, in units of 2^-24, rounded by the
         * addition itself to nearest even. */
        const float shifted = float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(shifted) - 0x3f000000u));
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float attn_bf16_to_f32(uint16_t h)
{
    return half_bf16(h);
}

uint16_t attn_f32_to_bf16(float f)
{
    const uint32_t u = bits_of_float(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
