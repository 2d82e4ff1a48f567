/* x86-64-v3: 32-byte vectors, FMA, F16C. */
#include "kernels/cpu_tile.h"

#include <immintrin.h>

#define VL 8
#define TILE_OPS tile_avx2
#define TILE_NAME "avx2"

typedef float vf __attribute__((vector_size(32), may_alias));
typedef int32_t vi __attribute__((vector_size(32), may_alias));
typedef uint16_t vh __attribute__((vector_size(16), aligned(2), may_alias));

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf v_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* Within 16-byte halves: four vectors to one with their sums in order; then the halves. */
static inline vf sums_of_4(const vf *x)
{
    const vf ab = _mm256_unpacklo_ps(x[0], x[1]) + _mm256_unpackhi_ps(x[0], x[1]);
    const vf cd = _mm256_unpacklo_ps(x[2], x[3]) + _mm256_unpackhi_ps(x[2], x[3]);
    return _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
}

static inline vf v_sums(const vf *x)
{
    const vf a = sums_of_4(x), b = sums_of_4(x + 4);
    return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
}

#include "kernels/cpu_tile_impl.h"
