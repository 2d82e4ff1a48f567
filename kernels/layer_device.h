/* What a decoder layer does beside its GEMMs and its attention: small kernels on the device.
 *
 * Embedding, RMSNorm with the residual's addition, rotary positions with the new entry's place in
 * the page pool, SiLU of the gate, and the choice of a token. Llama's arithmetic (norm weights are
 * one, biases none); activations are halves of the shape's dtype, sums are fp32. Rows of length 0
 * fill a batch up to its bucket: they are computed like the others and store nothing in the pool.
 *
 * Widths are multiples of 8. Nothing synchronises or allocates, so all can be captured in a graph.
 * Weights follow from a hash (layer_weight(), the same on the host), N(0, 1/inputs).
 */
#ifndef KV_KERNELS_LAYER_DEVICE_H
#define KV_KERNELS_LAYER_DEVICE_H

#include <math.h>

#include "kernels/attn_cuda.h"
#include "kernels/content.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element (row, column) of matrix `id` (any number that tells it from the others), `scale` =
 * 1/sqrt(columns). fp32, before it is rounded to the dtype. */
static inline float layer_weight(uint64_t seed, int64_t id, int32_t row, int32_t column,
                                 float scale)
{
    const uint64_t key = attn_content_key(seed, 3, id, row, 0);
    return scale *
           attn_content_value(attn_content_lanes(key, (uint32_t)column / 4), (uint32_t)column % 4);
}

/* w[rows][columns]. */
AttnStatus layer_device_weights(AttnDtype dtype, void *w, int32_t rows, int32_t columns, int64_t id,
                                uint64_t seed, void *stream, AttnCudaError *error);
/* table[position][half]: cos and sin of position * theta^(-2 i / (2 half)), i < half. */
AttnStatus layer_device_angles(float *table, int32_t positions, int32_t half, double theta,
                               void *stream, AttnCudaError *error);

/* residual[r] = weights[token], token = what sample() chose for row r (best[r]; 0 = token 0);
 * best[r] is set back to 0 for the next choice. */
AttnStatus layer_device_embed(AttnDtype dtype, void *residual, const void *weights, uint64_t *best,
                              int32_t rows, int32_t hidden, int32_t vocabulary, void *stream,
                              AttnCudaError *error);
/* residual += delta (NULL = nothing to add), then out = residual / rms(residual), eps 1e-5. */
AttnStatus layer_device_norm(AttnDtype dtype, void *out, void *residual, const void *delta,
                             int32_t rows, int32_t hidden, void *stream, AttnCudaError *error);
/* qkv[r] = q heads, then K heads, then V heads. Rotates q (into `q`) and K by the row's position
 * len - 1 (pairs i, i + d/2), and stores K and V there in the pool. */
AttnStatus layer_device_rope(const AttnShape *shape, const AttnPool *pool, const AttnBatch *batch,
                             const void *qkv, void *q, const float *angles, void *stream,
                             AttnCudaError *error);
/* out[r][i] = silu(in[r][i]) * in[r][width + i]. */
AttnStatus layer_device_silu(AttnDtype dtype, void *out, const void *in, int32_t rows,
                             int32_t width, void *stream, AttnCudaError *error);
/* best[r] = the largest of logits[r][i] + noise, packed with its index (layer_token()); Gumbel
 * noise of temperature 1 (so that tokens are drawn from the softmax), or none: the largest logit.
 * best[] must be 0 before. */
AttnStatus layer_device_sample(AttnDtype dtype, uint64_t *best, const void *logits, int32_t rows,
                               int32_t vocabulary, int gumbel, uint64_t seed, const int32_t *lens,
                               void *stream, AttnCudaError *error);

/* Word of random bits for the noise of (row, length, index), on both sides. */
ATTN_HOST_DEVICE static inline uint64_t layer_noise_bits(uint64_t seed, int32_t row, int32_t len,
                                                         int32_t index)
{
    const uint64_t place = ((uint64_t)(uint32_t)len << 32) | (uint32_t)index;
    return attn_content_mix(attn_content_mix(seed ^ ((uint64_t)(uint32_t)row << 40)) ^ place);
}
static inline int32_t layer_token(uint64_t best)
{
    return best == 0 ? 0 : (int32_t) ~(uint32_t)best;
}

#ifdef __cplusplus
}
#endif
#endif
