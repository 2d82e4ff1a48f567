/* x86-64-v4: 64-byte vectors. */
#include "kernels/cpu_tile.h"

#include <immintrin.h>

#define VL 16
#define TILE_OPS tile_avx512
#define TILE_NAME "avx512"

typedef float vf __attribute__((vector_size(64), may_alias));
typedef int32_t vi __attribute__((vector_size(64), may_alias));
typedef uint16_t vh __attribute__((vector_size(32), aligned(2), may_alias));

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf v_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
}

/* Within 16-byte quarters: four vectors to one with their sums in order; then the quarters. */
static inline vf sums_of_4(const vf *x)
{
    const vf ab = _mm512_unpacklo_ps(x[0], x[1]) + _mm512_unpackhi_ps(x[0], x[1]);
    const vf cd = _mm512_unpacklo_ps(x[2], x[3]) + _mm512_unpackhi_ps(x[2], x[3]);
    return _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xee);
}

static inline vf v_sums(const vf *x)
{
    const vf a = sums_of_4(x), b = sums_of_4(x + 4), c = sums_of_4(x + 8), d = sums_of_4(x + 12);
    const vf ab = _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xee);
    const vf cd = _mm512_shuffle_f32x4(c, d, 0x44) + _mm512_shuffle_f32x4(c, d, 0xee);
    return _mm512_shuffle_f32x4(ab, cd, 0x88) + _mm512_shuffle_f32x4(ab, cd, 0xdd);
}

#include "kernels/cpu_tile_impl.h"
