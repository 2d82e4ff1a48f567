#include "kernels/cpu_engine.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/cpu_pool.h"
#include "kernels/cpu_tile.h"

#define LOG2_E 1.44269504f
#define LN_2 0.69314718f

typedef struct Scratch { /* one thread's, on its own cache lines */
    float q[16 * 256] __attribute__((aligned(64)));
    float acc[16 * 256] __attribute__((aligned(64)));
    float ml[16 * 2];
} Scratch;

struct AttnCpu {
    CpuPool *pool;
    const TileOps *ops;
    Scratch *scratch; /* [threads] */
    /* fused launches: merge of each slot, and arrivals at each merge */
    int32_t *merge_of_slot;
    _Atomic int32_t *arrived;
    int64_t cap_slots;
    int32_t cap_merges;
};

/* One attn_cpu_run(), for the work items. */
typedef struct Run {
    AttnCpu *engine;
    const AttnShape *shape;
    const AttnPool *pool;
    const AttnBatch *batch;
    const AttnPlan *plan;
    AttnPartials *partials;
    int32_t first; /* of the launch */
} Run;

AttnCpu *attn_cpu_new(int threads)
{
    AttnCpu *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->ops = tile_choose();
    self->pool = cpu_pool_new(threads);
    if (self->pool != NULL)
        self->scratch = aligned_alloc(64, sizeof(Scratch) * (size_t)cpu_pool_threads(self->pool));
    if (self->scratch == NULL) {
        attn_cpu_free(self);
        return NULL;
    }
    return self;
}

void attn_cpu_free(AttnCpu *self)
{
    if (self == NULL)
        return;
    cpu_pool_free(self->pool);
    free(self->scratch);
    free(self->merge_of_slot);
    free((void *)self->arrived);
    free(self);
}

int attn_cpu_threads(const AttnCpu *self)
{
    return cpu_pool_threads(self->pool);
}

const char *attn_cpu_isa(const AttnCpu *self)
{
    return self->ops->name;
}

bool attn_cpu_force_isa(AttnCpu *self, const char *name)
{
    const TileOps *best = tile_choose();
    const TileOps *const all[] = {
        &tile_portable,
#if defined(__x86_64__)
        &tile_avx2,
        &tile_avx512
#endif
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i]->name, name) == 0) {
            self->ops = all[i];
            return true;
        }
        if (all[i] == best)
            return false; /* what follows is wider than this processor */
    }
    return false;
}

static uint16_t half_of(AttnDtype dtype, float f)
{
    return dtype == ATTN_F16 ? attn_f32_to_f16(f) : attn_f32_to_bf16(f);
}

static uint16_t *output_of(const Run *run, int32_t row, int32_t head)
{
    const AttnShape *s = run->shape;
    return (uint16_t *)run->batch->out +
           ((int64_t)row * s->q_heads + (int64_t)head * attn_group(s)) * s->head_dim;
}

/* The group's queries as floats, in powers of two: times scale * log2(e). */
static void load_query(const Run *run, int32_t row, int32_t head, float *ret)
{
    const AttnShape *s = run->shape;
    const int32_t n = attn_group(s) * s->head_dim;
    const uint16_t *q = (const uint16_t *)run->batch->q + ((int64_t)row * s->kv_heads + head) * n;
    const float scale = run->batch->scale * LOG2_E;
    for (int32_t i = 0; i < n; i++)
        ret[i] = scale * (s->dtype == ATTN_F16 ? attn_f16_to_f32(q[i]) : attn_bf16_to_f32(q[i]));
}

/* Merges a (row, KV head)'s states in slot order and writes its output; no entries give zeros. */
static void merge_pair(const Run *run, const AttnMerge *m, Scratch *scratch)
{
    const AttnShape *s = run->shape;
    const int32_t group = attn_group(s), d = s->head_dim;
    uint16_t *out = output_of(run, m->row, m->kv_head);
    for (int32_t g = 0; g < group; g++) {
        const float *ml = run->partials->ml + ((int64_t)m->first_slot * group + g) * 2;
        const float *acc = run->partials->acc + ((int64_t)m->first_slot * group + g) * d;
        float top = -INFINITY, sum = 0;
        for (int32_t i = 0; i < m->n_slots; i++)
            top = top >= ml[(int64_t)i * group * 2] ? top : ml[(int64_t)i * group * 2];
        memset(scratch->acc, 0, sizeof(float) * (size_t)d);
        for (int32_t i = 0; i < m->n_slots; i++) {
            const float *state = ml + (int64_t)i * group * 2;
            if (state[1] == 0)
                continue; /* neutral */
            const float w = expf(state[0] - top);
            const float *a = acc + (int64_t)i * group * d;
            sum += w * state[1];
            for (int32_t k = 0; k < d; k++)
                scratch->acc[k] += w * a[k];
        }
        for (int32_t k = 0; k < d; k++)
            out[g * d + k] = half_of(s->dtype, sum == 0 ? 0 : scratch->acc[k] / sum);
    }
}

/* Runs a task; its state is left in the scratch. */
static void attend(const Run *run, const AttnTask *t, Scratch *scratch)
{
    load_query(run, t->row, t->kv_head, scratch->q);
    const TileJob job = {
        .shape = run->shape,
        .pool = run->pool,
        .pages = run->batch->table + run->batch->offset[t->row],
        .kv_head = t->kv_head,
        .begin = t->begin,
        .end = t->end,
        .q = scratch->q,
        .ml = scratch->ml,
        .acc = scratch->acc,
    };
    run->engine->ops->attend(&job);
}

static void write_output(const Run *run, const AttnTask *t, const Scratch *scratch)
{
    const AttnShape *s = run->shape;
    const int32_t group = attn_group(s), d = s->head_dim;
    uint16_t *out = output_of(run, t->row, t->kv_head);
    if (t->begin == t->end) {
        memset(out, 0, sizeof *out * (size_t)(group * d));
        return;
    }
    for (int32_t g = 0; g < group; g++)
        for (int32_t k = 0; k < d; k++)
            out[g * d + k] = half_of(s->dtype, scratch->acc[g * d + k] / scratch->ml[2 * g + 1]);
}

static void write_partial(const Run *run, const AttnTask *t, const Scratch *scratch)
{
    const int32_t group = attn_group(run->shape), d = run->shape->head_dim;
    float *ml = run->partials->ml + (int64_t)t->slot * group * 2;
    float *acc = run->partials->acc + (int64_t)t->slot * group * d;
    if (t->begin == t->end) {
        for (int32_t g = 0; g < group; g++) {
            ml[2 * g] = -INFINITY;
            ml[2 * g + 1] = 0;
        }
        memset(acc, 0, sizeof(float) * (size_t)(group * d));
        return;
    }
    for (int32_t g = 0; g < group; g++) {
        ml[2 * g] = scratch->ml[2 * g] * LN_2;
        ml[2 * g + 1] = scratch->ml[2 * g + 1];
    }
    memcpy(acc, scratch->acc, sizeof(float) * (size_t)(group * d));
}

static void item_attention(void *context, int64_t i, int thread)
{
    const Run *run = context;
    const AttnTask *t = &run->plan->tasks[run->first + i];
    Scratch *scratch = &run->engine->scratch[thread];
    if (t->begin < t->end)
        attend(run, t, scratch);
    if (t->slot < 0)
        write_output(run, t, scratch);
    else
        write_partial(run, t, scratch);
}

static void item_merge(void *context, int64_t i, int thread)
{
    const Run *run = context;
    merge_pair(run, &run->plan->merges[run->first + i], &run->engine->scratch[thread]);
}

/* The last task of a pair to arrive merges: it sees all states by the acquire half of its add. */
static void item_fused(void *context, int64_t i, int thread)
{
    const Run *run = context;
    const AttnTask *t = &run->plan->tasks[run->first + i];
    item_attention(context, i, thread);
    if (t->slot < 0)
        return;
    const int32_t m = run->engine->merge_of_slot[t->slot];
    const AttnMerge *merge = &run->plan->merges[m];
    if (atomic_fetch_add_explicit(&run->engine->arrived[m], 1, memory_order_acq_rel) + 1 ==
        merge->n_slots)
        merge_pair(run, merge, &run->engine->scratch[thread]);
}

static bool prepare_fused(AttnCpu *self, const AttnPlan *plan)
{
    const int64_t slots = plan->counts.partial_slots;
    if (slots > self->cap_slots) {
        int32_t *bigger = realloc(self->merge_of_slot, sizeof *self->merge_of_slot * (size_t)slots);
        if (bigger == NULL)
            return false;
        self->merge_of_slot = bigger;
        self->cap_slots = slots;
    }
    if (plan->n_merges > self->cap_merges) {
        _Atomic int32_t *bigger =
            realloc((void *)self->arrived, sizeof *self->arrived * (size_t)plan->n_merges);
        if (bigger == NULL)
            return false;
        self->arrived = bigger;
        self->cap_merges = plan->n_merges;
    }
    for (int32_t m = 0; m < plan->n_merges; m++) {
        atomic_init(&self->arrived[m], 0);
        for (int32_t i = 0; i < plan->merges[m].n_slots; i++)
            self->merge_of_slot[plan->merges[m].first_slot + i] = m;
    }
    return true;
}

AttnStatus attn_cpu_run(AttnCpu *self, const AttnShape *shape, const AttnPool *pool,
                        const AttnBatch *batch, const AttnPlan *plan, AttnPartials *partials)
{
    if (attn_shape_check(shape) != ATTN_OK)
        return ATTN_UNSUPPORTED_SHAPE;
    if (plan->counts.partial_slots > 0 &&
        (partials == NULL || partials->slots < plan->counts.partial_slots))
        return ATTN_CAPACITY;
    Run run = {self, shape, pool, batch, plan, partials, 0};
    for (int32_t i = 0; i < plan->n_launches; i++) {
        const AttnLaunch *l = &plan->launches[i];
        run.first = l->first;
        if (l->kind == ATTN_LAUNCH_FUSED && !prepare_fused(self, plan))
            return ATTN_NO_MEMORY;
        cpu_pool_run(self->pool,
                     l->kind == ATTN_LAUNCH_MERGE   ? item_merge
                     : l->kind == ATTN_LAUNCH_FUSED ? item_fused
                                                    : item_attention,
                     &run, l->count);
    }
    return ATTN_OK;
}

typedef struct Referring {
    const AttnShape *shape;
    const AttnPool *pool;
    const AttnBatch *batch;
    double *ret;
    _Atomic int failed;
} Referring;

/* A row and KV head each: a batch of one long row keeps all threads busy too. */
static void item_reference(void *context, int64_t i, int thread)
{
    (void)thread;
    Referring *r = context;
    const int32_t heads = r->shape->kv_heads;
    double *to = r->ret + i * attn_group(r->shape) * r->shape->head_dim;
    if (attn_reference_group(r->shape, r->pool, r->batch, (int32_t)(i / heads),
                             (int32_t)(i % heads), to) != ATTN_OK)
        r->failed = 1;
}

AttnStatus attn_cpu_reference(AttnCpu *self, const AttnShape *shape, const AttnPool *pool,
                              const AttnBatch *batch, double *ret)
{
    Referring r = {.shape = shape, .pool = pool, .batch = batch, .ret = ret};
    cpu_pool_run(self->pool, item_reference, &r, (int64_t)batch->rows * shape->kv_heads);
    return r.failed ? ATTN_NO_MEMORY : ATTN_OK;
}

typedef struct Filling {
    const AttnShape *shape;
    const AttnPool *pool;
    uint64_t seed;
    const int32_t *pages;
} Filling;

static void item_fill(void *context, int64_t i, int thread)
{
    (void)thread;
    const Filling *f = context;
    attn_fill_page(f->shape, f->pool, f->seed, f->pages[i]);
}

void attn_cpu_fill_pages(AttnCpu *self, const AttnShape *shape, const AttnPool *pool, uint64_t seed,
                         const int32_t *pages, int64_t n)
{
    Filling f = {shape, pool, seed, pages};
    cpu_pool_run(self->pool, item_fill, &f, n);
}

typedef struct Reading {
    const TileOps *ops;
    const char *data;
    int64_t bytes, part;
    _Atomic uint32_t sum;
} Reading;

static void item_read(void *context, int64_t i, int thread)
{
    (void)thread;
    Reading *r = context;
    const int64_t at = i * r->part;
    const int64_t n = at + r->part < r->bytes ? r->part : r->bytes - at;
    r->sum ^= r->ops->read(r->data + at, n);
}

void attn_cpu_advise(void *data, int64_t bytes)
{
    const uintptr_t huge = 2 << 20, begin = ((uintptr_t)data + huge - 1) / huge * huge,
                    end = ((uintptr_t)data + (uintptr_t)bytes) / huge * huge;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double attn_cpu_read_rate(AttnCpu *self, const void *data, int64_t bytes, int repeats)
{
    Reading r = {.ops = self->ops, .data = data, .bytes = bytes / 1024 * 1024, .part = 1 << 20};
    double best = 0;
    for (int i = 0; i < repeats; i++) {
        const double from = seconds_now();
        cpu_pool_run(self->pool, item_read, &r, (r.bytes + r.part - 1) / r.part);
        const double rate = (double)r.bytes / (seconds_now() - from);
        best = rate > best ? rate : best;
    }
    /* The sum is used so that the reads cannot be left out. */
    return best + (atomic_load(&r.sum) == 0x5eed5eedu ? 1e-9 : 0);
}
