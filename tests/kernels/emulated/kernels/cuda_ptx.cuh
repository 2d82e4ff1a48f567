/* In place of kernels/cuda_ptx.cuh: the same words for CTAs on the CPU (cta.h). Only what planning
 * and merging need. */
#ifndef KV_KERNELS_CUDA_PTX_CUH
#define KV_KERNELS_CUDA_PTX_CUH

#include "cta.h"
#include "kernels/attn.h"

#include <algorithm>
#include <math.h>
#include <string.h>

#define __host__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define threadIdx (emulated::thread_index())
#define blockDim (emulated::block_dim())
#define blockIdx (emulated::block_index())
#define gridDim (emulated::grid_dim())

struct int2 {
    int x, y;
};
inline int2 make_int2(int x, int y)
{
    return {x, y};
}
struct float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

inline uint32_t __float_as_uint(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
inline float __uint_as_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
inline void __nanosleep(unsigned)
{
    emulated::yield();
}
inline void __syncthreads()
{
    emulated::sync_threads();
}
inline float __shfl_sync(unsigned, float x, int lane)
{
    return __uint_as_float(emulated::exchange(__float_as_uint(x), lane));
}
inline int __shfl_sync(unsigned, int x, int lane)
{
    return (int)emulated::exchange((uint32_t)x, lane);
}
inline int __shfl_up_sync(unsigned, int x, int by)
{
    const int lane = (int)(threadIdx.x & 31);
    return (int)emulated::exchange((uint32_t)x, lane < by ? lane : lane - by);
}
inline float __shfl_xor_sync(unsigned, float x, int mask)
{
    const int lane = (int)(threadIdx.x & 31);
    return __uint_as_float(emulated::exchange(__float_as_uint(x), lane ^ mask));
}
inline unsigned __ballot_sync(unsigned, bool x)
{
    return emulated::ballot(x);
}
inline int __reduce_add_sync(unsigned, int x)
{
    return emulated::total(x);
}
inline void __syncwarp()
{
    emulated::exchange(0, 0);
}
inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((uint64_t)x * y >> 32);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline bool __any_sync(unsigned, bool x)
{
    return emulated::largest(x) != 0;
}
inline bool __all_sync(unsigned, bool x)
{
    return emulated::largest(!x) == 0;
}

struct __half {
    uint16_t bits;
};

namespace kv
{

using std::max;
using std::min;

inline float exp2_fast(float x)
{
    return exp2f(x);
}
inline float reciprocal_fast(float x)
{
    return 1.f / x;
}

inline float warp_max(float x)
{
    int32_t i;
    memcpy(&i, &x, 4);
    const int32_t most = emulated::largest(i ^ ((i >> 31) & 0x7fffffff));
    return __uint_as_float((uint32_t)(most ^ ((most >> 31) & 0x7fffffff)));
}

template <typename T> struct Half;
template <> struct Half<__half> {
    static uint32_t pack(float lo, float hi)
    {
        return attn_f32_to_f16(lo) | (uint32_t)attn_f32_to_f16(hi) << 16;
    }
};

inline uint32_t atomic_inc_wrap(uint32_t *p, uint32_t last)
{
    uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, old >= last ? 0 : old + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
    return old;
}

inline float4 load_relaxed(const float *p)
{
    const uint32_t *u = (const uint32_t *)p;
    return {__uint_as_float(emulated::load_now(u)), __uint_as_float(emulated::load_now(u + 1)),
            __uint_as_float(emulated::load_now(u + 2)), __uint_as_float(emulated::load_now(u + 3))};
}

inline void store_relaxed(float *p, const float4 &x)
{
    uint32_t *u = (uint32_t *)p;
    emulated::store_later(u, __float_as_uint(x.x));
    emulated::store_later(u + 1, __float_as_uint(x.y));
    emulated::store_later(u + 2, __float_as_uint(x.z));
    emulated::store_later(u + 3, __float_as_uint(x.w));
}

} // namespace kv
#endif
