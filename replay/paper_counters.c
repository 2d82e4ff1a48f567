/* The counters of a published experiment: its steps through the planner, without a file. */
#include <string.h>

#include "base/error.h"
#include "replay/paper.h"
#include "sim/batch.h"

enum { PUBLISHED_SMS = 28 }; /* of the published card; sizes the persistent route alone */

static const AttnShape published_shape = {
    .q_heads = 32,
    .kv_heads = 8,
    .head_dim = 128,
    .page_size = 16,
    .dtype = ATTN_F16,
    .layout = ATTN_HND,
};

typedef struct Counting {
    StepSink sink;
    Batch batch;
    GArray *lens; /* gint32 */
    AttnShape shape;
    AttnPlanConfig config[PAPER_ROUTES];
    AttnCounts sum[PAPER_ROUTES];
    guint64 pages, steps, rows, lengths, distinct;
} Counting;

static gboolean counting_begin(StepSink *sink, guint64 pool_pages, GError **error)
{
    ((Counting *)sink)->pages = pool_pages;
    return TRUE;
}

/* Few rows: each against those before it. */
static guint count_distinct(const GArray *lens)
{
    guint n = 0;
    for (guint i = 0; i < lens->len; i++) {
        guint k = 0;
        while (k < i && g_array_index(lens, gint32, k) != g_array_index(lens, gint32, i))
            k++;
        n += k == i;
    }
    return n;
}

static gboolean counting_step(StepSink *sink, const Step *step, GError **error)
{
    Counting *self = (Counting *)sink;
    const char *wrong = batch_apply(&self->batch, step);
    if (wrong != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "step %" G_GUINT64_FORMAT ": %s",
                    step->index, wrong);
        return FALSE;
    }
    g_array_set_size(self->lens, 0);
    for (guint32 i = 0; i < self->batch.n_rows; i++) {
        const gint32 len = (gint32)batch_length(&self->batch, self->batch.order[i]);
        g_array_append_val(self->lens, len);
        self->lengths += (guint64)len;
    }
    self->steps++;
    self->rows += self->lens->len;
    self->distinct += count_distinct(self->lens);
    for (guint i = 0; i < PAPER_ROUTES; i++) {
        AttnCounts c;
        if (attn_plan_count(&c, &self->config[i], &self->shape, (int32_t)self->lens->len,
                            (const int32_t *)(void *)self->lens->data) != ATTN_OK) {
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s",
                        attn_strerror(ATTN_NO_MEMORY));
            return FALSE;
        }
        self->sum[i].launches += c.launches;
        self->sum[i].merge_launches += c.merge_launches;
        self->sum[i].tasks += c.tasks;
        self->sum[i].merge_state_bytes += c.merge_state_bytes;
    }
    return TRUE;
}

static void counting_configure(Counting *self, const PaperExperiment *experiment)
{
    self->shape = published_shape;
    self->shape.q_heads = experiment->q_heads;
    for (int i = 0; i < PAPER_ROUTES; i++) {
        AttnPlanConfig *c = &self->config[i];
        attn_plan_config_init(c, i, PUBLISHED_SMS);
        if (i == ATTN_PERSISTENT || i == ATTN_SINGLE)
            continue;
        c->rule = ATTN_SPLITS_FIXED;
        c->s = (int32_t)(i == ATTN_BUCKETS ? experiment->buckets_s : experiment->queue_s);
    }
}

gboolean paper_counters(const PaperExperiment *self, PaperCounters *ret, GError **error)
{
    Counting counting = {.sink = {.begin = counting_begin, .step = counting_step}};
    counting.lens = g_array_new(FALSE, FALSE, sizeof(gint32));
    batch_init(&counting.batch);
    counting_configure(&counting, self);
    const gboolean ok = paper_run_steps(self, &counting.sink, error);
    batch_clear(&counting.batch);
    g_array_unref(counting.lens);
    if (!ok)
        return FALSE;
    const double n = MAX((double)counting.steps, 1), mib = 1 << 20;
    *ret = (PaperCounters){
        .physical_pages = counting.pages,
        .steps = counting.steps,
        .rows = counting.rows,
        .mean_active = (double)counting.rows / n,
        .mean_exact_buckets = (double)counting.distinct / n,
        .kv_mib_per_step = (double)counting.lengths * 2 * published_shape.kv_heads *
                           published_shape.head_dim * 2 / mib / n,
    };
    for (int i = 0; i < PAPER_ROUTES; i++) {
        const AttnCounts *c = &counting.sum[i];
        const gboolean fixed = counting.config[i].rule == ATTN_SPLITS_FIXED;
        ret->route[i] = (PaperRouteCounts){
            .route = attn_route_name(i),
            .s = fixed ? counting.config[i].s : 0,
            .launches = c->launches / n,
            .merge_launches = c->merge_launches / n,
            .tasks = (double)c->tasks / n,
            .merge_mib = (double)c->merge_state_bytes / mib / n,
        };
    }
    return TRUE;
}

static void put_real(JsonBuilder *b, const char *key, double value)
{
    json_builder_set_member_name(b, key);
    json_builder_add_double_value(b, value);
}

static void put_int(JsonBuilder *b, const char *key, gint64 value)
{
    json_builder_set_member_name(b, key);
    json_builder_add_int_value(b, value);
}

void paper_counters_to_json(const PaperExperiment *self, const PaperCounters *c, JsonBuilder *b)
{
    json_builder_set_member_name(b, "trace");
    json_builder_add_string_value(b, self->trace);
    put_int(b, "max_active", self->max_active);
    put_int(b, "seed", self->seed);
    put_int(b, "requests", self->requests);
    put_int(b, "physical_pages", (gint64)c->physical_pages);
    put_int(b, "steps", (gint64)c->steps);
    put_real(b, "mean_active", c->mean_active);
    put_real(b, "mean_exact_buckets", c->mean_exact_buckets);
    put_real(b, "kv_mib_per_step", c->kv_mib_per_step);
    json_builder_set_member_name(b, "routes");
    json_builder_begin_object(b);
    for (int i = 0; i < PAPER_ROUTES; i++) {
        const PaperRouteCounts *r = &c->route[i];
        json_builder_set_member_name(b, r->route);
        json_builder_begin_object(b);
        if (r->s > 0)
            put_int(b, "splits", r->s);
        put_real(b, "launches_per_step", r->launches);
        put_real(b, "merge_launches_per_step", r->merge_launches);
        put_real(b, "tasks_per_step", r->tasks);
        put_real(b, "merge_mib_per_step", r->merge_mib);
        json_builder_end_object(b);
    }
    json_builder_end_object(b);
}
