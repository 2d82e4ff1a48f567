/* Right first: the fp64 reference for the first lane, its outputs for the others. */
#include "peers_lab.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* --- correctness --- */

typedef struct HeadJob { /* one KV head of one row, for a thread */
    AttnShape shape;
    AttnPool pool;
    AttnBatch batch;
    double *to;
} HeadJob;

static void *head_reference(void *job)
{
    HeadJob *j = job;
    attn_reference_row(&j->shape, &j->pool, &j->batch, 0, j->to);
    return NULL;
}

/* The row's pages from the device, packed in order. */
static void fetch(const AttnPool *pool, const void *from, const int *pages, int n, char *to)
{
    const size_t bytes = 2 * (size_t)pool->page_stride;
    for (int i = 0; i < n; i++)
        CUDA(cudaMemcpyAsync(to + (size_t)i * bytes, (const char *)from + (size_t)pages[i] * bytes,
                             bytes, cudaMemcpyDeviceToHost, NULL));
    CUDA(cudaDeviceSynchronize());
}

/* The fp64 reference of a row of set 0: a thread a KV head, each seeing one head's part. */
static double *reference_row(const Lab *lab, const Batch *b, int row)
{
    const AttnShape *s = &b->shape;
    const int n = (b->lens[row] + 15) / 16, zero = 0, group = attn_group(s);
    const size_t width = (size_t)s->q_heads * (size_t)s->head_dim;
    const size_t bytes = 2 * (size_t)lab->view.page_stride * (size_t)n;
    char *k = malloc(bytes), *v = malloc(bytes);
    uint16_t *q = malloc(2 * width);
    int *identity = malloc(sizeof(int) * (size_t)n);
    double *want = malloc(sizeof(double) * width);
    HeadJob job[64];
    pthread_t thread[64];
    fetch(&lab->view, lab->view.k, lab->tables[0] + b->offset[row], n, k);
    fetch(&lab->view, lab->view.v, lab->tables[0] + b->offset[row], n, v);
    CUDA(cudaMemcpy(q, (const char *)b->q + 2 * width * (size_t)row, 2 * width,
                    cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        identity[i] = i;
    for (int h = 0; h < s->kv_heads; h++) {
        const size_t at = (size_t)(h * group * s->head_dim);
        const size_t skip = 2 * (size_t)h * (size_t)lab->view.head_stride;
        job[h] = (HeadJob){*s,
                           lab->view,
                           {1, &b->lens[row], identity, &zero, q + at, NULL, b->on[0].scale},
                           want + at};
        job[h].shape.q_heads = group, job[h].shape.kv_heads = 1;
        job[h].pool.k = k + skip, job[h].pool.v = v + skip, job[h].pool.pages = n;
        pthread_create(&thread[h], NULL, head_reference, &job[h]);
    }
    for (int h = 0; h < s->kv_heads; h++)
        pthread_join(thread[h], NULL);
    free(k), free(v), free(q), free(identity);
    return want;
}

static void add_error(Errors *e, double got, double want)
{
    const double off = fabs(got - want);
    e->bad += !(off <= tolerance(ATTN_F16, want));
    e->max_abs = off > e->max_abs || isnan(off) ? off : e->max_abs;
    e->mean_abs += off;
    e->values++;
}

static void end_errors(Errors *e)
{
    e->mean_abs /= e->values > 0 ? (double)e->values : 1;
}

/* The first lane: its longest and its shortest row against the reference; its outputs are then what
 * the other lanes are held against, all rows. */
static void check_first(Lab *lab, Lane *l, const Batch *b, uint16_t *out)
{
    const size_t width = (size_t)b->shape.q_heads * (size_t)b->shape.head_dim;
    int low = 0, high = 0;
    for (int r = 1; r < b->rows; r++) {
        low = b->lens[r] < b->lens[low] ? r : low;
        high = b->lens[r] > b->lens[high] ? r : high;
    }
    const int rows[] = {low, high};
    for (int i = 0; i < (low == high ? 1 : 2); i++) {
        double *want = reference_row(lab, b, rows[i]);
        for (size_t k = 0; k < width; k++)
            add_error(&l->errors, (double)attn_f16_to_f32(out[(size_t)rows[i] * width + k]),
                      want[k]);
        free(want);
    }
    lab->first_out = out;
}

static void check_other(Lab *lab, Lane *l, const Batch *b, uint16_t *out)
{
    const size_t n = (size_t)b->rows * (size_t)b->shape.q_heads * (size_t)b->shape.head_dim;
    for (size_t i = 0; i < n; i++)
        add_error(&l->errors, (double)attn_f16_to_f32(out[i]),
                  (double)attn_f16_to_f32(lab->first_out[i]));
    free(out);
}

static void poison(Lab *lab, const Batch *b)
{
    OK(attn_device_poison(b->out, (int64_t)b->rows * b->shape.q_heads * b->shape.head_dim,
                          lab->stream, &lab_error));
}

void lane_check(Lab *lab, Lane *l, const Batch *b)
{
    const size_t n = (size_t)b->rows * (size_t)b->shape.q_heads * (size_t)b->shape.head_dim;
    poison(lab, b);
    if (!lane_tables(lab, l, b, 0) || !lane_plan(lab, l, b) || !lane_launch(lab, l, b, 0))
        return;
    const cudaError_t err = cudaStreamSynchronize(lab->stream);
    if (err != cudaSuccess)
        lab_fail(l->entry->label, __LINE__, cudaGetErrorString(err));
    if (l->peer != NULL) {
        l->launches = l->ops->launches(l->peer);
        l->plan_bytes = l->ops->plan_bytes(l->peer);
    }
    uint16_t *out = malloc(2 * n);
    CUDA(cudaMemcpy(out, b->out, 2 * n, cudaMemcpyDeviceToHost));
    if (lab->first_out == NULL)
        check_first(lab, l, b, out);
    else
        check_other(lab, l, b, out);
    end_errors(&l->errors);
    if (l->errors.bad > 0) {
        char text[128];
        snprintf(text, sizeof text, "WRONG: %ld of %ld values beyond the tolerance; worst %.3g",
                 l->errors.bad, l->errors.values, l->errors.max_abs);
        lane_note(l, text);
    }
}
