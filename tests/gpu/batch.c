/* Batches on the device, and the check against the fp64 reference. */
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lab_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    exit(1);
}

uint64_t random_next(Random *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int random_below(Random *r, int n)
{
    return (int)(random_next(r) % (uint64_t)n);
}

static int pages_of(const AttnShape *s, int len)
{
    return (len + s->page_size - 1) / s->page_size;
}

static int *permutation(int64_t n, Random *random)
{
    int *p = malloc((size_t)n * sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (int)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(random_next(random) % (uint64_t)(i + 1));
        const int x = p[i];
        p[i] = p[j], p[j] = x;
    }
    return p;
}

Batch *batch_new(const AttnShape *shape, int rows, const int *lens, int64_t pool_pages, int sets,
                 Random *random)
{
    Batch *self = calloc(1, sizeof *self);
    self->shape = *shape, self->rows = rows, self->sets = sets;
    self->lens = malloc(sizeof(int) * (size_t)rows);
    self->offset = malloc(sizeof(int) * (size_t)rows);
    memcpy(self->lens, lens, sizeof(int) * (size_t)rows);
    double tokens = 0;
    for (int r = 0; r < rows; r++) {
        self->offset[r] = (int)self->n_pages;
        self->n_pages += pages_of(shape, lens[r]);
        tokens += lens[r];
    }
    self->kv_bytes = tokens * shape->kv_heads * shape->head_dim * 4;
    const int64_t each = 2 * rows + self->n_pages;
    int *host = malloc(sizeof(int) * (size_t)(each * sets));
    int *perm = permutation(pool_pages, random);
    for (int s = 0; s < sets; s++) {
        int *to = host + s * each;
        memcpy(to, lens, sizeof(int) * (size_t)rows);
        memcpy(to + rows, self->offset, sizeof(int) * (size_t)rows);
        for (int64_t i = 0; i < self->n_pages; i++)
            to[2 * rows + i] = perm[(s * self->n_pages + i) % pool_pages];
    }
    self->table = malloc(sizeof(int) * (size_t)(self->n_pages + 1));
    memcpy(self->table, host + 2 * rows, sizeof(int) * (size_t)self->n_pages);
    CUDA(cudaMalloc((void **)&self->device_ints, sizeof(int) * (size_t)(each * sets)));
    CUDA(cudaMemcpy(self->device_ints, host, sizeof(int) * (size_t)(each * sets),
                    cudaMemcpyHostToDevice));
    const size_t q = (size_t)rows * (size_t)shape->q_heads * (size_t)shape->head_dim * 2;
    CUDA(cudaMalloc(&self->q, q));
    CUDA(cudaMalloc(&self->out, q));
    OK(attn_device_queries(shape, self->q, rows, NULL, random_next(random), NULL, &lab_error));
    self->on = calloc((size_t)sets, sizeof *self->on);
    for (int s = 0; s < sets; s++) {
        const int *at = self->device_ints + s * each;
        self->on[s] = (AttnBatch){rows,
                                  at,
                                  at + 2 * rows,
                                  at + rows,
                                  self->q,
                                  self->out,
                                  1.0f / sqrtf((float)shape->head_dim),
                                  self->n_pages};
    }
    free(host);
    free(perm);
    return self;
}

void batch_free(Batch *self)
{
    cudaFree(self->device_ints);
    cudaFree(self->q);
    cudaFree(self->out);
    free(self->lens);
    free(self->offset);
    free(self->table);
    free(self->on);
    free(self);
}

void batch_change_lens(Batch *self, const int *lens)
{
    self->kv_bytes = 0;
    for (int r = 0; r < self->rows; r++)
        self->kv_bytes += lens[r] * 4.0 * self->shape.kv_heads * self->shape.head_dim;
    memcpy(self->lens, lens, sizeof(int) * (size_t)self->rows);
    CUDA(cudaMemcpy((void *)self->on[0].lens, lens, sizeof(int) * (size_t)self->rows,
                    cudaMemcpyHostToDevice));
}

double tolerance(AttnDtype dtype, double value)
{
    return (dtype == ATTN_BF16 ? 0.016 : 0.002) * fmax(1.0, fabs(value));
}

/* One row's pages of K or V from the device, packed in order. */
static void fetch_pages(const AttnPool *pool, const void *from, const int *pages, int n, char *to)
{
    const size_t bytes = 2 * (size_t)pool->page_stride;
    for (int i = 0; i < n; i++)
        CUDA(cudaMemcpyAsync(to + (size_t)i * bytes, (const char *)from + (size_t)pages[i] * bytes,
                             bytes, cudaMemcpyDeviceToHost, NULL));
    CUDA(cudaDeviceSynchronize());
}

static void reference_row(const Batch *self, const AttnPool *pool, const int *table, int r,
                          const uint16_t *q, double *want)
{
    const AttnShape *s = &self->shape;
    const int n = pages_of(s, self->lens[r]), zero = 0;
    const size_t bytes = 2 * (size_t)pool->page_stride * (size_t)(n + 1);
    AttnPool mine = *pool;
    mine.k = malloc(bytes), mine.v = malloc(bytes);
    fetch_pages(pool, pool->k, table + self->offset[r], n, mine.k);
    fetch_pages(pool, pool->v, table + self->offset[r], n, mine.v);
    int *identity = malloc(sizeof(int) * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        identity[i] = i;
    const AttnBatch one = {1, &self->lens[r], identity, &zero, q, NULL, self->on[0].scale};
    attn_reference_row(s, &mine, &one, 0, want);
    free(mine.k), free(mine.v), free(identity);
}

static void reference_small(const Batch *self, const AttnPool *pool, const int *table,
                            const uint16_t *q, double *want)
{
    const size_t bytes = 2 * (size_t)(pool->pages * pool->page_stride);
    const size_t width = (size_t)self->shape.q_heads * (size_t)self->shape.head_dim;
    AttnPool mine = *pool;
    mine.k = malloc(bytes), mine.v = malloc(bytes);
    CUDA(cudaMemcpy(mine.k, pool->k, bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(mine.v, pool->v, bytes, cudaMemcpyDeviceToHost));
    const AttnBatch all = {self->rows, self->lens, table, self->offset, q, NULL, self->on[0].scale};
    for (int r = 0; r < self->rows; r++)
        attn_reference_row(&self->shape, &mine, &all, r, want + (size_t)r * width);
    free(mine.k), free(mine.v);
}

double *batch_reference(const Batch *self, const AttnPool *pool, int set, int every)
{
    const size_t width = (size_t)self->shape.q_heads * (size_t)self->shape.head_dim;
    const size_t bytes = 2 * width * (size_t)self->rows;
    uint16_t *q = malloc(bytes);
    int *table = malloc(sizeof(int) * (size_t)(self->n_pages + 1));
    double *want = calloc(width * (size_t)self->rows, sizeof *want);
    CUDA(cudaMemcpy(q, self->q, bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(table, self->on[set].table, sizeof(int) * (size_t)self->n_pages,
                    cudaMemcpyDeviceToHost));
    if (every == 1 && pool->pages * pool->page_stride < 1 << 27)
        reference_small(self, pool, table, q, want);
    else
        for (int r = 0; r < self->rows; r += every)
            reference_row(self, pool, table, r, q + (size_t)r * width, want + (size_t)r * width);
    free(q), free(table);
    return want;
}

void batch_compare(const Batch *self, const double *want, int every, Errors *ret)
{
    const AttnDtype dtype = self->shape.dtype;
    const size_t width = (size_t)self->shape.q_heads * (size_t)self->shape.head_dim;
    uint16_t *out = malloc(2 * width * (size_t)self->rows);
    CUDA(cudaMemcpy(out, self->out, 2 * width * (size_t)self->rows, cudaMemcpyDeviceToHost));
    *ret = (Errors){0};
    for (size_t i = 0; i < width * (size_t)self->rows; i++) {
        if (i / width % (size_t)every != 0)
            continue;
        const double got =
            (double)(dtype == ATTN_F16 ? attn_f16_to_f32(out[i]) : attn_bf16_to_f32(out[i]));
        const double error = fabs(got - want[i]);
        ret->bad += !(error <= tolerance(dtype, want[i]));
        ret->max_abs = error > ret->max_abs || isnan(error) ? error : ret->max_abs;
        ret->mean_abs += error;
        ret->values++;
    }
    ret->mean_abs /= ret->values > 0 ? (double)ret->values : 1.0;
    free(out);
}
