/* Backend `cpu`: the CPU engine runs the very task lists that a GPU would get.
 *
 * K and V of one layer lie in two anonymous mappings as large as the pool; memory is used only for
 * pages that an executed step touches, filled on first use from the content hash, so any subset of
 * steps sees the same values. Tables and queries of a step are made when it is first executed.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "kernels/cpu_engine.h"
#include "replay/backend.h"
#include "replay/cpu_rates.h"

typedef struct CpuBackend {
    Backend base;
    BackendConfig config;
    AttnCpu *engine;
    AttnPool pool;
    gsize pool_bytes; /* of k, and as many of v */
    gint64 room;      /* bytes that K and V may take in all */
    guint8 *filled;   /* [pool pages] */
    gint64 pages_filled;
    const StepRow *rows; /* of the step last begun; valid until the next */
    guint32 n_rows;
    gboolean prepared, have_reference;
    GArray *lens, *offset, *table, *fresh; /* gint32 */
    GByteArray *q, *out;
    GArray *want;       /* double, of check_rows */
    GArray *check_rows; /* gint32; NULL before the first check */
    AttnBatch batch;
    AttnPartials partials;
} CpuBackend;

static gint64 memory_available(void)
{
    g_autofree char *text = NULL;
    if (g_file_get_contents("/proc/meminfo", &text, NULL, NULL)) {
        const char *at = strstr(text, "MemAvailable:");
        if (at != NULL)
            return (gint64)g_ascii_strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024;
    }
    return G_MAXINT64;
}

static void *reserve(gsize bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void cpu_free(Backend *base)
{
    CpuBackend *self = (CpuBackend *)base;
    attn_cpu_free(self->engine);
    if (self->pool.k != NULL)
        munmap(self->pool.k, self->pool_bytes);
    if (self->pool.v != NULL)
        munmap(self->pool.v, self->pool_bytes);
    g_free(self->filled);
    GArray *arrays[] = {self->lens, self->offset, self->table, self->fresh, self->want};
    g_clear_pointer(&self->check_rows, g_array_unref);
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_byte_array_unref(self->q);
    g_byte_array_unref(self->out);
    g_free(self->partials.ml);
    g_free(self->partials.acc);
    g_free(self);
}

static Backend *cpu_create(const BackendConfig *config, GError **error)
{
    CpuBackend *self = g_new0(CpuBackend, 1);
    self->base.ops = &backend_cpu;
    self->config = *config;
    self->lens = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->offset = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->table = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->fresh = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->want = g_array_new(FALSE, FALSE, sizeof(double));
    self->q = g_byte_array_new();
    self->out = g_byte_array_new();
    self->engine = attn_cpu_new(config->threads);
    self->room = memory_available() / 10 * 8;
    self->filled = g_malloc0((gsize)config->pool_pages);
    attn_pool_strides(&self->pool, &config->shape);
    self->pool.pages = config->pool_pages;
    self->pool_bytes = (gsize)attn_pool_bytes(&config->shape, MAX(config->pool_pages, 1));
    self->pool.k = reserve(self->pool_bytes);
    self->pool.v = reserve(self->pool_bytes);
    if (self->engine == NULL || self->pool.k == NULL || self->pool.v == NULL) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_MACHINE,
            "cannot start the cpu backend: no threads, or no address space for 2 x %.1f GiB "
            "of K and V",
            (double)self->pool_bytes / (1 << 30));
        cpu_free(&self->base);
        return NULL;
    }
    /* A large pool is filled here and there, and each place would take (and clear) 2 MB. */
    if (2 * (gint64)self->pool_bytes <= MIN(self->room / 4, (gint64)512 << 20)) {
        attn_cpu_advise(self->pool.k, (gint64)self->pool_bytes);
        attn_cpu_advise(self->pool.v, (gint64)self->pool_bytes);
    }
    return &self->base;
}

static gboolean cpu_available(const BackendConfig *config, char **ret_why)
{
    AttnCpu *engine = attn_cpu_new(config->threads);
    if (engine == NULL) {
        *ret_why = g_strdup("no threads");
        return FALSE;
    }
    *ret_why = g_strdup_printf("%d thread%s, %s vectors", attn_cpu_threads(engine),
                               attn_cpu_threads(engine) == 1 ? "" : "s", attn_cpu_isa(engine));
    attn_cpu_free(engine);
    return TRUE;
}

/* 0: plans are those of the profile's GPU; threads take its tasks in turn. */
static gint cpu_workers(Backend *base)
{
    return 0;
}

/* Of memory that no cache holds. */
static double cpu_read_rate(Backend *base)
{
    const gsize bytes = (gsize)256 << 20;
    void *data = reserve(bytes);
    if (data == NULL)
        return 0;
    memset(data, 1, bytes);
    const double rate = attn_cpu_read_rate(((CpuBackend *)base)->engine, data, (gint64)bytes, 3);
    munmap(data, bytes);
    return 1e-6 * rate;
}

static const char *cpu_refuses(Backend *self, const Route *route)
{
    return route->ops->kind == ROUTE_PEER ? "a GPU kernel (backend cuda)" : NULL;
}

static gboolean cpu_begin_step(Backend *base, const Step *step, const StepRow *rows, guint32 n_rows,
                               GError **error)
{
    CpuBackend *self = (CpuBackend *)base;
    self->rows = rows;
    self->n_rows = n_rows;
    self->prepared = self->have_reference = FALSE;
    return TRUE;
}

static gboolean fill_fresh(CpuBackend *self, GError **error)
{
    self->pages_filled += self->fresh->len;
    const gint64 bytes = 2 * attn_pool_bytes(&self->config.shape, self->pages_filled);
    if (bytes > self->room) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_MACHINE,
            "the executed steps touch %" G_GINT64_FORMAT " pages = %.1f GiB of K and V, more "
            "than this machine's memory allows (%.1f GiB): execute fewer steps (--execute), "
            "or take --backend counters",
            self->pages_filled, (double)bytes / (1 << 30), (double)self->room / (1 << 30));
        return FALSE;
    }
    attn_cpu_fill_pages(self->engine, &self->config.shape, &self->pool, self->config.seed,
                        (const int32_t *)(void *)self->fresh->data, self->fresh->len);
    return TRUE;
}

static gboolean add_row(CpuBackend *self, const StepRow *row, GError **error)
{
    const gint32 len = (gint32)row->length, from = (gint32)self->table->len;
    const gint32 pages = (len + self->config.shape.page_size - 1) / self->config.shape.page_size;
    g_array_append_val(self->lens, len);
    g_array_append_val(self->offset, from);
    for (gint32 i = 0; i < pages; i++) {
        const gint32 page = (gint32)row->pages[i];
        if ((guint32)i >= row->n_pages || row->pages[i] >= (guint64)self->config.pool_pages) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                        "request %" G_GUINT64_FORMAT ": its block table holds %u pages, the last "
                        "looked at out of the pool, and its length needs %d",
                        row->request, row->n_pages, pages);
            return FALSE;
        }
        g_array_append_val(self->table, page);
        if (!self->filled[page]) {
            self->filled[page] = 1;
            g_array_append_val(self->fresh, page);
        }
    }
    return TRUE;
}

/* Tables, contents and queries of the step last begun. */
static gboolean prepare(CpuBackend *self, GError **error)
{
    if (self->prepared)
        return TRUE;
    const AttnShape *shape = &self->config.shape;
    GArray *arrays[] = {self->lens, self->offset, self->table, self->fresh};
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_set_size(arrays[i], 0);
    const guint row_bytes = (guint)(shape->q_heads * shape->head_dim * 2);
    guint n = 0;
    g_byte_array_set_size(self->q, row_bytes * self->n_rows + 1);
    for (guint32 r = 0; r < self->n_rows; r++) {
        const StepRow *row = &self->rows[r];
        if (row->paused)
            continue;
        if (!add_row(self, row, error))
            return FALSE;
        attn_fill_query(shape, self->config.seed, backend_query_key(row->request, row->length),
                        self->q->data + (gsize)row_bytes * n++);
    }
    if (!fill_fresh(self, error))
        return FALSE;
    g_byte_array_set_size(self->out, row_bytes * n + 1);
    self->batch = (AttnBatch){
        .rows = (int32_t)n,
        .lens = (int32_t *)(void *)self->lens->data,
        .table = (int32_t *)(void *)self->table->data,
        .offset = (int32_t *)(void *)self->offset->data,
        .q = self->q->data,
        .out = self->out->data,
        .scale = (float)(1 / sqrt(shape->head_dim)),
    };
    self->prepared = TRUE;
    return TRUE;
}

static void grow_partials(CpuBackend *self, gint64 slots)
{
    if (slots <= self->partials.slots)
        return;
    const gsize states = (gsize)slots * (gsize)attn_group(&self->config.shape);
    g_free(self->partials.ml);
    g_free(self->partials.acc);
    self->partials.ml = g_new(float, states * 2);
    self->partials.acc = g_new(float, states *(gsize)self->config.shape.head_dim);
    self->partials.slots = slots;
}

/* States and outputs that nobody writes must show as NaN. */
static void poison(CpuBackend *self, const AttnPlan *plan)
{
    const gsize states = (gsize)plan->counts.partial_slots * (gsize)attn_group(&self->config.shape);
    memset(self->out->data, 0xff, self->out->len);
    if (states == 0)
        return;
    memset(self->partials.ml, 0xff, sizeof(float) * 2 * states);
    memset(self->partials.acc, 0xff, sizeof(float) * (gsize)self->config.shape.head_dim * states);
}

/* The reference of the rows that are checked. */
static void make_reference(CpuBackend *self)
{
    const AttnShape *shape = &self->config.shape;
    const AttnBatch *all = &self->batch;
    const gsize width = 2 * (gsize)shape->q_heads * (gsize)shape->head_dim;
    g_clear_pointer(&self->check_rows, g_array_unref);
    self->check_rows = backend_rows_to_check(shape, all->lens, all->rows, self->config.check_bytes);
    const guint n = self->check_rows->len;
    g_autofree gint32 *lens = g_new(gint32, n + 1), *offset = g_new(gint32, n + 1);
    g_autofree guint8 *q = g_malloc(n * width + 1);
    for (guint i = 0; i < n; i++) {
        const gint32 r = g_array_index(self->check_rows, gint32, i);
        lens[i] = all->lens[r];
        offset[i] = all->offset[r];
        memcpy(q + i * width, (const guint8 *)all->q + (gsize)r * width, width);
    }
    const AttnBatch batch = {(int32_t)n, lens, all->table, offset, q, NULL, all->scale};
    g_array_set_size(self->want, (guint)(n * width / 2));
    attn_cpu_reference(self->engine, shape, &self->pool, &batch,
                       (double *)(void *)self->want->data);
    self->have_reference = TRUE;
}

static void compare(CpuBackend *self, Execution *ret)
{
    const AttnShape *shape = &self->config.shape;
    const gsize width = 2 * (gsize)shape->q_heads * (gsize)shape->head_dim;
    if (!self->have_reference)
        make_reference(self);
    const guint n = self->check_rows->len;
    g_autofree guint8 *got = g_malloc(n * width + 1);
    for (guint i = 0; i < n; i++)
        memcpy(got + i * width,
               self->out->data + (gsize)g_array_index(self->check_rows, gint32, i) * width, width);
    backend_errors(shape->dtype, got, (const double *)(void *)self->want->data, n * width / 2,
                   &ret->max_abs_err, &ret->mean_abs_err);
    ret->checked = TRUE;
    ret->checked_rows = (gint)n;
}

static gboolean cpu_outputs(Backend *base, guint16 *to, GError **error)
{
    CpuBackend *self = (CpuBackend *)base;
    const AttnShape *shape = &self->config.shape;
    memcpy(to, self->out->data,
           2 * (gsize)self->batch.rows * (gsize)shape->q_heads * (gsize)shape->head_dim);
    return TRUE;
}

static gboolean cpu_execute(Backend *base, const Route *route, const AttnPlan *plan, gint repeats,
                            guint what, Execution *ret, GError **error)
{
    CpuBackend *self = (CpuBackend *)base;
    if (!prepare(self, error))
        return FALSE;
    grow_partials(self, plan->counts.partial_slots);
    g_autofree double *times = g_new(double, repeats);
    for (gint i = 0; i < repeats; i++) {
        poison(self, plan);
        const double from = clock_us();
        for (gint layer = 0; layer < self->config.layers; layer++) {
            const AttnStatus status = attn_cpu_run(self->engine, &self->config.shape, &self->pool,
                                                   &self->batch, plan, &self->partials);
            if (status != ATTN_OK) {
                g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "cpu engine: %s",
                            attn_strerror(status));
                return FALSE;
            }
        }
        times[i] = clock_us() - from;
    }
    sort_doubles(times, (gsize)repeats);
    const double median = quantile_linear(times, (gsize)repeats, 0.5);
    *ret = (Execution){
        .repeats = repeats,
        .kernel_us = median,
        .wall_us = median,
        .launches_seen = -1,
    };
    if ((what & RUN_CHECK) != 0)
        compare(self, ret);
    return TRUE;
}

static char *processor_name(void)
{
    g_autofree char *text = NULL;
    if (g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL)) {
        const char *at = strstr(text, "model name");
        const char *colon = at != NULL ? strchr(at, ':') : NULL;
        if (colon != NULL)
            return g_strstrip(g_strndup(colon + 1, strcspn(colon + 1, "\n")));
    }
    return g_strdup("CPU");
}

static void cpu_describe(Backend *base, JsonBuilder *builder)
{
    CpuBackend *self = (CpuBackend *)base;
    g_autofree char *name = processor_name();
    json_builder_set_member_name(builder, "name");
    json_builder_add_string_value(builder, name);
    json_builder_set_member_name(builder, "threads");
    json_builder_add_int_value(builder, attn_cpu_threads(self->engine));
    json_builder_set_member_name(builder, "vectors");
    json_builder_add_string_value(builder, attn_cpu_isa(self->engine));
}

const BackendOps backend_cpu = {
    .info = {"cpu", "runs the same task lists with threads and vector code", NULL, 0},
    .executes = TRUE,
    .default_repeats = 1,
    .create = cpu_create,
    .available = cpu_available,
    .workers = cpu_workers,
    .read_rate = cpu_read_rate,
    .rates = cpu_rates,
    .refuses = cpu_refuses,
    .begin_step = cpu_begin_step,
    .execute = cpu_execute,
    .outputs = cpu_outputs,
    .describe = cpu_describe,
    .free = cpu_free,
};
