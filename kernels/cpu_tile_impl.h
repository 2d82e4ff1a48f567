/* The code of cpu_tile.h. The including file defines, before:
 *   VL                 fp32 lanes of a vector: 4, 8 or 16
 *   TILE_OPS           name of the TileOps to define, TILE_NAME its text
 *   vf                 vector of VL floats; vi of VL int32_t; vh of VL uint16_t (unaligned)
 *   v_fma(a, b, c)     a*b + c
 *   v_max(a, b)        the larger; b when either is NaN
 *   v_f16(p)           VL halves at p as floats
 *   v_sums(x)          VL vectors to one: lane i = sum over lanes of x[i]
 * All functions inline into attend(): the number of heads and of registers are constants there.
 */
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Registers: a block of scores has VL sums (so that v_sums gives one vector), HB heads x VL/HB
 * tokens; a block of outputs has HB heads x OUT_VECTORS(HB) vectors. */
#if VL == 16
#define OUT_VECTORS(HB) 4
#else
#define OUT_VECTORS(HB) (8 / (HB))
#endif

INLINE vf v_set(float x)
{
    return x - (vf){0};
}

INLINE vf v_load(const float *p)
{
    return *(const vf *)p;
}

INLINE vf v_bf16(const uint16_t *p)
{
    return (vf)(__builtin_convertvector(*(const vh *)p, vi) << 16);
}

INLINE vf v_half(AttnDtype dtype, const uint16_t *p)
{
    return dtype == ATTN_F16 ? v_f16(p) : v_bf16(p);
}

INLINE float sum_lanes(vf x)
{
    float lane[VL];
    memcpy(lane, &x, sizeof lane);
    for (int n = VL / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lane[i] += lane[i + n];
    return lane[0];
}

INLINE float max_lanes(vf x)
{
    float lane[VL];
    memcpy(lane, &x, sizeof lane);
    for (int n = VL / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lane[i] = lane[i] > lane[i + n] ? lane[i] : lane[i + n];
    return lane[0];
}

/* 2^x for x <= 0: x = n + f with |f| <= 1/2; Taylor series of 2^f to the sixth power (relative
 * error below 2e-7); n goes into the exponent. Below -126 gives 2^-126; NaN stays NaN. */
INLINE vf v_exp2(vf x)
{
    const vf clamped = v_max(v_set(-126.0f), x);
    const vf shifted = clamped + v_set(0x1.8p23f);
    const vf f = clamped - (shifted - v_set(0x1.8p23f));
    vf p = v_set(1.5403530e-4f);
    p = v_fma(p, f, v_set(1.3333558e-3f));
    p = v_fma(p, f, v_set(9.6181291e-3f));
    p = v_fma(p, f, v_set(5.5504109e-2f));
    p = v_fma(p, f, v_set(2.4022651e-1f));
    p = v_fma(p, f, v_set(6.9314718e-1f));
    p = v_fma(p, f, v_set(1.0f));
    return (vf)((vi)p + ((vi)shifted << 23));
}

typedef struct Tile {
    const uint16_t *k[CPU_TILE], *v[CPU_TILE]; /* entries; past `n` the last one again */
    int n;
    float score[16][CPU_TILE] __attribute__((aligned(64)));
} Tile;

/* Pointers to the entries of up to CPU_TILE tokens from t on. */
INLINE void tile_at(Tile *tile, const TileJob *job, int32_t t)
{
    const int n = job->end - t < CPU_TILE ? job->end - t : CPU_TILE;
    const AttnPool *pool = job->pool;
    const int32_t page_size = job->shape->page_size;
    const uint16_t *k = pool->k, *v = pool->v;
    int64_t at = 0;
    tile->n = n;
    for (int i = 0; i < CPU_TILE; i++) {
        const int32_t token = t + (i < n ? i : n - 1);
        const int32_t inside = token & (page_size - 1);
        if (i == 0 || inside == 0 || i >= n)
            at = job->pages[token / page_size] * pool->page_stride +
                 (int64_t)job->kv_head * pool->head_stride + (int64_t)inside * pool->token_stride;
        else
            at += pool->token_stride;
        tile->k[i] = k + at;
        tile->v[i] = v + at;
    }
}

/* Tiles fetched ahead of the one in hand. Pages lie anywhere, so the processor cannot guess what
 * comes; asked for into the second-level cache, more lines can be under way than the first level
 * tracks. */
#define AHEAD 2

INLINE void fetch_entry(const uint16_t *entry, int d)
{
    for (int i = 0; i < d; i += 32)
        __builtin_prefetch(entry + i, 0, 2);
}

/* score[h][t] = q[h] . k[t] for HB heads; meanwhile `next`'s K is fetched (NULL: not). */
INLINE void score_heads(Tile *tile, const Tile *next, AttnDtype dtype, int d, const float *q,
                        int head, const int HB)
{
    const int TB = VL / HB;
    for (int t = 0; t < tile->n; t += TB) {
        vf sum[VL];
        for (int i = 0; i < VL; i++)
            sum[i] = v_set(0);
        for (int b = 0; next != NULL && b < TB; b++)
            fetch_entry(next->k[t + b], d);
        for (int i = 0; i < d; i += VL) {
            vf k[VL];
            for (int b = 0; b < TB; b++)
                k[b] = v_half(dtype, tile->k[t + b] + i);
            for (int h = 0; h < HB; h++) {
                const vf qh = v_load(q + (head + h) * d + i);
                for (int b = 0; b < TB; b++)
                    sum[h * TB + b] = v_fma(qh, k[b], sum[h * TB + b]);
            }
        }
        float all[VL] __attribute__((aligned(64)));
        *(vf *)all = v_sums(sum);
        for (int h = 0; h < HB; h++)
            memcpy(&tile->score[head + h][t], all + h * TB, sizeof(float) * (size_t)TB);
    }
}

/* score -> exp2(score - maximum); the running maximum, sum and accumulator follow. `sums` are kept
 * by lane and added up at the end of the task. */
INLINE void soften(Tile *tile, int d, int head, float *top, vf *sums, float *acc)
{
    float *s = tile->score[head];
    for (int t = tile->n; t < CPU_TILE; t++)
        s[t] = -INFINITY;
    vf high = v_load(s);
    for (int t = VL; t < CPU_TILE; t += VL)
        high = v_max(high, v_load(s + t));
    const float highest = max_lanes(high);
    if (!(highest <= *top)) {
        const float rescale = *top == -INFINITY ? 0.0f : exp2f(*top - highest);
        *top = highest;
        *sums *= v_set(rescale);
        for (int i = 0; i < d; i += VL)
            *(vf *)(acc + i) *= v_set(rescale);
    }
    for (int t = 0; t < CPU_TILE; t += VL) {
        const vf p = v_exp2(v_load(s + t) - v_set(*top));
        *(vf *)(s + t) = p;
        *sums += p;
    }
}

/* acc[h] += sum over t of score[h][t] * v[t] for HB heads; meanwhile `next`'s V is fetched. */
INLINE void weigh_heads(Tile *tile, const Tile *next, AttnDtype dtype, int d, float *acc, int head,
                        const int HB)
{
    const int OV = OUT_VECTORS(HB);
    for (int i = 0; i < d; i += OV * VL) {
        vf sum[16];
        for (int h = 0; h < HB; h++)
            for (int o = 0; o < OV; o++)
                sum[h * OV + o] = v_load(acc + (head + h) * d + i + o * VL);
        for (int t = 0; t < tile->n; t++) {
            if (next != NULL && i == 0)
                fetch_entry(next->v[t], d);
            vf v[8];
            for (int o = 0; o < OV; o++)
                v[o] = v_half(dtype, tile->v[t] + i + o * VL);
            for (int h = 0; h < HB; h++) {
                const vf p = v_set(tile->score[head + h][t]);
                for (int o = 0; o < OV; o++)
                    sum[h * OV + o] = v_fma(p, v[o], sum[h * OV + o]);
            }
        }
        for (int h = 0; h < HB; h++)
            for (int o = 0; o < OV; o++)
                *(vf *)(acc + (head + h) * d + i + o * VL) = sum[h * OV + o];
    }
}

INLINE void score_tile(Tile *tile, const Tile *next, AttnDtype dtype, int d, const float *q,
                       int group)
{
    int h = 0;
    for (; h + 4 <= group; h += 4)
        score_heads(tile, h == 0 ? next : NULL, dtype, d, q, h, 4);
    for (; h + 2 <= group; h += 2)
        score_heads(tile, h == 0 ? next : NULL, dtype, d, q, h, 2);
    for (; h < group; h++)
        score_heads(tile, h == 0 ? next : NULL, dtype, d, q, h, 1);
}

INLINE void weigh_tile(Tile *tile, const Tile *next, AttnDtype dtype, int d, float *acc, int group)
{
    int h = 0;
    for (; h + 4 <= group; h += 4)
        weigh_heads(tile, h == 0 ? next : NULL, dtype, d, acc, h, 4);
    for (; h + 2 <= group; h += 2)
        weigh_heads(tile, h == 0 ? next : NULL, dtype, d, acc, h, 2);
    for (; h < group; h++)
        weigh_heads(tile, h == 0 ? next : NULL, dtype, d, acc, h, 1);
}

INLINE void attend(const TileJob *job, const AttnDtype dtype, const int d)
{
    const int group = attn_group(job->shape);
    Tile tiles[AHEAD + 1];
    float top[16];
    vf sums[16];
    for (int h = 0; h < group; h++) {
        top[h] = -INFINITY;
        sums[h] = v_set(0);
    }
    memset(job->acc, 0, sizeof(float) * (size_t)group * (size_t)d);
    const int n = (job->end - job->begin + CPU_TILE - 1) / CPU_TILE;
    for (int i = 0; i < AHEAD && i < n; i++)
        tile_at(&tiles[i], job, job->begin + i * CPU_TILE);
    for (int i = 0; i < n; i++) {
        Tile *tile = &tiles[i % (AHEAD + 1)], *next = NULL;
        if (i + AHEAD < n) {
            next = &tiles[(i + AHEAD) % (AHEAD + 1)];
            tile_at(next, job, job->begin + (i + AHEAD) * CPU_TILE);
        }
        score_tile(tile, next, dtype, d, job->q, group);
        for (int h = 0; h < group; h++)
            soften(tile, d, h, &top[h], &sums[h], job->acc + h * d);
        weigh_tile(tile, next, dtype, d, job->acc, group);
    }
    for (int h = 0; h < group; h++) {
        job->ml[2 * h] = top[h];
        job->ml[2 * h + 1] = sum_lanes(sums[h]);
    }
}

static void attend_any(const TileJob *job)
{
    const AttnDtype dtype = job->shape->dtype;
    switch (job->shape->head_dim) {
    case 64:
        dtype == ATTN_F16 ? attend(job, ATTN_F16, 64) : attend(job, ATTN_BF16, 64);
        break;
    case 128:
        dtype == ATTN_F16 ? attend(job, ATTN_F16, 128) : attend(job, ATTN_BF16, 128);
        break;
    default:
        dtype == ATTN_F16 ? attend(job, ATTN_F16, 256) : attend(job, ATTN_BF16, 256);
        break;
    }
}

static uint32_t read_all(const void *data, int64_t bytes)
{
    const vi *p = data;
    vi sum[8] = {0};
    for (int64_t i = 0; i < bytes / (int64_t)sizeof(vi); i += 8)
        for (int j = 0; j < 8; j++)
            sum[j] ^= p[i + j];
    uint32_t all = 0;
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < VL; i++)
            all ^= (uint32_t)sum[j][i];
    return all;
}

const TileOps TILE_OPS = {.name = TILE_NAME, .attend = attend_any, .read = read_all};
