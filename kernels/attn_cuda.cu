/* Host side: choice of launch numbers from the device's limits, workspace, upload and launches. */
#include "kernels/attn_cuda.h"
#include "kernels/attn_launch.cuh"
#include "kernels/attn_tasks.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace kv;

static const void *stream_kernel(const AttnShape &shape)
{
    typedef const void *(*Instance)(bool wide);
    static const Instance table[3][2] = {{stream_d64_f16, stream_d64_bf16},
                                         {stream_d128_f16, stream_d128_bf16},
                                         {stream_d256_f16, stream_d256_bf16}};
    const int d = shape.head_dim == 64 ? 0 : shape.head_dim == 128 ? 1 : 2;
    return table[d][shape.dtype == ATTN_BF16](attn_group(&shape) > 8);
}

/* Task lists and `persistent` each have two settings: narrow CTAs, two or more an SM, which hide
 * one another's starts and ends where pieces are short or many; and wide ones, one an SM, whose
 * merges have half as many states. */
enum { PERSISTENT = 0, TASKS = 1, PERSISTENT_WIDE = 2, TASKS_WIDE = 3, MODES = 4 };

struct AttnCuda {
    AttnCudaConfig config;
    int sms, smem_block, smem_sm, regs_sm;
    const void *stream_fn, *merge_fn;
    AttnCudaTuning tuning[MODES];
    int smem[MODES];
    float *slots[2]; /* persistent, tasks */
    int64_t n_slots[2];
    uint32_t *arrivals;                /* [n_slots[TASKS]] */
    char *upload_host, *upload_device; /* StreamTask[max_tasks], AttnMerge[max_merges] */
    int64_t max_merges;
    cudaEvent_t uploaded;
    int64_t bytes;
};

static AttnStatus fail(AttnCudaError *error, AttnStatus status, const char *what, const char *why)
{
    if (error != NULL)
        snprintf(error->text, sizeof error->text, "%s: %s", what, why);
    return status;
}

static AttnStatus check(cudaError_t e, AttnCudaError *error, const char *what)
{
    if (e == cudaSuccess)
        return ATTN_OK;
    cudaGetLastError();
    return fail(error, e == cudaErrorMemoryAllocation ? ATTN_NO_MEMORY : ATTN_LAUNCH_FAILED, what,
                cudaGetErrorString(e));
}

#define TRY(call, what)                                                                            \
    do {                                                                                           \
        AttnStatus try_status = check((call), error, (what));                                      \
        if (try_status != ATTN_OK)                                                                 \
            return try_status;                                                                     \
    } while (0)

static int64_t floats_of_slot(const AttnCuda *self)
{
    return slot_floats(attn_group(&self->config.shape), self->config.shape.head_dim);
}

static bool is_persistent(int mode)
{
    return mode == PERSISTENT || mode == PERSISTENT_WIDE;
}

static int smem_need(const AttnCuda *self, int mode, const AttnCudaTuning *t)
{
    const int d = self->config.shape.head_dim, group = attn_group(&self->config.shape);
    const int rows = is_persistent(mode) ? self->config.max_rows : 0;
    return t->warps * t->stages * 64 * d + merge_bytes(group, d, t->warps, t->buffers) +
           plan_bytes(rows);
}

static bool fits(const AttnCuda *self, int mode, const AttnCudaTuning *t)
{
    const int need = smem_need(self, mode, t);
    return need <= self->smem_block && t->ctas_per_sm * (need + 1024) <= self->smem_sm;
}

/* Candidates from best to least: bytes on their way matter most (a Hopper SM wants 64 KB or more,
 * an SM of sm_86 at 13 GB/s has plenty with 16), then few and wide CTAs, whose merges are short. By
 * mode; the last are of both in wide CTAs. */
enum { CANDIDATES = 12 };
static const AttnCudaTuning candidates[3][CANDIDATES] = {
    {{4, 4, 2, 1},
     {4, 3, 2, 1},
     {4, 2, 2, 2},
     {4, 2, 2, 1},
     {8, 2, 1, 2},
     {8, 2, 1, 1},
     {4, 2, 1, 2},
     {4, 2, 1, 1},
     {2, 2, 1, 2},
     {2, 2, 1, 1},
     {1, 2, 1, 1},
     {1, 2, 1, 1}},
    {{4, 4, 2, 1},
     {4, 3, 2, 1},
     {4, 2, 2, 1},
     {4, 4, 1, 1},
     {4, 3, 1, 1},
     {4, 2, 1, 1},
     {2, 3, 1, 1},
     {2, 2, 1, 1},
     {1, 4, 1, 1},
     {1, 3, 1, 1},
     {1, 2, 1, 1},
     {1, 2, 1, 1}},
    {{8, 4, 1, 2},
     {8, 3, 1, 2},
     {8, 2, 1, 2},
     {8, 2, 1, 1},
     {4, 4, 1, 2},
     {4, 3, 1, 2},
     {4, 2, 1, 2},
     {4, 2, 1, 1},
     {2, 2, 1, 2},
     {2, 2, 1, 1},
     {1, 2, 1, 1},
     {1, 2, 1, 1}},
};
/* Before the wide ones where entries have 128 bytes and tiles are half as large: more warps. The
 * first for task lists alone. */
static const AttnCudaTuning many_warps[2] = {{12, 3, 1, 2}, {12, 2, 1, 2}};

/* How many of many_warps are tried. */
static int before_wide(const AttnCuda *self, int mode)
{
    if (self->config.shape.head_dim != 64)
        return 0;
    return mode == TASKS_WIDE ? 2 : mode == PERSISTENT_WIDE ? 1 : 0;
}

static AttnCudaTuning candidate(const AttnCuda *self, int mode, int i)
{
    const int before = before_wide(self, mode);
    if (i < before)
        return many_warps[2 - before + i];
    return candidates[mode < PERSISTENT_WIDE ? mode : PERSISTENT_WIDE][i - before];
}

/* With what was asked for in place of the candidate's. */
static AttnCudaTuning as_asked(const AttnCuda *self, int mode, AttnCudaTuning t,
                               const AttnCudaTuning *asked)
{
    if (asked->warps)
        t.warps = asked->warps;
    if (asked->stages)
        t.stages = asked->stages;
    if (asked->ctas_per_sm)
        t.ctas_per_sm = asked->ctas_per_sm;
    if (asked->buffers)
        t.buffers = asked->buffers;
    if (self->config.sms)
        t.ctas_per_sm = 1;
    t.rounds = asked->rounds ? asked->rounds : mode == TASKS ? -1 : 4;
    return t;
}

static void choose(AttnCuda *self, int mode, const AttnCudaTuning *asked)
{
    const bool d64 = self->config.shape.head_dim == 64, given = asked->warps && asked->stages;
    const int tile = 64 * self->config.shape.head_dim;
    const int most = 131072; /* more bytes in flight buy nothing */
    AttnCudaTuning best = {1, 2, 1, 1, -1};
    for (int i = 0; i < before_wide(self, mode) + CANDIDATES; ++i) {
        const AttnCudaTuning t = as_asked(self, mode, candidate(self, mode, i), asked);
        const int ring = t.warps * t.stages * tile * t.ctas_per_sm;
        if (!fits(self, mode, &t) || (!given && ring > (d64 ? 2 * most : most * 3 / 2)) ||
            (!given && t.ctas_per_sm == 1 && ring > (d64 ? most * 9 / 8 : most)))
            continue;
        best = t;
        break;
    }
    self->tuning[mode] = best;
    self->smem[mode] = smem_need(self, mode, &best);
    if (self->config.sms && self->smem[mode] <= self->smem_sm / 2)
        self->smem[mode] = self->smem_sm / 2 + 1024; /* one CTA an SM */
}

static AttnStatus allocate(AttnCuda *self, void **ret, int64_t bytes, AttnCudaError *error)
{
    char what[64];
    snprintf(what, sizeof what, "workspace of %lld bytes", (long long)bytes);
    TRY(cudaMalloc(ret, bytes > 0 ? bytes : 16), what);
    self->bytes += bytes;
    return ATTN_OK;
}

static AttnStatus read_device(AttnCuda *self, AttnCudaError *error)
{
    const int dev = self->config.device;
    TRY(cudaSetDevice(dev), "device");
    TRY(cudaDeviceGetAttribute(&self->sms, cudaDevAttrMultiProcessorCount, dev), "device");
    TRY(cudaDeviceGetAttribute(&self->smem_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, dev),
        "device");
    TRY(cudaDeviceGetAttribute(&self->smem_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, dev),
        "device");
    if (self->config.sms > 0 && self->config.sms < self->sms)
        self->sms = self->config.sms;
    return ATTN_OK;
}

static AttnStatus allocate_all(AttnCuda *self, AttnCudaError *error)
{
    const AttnCudaConfig *c = &self->config;
    const int64_t slot = 4 * floats_of_slot(self);
    const int most =
        self->tuning[PERSISTENT].ctas_per_sm > self->tuning[PERSISTENT_WIDE].ctas_per_sm
            ? self->tuning[PERSISTENT].ctas_per_sm
            : self->tuning[PERSISTENT_WIDE].ctas_per_sm;
    self->n_slots[PERSISTENT] = 2 * (int64_t)self->sms * most;
    self->n_slots[TASKS] = c->max_slots;
    self->max_merges = c->max_tasks ? (int64_t)c->max_rows * c->shape.kv_heads : 0;
    for (int mode = 0; mode < 2; ++mode) {
        AttnStatus s =
            allocate(self, (void **)&self->slots[mode], slot * self->n_slots[mode], error);
        if (s != ATTN_OK)
            return s;
    }
    AttnStatus s = allocate(self, (void **)&self->arrivals, 4 * self->n_slots[TASKS], error);
    if (s != ATTN_OK)
        return s;
    const int64_t upload = c->max_tasks * sizeof(StreamTask) + self->max_merges * sizeof(AttnMerge);
    if ((s = allocate(self, (void **)&self->upload_device, upload, error)) != ATTN_OK)
        return s;
    TRY(cudaMallocHost((void **)&self->upload_host, upload > 0 ? upload : 16), "pinned memory");
    TRY(cudaEventCreateWithFlags(&self->uploaded, cudaEventDisableTiming), "event");
    return attn_cuda_reset(self, error);
}

static AttnStatus setup(AttnCuda *self, AttnCudaError *error)
{
    AttnCudaConfig *c = &self->config;
    if (attn_shape_check(&c->shape) != ATTN_OK)
        return fail(error, ATTN_UNSUPPORTED_SHAPE, "shape", "not one of the supported ones");
    AttnStatus s = read_device(self, error);
    if (s != ATTN_OK)
        return s;
    self->stream_fn = stream_kernel(c->shape);
    self->merge_fn = merge_kernel(c->shape);
    choose(self, PERSISTENT, &c->persistent);
    choose(self, TASKS, &c->tasks);
    choose(self, PERSISTENT_WIDE, &c->persistent);
    choose(self, TASKS_WIDE, &c->tasks);
    int smem = 0;
    for (int mode = 0; mode < MODES; ++mode)
        smem = self->smem[mode] > smem ? self->smem[mode] : smem;
    if (smem > self->smem_block) {
        char why[128];
        snprintf(why, sizeof why, "%d bytes needed for %d rows, the device allows %d a block", smem,
                 c->max_rows, self->smem_block);
        return fail(error, ATTN_CAPACITY, "shared memory", why);
    }
    TRY(cudaFuncSetAttribute(self->stream_fn, cudaFuncAttributeMaxDynamicSharedMemorySize, smem),
        "kernel image for this device");
    return allocate_all(self, error);
}

AttnStatus attn_cuda_new(AttnCuda **ret, const AttnCudaConfig *config, AttnCudaError *error)
{
    AttnCuda *self = (AttnCuda *)calloc(1, sizeof *self);
    if (self == NULL)
        return fail(error, ATTN_NO_MEMORY, "host memory", "none left");
    self->config = *config;
    AttnStatus s = setup(self, error);
    if (s != ATTN_OK) {
        attn_cuda_free(self);
        return s;
    }
    *ret = self;
    return ATTN_OK;
}

void attn_cuda_free(AttnCuda *self)
{
    if (self == NULL)
        return;
    cudaFree(self->slots[0]);
    cudaFree(self->slots[1]);
    cudaFree(self->arrivals);
    cudaFree(self->upload_device);
    cudaFreeHost(self->upload_host);
    if (self->uploaded != NULL)
        cudaEventDestroy(self->uploaded);
    cudaGetLastError();
    free(self);
}

AttnStatus attn_cuda_reset(AttnCuda *self, AttnCudaError *error)
{
    const int64_t slot = 4 * floats_of_slot(self);
    for (int mode = 0; mode < 2; ++mode) /* EMPTY */
        TRY(cudaMemset(self->slots[mode], 0xff, slot * self->n_slots[mode]), "reset");
    TRY(cudaMemset(self->arrivals, 0, 4 * self->n_slots[TASKS]), "reset");
    TRY(cudaDeviceSynchronize(), "reset");
    return ATTN_OK;
}

int64_t attn_cuda_slots_left(const AttnCuda *self)
{
    int64_t left = 0;
    for (int mode = 0; mode < 2; ++mode) {
        const int64_t n = self->n_slots[mode] * floats_of_slot(self);
        uint32_t *words = (uint32_t *)malloc(n > 0 ? 4 * n : 1);
        if (words == NULL ||
            cudaMemcpy(words, self->slots[mode], 4 * n, cudaMemcpyDeviceToHost) != cudaSuccess) {
            free(words);
            return -1;
        }
        for (int64_t i = 0; i < n; ++i)
            left += words[i] != EMPTY;
        free(words);
    }
    return left;
}

static int mode_of(AttnRoute route)
{
    return route == ATTN_PERSISTENT ? PERSISTENT : TASKS;
}

int32_t attn_cuda_workers(const AttnCuda *self, AttnRoute route)
{
    return self->sms * self->tuning[mode_of(route)].ctas_per_sm;
}

/* `persistent`: wide CTAs pay from 256 KB of K and V a (row, KV head) on, as long as a CTA has less
 * than three of them (with entries of 128 bytes, always: narrow CTAs have too few warps for those).
 */
static bool wide_persistent(const AttnCuda *self, int32_t rows, const int32_t *lens)
{
    const AttnShape *shape = &self->config.shape;
    const int64_t ctas = self->sms * self->tuning[PERSISTENT_WIDE].ctas_per_sm;
    int64_t tokens = 0, full = 0;
    for (int32_t r = 0; r < rows; ++r)
        tokens += lens[r], full += lens[r] > 0;
    return 4 * tokens * shape->head_dim >= 262144 * full &&
           (shape->head_dim == 64 || full * shape->kv_heads < 3 * ctas);
}

void attn_cuda_fit_plan(const AttnCuda *self, AttnPlanConfig *config, int32_t rows,
                        const int32_t *lens)
{
    const AttnShape *shape = &self->config.shape;
    const bool persistent = config->route == ATTN_PERSISTENT;
    const int32_t most =
        self->sms * self->tuning[persistent ? PERSISTENT_WIDE : TASKS_WIDE].ctas_per_sm;
    config->workers = most;
    const bool wide = persistent ? wide_persistent(self, rows, lens)
                                 : attn_plan_evenness(config, shape, rows, lens) >= 0.95;
    if (!wide)
        config->workers = self->sms * self->tuning[persistent ? PERSISTENT : TASKS].ctas_per_sm;
    config->c0_tiles = (wide ? 18 : 12) * 128 / shape->head_dim;
    if (!persistent)
        return;
    /* No more CTAs than parts. Which SMs are idle then matters: GPCs share bandwidth alike however
     * many SMs they have, and a launch of fewer CTAs than SMs leaves idle those of the largest
     * GPCs, where CTAs that find nothing to do are anywhere. */
    int64_t parts;
    attn_plan_persistent_part(config, shape, rows, lens, &parts);
    if (parts > (wide ? 0 : most)) /* of as many as these, CTAs are narrow */
        config->workers = (int32_t)parts;
}

AttnCudaTuning attn_cuda_tuning(const AttnCuda *self, AttnRoute route, int32_t workers)
{
    const int wide = mode_of(route) == PERSISTENT ? PERSISTENT_WIDE : TASKS_WIDE;
    return self
        ->tuning[workers <= self->sms * self->tuning[wide].ctas_per_sm ? wide : mode_of(route)];
}

int64_t attn_cuda_workspace_bytes(const AttnCuda *self)
{
    return self->bytes;
}

AttnStatus attn_cuda_upload(AttnCuda *self, const AttnPlan *plan, void *stream, int64_t *ret_bytes,
                            AttnCudaError *error)
{
    if (ret_bytes != NULL)
        *ret_bytes = 0;
    if (plan->config.route == ATTN_PERSISTENT || plan->n_tasks == 0)
        return ATTN_OK;
    if (plan->n_tasks > self->config.max_tasks || plan->n_merges > self->max_merges ||
        plan->counts.partial_slots > self->n_slots[TASKS])
        return fail(error, ATTN_CAPACITY, "plan", "more tasks or slots than were set up");
    TRY(cudaEventSynchronize(self->uploaded), "upload");
    /* A fused merge reads its tasks only. */
    const int64_t tasks = plan->n_tasks * sizeof(StreamTask),
                  merges = plan->counts.merge_launches ? plan->n_merges * sizeof(AttnMerge) : 0;
    fill_tasks(plan, (StreamTask *)self->upload_host);
    if (merges > 0)
        memcpy(self->upload_host + tasks, plan->merges, merges);
    TRY(cudaMemcpyAsync(self->upload_device, self->upload_host, tasks + merges,
                        cudaMemcpyHostToDevice, (cudaStream_t)stream),
        "upload");
    TRY(cudaEventRecord(self->uploaded, (cudaStream_t)stream), "upload");
    if (ret_bytes != NULL)
        *ret_bytes = tasks + merges;
    return ATTN_OK;
}

static StreamArgs stream_args(const AttnCuda *self, int mode, const AttnPool *pool,
                              const AttnBatch *batch, const AttnPlan *plan)
{
    const AttnCudaConfig *c = &self->config;
    StreamArgs a = {};
    a.k = (const char *)pool->k, a.v = (const char *)pool->v;
    a.page_bytes = 2 * pool->page_stride;
    a.head_bytes = 2 * pool->head_stride, a.token_bytes = 2 * pool->token_stride;
    while (1 << a.page_shift < c->shape.page_size)
        ++a.page_shift;
    a.rows = batch->rows, a.kv_heads = c->shape.kv_heads, a.group = attn_group(&c->shape);
    a.lens = batch->lens, a.table = batch->table, a.offset = batch->offset;
    a.q = batch->q, a.out = batch->out;
    /* A large table is read in places: asking for all of it early would cost more than it saves. */
    const int64_t lines = (batch->table_len + 31) / 32;
    const int64_t q_bytes = 2 * (int64_t)a.rows * c->shape.q_heads * c->shape.head_dim;
    a.table_lines = lines <= 4096 ? (int)lines : 0;
    a.q_lines = (int)((q_bytes + 127) / 128);
    a.scale_log2 = batch->scale * 1.44269504088896341f;
    a.slots = self->slots[is_persistent(mode) ? PERSISTENT : TASKS];
    a.readers = MAX_READERS;
    plan_args(a, plan->config);
    a.stages = self->tuning[mode].stages, a.buffers = self->tuning[mode].buffers;
    a.rounds = self->tuning[mode].rounds;
    a.delay_seed = c->delay_seed;
    return a;
}

static AttnStatus launch(const void *fn, int grid, int threads, int smem, void *args, void *stream,
                         AttnCudaError *error)
{
    void *list[] = {args};
    TRY(cudaLaunchKernel(fn, dim3(grid), dim3(threads), list, smem, (cudaStream_t)stream),
        "launch");
    return ATTN_OK;
}

static AttnStatus run_persistent(AttnCuda *self, const AttnPool *pool, const AttnBatch *batch,
                                 const AttnPlan *plan, void *stream, AttnCudaError *error)
{
    const int workers = plan->config.workers;
    const int mode = workers <= self->sms * self->tuning[PERSISTENT_WIDE].ctas_per_sm
                         ? PERSISTENT_WIDE
                         : PERSISTENT;
    if (workers > self->sms * self->tuning[mode].ctas_per_sm || plan->config.tile != TILE)
        return fail(error, ATTN_CAPACITY, "plan", "more workers than fit, or not tiles of 16");
    StreamArgs a = stream_args(self, mode, pool, batch, plan);
    return launch(self->stream_fn, workers, 32 * self->tuning[mode].warps, self->smem[mode], &a,
                  stream, error);
}

static AttnStatus run_list(AttnCuda *self, const AttnPool *pool, const AttnBatch *batch,
                           const AttnPlan *plan, void *stream, AttnCudaError *error)
{
    StreamArgs narrow = stream_args(self, TASKS, pool, batch, plan),
               wide = stream_args(self, TASKS_WIDE, pool, batch, plan);
    const StreamTask *tasks = (const StreamTask *)self->upload_device;
    MergeArgs m = {wide.slots, NULL, batch->out, wide.kv_heads, wide.group};
    const AttnMerge *merges = (const AttnMerge *)(tasks + plan->n_tasks);
    for (int i = 0; i < plan->n_launches; ++i) {
        const AttnLaunch *l = &plan->launches[i];
        AttnStatus s;
        if (l->kind == ATTN_LAUNCH_MERGE) {
            m.merges = merges + l->first;
            s = launch(self->merge_fn, l->count, 128, 0, &m, stream, error);
        } else {
            const int mode =
                l->count <= self->sms * self->tuning[TASKS_WIDE].ctas_per_sm ? TASKS_WIDE : TASKS;
            StreamArgs *a = mode == TASKS ? &narrow : &wide;
            a->tasks = tasks + l->first, a->n_tasks = l->count;
            if (l->count > self->sms * self->tuning[mode].ctas_per_sm)
                a->readers = 1, a->arrivals = self->arrivals;
            const int limit = self->config.sms ? self->sms : l->count;
            s = launch(self->stream_fn, l->count < limit ? l->count : limit,
                       32 * self->tuning[mode].warps, self->smem[mode], a, stream, error);
        }
        if (s != ATTN_OK)
            return s;
    }
    return ATTN_OK;
}

AttnStatus attn_cuda_run(AttnCuda *self, const AttnPool *pool, const AttnBatch *batch,
                         const AttnPlan *plan, void *stream, AttnCudaError *error)
{
    if (batch->rows == 0)
        return ATTN_OK;
    if (batch->rows > self->config.max_rows)
        return fail(error, ATTN_CAPACITY, "batch", "more rows than were set up");
    return plan->config.route == ATTN_PERSISTENT
               ? run_persistent(self, pool, batch, plan, stream, error)
               : run_list(self, pool, batch, plan, stream, error);
}
