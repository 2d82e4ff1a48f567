#include "replay/near_merge.h"

#include <math.h>

typedef struct Kept { /* of a point that is kept */
    NearPlace at;
    double weight, off;
} Kept;

typedef struct Merge {
    Near *points;
    GArray *kept;  /* Kept, by point */
    GArray *parts; /* guint: first of each shape's */
    double within;
} Merge;

static Kept *kept(const Merge *self, guint i)
{
    return &g_array_index(self->kept, Kept, i);
}

/* Of points [from, end), of one shape, by bytes: a closer one than *least, the first of several. */
static void closest_of(const Merge *self, guint from, guint end, const NearPlace *at, double *least,
                       guint *ret)
{
    for (guint i = end; i > from; i--) {
        const NearPlace *k = &kept(self, i - 1)->at;
        if ((double)(at->at[NEAR_BYTES] - k->at[NEAR_BYTES]) > self->within)
            return;
        const double d2 = near_place_distance2(k, at);
        if (d2 < *least || (d2 == *least && *ret < self->kept->len && i - 1 < *ret)) {
            *least = d2;
            *ret = i - 1;
        }
    }
}

/* The number of points: none is close. */
static guint closest(const Merge *self, const NearPlace *at)
{
    guint ret = self->kept->len;
    double least = self->within * self->within;
    for (guint p = 0; p < self->parts->len; p++) {
        const guint from = g_array_index(self->parts, guint, p);
        const guint end =
            p + 1 < self->parts->len ? g_array_index(self->parts, guint, p + 1) : self->kept->len;
        const float *first = kept(self, from)->at.at;
        const float group = first[NEAR_GROUP] - at->at[NEAR_GROUP],
                    head = first[NEAR_HEAD] - at->at[NEAR_HEAD];
        if ((double)(group * group + head * head) <= least)
            closest_of(self, from, end, at, &least, &ret);
    }
    return ret;
}

static void keep(Merge *self, const NearPoint *point, const NearPlace *at)
{
    const guint n = self->kept->len;
    const Kept new = {*at, 0, 0};
    if (n == 0 || near_point(self->points, n - 1)->group != point->group ||
        near_point(self->points, n - 1)->head_dim != point->head_dim)
        g_array_append_val(self->parts, n);
    g_array_append_val(self->kept, new);
    near_add(self->points, point);
}

static void add(Merge *self, const NearPoint *point)
{
    const NearPlace at = near_place(point);
    const guint i = closest(self, &at);
    const gboolean new = i == self->kept->len;
    const double weight = (double)point->weight_percent;
    if (new)
        keep(self, point, &at);
    Kept *k = kept(self, i);
    k->weight += weight;
    k->off += weight * (double)point->off_per_mille;
    if (new)
        return;
    NearPoint *into = near_point(self->points, i);
    into->weight_percent = (gint64)MIN(k->weight, 1e6);
    if (k->weight > 0)
        into->off_per_mille = (gint64)round(k->off / k->weight);
}

Near *near_merge(const Near *from, double within)
{
    Merge self = {near_new(), g_array_new(FALSE, FALSE, sizeof(Kept)),
                  g_array_new(FALSE, FALSE, sizeof(guint)), within};
    for (guint i = 0; i < near_points(from); i++)
        add(&self, near_point(from, i));
    g_array_unref(self.kept);
    g_array_unref(self.parts);
    near_settle(self.points);
    return self.points;
}
