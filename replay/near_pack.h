/* Points near a batch as a decision reads them: packed, so that a look costs few lines of memory.
 *
 * A point takes 10 bytes: places along the axes within a shape as 1/1024 reaches, offset and weight
 * as the upper halves of floats. Eight points are a block. Points are dealt into blocks by halving:
 * a shape's points are cut along the axis in which they lie farthest apart, and so on, which makes
 * blocks small boxes. An index line of 64 bytes has the boxes of eight blocks of one shape, outward
 * to 1/12 reach. A look reads the index lines, some six a route with 300 points, and of the blocks
 * those whose box is within reach, some nine.
 *
 * What rounding costs. A point's place is off by half of 1/1024 reach along each axis, a batch's by
 * half of 1/128 and, cut off to 1/1024 octave before, 1/1024 more. A correction is sum(w off) /
 * (sum(w) + 1); where all distances are off by up to e it is off by less than 7.1 e times the
 * spread of the offsets about there, as |w'| / (w + 1) < 2 d / (d^2 + 0.02) <= 7.1. Along five
 * axes e is 0.012 at most: 9 % of the spread at the very worst, which takes all points 0.14 away,
 * all rounded apart; a test finds 0.1 % of it on average. Offsets have a relative error of 1/512.
 * Held-out tables are judged alike with and without (docs/results/h200/policy).
 */
#ifndef KV_REPLAY_NEAR_PACK_H
#define KV_REPLAY_NEAR_PACK_H

#include "replay/near.h"

enum {
    NEAR_MOVING = NEAR_GROUP, /* axes that differ within one shape */
    NEAR_BLOCK = 8,           /* points of a block, blocks of an index line */
};

/* Points 0 to 3 are the lower halves of a quad's words, 4 to 7 the upper ones. */
typedef guint32 NearQuad __attribute__((vector_size(16)));
typedef struct NearBlock {
    NearQuad at[NEAR_MOVING]; /* 1/1024 reaches */
    NearQuad off, weight;     /* upper halves of floats */
} NearBlock;

typedef gint16 NearEight __attribute__((vector_size(16)));
typedef struct NearLine {
    NearEight box[NEAR_MOVING]; /* by block: lower bound, and 256 times the upper one */
    gint16 group, head;         /* the shape: 1/1024 reaches */
    guint32 first;              /* block */
    guint32 unused[2];
} NearLine;

/* Where the lines and blocks lie is up to whoever decides: they hold no pointers. */
typedef struct NearPack {
    NearLine *lines;
    NearBlock *blocks;
    guint n_lines, n_blocks;
} NearPack;

/* Of sorted points without a fault; near_pack_clear() frees. */
NearPack near_pack(const NearPoint *points, guint n);
void near_pack_clear(NearPack *self);

const NearPack *near_packed(const Near *self); /* settled */

/* A batch's place along each axis in 1/1024 reaches, rounded to 1/128: equal questions have equal
 * answers. */
typedef struct NearQuestion {
    gint32 at[NEAR_AXES];
} NearQuestion;
NearQuestion near_question(const NearPoint *at);

/* A block to look at, and its shape's squared distance. */
typedef struct NearFound {
    guint32 block;
    float shape;
} NearFound;
/* Blocks that may have points within `reach` (1 to 1.25) of the question, for lines [from, end):
 * ret has room for NEAR_BLOCK a line and one more. Returns their number. */
guint near_pack_find(const NearPack *self, guint from, guint end, const NearQuestion *question,
                     float reach, NearFound *ret);
/* The correction by the blocks found. */
double near_pack_of(const NearPack *self, const NearFound *found, guint n,
                    const NearQuestion *question);
/* Points near a batch, gathered: enough for every question within NEAR_MARGIN reaches of the one
 * that they were gathered for. */
#define NEAR_MARGIN 0.25F
typedef struct NearClose {
    NearBlock points;
    NearQuad shape[2]; /* floats: squared distance of each one's shape */
} NearClose;
/* Of blocks found by reach 1 + NEAR_MARGIN. Returns the number of blocks filled, or
 * `most` + 1 where those are not enough. */
guint near_pack_gather(const NearPack *self, const NearFound *found, guint n,
                       const NearQuestion *question, NearClose *ret, guint most);
double near_close_ratio(const NearClose *close, guint n, const NearQuestion *question);
/* Within NEAR_MARGIN of each other, and of one shape? */
gboolean near_question_close(const NearQuestion *a, const NearQuestion *b);
double near_pack_ratio(const NearPack *self, const NearQuestion *question);

#endif
