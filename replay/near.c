#include "replay/near_pack.h"

#include <stdint.h>
#include <string.h>

struct Near {
    GArray *points; /* NearPoint, sorted once settled */
    NearPack pack;
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
    near_pack_clear(&self->pack);
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

NearPlace near_place(const NearPoint *p)
{
    return (NearPlace){{octave(p->kv_bytes) / NEAR_REACH_BYTES, octave(p->tasks) / NEAR_REACH_TASKS,
                        octave(p->longest_percent) / NEAR_REACH_LONGEST,
                        octave(p->group) / NEAR_REACH_GROUP,
                        octave(p->head_dim) / NEAR_REACH_HEAD}};
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

void near_settle(Near *self)
{
    g_array_sort(self->points, compare);
    near_pack_clear(&self->pack);
    self->pack = near_pack(near_point(self, 0), self->points->len);
}

const NearPack *near_packed(const Near *self)
{
    return &self->pack;
}

KV_HOT NearPoint near_at(const AttnShape *shape, const AttnCounts *c)
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

double near_ratio(const Near *self, const NearPoint *at)
{
    const NearQuestion question = near_question(at);
    return near_pack_ratio(&self->pack, &question);
}
