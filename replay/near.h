/* What was measured near a batch: corrections to a route's linear estimate.
 *
 * The linear part of the learned model (replay/model.h) is right to some per cent: how a tail of
 * tasks fills the processors, or from where on a planner cuts otherwise, is not linear. What is
 * left of the calibration samples is therefore kept, as points, and an estimate is multiplied by
 *   1 + sum(w off) / (sum(w) + 1),    w = weight x (1 / (d^2 + 0.02) - 1 / 1.02) where d < 1,
 * d being the distance from the batch to the point: one is reached by three octaves of bytes, one
 * of tasks, one of the longest task over the mean one, three of the group size or two of the head
 * size (or fewer of several). Next to a point the measured time comes back, between points their
 * mean, and beyond all of them the linear estimate alone: outside of what was measured the model
 * extrapolates as before. A correction never leaves the range from the least to the largest of the
 * points' own and 0.
 *
 * Octaves are linear in between (a power of two and what is over it), which is monotone and costs
 * no logarithm. Places of both are rounded, a point's to 1/1024 reach and a batch's to 1/128, and
 * offsets and weights to 1/512 of themselves: replay/near_pack.h says what that comes to, and how
 * the points near a batch are found. Errors: none; near_point_fault() tells what cannot be a
 * point.
 */
#ifndef KV_REPLAY_NEAR_H
#define KV_REPLAY_NEAR_H

#include <glib.h>

#include "kernels/plan.h"

/* Code of a decision lies together: between two steps it has left the caches. */
#define KV_HOT __attribute__((hot))

typedef struct NearPoint {
    gint64 kv_bytes;        /* read */
    gint64 tasks;           /* of an attention launch */
    gint64 longest_percent; /* longest task, per cent of the mean */
    gint64 group, head_dim;
    gint64 off_per_mille;  /* measured over the linear estimate, less 1000; 0 in a question */
    gint64 weight_percent; /* how sure that is; 0 in a question */
} NearPoint;

typedef struct Near Near;
Near *near_new(void);
void near_free(Near *self); /* NULL is none */
/* Points of the fit or a file, each without a fault; near_settle() after the last of them. */
void near_add(Near *self, const NearPoint *point);
void near_settle(Near *self);
guint near_points(const Near *self);              /* NULL has 0 */
NearPoint *near_point(const Near *self, guint i); /* not to be changed once settled */
/* Name of a field that is out of its range; NULL = a point. */
const char *near_point_fault(const NearPoint *point);

/* Where a batch's plan lies. */
NearPoint near_at(const AttnShape *shape, const AttnCounts *counts);
double near_distance2(const NearPoint *a, const NearPoint *b);
/* The same of many: each point's place once, along each axis in reaches. */
enum { NEAR_BYTES, NEAR_TASKS, NEAR_LONGEST, NEAR_GROUP, NEAR_HEAD, NEAR_AXES };
enum { /* octaves that make a distance of 1 */
       NEAR_REACH_BYTES = 3,
       NEAR_REACH_TASKS = 1,
       NEAR_REACH_LONGEST = 1,
       NEAR_REACH_GROUP = 3,
       NEAR_REACH_HEAD = 2
};
typedef struct NearPlace {
    float at[NEAR_AXES];
} NearPlace;
NearPlace near_place(const NearPoint *point);
double near_place_distance2(const NearPlace *a, const NearPlace *b);
/* What to multiply the linear estimate by. */
double near_ratio(const Near *self, const NearPoint *at);

#endif
