/* The layer engine's life: device, memory, weights, and the cell in hand. */
#include <string.h>

#include "base/rng.h"
#include "kernels/attn_device.h"
#include "replay/layer_engine.h"

enum { WORKSPACE = 64 << 20, FIRST_TASKS = 1 << 15, FIRST_SLOTS = 1 << 13 };

gboolean layer_available(gint device, GError **error)
{
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || device >= n) {
        cudaGetLastError();
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "no CUDA device %d: %s", device,
                    e != cudaSuccess ? cudaGetErrorString(e) : "the driver does not list it");
        return FALSE;
    }
    return cublas_find(error);
}

/* --- memory --- */

static gboolean take(gpointer *ret, gint64 bytes, const char *what, GError **error)
{
    return cuda_ok(cudaMalloc(ret, (gsize)MAX(bytes, 16)), what, error);
}

static gboolean open_device(LayerEngine *self, GError **error)
{
    size_t left = 0, all = 0;
    int version = 0;
    if (!layer_available(self->config.device, error))
        return FALSE;
    TRY_CUDA(cudaSetDevice(self->config.device), "device");
    TRY_CUDA(cudaGetDeviceProperties(&self->device, self->config.device), "device");
    TRY_CUDA(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking), "stream");
    TRY_CUDA(cudaEventCreate(&self->begin), "event");
    TRY_CUDA(cudaEventCreate(&self->end), "event");
    self->marks = 9 * (guint)self->config.layers + 16;
    self->mark = g_new0(cudaEvent_t, self->marks);
    for (guint i = 0; i < self->marks; i++)
        TRY_CUDA(cudaEventCreate(&self->mark[i]), "event");
    if (!take(&self->workspace, WORKSPACE, "work space", error))
        return FALSE;
    self->blas = cublas_new(self->stream, self->workspace, WORKSPACE, error);
    if (self->blas == NULL)
        return FALSE;
    cudaDriverGetVersion(&version);
    g_snprintf(self->driver, sizeof self->driver, "CUDA %d.%d", version / 1000,
               version % 1000 / 10);
    TRY_CUDA(cudaMemGetInfo(&left, &all), "memory");
    return layer_memory_plan(&self->config.shape, self->config.layers,
                             layer_bucket(self->config.max_rows), self->config.max_len,
                             self->config.least_pages, self->config.most_pages, (gint64)left,
                             &self->memory, error);
}

static gboolean make_weights(LayerEngine *self, GError **error)
{
    const LayerShape *shape = &self->config.shape;
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++) {
        gint32 m, k;
        layer_gemm_size(shape, g, &m, &k);
        const gint32 sets = g == LAYER_HEAD ? 1 : self->memory.weight_sets;
        const gint64 each = 2 * (gint64)m * k;
        if (!take(&self->weights[g], sets * each, "weights", error))
            return FALSE;
        for (gint32 s = 0; s < sets; s++)
            TRY_ATTN(layer_device_weights(shape->attn.dtype, (char *)self->weights[g] + s * each, m,
                                          k, layer_weights_id(self, g, s), self->config.seed,
                                          self->stream, &attn_error));
    }
    return TRUE;
}

/* Each cell fills what it uses. */
static gboolean make_arena(LayerEngine *self, GError **error)
{
    const AttnShape *shape = &self->config.shape.attn;
    AttnPool *arena = &self->arena;
    attn_pool_strides(arena, shape);
    arena->pages = self->memory.kv / self->memory.page;
    const gint64 bytes = attn_pool_bytes(shape, arena->pages);
    if (!take(&arena->k, bytes, "K pool", error) || !take(&arena->v, bytes, "V pool", error))
        return FALSE;
    return TRUE;
}

static gboolean make_activations(LayerEngine *self, GError **error)
{
    const LayerShape *s = &self->config.shape;
    const gint64 rows = layer_bucket(self->config.max_rows);
    const gint64 q = s->attn.q_heads * s->attn.head_dim, kv = s->attn.kv_heads * s->attn.head_dim;
    const gint32 positions = self->config.max_len + LAYER_GROWTH + 1, half = s->attn.head_dim / 2;
    const struct {
        gpointer *to;
        gint64 bytes;
    } all[] = {
        {&self->residual, 2 * rows * s->hidden},
        {&self->normed, 2 * rows * s->hidden},
        {&self->delta, 2 * rows * s->hidden},
        {&self->qkv, 2 * rows * (q + 2 * kv)},
        {&self->q, 2 * rows * q},
        {&self->attended, 2 * rows * q},
        {&self->gate_up, 4 * rows * s->feed_forward},
        {&self->activated, 2 * rows * s->feed_forward},
        {&self->logits, 2 * rows * s->vocabulary},
        {(gpointer *)&self->best, 8 * rows},
        {(gpointer *)&self->angles, 8 * (gint64)positions * half},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        if (!take(all[i].to, all[i].bytes, "activations", error))
            return FALSE;
        TRY_CUDA(cudaMemsetAsync(*all[i].to, 0, (gsize)all[i].bytes, self->stream), "memory");
    }
    TRY_ATTN(
        layer_device_angles(self->angles, positions, half, LAYER_THETA, self->stream, &attn_error));
    return TRUE;
}

gboolean layer_make_room(LayerEngine *self, gint64 tasks, gint64 slots, GError **error)
{
    if (self->attn != NULL && tasks <= self->max_tasks && slots <= self->max_slots)
        return TRUE;
    self->max_tasks = MAX(MAX(self->max_tasks, 2 * tasks), FIRST_TASKS);
    self->max_slots = MAX(MAX(self->max_slots, 2 * slots), FIRST_SLOTS);
    TRY_CUDA(cudaStreamSynchronize(self->stream), "waiting");
    g_clear_pointer(&self->attn, attn_cuda_free);
    const AttnCudaConfig c = {
        .shape = self->config.shape.attn,
        .device = self->config.device,
        .max_rows = layer_bucket(self->config.max_rows),
        .max_tasks = self->max_tasks,
        .max_slots = self->max_slots,
    };
    TRY_ATTN(attn_cuda_new(&self->attn, &c, &attn_error));
    return TRUE;
}

LayerEngine *layer_engine_new(const LayerConfig *config, GError **error)
{
    g_autoptr(LayerEngine) self = g_new0(LayerEngine, 1);
    self->config = *config;
    self->table = cuda_table_new(&table_memory_cuda);
    attn_plan_init(&self->plan);
    if (!open_device(self, error) || !make_weights(self, error) || !make_arena(self, error) ||
        !make_activations(self, error) || !layer_make_room(self, 0, 0, error) ||
        !cuda_ok(cudaStreamSynchronize(self->stream), "setting up", error))
        return NULL;
    return g_steal_pointer(&self);
}

static void cell_clear(LayerCell *cell)
{
    g_free(cell->lens);
    g_free(cell->row);
    g_free(cell->page);
    g_free(cell->host.k);
    g_free(cell->host.v);
    g_free(cell->host_table);
    g_free(cell->host_offset);
    *cell = (LayerCell){0};
}

void layer_engine_free(LayerEngine *self)
{
    if (self == NULL)
        return;
    cudaDeviceSynchronize();
    gpointer all[] = {self->workspace, self->arena.k,   self->arena.v, self->angles, self->residual,
                      self->normed,    self->delta,     self->qkv,     self->q,      self->attended,
                      self->gate_up,   self->activated, self->logits,  self->best};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        cudaFree(all[i]);
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++)
        cudaFree(self->weights[g]);
    cublas_free(self->blas);
    attn_cuda_free(self->attn);
    cuda_table_free(self->table);
    attn_cpu_free(self->cpu);
    attn_plan_free(&self->plan);
    for (guint i = 0; i < self->marks; i++)
        if (self->mark[i] != NULL)
            cudaEventDestroy(self->mark[i]);
    g_free(self->mark);
    if (self->begin != NULL)
        cudaEventDestroy(self->begin);
    if (self->end != NULL)
        cudaEventDestroy(self->end);
    if (self->stream != NULL)
        cudaStreamDestroy(self->stream);
    cudaGetLastError();
    cell_clear(&self->cell);
    g_free(self);
}

/* --- what it has --- */

const LayerMemory *layer_engine_memory(const LayerEngine *self)
{
    return &self->memory;
}

gint64 layer_weights_id(const LayerEngine *self, LayerGemm gemm, gint layer)
{
    return (gint64)(layer % self->memory.weight_sets) * LAYER_GEMMS + (gint64)gemm;
}

gconstpointer layer_weights(const LayerEngine *self, LayerGemm gemm, gint layer)
{
    gint32 m, k;
    layer_gemm_size(&self->config.shape, gemm, &m, &k);
    const gint64 set = gemm == LAYER_HEAD ? 0 : layer % self->memory.weight_sets;
    return (const char *)self->weights[gemm] + set * 2 * m * k;
}

AttnPool layer_pool(const LayerEngine *self, gint layer)
{
    const gint64 from = (layer % self->cell.kv_sets) * self->cell.pages;
    AttnPool pool = self->arena;
    pool.pages = self->cell.pages;
    pool.k = (char *)pool.k + 2 * from * pool.page_stride;
    pool.v = (char *)pool.v + 2 * from * pool.page_stride;
    return pool;
}

gdouble layer_engine_read_rate(LayerEngine *self)
{
    const gint64 bytes = MIN(self->memory.weights * self->memory.weight_sets, (gint64)2 << 30);
    gint32 m, k;
    layer_gemm_size(&self->config.shape, LAYER_GATE_UP, &m, &k);
    const gint64 most = MIN(bytes, 2 * (gint64)m * k * self->memory.weight_sets) / 16 * 16;
    double best = 0;
    for (guint i = 0; i < 5; i++) {
        float ms = 0;
        AttnCudaError e;
        if (attn_device_spin(30000, self->stream, &e) != ATTN_OK ||
            cudaEventRecord(self->begin, self->stream) != cudaSuccess ||
            attn_device_read(self->weights[LAYER_GATE_UP], most, self->normed,
                             self->device.multiProcessorCount, self->stream, &e) != ATTN_OK ||
            cudaEventRecord(self->end, self->stream) != cudaSuccess ||
            cudaStreamSynchronize(self->stream) != cudaSuccess ||
            cudaEventElapsedTime(&ms, self->begin, self->end) != cudaSuccess)
            return 0;
        best = MAX(best, (double)most / MAX(1e3 * (double)ms - 5, 1));
    }
    return best;
}

void layer_engine_describe(const LayerEngine *self, JsonBuilder *b)
{
    g_autofree char *text = NULL;
    char driver[64];
    g_strlcpy(driver, self->driver, sizeof driver);
    if (g_file_get_contents("/proc/driver/nvidia/version", &text, NULL, NULL)) {
        g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);
        for (guint i = 0; words[i] != NULL; i++)
            if (g_ascii_isdigit(words[i][0]) && strchr(words[i], '.') != NULL) {
                g_strlcpy(driver, words[i], sizeof driver);
                break;
            }
    }
    g_autofree char *toolkit =
        g_strdup_printf("%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    const char *const members[][2] = {{"name", self->device.name},
                                      {"driver", driver},
                                      {"toolkit", toolkit},
                                      {"cublas", cublas_version(self->blas)}};
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        json_builder_set_member_name(b, members[i][0]);
        json_builder_add_string_value(b, members[i][1]);
    }
}

/* --- the cell --- */

static guint32 pages_for(const LayerEngine *self, guint32 length)
{
    const guint32 page = (guint32)self->config.shape.attn.page_size;
    return (length + page - 1) / page;
}

/* Page ids 0 .. pages-1, shuffled: no row's pages lie in order. */
static void deal_pages(LayerEngine *self)
{
    LayerCell *cell = &self->cell;
    RngStream stream;
    rng_init(&stream, self->config.seed, RNG_PAGES, (guint64)cell->pages, 0);
    for (gint64 i = 0; i < cell->pages; i++)
        cell->page[i] = (guint32)i;
    for (gint64 i = cell->pages - 1; i > 0; i--) {
        const gint64 j = (gint64)rng_below(&stream, (guint64)i + 1);
        const guint32 other = cell->page[j];
        cell->page[j] = cell->page[i];
        cell->page[i] = other;
    }
}

gboolean layer_engine_cell(LayerEngine *self, gint32 rows, const gint32 *lens, GError **error)
{
    LayerCell *cell = &self->cell;
    const gint32 bucket = layer_bucket(rows);
    g_assert(rows >= 1 && rows <= self->config.max_rows);
    cell_clear(cell);
    cell->rows = rows;
    cell->bucket = bucket;
    cell->pages = layer_cell_pages(&self->config.shape.attn, rows, lens);
    cell->kv_sets = layer_kv_sets(&self->memory, cell->pages);
    if (cell->kv_sets < 1) {
        g_autofree char *sums = layer_memory_text(&self->memory, cell->pages);
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "n/a: not even one layer's K and V fit: %s",
                    sums);
        return FALSE;
    }
    cell->lens = g_memdup2(lens, (gsize)rows * sizeof *lens);
    AttnPool touched = self->arena; /* new entries of the cell before lie in it */
    touched.pages = cell->kv_sets * cell->pages;
    TRY_ATTN(attn_device_fill(&self->config.shape.attn, &touched, self->config.seed, self->stream,
                              &attn_error));
    cell->row = g_new0(StepRow, bucket);
    cell->page = g_new(guint32, cell->pages);
    deal_pages(self);
    gint64 at = 0;
    for (gint32 r = 0; r < bucket; r++) {
        cell->row[r] = (StepRow){.request = (guint64)r + 1, .slot = (guint32)r};
        if (r >= rows)
            continue;
        cell->sum += lens[r];
        cell->row[r].pages = cell->page + at;
        cell->row[r].n_pages = pages_for(self, (guint32)lens[r] + LAYER_GROWTH);
        at += cell->row[r].n_pages;
    }
    return layer_cell_begin(self, error);
}

static gboolean join_all(LayerEngine *self, gboolean with_growth, GError **error)
{
    LayerCell *cell = &self->cell;
    g_autofree StepJoin *join = g_new0(StepJoin, cell->bucket);
    for (gint32 r = 0; r < cell->bucket; r++) {
        StepRow *row = &cell->row[r];
        row->length = r < cell->rows ? (guint32)cell->lens[r] : 0;
        join[r] = (StepJoin){
            row->request, row->slot, row->length,
            pages_for(self, row->length + (with_growth && r < cell->rows ? LAYER_GROWTH : 0)),
            row->pages};
    }
    const Step step = {.n_joined = (guint32)cell->bucket, .joined = join};
    return cuda_table_step(self->table, &step, cell->row, (guint32)cell->bucket, cell->pages,
                           self->config.shape.attn.page_size, error) &&
           cuda_table_flush(self->table, self->stream, error);
}

gboolean layer_cell_begin(LayerEngine *self, GError **error)
{
    /* First with all pages to come, so that the table does not move when rows grow. */
    if (!join_all(self, TRUE, error) || !join_all(self, FALSE, error))
        return FALSE;
    self->batch = (AttnBatch){
        .rows = self->cell.bucket,
        .lens = cuda_table_lens(self->table),
        .table = cuda_table_ids(self->table),
        .offset = cuda_table_offset(self->table),
        .q = self->q,
        .out = self->attended,
        .scale = 1 / sqrtf((float)self->config.shape.attn.head_dim),
        .table_len = cuda_table_ids_room(self->table),
    };
    return TRUE;
}

gboolean layer_cell_grow(LayerEngine *self, GError **error)
{
    LayerCell *cell = &self->cell;
    g_autofree StepAppend *append = g_new(StepAppend, cell->rows);
    guint32 n = 0;
    for (gint32 r = 0; r < cell->rows; r++) {
        StepRow *row = &cell->row[r];
        const guint32 held = pages_for(self, row->length);
        if (pages_for(self, ++row->length) > held)
            append[n++] = (StepAppend){row->slot, row->pages[held]};
    }
    const Step step = {.n_appended = n, .appended = append};
    return cuda_table_step(self->table, &step, cell->row, (guint32)cell->bucket, cell->pages,
                           self->config.shape.attn.page_size, error) &&
           cuda_table_flush(self->table, self->stream, error);
}

gint layer_engine_workers(LayerEngine *self, const Route *route)
{
    AttnPlanConfig config;
    attn_plan_config_init(&config, route->ops->builtin, 1);
    attn_cuda_fit_plan(self->attn, &config, self->cell.rows, self->cell.lens);
    return config.workers;
}
