/* Paged GQA decode attention: the plain data that every engine shares.
 *
 * One decode step is a batch of rows. Row r attends one query token (q_heads heads) to lens[r]
 * cached entries found through its block table; each KV head serves the G = q_heads / kv_heads
 * query heads of its group. out = softmax(scale * q k^T) v, accumulated in fp32.
 *
 * This header is pure C (stdint, stddef) and is shared by the planner, the fp64 reference, the CPU
 * engine and the CUDA kernels; on the GPU the same structs hold device pointers.
 */
#ifndef KV_KERNELS_ATTN_H
#define KV_KERNELS_ATTN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum AttnStatus {
    ATTN_OK = 0,
    ATTN_UNSUPPORTED_SHAPE,
    ATTN_NO_MEMORY,
    ATTN_LAUNCH_FAILED, /* CUDA: see attn_cuda_last_error() */
    ATTN_CAPACITY,      /* a plan or workspace is larger than what was set up */
} AttnStatus;
const char *attn_strerror(AttnStatus status);

typedef enum AttnDtype { ATTN_F16 = 0, ATTN_BF16 = 1 } AttnDtype;
typedef enum AttnLayout {
    ATTN_HND = 0, /* [page][kv_head][token][d]: a page and head is contiguous */
    ATTN_NHD = 1, /* [page][token][kv_head][d] */
} AttnLayout;

typedef struct AttnShape {
    int32_t q_heads;   /* multiple of kv_heads */
    int32_t kv_heads;  /* G = q_heads / kv_heads in 1..16 */
    int32_t head_dim;  /* 64, 128 or 256 */
    int32_t page_size; /* entries a page: a power of two, 1..128 */
    AttnDtype dtype;   /* of q, k, v and out */
    AttnLayout layout;
} AttnShape;
AttnStatus attn_shape_check(const AttnShape *shape);
static inline int32_t attn_group(const AttnShape *s)
{
    return s->q_heads / s->kv_heads;
}

/* One layer's K and V. Strides in elements; entry (page, head, token) of k starts at
 * k + page*page_stride + head*head_stride + token*token_stride and holds head_dim elements.
 * Offsets need 64 bits. */
typedef struct AttnPool {
    void *k, *v;
    int64_t pages;
    int64_t page_stride;
    int32_t head_stride, token_stride;
} AttnPool;
/* Strides from the shape; k, v and pages are the caller's. */
void attn_pool_strides(AttnPool *pool, const AttnShape *shape);
/* Bytes of k (and as many of v) for `pages` pages. */
int64_t attn_pool_bytes(const AttnShape *shape, int64_t pages);

typedef struct AttnBatch {
    int32_t rows;
    const int32_t *lens;  /* [rows] entries attended to; 0 = the row gives zeros */
    const int32_t *table; /* page ids */
    const int32_t
        *offset;   /* [rows] where in `table` the row's ids start: ceil(len/page_size) of them */
    const void *q; /* [rows][q_heads][head_dim] */
    void *out;     /* [rows][q_heads][head_dim] */
    float scale;   /* 1/sqrt(head_dim) usually */
    int64_t table_len; /* ids in `table` that may be read ahead of need; 0 = not known */
} AttnBatch;

/* A partial result of one (row, KV head) over a token range: for each of the G heads the running
 * maximum m of the scaled scores, l = sum exp(score - m), acc = sum exp(score - m) * v, in fp32.
 * The neutral state is m = -inf, l = 0, acc = 0. Slots are numbered from 0; slot s keeps its states
 * in ml[s][G][2] (m, l) and acc[s][G][head_dim]. Bytes a slot: G * (2 + d) * 4. */
typedef struct AttnPartials {
    float *ml;
    float *acc;
    int64_t slots; /* capacity */
} AttnPartials;

/* fp64 reference for one row: ret[q_heads][head_dim]. Host pointers. Reads half-precision inputs
 * exactly. Cost O(len * q_heads * d); ATTN_NO_MEMORY or ATTN_OK. */
AttnStatus attn_reference_row(const AttnShape *shape, const AttnPool *pool, const AttnBatch *batch,
                              int32_t row, double *ret);
/* The same for one KV head's group of query heads alone: ret[G][head_dim]. */
AttnStatus attn_reference_group(const AttnShape *shape, const AttnPool *pool,
                                const AttnBatch *batch, int32_t row, int32_t kv_head, double *ret);

/* Half-precision helpers, round to nearest even, NaN kept. */
float attn_f16_to_f32(uint16_t h);
uint16_t attn_f32_to_f16(float f);
float attn_bf16_to_f32(uint16_t h);
uint16_t attn_f32_to_bf16(float f);

/* Deterministic contents, the same on host and device (kernels/content.h is the formula): value of
 * element `i` of entry (page, head, token) of K (which = 0), V (1), or of a query (2, page = row
 * key, head = query head, token = 0), an approximately N(0,1) fp32 number, then rounded to the
 * dtype. Any subset of a pool can be reproduced from (seed, page, ...) alone. */
float attn_content(uint64_t seed, int which, int64_t page, int32_t head, int32_t token, int32_t i);
/* A whole page of K and of V; one row's query, at q[q_heads][head_dim]. Host pointers. */
void attn_fill_page(const AttnShape *shape, const AttnPool *pool, uint64_t seed, int64_t page);
void attn_fill_query(const AttnShape *shape, uint64_t seed, int64_t row_key, void *q);

#ifdef __cplusplus
}
#endif
#endif
