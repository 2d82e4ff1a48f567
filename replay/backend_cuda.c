/* Backend `cuda`: every step on a real GPU.
 *
 * K and V of each layer lie in device memory, filled once from the content hash; block tables stay
 * on the device and take deltas; a step's queries are made there. A run of a route: outputs
 * poisoned, L2 emptied by reading a buffer twice its size, then (a) wall: task list uploaded,
 * launches of all layers, synchronised, on the host's clock; (b) kernel: the same launches again,
 * behind a spinning kernel so that the host is ahead, between two events (or one captured graph).
 * plan_us is what was uploaded before the launches: the step's deltas and the route's task list.
 * A caller that takes other pages for each run asks for (a) and (b) one at a time, with nothing
 * emptied in between, and may have the launches come from a graph that was captured once
 * (RUN_GRAPH). Checks compare outputs with the fp64 reference, for which the host makes the step's
 * pages again by the formula.
 *
 * The device is made current in the calling thread at every entry: several backends, on one device
 * or on several, may live in one thread or in one thread each.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <nvtx3/nvToolsExt.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "kernels/attn_device.h"
#include "kernels/cpu_engine.h"
#include "replay/backend.h"
#include "replay/cuda_rates.h"
#include "replay/cuda_table.h"
#include "replay/cuda_try.h"
#include "replay/peer_route.h"
#include "replay/pool_room.h"

typedef struct Captured { /* a graph of one route's launches, and what it was captured for */
    cudaGraphExec_t exec;
    AttnBatch batch;
    AttnPlanConfig plan;
    guint engine;    /* our own, or the peer's: its number in order of setting up */
    guint32 longest; /* peers' grids may follow from it */
} Captured;

typedef struct CudaBackend {
    Backend base;
    BackendConfig config;
    struct cudaDeviceProp device;
    char driver[64];
    gint64 memory_free; /* before anything was taken */
    AttnPool *pool;     /* [layers] */
    AttnCuda *cuda;
    guint engines;                         /* how many it was before */
    gint64 max_rows, max_tasks, max_slots; /* of `cuda` */
    CudaTable *table;
    PeerRoutes *peers;
    gint64 step_number;   /* of begin_step() calls, 1 .. */
    GHashTable *tables;   /* peer's label -> step_number that its tables are of */
    GHashTable *captured; /* "label workers" -> Captured * */
    void *q, *out, *flush;
    gint64 q_bytes, flush_bytes;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    gboolean prepared, have_reference;
    double step_us; /* the step's uploads */
    AttnBatch batch;
    AttnCpu *engine; /* reference; made when first needed */
    AttnPool host;   /* pages made as checked steps touch them */
    guint8 *filled;
    GArray *check_rows;         /* gint32: which the reference is of */
    GArray *want;               /* double, of those rows */
    GByteArray *got, *gathered; /* all outputs; those of check_rows */
    char refusal[256];
} CudaBackend;

/* Every entry's first call: CUDA keeps the current device by thread. */
static void make_current(const CudaBackend *self)
{
    cudaSetDevice(self->config.device);
}

/* --- life --- */

static void host_free(CudaBackend *self)
{
    const gsize bytes = (gsize)attn_pool_bytes(&self->config.shape, self->host.pages);
    if (self->host.k != NULL)
        munmap(self->host.k, bytes);
    if (self->host.v != NULL)
        munmap(self->host.v, bytes);
    g_free(self->filled);
    attn_cpu_free(self->engine);
}

static void captured_free(gpointer data)
{
    Captured *captured = data;
    if (captured->exec != NULL)
        cudaGraphExecDestroy(captured->exec);
    g_free(captured);
}

static void backend_cuda_free(Backend *base)
{
    CudaBackend *self = (CudaBackend *)base;
    make_current(self);
    cudaDeviceSynchronize();
    g_hash_table_unref(self->captured);
    peer_routes_free(self->peers);
    g_hash_table_unref(self->tables);
    attn_cuda_free(self->cuda);
    cuda_table_free(self->table);
    for (gint l = 0; self->pool != NULL && l < self->config.layers; l++) {
        cudaFree(self->pool[l].k);
        cudaFree(self->pool[l].v);
    }
    g_free(self->pool);
    cudaFree(self->q);
    cudaFree(self->out);
    cudaFree(self->flush);
    if (self->begin != NULL)
        cudaEventDestroy(self->begin);
    if (self->end != NULL)
        cudaEventDestroy(self->end);
    if (self->stream != NULL)
        cudaStreamDestroy(self->stream);
    cudaGetLastError();
    host_free(self);
    g_clear_pointer(&self->check_rows, g_array_unref);
    g_array_unref(self->want);
    g_byte_array_unref(self->got);
    g_byte_array_unref(self->gathered);
    g_free(self);
}

static void read_driver(char *to, gsize size)
{
    g_autofree char *text = NULL;
    int version = 0;
    cudaDriverGetVersion(&version);
    g_snprintf(to, size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    if (!g_file_get_contents("/proc/driver/nvidia/version", &text, NULL, NULL))
        return;
    g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);
    for (guint i = 0; words[i] != NULL; i++)
        if (g_ascii_isdigit(words[i][0]) && strchr(words[i], '.') != NULL) {
            g_strlcpy(to, words[i], size);
            return;
        }
}

static gboolean open_device(CudaBackend *self, GError **error)
{
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        cudaGetLastError();
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "no CUDA device: %s",
                    e != cudaSuccess ? cudaGetErrorString(e) : "the driver lists none");
        return FALSE;
    }
    if (self->config.device >= n) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "device %d: this machine has %d",
                    self->config.device, n);
        return FALSE;
    }
    size_t left = 0, all = 0;
    TRY_CUDA(cudaSetDevice(self->config.device), "device");
    TRY_CUDA(cudaGetDeviceProperties(&self->device, self->config.device), "device");
    TRY_CUDA(cudaMemGetInfo(&left, &all), "memory");
    self->memory_free = (gint64)left;
    read_driver(self->driver, sizeof self->driver);
    TRY_CUDA(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking), "stream");
    TRY_CUDA(cudaEventCreate(&self->begin), "event");
    TRY_CUDA(cudaEventCreate(&self->end), "event");
    return TRUE;
}

static gboolean check_room(CudaBackend *self, GError **error)
{
    const PoolRoom room = {
        .device = self->device.name,
        .pages = self->config.pool_pages,
        .page_bytes = 2 * attn_pool_bytes(&self->config.shape, 1),
        .layers = self->config.layers,
        .reserve = self->flush_bytes + (256 << 20),
        .free = self->memory_free,
    };
    return pool_room_check(&room, error);
}

static gboolean make_pools(CudaBackend *self, GError **error)
{
    const BackendConfig *c = &self->config;
    const gsize bytes = (gsize)attn_pool_bytes(&c->shape, MAX(c->pool_pages, 1));
    self->pool = g_new0(AttnPool, c->layers);
    for (gint l = 0; l < c->layers; l++) {
        AttnPool *pool = &self->pool[l];
        attn_pool_strides(pool, &c->shape);
        pool->pages = c->pool_pages;
        TRY_CUDA(cudaMalloc(&pool->k, bytes), "K pool");
        TRY_CUDA(cudaMalloc(&pool->v, bytes), "V pool");
        TRY_ATTN(attn_device_fill(&c->shape, pool, c->seed, self->stream, &attn_error));
    }
    TRY_CUDA(cudaMalloc(&self->flush, (gsize)self->flush_bytes), "L2 buffer");
    TRY_CUDA(cudaMemset(self->flush, 0x5a, (gsize)self->flush_bytes), "L2 buffer");
    TRY_CUDA(cudaStreamSynchronize(self->stream), "filling the pool");
    return TRUE;
}

/* Engine and outputs for batches and plans of this size; kept while they suffice. */
static gboolean make_room(CudaBackend *self, gint64 rows, gint64 tasks, gint64 slots,
                          GError **error)
{
    const AttnShape *shape = &self->config.shape;
    if (self->cuda != NULL && rows <= self->max_rows && tasks <= self->max_tasks &&
        slots <= self->max_slots)
        return TRUE;
    if (self->cuda != NULL) {
        self->max_rows = MAX(self->max_rows, rows > self->max_rows ? 2 * rows : 0);
        self->max_tasks = MAX(self->max_tasks, 2 * tasks);
        self->max_slots = MAX(self->max_slots, 2 * slots);
    }
    TRY_CUDA(cudaStreamSynchronize(self->stream), "waiting");
    g_clear_pointer(&self->cuda, attn_cuda_free);
    const AttnCudaConfig c = {
        .shape = *shape,
        .device = self->config.device,
        .max_rows = (int32_t)self->max_rows,
        .max_tasks = self->max_tasks,
        .max_slots = self->max_slots,
        .sms = self->config.sms,
    };
    TRY_ATTN(attn_cuda_new(&self->cuda, &c, &attn_error));
    self->engines++;
    const gint64 bytes = 2 * self->max_rows * shape->q_heads * shape->head_dim;
    if (bytes <= self->q_bytes)
        return TRUE;
    cudaFree(self->q);
    cudaFree(self->out);
    self->q = self->out = NULL;
    TRY_CUDA(cudaMalloc(&self->q, (gsize)bytes), "queries");
    TRY_CUDA(cudaMalloc(&self->out, (gsize)bytes), "outputs");
    self->q_bytes = bytes;
    return TRUE;
}

static Backend *backend_cuda_create(const BackendConfig *config, GError **error)
{
    CudaBackend *self = g_new0(CudaBackend, 1);
    self->base.ops = &backend_cuda;
    self->config = *config;
    self->config.layers = MAX(config->layers, 1);
    self->want = g_array_new(FALSE, FALSE, sizeof(double));
    self->got = g_byte_array_new();
    self->gathered = g_byte_array_new();
    self->captured = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, captured_free);
    self->table = cuda_table_new(&table_memory_cuda);
    self->tables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->max_rows = 256;
    self->max_tasks = 1 << 15;
    self->max_slots = 1 << 13;
    if (!open_device(self, error))
        goto failed;
    self->flush_bytes = MAX(2 * (gint64)self->device.l2CacheSize, 32 << 20);
    if (!check_room(self, error) || !make_pools(self, error) || !make_room(self, 0, 0, 0, error))
        goto failed;
    self->peers = peer_routes_new(&self->config.shape, self->pool, self->config.layers,
                                  self->config.device, self->config.graphs);
    return &self->base;
failed:
    backend_cuda_free(&self->base);
    return NULL;
}

static gint backend_cuda_devices(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return n;
}

static gboolean backend_cuda_available(const BackendConfig *config, char **ret_why)
{
    struct cudaDeviceProp p;
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n <= config->device ||
        cudaGetDeviceProperties(&p, config->device) != cudaSuccess) {
        *ret_why = g_strdup_printf("no CUDA device: %s", e != cudaSuccess ? cudaGetErrorString(e)
                                                                          : "none of that number");
        cudaGetLastError();
        return FALSE;
    }
    *ret_why = g_strdup_printf("%s, %d SMs, %.1f GiB", p.name, p.multiProcessorCount,
                               (double)p.totalGlobalMem / (1 << 30));
    return TRUE;
}

/* Peers keep some work space of their own, 0.4 GB the largest. */
static gint64 backend_cuda_memory(const BackendConfig *config)
{
    size_t left = 0, all = 0;
    if (cudaSetDevice(config->device) != cudaSuccess || cudaMemGetInfo(&left, &all) != cudaSuccess)
        return 0;
    return MAX((gint64)left - ((gint64)3 << 30), 0);
}

static gint backend_cuda_workers(Backend *base)
{
    return attn_cuda_workers(((CudaBackend *)base)->cuda, ATTN_PERSISTENT);
}

static void backend_cuda_fit_plan(Backend *base, const Route *route, AttnPlanConfig *config,
                                  gint32 rows, const gint32 *lens)
{
    attn_cuda_fit_plan(((CudaBackend *)base)->cuda, config, rows, lens);
    if (route->config.c0 > 0)
        config->c0_tiles = (gint32)route->config.c0;
}

/* Event time of one streaming read; negative on failure. */
static double read_once(CudaBackend *self, const void *from, gint64 bytes)
{
    AttnCudaError e;
    float ms = -1;
    if (attn_device_spin(30000, self->stream, &e) != ATTN_OK ||
        cudaEventRecord(self->begin, self->stream) != cudaSuccess ||
        attn_device_read(from, bytes, self->flush, self->device.multiProcessorCount, self->stream,
                         &e) != ATTN_OK ||
        cudaEventRecord(self->end, self->stream) != cudaSuccess ||
        cudaStreamSynchronize(self->stream) != cudaSuccess ||
        cudaEventElapsedTime(&ms, self->begin, self->end) != cudaSuccess)
        return -1;
    return 1e3 * (double)ms;
}

/* A streaming read of up to 2 GB, the median of seven, less the fixed part of a short one: of the
 * pool, or, where that is smaller and there is room, of memory taken for it. */
static double backend_cuda_read_rate(Backend *base)
{
    CudaBackend *self = (CudaBackend *)base;
    const gint64 want = (gint64)2 << 30;
    const gint64 have = attn_pool_bytes(&self->config.shape, MAX(self->config.pool_pages, 1));
    void *more = NULL;
    if (have < want && self->memory_free > 4 * want &&
        (cudaMalloc(&more, (size_t)want) != cudaSuccess ||
         cudaMemset(more, 0x5a, (size_t)want) != cudaSuccess))
        cudaGetLastError();
    const gint64 bytes = more != NULL ? want : MIN(have, want) / 16 * 16;
    double us[7];
    for (guint i = 0; i < G_N_ELEMENTS(us); i++) {
        us[i] = read_once(self,
                          more != NULL ? more
                          : i % 2      ? self->pool[0].v
                                       : self->pool[0].k,
                          bytes);
        if (us[i] < 0)
            break;
    }
    cudaFree(more);
    sort_doubles(us, G_N_ELEMENTS(us));
    return us[0] < 0 ? 0 : (double)bytes / MAX(us[G_N_ELEMENTS(us) / 2] - 5, 1);
}

static double backend_cuda_empty_wall(Backend *base)
{
    CudaBackend *self = (CudaBackend *)base;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    AttnCudaError e;
    double us[33] = {-1};
    if (cudaStreamBeginCapture(self->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return 0;
    const gboolean queued = attn_device_empty(self->stream, &e) == ATTN_OK;
    if (cudaStreamEndCapture(self->stream, &graph) == cudaSuccess && queued &&
        cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess)
        for (guint i = 0; i < G_N_ELEMENTS(us); i++) {
            const double from = clock_us();
            if (cudaGraphLaunch(exec, self->stream) != cudaSuccess ||
                cudaStreamSynchronize(self->stream) != cudaSuccess) {
                us[0] = -1;
                break;
            }
            us[i] = clock_us() - from;
        }
    if (exec != NULL)
        cudaGraphExecDestroy(exec);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    if (us[0] < 0)
        return 0;
    sort_doubles(us, G_N_ELEMENTS(us));
    return us[G_N_ELEMENTS(us) / 2];
}

static const char *backend_cuda_refuses(Backend *base, const Route *route)
{
    CudaBackend *self = (CudaBackend *)base;
    make_current(self);
    if (route->ops->kind == ROUTE_PEER)
        return peer_routes_refuses(self->peers, route);
    if (route->config.tile % 16 != 0)
        return "tile= must be a multiple of 16 on a GPU";
    if (route->ops->builtin == ATTN_PERSISTENT && route->config.tile != 0 &&
        route->config.tile != 16)
        return "the persistent kernel's tile is 16";
    return NULL;
}

/* --- a step --- */

static gboolean backend_cuda_begin_step(Backend *base, const Step *step, const StepRow *rows,
                                        guint32 n_rows, GError **error)
{
    CudaBackend *self = (CudaBackend *)base;
    self->prepared = self->have_reference = FALSE;
    self->step_number++;
    return cuda_table_step(self->table, step, rows, n_rows, self->config.pool_pages,
                           self->config.shape.page_size, error);
}

/* Deltas and queries of the step last begun. */
static gboolean prepare(CudaBackend *self, GError **error)
{
    if (self->prepared)
        return TRUE;
    const AttnShape *shape = &self->config.shape;
    const gint64 rows = cuda_table_rows(self->table);
    if (!make_room(self, rows, 0, 0, error))
        return FALSE;
    TRY_CUDA(cudaStreamSynchronize(self->stream), "waiting");
    const double from = clock_us();
    if (!cuda_table_flush(self->table, self->stream, error))
        return FALSE;
    TRY_CUDA(cudaStreamSynchronize(self->stream), "block tables");
    self->step_us = clock_us() - from;
    TRY_ATTN(attn_device_queries(shape, self->q, (int32_t)rows, cuda_table_keys(self->table),
                                 self->config.seed, self->stream, &attn_error));
    self->batch = (AttnBatch){
        .rows = (int32_t)rows,
        .lens = cuda_table_lens(self->table),
        .table = cuda_table_ids(self->table),
        .offset = cuda_table_offset(self->table),
        .q = self->q,
        .out = self->out,
        .scale = (float)(1 / sqrt(shape->head_dim)),
        .table_len = cuda_table_ids_room(self->table),
    };
    return self->prepared = TRUE;
}

static gboolean launch_layers(CudaBackend *self, const Route *route, const AttnPlan *plan,
                              GError **error)
{
    for (gint l = 0; l < self->config.layers; l++) {
        if (route->ops->kind == ROUTE_PEER) {
            if (!peer_routes_run(self->peers, route, l, self->batch.q, self->batch.out,
                                 self->batch.scale, self->stream, error))
                return FALSE;
            continue;
        }
        TRY_ATTN(attn_cuda_run(self->cuda, &self->pool[l], &self->batch, plan, self->stream,
                               &attn_error));
    }
    return TRUE;
}

/* A peer's own form of block table: once a step, and not part of any time. */
static gboolean peer_tables(CudaBackend *self, const Route *route, GError **error)
{
    const gpointer done = g_hash_table_lookup(self->tables, route->label);
    if (route->ops->kind != ROUTE_PEER || (gint64)(gintptr)done == self->step_number)
        return TRUE;
    if (!peer_routes_tables(self->peers, route, (gint32)cuda_table_rows(self->table),
                            cuda_table_host_lens(self->table), cuda_table_host_ids(self->table),
                            cuda_table_host_offset(self->table), self->stream, error))
        return FALSE;
    g_hash_table_replace(self->tables, g_strdup(route->label),
                         (gpointer)(gintptr)self->step_number);
    return TRUE;
}

/* The route's own part of planning: its task list, or the peer's plan. */
static gboolean upload(CudaBackend *self, const Route *route, const AttnPlan *plan,
                       gint64 *ret_bytes, GError **error)
{
    if (route->ops->kind == ROUTE_PEER)
        return peer_routes_plan(self->peers, route, self->stream, ret_bytes, error);
    TRY_ATTN(attn_cuda_upload(self->cuda, plan, self->stream, ret_bytes, &attn_error));
    return TRUE;
}

/* NaN in the outputs, and an L2 that holds none of the step. */
static gboolean make_cold(CudaBackend *self, guint what, GError **error)
{
    const AttnShape *shape = &self->config.shape;
    TRY_ATTN(attn_device_poison(self->out,
                                (gint64)self->batch.rows * shape->q_heads * shape->head_dim,
                                self->stream, &attn_error));
    if ((what & RUN_COLD) == 0)
        TRY_ATTN(attn_device_displace(self->flush, self->flush_bytes, self->out,
                                      self->device.multiProcessorCount, self->stream, &attn_error));
    return TRUE;
}

static gboolean run_wall(CudaBackend *self, const Route *route, const AttnPlan *plan, guint what,
                         cudaGraphExec_t graph, Execution *ret, GError **error)
{
    gint64 bytes = 0;
    if (!make_cold(self, what, error))
        return FALSE;
    TRY_CUDA(cudaStreamSynchronize(self->stream), "waiting");
    const double from = clock_us();
    if (!upload(self, route, plan, &bytes, error))
        return FALSE;
    const double planned = clock_us();
    if (graph != NULL)
        TRY_CUDA(cudaGraphLaunch(graph, self->stream), "graph");
    else if (!launch_layers(self, route, plan, error))
        return FALSE;
    TRY_CUDA(cudaStreamSynchronize(self->stream), route->label);
    ret->tables_us = self->step_us;
    ret->wall_us = clock_us() - from + self->step_us;
    ret->plan_us = planned - from + self->step_us;
    ret->upload_bytes = bytes + cuda_table_upload_bytes(self->table);
    ret->copies = (bytes > 0) + cuda_table_copies(self->table);
    return TRUE;
}

static gboolean capture(CudaBackend *self, const Route *route, const AttnPlan *plan,
                        cudaGraph_t *ret, GError **error)
{
    TRY_CUDA(cudaStreamBeginCapture(self->stream, cudaStreamCaptureModeThreadLocal), "capture");
    const gboolean launched = launch_layers(self, route, plan, error);
    const cudaError_t e = cudaStreamEndCapture(self->stream, ret);
    if (!launched)
        return FALSE;
    return cuda_ok(e, "capture", error);
}

static gint64 kernel_nodes(cudaGraph_t graph)
{
    size_t n = 0;
    gint64 kernels = 0;
    if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess)
        return -1;
    g_autofree cudaGraphNode_t *nodes = g_new0(cudaGraphNode_t, n + 1);
    if (cudaGraphGetNodes(graph, nodes, &n) != cudaSuccess)
        return -1;
    for (size_t i = 0; i < n; i++) {
        enum cudaGraphNodeType type;
        kernels +=
            cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
    }
    return kernels;
}

/* --- a graph that is kept --- */

static gboolean backend_cuda_replays(Backend *base, const Route *route)
{
    CudaBackend *self = (CudaBackend *)base;
    if (route->ops->kind == ROUTE_PEER)
        return peer_routes_replays(self->peers, route);
    return route->ops->builtin == ATTN_PERSISTENT; /* planned on the device */
}

/* Rows, pointers and settings are in the captured arguments. */
static gboolean still_fits(const Captured *kept, const Captured *now)
{
    const AttnBatch *a = &kept->batch, *b = &now->batch;
    return a->rows == b->rows && a->lens == b->lens && a->table == b->table &&
           a->offset == b->offset && a->q == b->q && a->out == b->out &&
           a->table_len == b->table_len &&
           memcmp(&kept->plan, &now->plan, sizeof kept->plan) == 0 && kept->engine == now->engine &&
           kept->longest == now->longest;
}

/* *ret = NULL where the route's launches differ from step to step. */
static gboolean captured_graph(CudaBackend *self, const Route *route, const AttnPlan *plan,
                               cudaGraphExec_t *ret, GError **error)
{
    *ret = NULL;
    if (!backend_cuda_replays(&self->base, route))
        return TRUE;
    const gboolean peer = route->ops->kind == ROUTE_PEER;
    Captured now = {.batch = self->batch,
                    .engine = peer ? peer_routes_identity(self->peers, route) : self->engines,
                    .longest = peer ? cuda_table_max_length(self->table) : 0};
    if (plan != NULL)
        now.plan = plan->config;
    /* Grids of other sizes are kept beside one another: a step's may be any of a few. */
    g_autofree char *key =
        g_strdup_printf("%s %d", route->label, plan != NULL ? plan->config.workers : 0);
    const Captured *kept = g_hash_table_lookup(self->captured, key);
    if (kept != NULL && still_fits(kept, &now)) {
        *ret = kept->exec;
        return TRUE;
    }
    cudaGraph_t graph = NULL;
    /* A peer's launches follow from its plan. */
    if ((peer && !peer_routes_plan(self->peers, route, self->stream, NULL, error)) ||
        !capture(self, route, plan, &graph, error))
        return FALSE;
    const gboolean ok = cuda_ok(cudaGraphInstantiate(&now.exec, graph, 0), "graph", error);
    cudaGraphDestroy(graph);
    if (!ok)
        return FALSE;
    *ret = now.exec;
    g_hash_table_replace(self->captured, g_steal_pointer(&key), g_memdup2(&now, sizeof now));
    return TRUE;
}

/* --- kernel time --- */

/* Event time of the launches, or of one graph of them, with the host ahead. */
static gboolean time_kernels(CudaBackend *self, const Route *route, const AttnPlan *plan,
                             guint what, cudaGraphExec_t graph, double *ret_us, GError **error)
{
    const gint launches = (plan != NULL ? plan->counts.launches : 4) * self->config.layers;
    float ms;
    if (!make_cold(self, what, error))
        return FALSE;
    TRY_ATTN(attn_device_spin(MIN(20000 + 6000 * (gint64)launches, 20000000), self->stream,
                              &attn_error));
    TRY_CUDA(cudaEventRecord(self->begin, self->stream), "event");
    if (graph != NULL)
        TRY_CUDA(cudaGraphLaunch(graph, self->stream), "graph");
    else if (!launch_layers(self, route, plan, error))
        return FALSE;
    TRY_CUDA(cudaEventRecord(self->end, self->stream), "event");
    TRY_CUDA(cudaStreamSynchronize(self->stream), route->label);
    TRY_CUDA(cudaEventElapsedTime(&ms, self->begin, self->end), "event");
    *ret_us = 1e3 * (double)ms;
    return TRUE;
}

/* The same launches from a graph made for this run alone: --graphs, --verify-launches. A peer that
 * cannot be captured is launched all the same where no graph was asked for. */
static gboolean time_new_graph(CudaBackend *self, const Route *route, const AttnPlan *plan,
                               guint what, Execution *ret, GError **error)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    const gboolean may_fail = route->ops->kind == ROUTE_PEER && !self->config.graphs;
    gboolean ok = capture(self, route, plan, &graph, may_fail ? NULL : error);
    if (!ok && may_fail)
        return time_kernels(self, route, plan, what, NULL, &ret->kernel_us, error);
    if (ok)
        ret->launches_seen = kernel_nodes(graph) / self->config.layers;
    if (ok && self->config.graphs)
        ok = cuda_ok(cudaGraphInstantiate(&exec, graph, 0), "graph", error);
    ok = ok && time_kernels(self, route, plan, what, exec, &ret->kernel_us, error);
    if (exec != NULL)
        cudaGraphExecDestroy(exec);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    return ok;
}

static gboolean run_kernels(CudaBackend *self, const Route *route, const AttnPlan *plan, guint what,
                            cudaGraphExec_t graph, Execution *ret, GError **error)
{
    if (graph != NULL || (!self->config.graphs && !self->config.verify_launches))
        return time_kernels(self, route, plan, what, graph, &ret->kernel_us, error);
    return time_new_graph(self, route, plan, what, ret, error);
}

/* --- the check --- */

static void *reserve(gsize bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static gboolean open_host(CudaBackend *self, GError **error)
{
    if (self->engine != NULL)
        return TRUE;
    const gsize bytes = (gsize)attn_pool_bytes(&self->config.shape, self->config.pool_pages);
    attn_pool_strides(&self->host, &self->config.shape);
    self->host.pages = self->config.pool_pages;
    self->host.k = reserve(bytes);
    self->host.v = reserve(bytes);
    self->filled = g_malloc0((gsize)self->config.pool_pages);
    self->engine = attn_cpu_new(self->config.threads);
    if (self->engine != NULL && self->host.k != NULL && self->host.v != NULL)
        return TRUE;
    g_set_error_literal(error, KV_ERROR, KV_ERROR_MACHINE,
                        "no threads or address space for the reference");
    return FALSE;
}

/* Pages of row r, made on the host where no earlier check has. */
static void add_pages(CudaBackend *self, gint32 r, GArray *fresh)
{
    const gint32 *ids = cuda_table_host_ids(self->table) + cuda_table_host_offset(self->table)[r];
    const gint32 len = cuda_table_host_lens(self->table)[r];
    for (gint32 p = 0; p * self->config.shape.page_size < len; p++)
        if (!self->filled[ids[p]]) {
            self->filled[ids[p]] = 1;
            g_array_append_val(fresh, ids[p]);
        }
}

static void make_reference(CudaBackend *self)
{
    const AttnShape *shape = &self->config.shape;
    const gsize width = (gsize)shape->q_heads * (gsize)shape->head_dim;
    const gint32 *all_lens = cuda_table_host_lens(self->table);
    const gint32 *all_offsets = cuda_table_host_offset(self->table);
    g_clear_pointer(&self->check_rows, g_array_unref);
    self->check_rows = backend_rows_to_check(shape, all_lens, (gint32)cuda_table_rows(self->table),
                                             self->config.check_bytes);
    const guint n = self->check_rows->len;
    g_autoptr(GArray) fresh = g_array_new(FALSE, FALSE, sizeof(gint32));
    g_autofree guint16 *q = g_new(guint16, n * width + 1);
    g_autofree gint32 *lens = g_new(gint32, n + 1), *offset = g_new(gint32, n + 1);
    for (guint i = 0; i < n; i++) {
        const gint32 r = g_array_index(self->check_rows, gint32, i);
        lens[i] = all_lens[r];
        offset[i] = all_offsets[r];
        attn_fill_query(shape, self->config.seed, cuda_table_host_keys(self->table)[r],
                        q + i * width);
        add_pages(self, r, fresh);
    }
    attn_cpu_fill_pages(self->engine, shape, &self->host, self->config.seed,
                        (const int32_t *)(gpointer)fresh->data, fresh->len);
    const AttnBatch batch = {
        (int32_t)n, lens, cuda_table_host_ids(self->table), offset, q, NULL, self->batch.scale};
    g_array_set_size(self->want, (guint)(n * width));
    attn_cpu_reference(self->engine, shape, &self->host, &batch,
                       (double *)(gpointer)self->want->data);
    self->have_reference = TRUE;
}

static gsize output_bytes(const CudaBackend *self)
{
    const AttnShape *shape = &self->config.shape;
    return 2 * (gsize)self->batch.rows * (gsize)shape->q_heads * (gsize)shape->head_dim;
}

static gboolean backend_cuda_outputs(Backend *base, guint16 *to, GError **error)
{
    CudaBackend *self = (CudaBackend *)base;
    make_current(self);
    TRY_CUDA(cudaMemcpy(to, self->out, output_bytes(self), cudaMemcpyDeviceToHost), "outputs");
    return TRUE;
}

static gboolean compare(CudaBackend *self, Execution *ret, GError **error)
{
    const AttnShape *shape = &self->config.shape;
    const gsize width = 2 * (gsize)shape->q_heads * (gsize)shape->head_dim;
    if (!open_host(self, error))
        return FALSE;
    if (!self->have_reference)
        make_reference(self);
    const guint n = self->check_rows->len;
    g_byte_array_set_size(self->got, (guint)output_bytes(self));
    g_byte_array_set_size(self->gathered, (guint)(n * width));
    if (!backend_cuda_outputs(&self->base, (guint16 *)(gpointer)self->got->data, error))
        return FALSE;
    for (guint i = 0; i < n; i++)
        memcpy(self->gathered->data + i * width,
               self->got->data + (gsize)g_array_index(self->check_rows, gint32, i) * width, width);
    backend_errors(shape->dtype, self->gathered->data, (const double *)(gpointer)self->want->data,
                   n * width / 2, &ret->max_abs_err, &ret->mean_abs_err);
    ret->checked = TRUE;
    ret->checked_rows = (gint)n;
    return TRUE;
}

/* --- a route --- */

/* One wall time and one kernel time, as asked. */
static gboolean run_once(CudaBackend *self, const Route *route, const AttnPlan *plan, guint what,
                         Execution *ret, GError **error)
{
    cudaGraphExec_t graph = NULL;
    if ((what & RUN_GRAPH) != 0 && !captured_graph(self, route, plan, &graph, error))
        return FALSE;
    if ((what & RUN_NO_WALL) == 0 && !run_wall(self, route, plan, what, graph, ret, error))
        return FALSE;
    if ((what & RUN_NO_KERNEL) != 0)
        return TRUE;
    if ((what & RUN_NO_WALL) != 0 && !upload(self, route, plan, &ret->upload_bytes, error))
        return FALSE;
    return run_kernels(self, route, plan, what, graph, ret, error);
}

static gboolean run_times(CudaBackend *self, const Route *route, const AttnPlan *plan, gint repeats,
                          guint what, Execution *ret, GError **error)
{
    g_autofree double *kernel = g_new(double, 3 * repeats);
    double *wall = kernel + repeats, *planned = wall + repeats;
    for (gint i = 0; i < repeats; i++) {
        if (!run_once(self, route, plan, what, ret, error))
            return FALSE;
        kernel[i] = ret->kernel_us, wall[i] = ret->wall_us, planned[i] = ret->plan_us;
    }
    sort_doubles(kernel, (gsize)repeats);
    sort_doubles(wall, (gsize)repeats);
    sort_doubles(planned, (gsize)repeats);
    ret->kernel_us = quantile_linear(kernel, (gsize)repeats, 0.5);
    ret->wall_us = quantile_linear(wall, (gsize)repeats, 0.5);
    ret->plan_us = quantile_linear(planned, (gsize)repeats, 0.5);
    return TRUE;
}

static gboolean backend_cuda_execute(Backend *base, const Route *route, const AttnPlan *plan,
                                     gint repeats, guint what, Execution *ret, GError **error)
{
    CudaBackend *self = (CudaBackend *)base;
    make_current(self);
    if (plan != NULL && !make_room(self, 0, plan->n_tasks, plan->counts.partial_slots, error))
        return FALSE;
    if (!prepare(self, error) || !peer_tables(self, route, error))
        return FALSE;
    *ret = (Execution){
        .repeats = repeats, .kernel_us = -1, .wall_us = -1, .plan_us = -1, .launches_seen = -1};
    nvtxRangePushA(route->label);
    const gboolean ok = run_times(self, route, plan, repeats, what, ret, error);
    nvtxRangePop();
    if (!ok)
        return FALSE;
    const gint says =
        route->ops->kind == ROUTE_PEER ? peer_routes_launches(self->peers, route) : -1;
    if (says >= 0 && ret->launches_seen >= 0 && says != ret->launches_seen) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "route %s: %d launches a layer by its plan, %" G_GINT64_FORMAT " seen",
                    route->label, says, ret->launches_seen);
        return FALSE;
    }
    if (says >= 0)
        ret->launches_seen = says;
    return (what & RUN_CHECK) == 0 || compare(self, ret, error);
}

static void put_int(JsonBuilder *b, const char *name, gint64 value)
{
    json_builder_set_member_name(b, name);
    json_builder_add_int_value(b, value);
}

static void put_string(JsonBuilder *b, const char *name, const char *value)
{
    json_builder_set_member_name(b, name);
    json_builder_add_string_value(b, value);
}

/* Of wide CTAs, then of narrow ones. */
static char *tuning_text(const CudaBackend *self, AttnRoute route)
{
    const AttnCudaTuning w = attn_cuda_tuning(self->cuda, route, 1),
                         n = attn_cuda_tuning(self->cuda, route, G_MAXINT32);
    return g_strdup_printf("%dx%dx%d,%dx%dx%d", w.warps, w.stages, w.ctas_per_sm, n.warps, n.stages,
                           n.ctas_per_sm);
}

static void backend_cuda_describe(Backend *base, JsonBuilder *b)
{
    CudaBackend *self = (CudaBackend *)base;
    g_autofree char *limited =
        g_strdup_printf("%s limited to %d SMs", self->device.name, self->config.sms);
    g_autofree char *toolkit =
        g_strdup_printf("%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    g_autofree char *persistent = tuning_text(self, ATTN_PERSISTENT),
                    *tasks = tuning_text(self, ATTN_WORKQUEUE);
    put_string(b, "name", self->config.sms > 0 ? limited : self->device.name);
    put_string(b, "driver", self->driver);
    put_string(b, "toolkit", toolkit);
    put_int(b, "sms", self->device.multiProcessorCount);
    put_int(b, "sm_arch", self->device.major * 10 + self->device.minor);
    put_int(b, "memory_bytes", (gint64)self->device.totalGlobalMem);
    put_int(b, "l2_bytes", self->device.l2CacheSize);
    put_string(b, "l2", "emptied before every run");
    put_string(b, "persistent_warps_stages_ctas", persistent);
    put_string(b, "tasks_warps_stages_ctas", tasks);
    put_int(b, "workspace_bytes", attn_cuda_workspace_bytes(self->cuda));
}

const BackendOps backend_cuda = {
    .info = {"cuda", "runs on an NVIDIA GPU", NULL, 0},
    .executes = TRUE,
    .devices = backend_cuda_devices,
    .default_repeats = 5,
    .memory = backend_cuda_memory,
    .create = backend_cuda_create,
    .available = backend_cuda_available,
    .workers = backend_cuda_workers,
    .fit_plan = backend_cuda_fit_plan,
    .plans_persistent = TRUE,
    .read_rate = backend_cuda_read_rate,
    .empty_wall = backend_cuda_empty_wall,
    .rates = cuda_rates,
    .refuses = backend_cuda_refuses,
    .begin_step = backend_cuda_begin_step,
    .execute = backend_cuda_execute,
    .outputs = backend_cuda_outputs,
    .replays = backend_cuda_replays,
    .describe = backend_cuda_describe,
    .free = backend_cuda_free,
};
