/* Any processor: 16-byte vectors (SSE2, NEON ...), halves converted by integer steps. */
#include "kernels/cpu_tile.h"

#define VL 4
#define TILE_OPS tile_portable
#define TILE_NAME "portable"

typedef float vf __attribute__((vector_size(16), may_alias));
typedef int32_t vi __attribute__((vector_size(16), may_alias));
typedef uint16_t vh __attribute__((vector_size(8), aligned(2), may_alias));

static inline vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

static inline vf v_max(vf a, vf b)
{
    const vi mask = a > b;
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* As attn_f16_to_f32, by lanes. */
static inline vf v_f16(const uint16_t *p)
{
    const vi h = __builtin_convertvector(*(const vh *)p, vi);
    const vi magnitude = h & 0x7fff;
    const vi special = (magnitude >= 0x7c00) & 0x7f800000;
    const vf value = (vf)(magnitude << 13) * 0x1p112f;
    return (vf)((vi)value | special | (h & 0x8000) << 16);
}

static inline vf v_sums(const vf *x)
{
    const vf ab = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5) +
                  __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const vf cd = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5) +
                  __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
           __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

#include "kernels/cpu_tile_impl.h"

const TileOps *tile_choose(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return &tile_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &tile_avx2;
#endif
    return &tile_portable;
}
