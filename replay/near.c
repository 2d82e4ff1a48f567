#include "replay/near.h"

#include <stdint.h>
#include <string.h>

enum { MOVING = NEAR_GROUP, LANES = 4 }; /* axes that differ within one shape */
/* Octaves that make a distance of 1. */
static const float reach[NEAR_AXES] = {3, 1, 1, 3, 2};
static const float softness = 0.02F, alone = 1; /* of the measured, and of the linear estimate */

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef gint32 Mask __attribute__((vector_size(LANES * sizeof(gint32))));
typedef union Four { /* points side by side */
    Lanes lanes;
    float of[LANES];
} Four;

typedef struct Block {
    Four at[MOVING], off, weight;
} Block;

typedef struct Part { /* the points of one group and head size, by bytes */
    float group, head;
    guint from, end; /* blocks */
} Part;

/* What a decision reads lies together: between two steps of an engine caches hold other things. */
struct Near {
    Block *blocks;
    Part *parts; /* behind the blocks */
    guint n_parts, n_blocks;
    GArray *points; /* NearPoint, sorted once settled */
};

Near *near_new(void)
{
    Near *self = g_new0(Near, 1);
    self->points = g_array_new(FALSE, FALSE, sizeof(NearPoint));
    return self;
}

void near_free(Near *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->points);
    g_free(self->blocks);
    g_free(self);
}

guint near_points(const Near *self)
{
    return self != NULL ? self->points->len : 0;
}

NearPoint *near_point(const Near *self, guint i)
{
    return &g_array_index(self->points, NearPoint, i);
}

const char *near_point_fault(const NearPoint *p)
{
    const struct {
        const char *name;
        gint64 value, least, most;
    } fields[] = {
        {"kv_bytes", p->kv_bytes, 1, G_GINT64_CONSTANT(1) << 50},
        {"tasks", p->tasks, 1, G_GINT64_CONSTANT(1) << 50},
        {"longest_percent", p->longest_percent, 1, G_GINT64_CONSTANT(1) << 50},
        {"group", p->group, 1, 1 << 20},
        {"head_dim", p->head_dim, 1, 1 << 20},
        {"off_per_mille", p->off_per_mille, -999, 1000000},
        {"weight_percent", p->weight_percent, 0, 1000000},
    };
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return fields[i].name;
    return NULL;
}

void near_add(Near *self, const NearPoint *point)
{
    g_array_append_val(self->points, *point);
}

/* log2, linear within an octave: exponent and fraction of an IEEE double, as one number. */
static float octave(gint64 x)
{
    const double value = (double)MAX(x, 1);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (float)((double)bits * 0x1p-52 - 1023);
}

NearPlace near_place(const NearPoint *point)
{
    const gint64 x[NEAR_AXES] = {point->kv_bytes, point->tasks, point->longest_percent,
                                 point->group, point->head_dim};
    NearPlace ret;
    for (int a = 0; a < NEAR_AXES; a++)
        ret.at[a] = octave(x[a]) / reach[a];
    return ret;
}

double near_place_distance2(const NearPlace *a, const NearPlace *b)
{
    float sum = 0;
    for (int i = 0; i < NEAR_AXES; i++) {
        const float off = a->at[i] - b->at[i];
        sum += off * off;
    }
    return (double)sum;
}

double near_distance2(const NearPoint *a, const NearPoint *b)
{
    const NearPlace x = near_place(a), y = near_place(b);
    return near_place_distance2(&x, &y);
}

/* By shape, then bytes; then by all else, so that the order of tables does not matter. */
static gint compare(gconstpointer a, gconstpointer b)
{
    const NearPoint *p = a, *q = b;
    const gint64 x[] = {p->group,           p->head_dim,      p->kv_bytes,      p->tasks,
                        p->longest_percent, p->off_per_mille, p->weight_percent};
    const gint64 y[] = {q->group,           q->head_dim,      q->kv_bytes,      q->tasks,
                        q->longest_percent, q->off_per_mille, q->weight_percent};
    for (guint i = 0; i < G_N_ELEMENTS(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Points [from, end), of one shape. */
static void settle_part(Near *self, guint from, guint end)
{
    Part *part = &self->parts[self->n_parts++];
    part->from = self->n_blocks;
    for (guint i = from; i < end; i += LANES) {
        Block *block = &self->blocks[self->n_blocks++];
        for (guint k = 0; k < LANES; k++) {
            const NearPoint *p = near_point(self, MIN(i + k, end - 1)); /* else of no weight */
            const NearPlace place = near_place(p);
            part->group = place.at[NEAR_GROUP];
            part->head = place.at[NEAR_HEAD];
            for (int a = 0; a < MOVING; a++)
                block->at[a].of[k] = place.at[a];
            block->off.of[k] = (float)p->off_per_mille / 1000;
            block->weight.of[k] = i + k < end ? (float)p->weight_percent / 100 : 0;
        }
    }
    part->end = self->n_blocks;
}

/* The first point after `from` of another shape. */
static guint part_end(const Near *self, guint from)
{
    const NearPoint *p = near_point(self, from);
    guint end = from + 1;
    while (end < self->points->len && near_point(self, end)->group == p->group &&
           near_point(self, end)->head_dim == p->head_dim)
        end++;
    return end;
}

void near_settle(Near *self)
{
    gsize parts = 0, blocks = 0;
    g_array_sort(self->points, compare);
    for (guint from = 0, end; from < self->points->len; from = end) {
        end = part_end(self, from);
        parts++, blocks += (end - from + LANES - 1) / LANES;
    }
    g_free(self->blocks);
    self->blocks = g_malloc0(blocks * sizeof(Block) + parts * sizeof(Part));
    self->parts = (Part *)(void *)(self->blocks + blocks);
    self->n_parts = self->n_blocks = 0;
    for (guint from = 0, end; from < self->points->len; from = end) {
        end = part_end(self, from);
        settle_part(self, from, end);
    }
}

NearPoint near_at(const AttnShape *shape, const AttnCounts *c)
{
    const gint64 launches = MAX(c->launches - c->merge_launches, 1);
    const gint64 tasks = MAX((c->grid_tasks + launches / 2) / launches, 1);
    const double longest = 4.0 * shape->head_dim * (double)c->longest_tokens;
    const double mean = (double)MAX(c->kv_bytes_touched, 1) / (double)MAX(c->grid_tasks, 1);
    const double percent = 100 * longest / (mean * (double)launches);
    return (NearPoint){
        .kv_bytes = MAX(c->kv_bytes_touched, 1),
        .tasks = tasks,
        .longest_percent = (gint64)CLAMP(percent, 1, 1e12),
        .group = MAX(attn_group(shape), 1),
        .head_dim = shape->head_dim,
    };
}

/* First block of a part that has a point of `least` bytes or more. */
static guint first_block(const Block *block, const Part *part, float least)
{
    guint low = part->from, high = part->end;
    while (low < high) {
        const guint middle = (low + high) / 2;
        if (block[middle].at[NEAR_BYTES].of[LANES - 1] < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds a part's weights and weighed offsets to *sum and *off; `shape` is its shape's distance,
 * squared. */
static void add_part(const Block *block, const Part *part, const float x[MOVING], float shape,
                     Lanes *sum, Lanes *off)
{
    for (guint i = first_block(block, part, x[NEAR_BYTES] - 1); i < part->end; i++) {
        const Block *b = &block[i];
        if (b->at[NEAR_BYTES].of[0] > x[NEAR_BYTES] + 1)
            return;
        const Lanes bytes = b->at[NEAR_BYTES].lanes - x[NEAR_BYTES],
                    tasks = b->at[NEAR_TASKS].lanes - x[NEAR_TASKS],
                    longest = b->at[NEAR_LONGEST].lanes - x[NEAR_LONGEST];
        const Lanes d2 = bytes * bytes + tasks * tasks + longest * longest + (shape + softness);
        const Lanes near = 1 / d2 - 1 / (1 + softness);
        const Lanes w = (Lanes)((Mask)near & (near > 0)) * b->weight.lanes;
        *sum += w;
        *off += w * b->off.lanes;
    }
}

double near_ratio(const Near *self, const NearPoint *at)
{
    const NearPlace place = near_place(at);
    const float *x = place.at;
    Four sum = {{0}}, off = {{0}};
    for (guint i = 0; i < self->n_parts; i++) {
        const Part *part = &self->parts[i];
        const float group = part->group - x[NEAR_GROUP], head = part->head - x[NEAR_HEAD];
        const float shape = group * group + head * head;
        if (shape < 1)
            add_part(self->blocks, part, x, shape, &sum.lanes, &off.lanes);
    }
    return 1 + (double)((off.of[0] + off.of[1] + off.of[2] + off.of[3]) /
                        (sum.of[0] + sum.of[1] + sum.of[2] + sum.of[3] + alone));
}
