#include "replay/near_pack.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4, STEPS = 1024, BOXES = 12, COARSE = 8 };
/* Of a reach: STEPS of places, BOXES of boxes' bounds; a question has each COARSE-th place. */
static const float softness = 0.02F, alone = 1; /* of the measured, and of the linear estimate */

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef gint32 Mask __attribute__((vector_size(LANES * sizeof(gint32))));
typedef guint16 Unsigned __attribute__((vector_size(16)));

/* Rounded. */
static guint16 upper_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (guint16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* --- packing --- */

typedef struct Spot { /* a point while they are dealt into blocks */
    guint16 at[NEAR_MOVING], off, weight;
} Spot;

static Spot spot_of(const NearPoint *p)
{
    const NearPlace place = near_place(p);
    Spot ret = {.off = upper_half((float)p->off_per_mille / 1000),
                .weight = upper_half((float)p->weight_percent / 100)};
    for (int a = 0; a < NEAR_MOVING; a++)
        ret.at[a] = (guint16)lrintf(place.at[a] * STEPS);
    return ret;
}

static gint compare(gconstpointer a, gconstpointer b, gpointer axis)
{
    return ((const Spot *)a)->at[*(int *)axis] - ((const Spot *)b)->at[*(int *)axis];
}

/* The axis along which they lie farthest apart. */
static int longest_axis(const Spot *spots, guint n)
{
    int ret = 0;
    int most = -1;
    for (int a = 0; a < NEAR_MOVING; a++) {
        guint16 low = G_MAXUINT16, high = 0;
        for (guint i = 0; i < n; i++) {
            low = MIN(low, spots[i].at[a]);
            high = MAX(high, spots[i].at[a]);
        }
        if (high - low > most) {
            most = high - low;
            ret = a;
        }
    }
    return ret;
}

/* Halves until a block holds them. */
static void deal(Spot *spots, guint n)
{
    while (n > NEAR_BLOCK) {
        int axis = longest_axis(spots, n);
        const guint blocks = (n + NEAR_BLOCK - 1) / NEAR_BLOCK, half = blocks / 2 * NEAR_BLOCK;
        g_qsort_with_data(spots, (gint)n, sizeof *spots, compare, &axis);
        deal(spots, half);
        spots += half, n -= half;
    }
}

/* Above all questions and below them. */
static const NearEight no_box = {255, 255, 255, 255, 255, 255, 255, 255};

/* The box of a block, outward. What lies beyond a byte is held to be anywhere there. */
static void put_box(NearLine *line, guint k, const NearBlock *block)
{
    for (int a = 0; a < NEAR_MOVING; a++) {
        guint low = G_MAXUINT16, high = 0;
        for (guint i = 0; i < NEAR_BLOCK; i++) {
            const guint at = block->at[a][i % LANES] >> (i < LANES ? 0 : 16) & 0xFFFF;
            low = MIN(low, at);
            high = MAX(high, at);
        }
        low = MIN(low * BOXES / STEPS, 255);
        high = MIN((high * BOXES + STEPS - 1) / STEPS, 255);
        line->box[a][k] = (gint16)(guint16)(low | high << 8);
    }
}

/* 1 to NEAR_BLOCK points; past the last one it repeats, of no weight. */
static NearBlock block_of(const Spot *spots, guint n)
{
    NearBlock ret = {0};
    for (guint i = 0; i < NEAR_BLOCK; i++) {
        const Spot *s = &spots[MIN(i, n - 1)];
        const guint lane = i % LANES, up = i < LANES ? 0 : 16;
        for (int a = 0; a < NEAR_MOVING; a++)
            ret.at[a][lane] |= (guint32)s->at[a] << up;
        ret.off[lane] |= (guint32)s->off << up;
        ret.weight[lane] |= (guint32)(i < n ? s->weight : 0) << up;
    }
    return ret;
}

/* Points [from, end), of one shape. */
static void pack_shape(NearPack *self, const NearPoint *points, guint n)
{
    g_autofree Spot *spots = g_new(Spot, n);
    for (guint i = 0; i < n; i++)
        spots[i] = spot_of(&points[i]);
    deal(spots, n);
    const NearQuestion place = near_question(points);
    for (guint i = 0; i < n; i += NEAR_BLOCK) {
        if (i % (NEAR_BLOCK * NEAR_BLOCK) == 0)
            self->lines[self->n_lines++] = (NearLine){.box = {no_box, no_box, no_box},
                                                      .group = (gint16)place.at[NEAR_GROUP],
                                                      .head = (gint16)place.at[NEAR_HEAD],
                                                      .first = self->n_blocks};
        self->blocks[self->n_blocks] = block_of(spots + i, MIN(n - i, NEAR_BLOCK));
        put_box(&self->lines[self->n_lines - 1], i / NEAR_BLOCK % NEAR_BLOCK,
                &self->blocks[self->n_blocks++]);
    }
}

/* The first point after `from` of another shape. */
static guint shape_end(const NearPoint *points, guint n, guint from)
{
    guint end = from + 1;
    while (end < n && points[end].group == points[from].group &&
           points[end].head_dim == points[from].head_dim)
        end++;
    return end;
}

NearPack near_pack(const NearPoint *points, guint n)
{
    NearPack self = {0};
    guint lines = 0, blocks = 0;
    for (guint from = 0, end; from < n; from = end) {
        end = shape_end(points, n, from);
        const guint here = (end - from + NEAR_BLOCK - 1) / NEAR_BLOCK;
        blocks += here;
        lines += (here + NEAR_BLOCK - 1) / NEAR_BLOCK;
    }
    self.lines = g_new0(NearLine, lines);
    self.blocks = g_new0(NearBlock, blocks);
    for (guint from = 0, end; from < n; from = end) {
        end = shape_end(points, n, from);
        pack_shape(&self, points + from, end - from);
    }
    return self;
}

void near_pack_clear(NearPack *self)
{
    g_clear_pointer(&self->lines, g_free);
    g_clear_pointer(&self->blocks, g_free);
    self->n_lines = self->n_blocks = 0;
}

/* --- looking --- */

/* log2, linear within an octave: exponent and fraction of an IEEE double, as one number. */
static inline gint32 octave(gint64 x)
{
    const double value = (double)MAX(x, 1);
    gint64 bits;
    memcpy(&bits, &value, sizeof bits);
    return (gint32)(bits >> 42) - 1023 * STEPS;
}

static inline gint32 rounded(gint32 at)
{
    return (at + COARSE / 2) / COARSE * COARSE;
}

KV_HOT NearQuestion near_question(const NearPoint *at)
{
    return (NearQuestion){{rounded(octave(at->kv_bytes) / NEAR_REACH_BYTES),
                           rounded(octave(at->tasks) / NEAR_REACH_TASKS),
                           rounded(octave(at->longest_percent) / NEAR_REACH_LONGEST),
                           rounded(octave(at->group) / NEAR_REACH_GROUP),
                           rounded(octave(at->head_dim) / NEAR_REACH_HEAD)}};
}

static inline NearEight positive(NearEight x)
{
    return x & (x > 0);
}

/* Eight blocks at once, all ones where a block's box is within the reach whose square is `left`. */
static inline NearEight within(const NearLine *line, const NearQuestion *q, float left)
{
    Unsigned d2 = {0};
    NearEight any = {0};
    for (int a = 0; a < NEAR_MOVING; a++) {
        const gint16 at = (gint16)MIN(q->at[a] * BOXES / STEPS, 254);
        const NearEight low = line->box[a] & 0xFF, high = (NearEight)((Unsigned)line->box[a] >> 8);
        const NearEight gap = positive(low - (gint16)(at + 1)) + positive(at - high);
        d2 += (Unsigned)gap * (Unsigned)gap; /* of gaps below 16 no overflow */
        any |= gap;
    }
    return ((NearEight)d2 < (gint16)((gint32)(BOXES * BOXES * left) + 1)) & (any < 16);
}

KV_HOT guint near_pack_find(const NearPack *self, guint from, guint end, const NearQuestion *q,
                            float reach, NearFound *ret)
{
    guint n = 0;
    for (guint i = from; i < end; i++) {
        const NearLine *line = &self->lines[i];
        const float group = (float)(line->group - q->at[NEAR_GROUP]) / STEPS,
                    head = (float)(line->head - q->at[NEAR_HEAD]) / STEPS;
        const float shape = group * group + head * head;
        const NearEight takes = within(line, q, reach * reach - shape);
        for (guint k = 0; k < NEAR_BLOCK; k++) { /* no branch: there is nothing to foretell */
            ret[n] = (NearFound){line->first + k, shape};
            n -= (guint)(gint32)takes[k];
        }
    }
    return n;
}

static inline Lanes numbers(NearQuad quad, gboolean upper)
{
    return __builtin_convertvector((Mask)(upper ? quad >> 16 : quad & 0xFFFF), Lanes);
}

static inline Lanes floats(NearQuad quad, gboolean upper)
{
    return (Lanes)(upper ? quad & 0xFFFF0000 : quad << 16);
}

/* Of half a block's points, squared, from `d2` on; in steps. */
static inline Lanes distance2(const NearBlock *b, gboolean upper, const NearQuestion *q, Lanes d2)
{
    for (int a = 0; a < NEAR_MOVING; a++) {
        const Lanes d = numbers(b->at[a], upper) - (float)q->at[a];
        d2 += d * d;
    }
    return d2;
}

/* Adds half a block's weights and weighed offsets, `d2` from its shape's distance on, squared. */
static inline void add_half(const NearBlock *b, gboolean upper, const NearQuestion *q, Lanes d2,
                            Lanes *sum, Lanes *off)
{
    const float unit = (float)STEPS * STEPS;
    const Lanes near = unit / distance2(b, upper, q, d2) - 1 / (1 + softness);
    const Lanes w = (Lanes)((Mask)near & (near > 0)) * floats(b->weight, upper);
    *sum += w;
    *off += w * floats(b->off, upper);
}

static inline void add(const NearPack *self, const NearFound *found, guint n, const NearQuestion *q,
                       Lanes *sum, Lanes *off)
{
    for (guint i = 0; i < n; i++) {
        const NearBlock *block = &self->blocks[found[i].block];
        const Lanes d2 = (Lanes){0} + (found[i].shape + softness) * ((float)STEPS * STEPS);
        add_half(block, FALSE, q, d2, sum, off);
        add_half(block, TRUE, q, d2, sum, off);
    }
}

static inline double ratio_of(Lanes sum, Lanes off)
{
    return 1 + (double)((off[0] + off[1] + off[2] + off[3]) /
                        (sum[0] + sum[1] + sum[2] + sum[3] + alone));
}

KV_HOT double near_pack_of(const NearPack *self, const NearFound *found, guint n,
                           const NearQuestion *q)
{
    Lanes sum = {0}, off = {0};
    add(self, found, n, q, &sum, &off);
    return ratio_of(sum, off);
}

KV_HOT gboolean near_question_close(const NearQuestion *a, const NearQuestion *b)
{
    gint64 d2 = 0;
    for (int i = 0; i < NEAR_MOVING; i++)
        d2 += (gint64)(a->at[i] - b->at[i]) * (a->at[i] - b->at[i]);
    return d2 <= (gint64)(NEAR_MARGIN * NEAR_MARGIN * STEPS * STEPS) &&
           a->at[NEAR_GROUP] == b->at[NEAR_GROUP] && a->at[NEAR_HEAD] == b->at[NEAR_HEAD];
}

/* Point `i` of a block as the `k`-th of those gathered. */
static inline void take(NearClose *to, guint k, const NearBlock *from, guint i, float shape)
{
    const guint lane = k % LANES, up = k < LANES ? 0 : 16, down = i < LANES ? 0 : 16;
    union {
        float f;
        guint32 bits;
    } d2 = {shape};
    for (int a = 0; a < NEAR_MOVING; a++)
        to->points.at[a][lane] |= (from->at[a][i % LANES] >> down & 0xFFFF) << up;
    to->points.off[lane] |= (from->off[i % LANES] >> down & 0xFFFF) << up;
    to->points.weight[lane] |= (from->weight[i % LANES] >> down & 0xFFFF) << up;
    to->shape[k / LANES][lane] = d2.bits;
}

KV_HOT guint near_pack_gather(const NearPack *self, const NearFound *found, guint n,
                              const NearQuestion *q, NearClose *ret, guint most)
{
    const float reach = (1 + NEAR_MARGIN) * STEPS;
    guint taken = 0;
    for (guint f = 0; f < n; f++) {
        const NearBlock *block = &self->blocks[found[f].block];
        for (guint half = 0; half < 2; half++) {
            const Lanes d2 = distance2(block, half, q, (Lanes){0}) + found[f].shape * STEPS * STEPS;
            for (guint k = 0; k < LANES; k++) {
                if (d2[k] > reach * reach)
                    continue;
                if (taken == most * NEAR_BLOCK)
                    return most + 1;
                if (taken % NEAR_BLOCK == 0)
                    memset(&ret[taken / NEAR_BLOCK], 0, sizeof *ret);
                take(&ret[taken / NEAR_BLOCK], taken % NEAR_BLOCK, block, half * LANES + k,
                     found[f].shape);
                taken++;
            }
        }
    }
    return (taken + NEAR_BLOCK - 1) / NEAR_BLOCK;
}

KV_HOT double near_close_ratio(const NearClose *close, guint n, const NearQuestion *q)
{
    Lanes sum = {0}, off = {0};
    for (guint i = 0; i < n; i++)
        for (guint half = 0; half < 2; half++)
            add_half(&close[i].points, half, q,
                     ((Lanes)close[i].shape[half] + softness) * ((float)STEPS * STEPS), &sum, &off);
    return ratio_of(sum, off);
}

double near_pack_ratio(const NearPack *self, const NearQuestion *q)
{
    enum { AT_ONCE = 4 };
    NearFound found[AT_ONCE * NEAR_BLOCK + 1];
    Lanes sum = {0}, off = {0};
    for (guint i = 0; i < self->n_lines; i += AT_ONCE) {
        const guint n = near_pack_find(self, i, MIN(i + AT_ONCE, self->n_lines), q, 1, found);
        add(self, found, n, q, &sum, &off);
    }
    return ratio_of(sum, off);
}
