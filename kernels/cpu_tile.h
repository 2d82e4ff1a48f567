/* The inner part of the CPU engine: one task's attention in vector code, one file per instruction
 * set.
 *
 * Private to kernels/. cpu_tile_impl.h is the code, written in the compiler's vector types and
 * compiled three times: portable (16-byte vectors), AVX2 + FMA + F16C, AVX-512. The choice is made
 * when the engine starts. Each computes the same sums in its own order, so bits differ between
 * instruction sets (never between thread counts).
 */
#ifndef KV_KERNELS_CPU_TILE_H
#define KV_KERNELS_CPU_TILE_H

#include "kernels/attn.h"

/* Scores of 32 tokens for the whole group are formed, then their softmax, then their part of the
 * sum: a tile of K and of V passes through the first-level cache once. */
#define CPU_TILE 32

typedef struct TileJob {
    const AttnShape *shape;
    const AttnPool *pool;
    const int32_t *pages; /* the row's page ids */
    int32_t kv_head;
    int32_t begin, end; /* tokens, begin < end */
    const float *q;     /* [G][d], already times scale * log2(e): scores are in powers of two */
    float *ml;          /* out: [G][2] maximum (a power of two's exponent) and sum */
    float *acc;         /* out: [G][d]; 64-byte aligned, as q is */
} TileJob;

typedef struct TileOps {
    const char *name;
    void (*attend)(const TileJob *job);
    /* Some value that depends on every byte; `bytes` a multiple of 1024, `data` 64-byte aligned. */
    uint32_t (*read)(const void *data, int64_t bytes);
} TileOps;

extern const TileOps tile_portable, tile_avx2, tile_avx512;

/* The widest that this processor runs. */
const TileOps *tile_choose(void);

#endif
