/* peers-lab [--csv FILE] [--cells a,b,..] [--routes a,b,..] [--pool GiB] [--repeats N]
 *           [--seconds N] [--commit ID] [--driver VERSION] [--no-check]
 *
 * Peers and our own routes, cell by cell, in one run: same pages, tables and queries. In each round
 * every route runs once, another one first each time, on other pages than the round before, so that
 * L2 is cold. Kernel: events around the launches, behind a spinning kernel. Graph: the same
 * launches replayed from a graph that was captured once, after tables and plan for other pages were
 * written where it reads them. Plan: the planner with its uploads, block tables not in it. Wall:
 * plan, launches, synchronised. Before any is timed, our first route's longest and shortest row are
 * checked against the fp64 reference, and every other route against ours, all rows; a route beyond
 * the tolerance is not timed.
 *
 * The floor is measured in the same run: 5 us + bytes / streaming read rate.
 * Ends after the cell in hand when `--seconds` have passed. Prints the summary last.
 */
#include "../gpu/lab.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/peers/peers.h"

enum { MAX_ROWS = 256, MAX_LANES = 20, MAX_ROUNDS = 64, WALLS = 9, GRAPHS = 9 };

enum { BIMODAL = -1, ZIPF = -2, UNIFORM = -3 };

typedef struct Cell {
    const char *family;
    int len; /* of every row, or a family */
    int rows, q_heads, kv_heads, head_dim;
} Cell;

#define ROWS_OF(family, len, q, kv, d)                                                             \
    {family, len, 1, q, kv, d}, {family, len, 4, q, kv, d}, {family, len, 8, q, kv, d},            \
        {family, len, 16, q, kv, d}, {family, len, 32, q, kv, d},                                  \
    {                                                                                              \
        family, len, 64, q, kv, d                                                                  \
    }

/* In order of worth, for runs that are cut short. */
static const Cell cells[] = {
    ROWS_OF("bimodal", BIMODAL, 32, 8, 128),
    ROWS_OF("uniform", UNIFORM, 32, 8, 128),
    ROWS_OF("zipf", ZIPF, 32, 8, 128),
    ROWS_OF("2K", 2048, 32, 8, 128),
    ROWS_OF("8K", 8192, 32, 8, 128),
    ROWS_OF("32K", 32768, 32, 8, 128),
    {"bimodal", BIMODAL, 2, 32, 8, 128},
    {"uniform", UNIFORM, 2, 32, 8, 128},
    {"zipf", ZIPF, 2, 32, 8, 128},
    {"2K", 2048, 2, 32, 8, 128},
    {"8K", 8192, 2, 32, 8, 128},
    {"32K", 32768, 2, 32, 8, 128},
    {"G8-bimodal", BIMODAL, 32, 64, 8, 128},
    {"G8-bimodal", BIMODAL, 64, 64, 8, 128},
    {"G8-8K", 8192, 1, 64, 8, 128},
    {"G8-8K", 8192, 8, 64, 8, 128},
    {"D64-bimodal", BIMODAL, 32, 32, 8, 64},
    {"D64-bimodal", BIMODAL, 64, 32, 8, 64},
    {"D64-8K", 8192, 1, 32, 8, 64},
    {"D64-8K", 8192, 8, 32, 8, 64},
    {"G1-bimodal", BIMODAL, 32, 8, 8, 128},
    {"G1-8K", 8192, 8, 8, 8, 128},
    ROWS_OF("128K", 131072, 32, 8, 128),
    {"128K", 131072, 2, 32, 8, 128},
};

/* What is run: one of our routes, or a peer with settings. */
typedef struct Entry {
    const char *label, *peer; /* peer NULL: ours */
    AttnRoute route;
    PeerSettings settings;
    int is_default; /* a peer as its users get it */
} Entry;
static const Entry entries[] = {
    {"persistent", NULL, ATTN_PERSISTENT, {0}, 0},
    {"workqueue-fused", NULL, ATTN_WORKQUEUE_FUSED, {0}, 0},
    {"workqueue", NULL, ATTN_WORKQUEUE, {0}, 0},
    {"flashinfer", "flashinfer", 0, {0}, 1},
    {"flashinfer-tc", "flashinfer-tc", 0, {0}, 1},
    {"flashinfer-tc:graph", "flashinfer-tc", 0, {.graph = 1}, 1},
    {"flashinfer-tc:split=2048", "flashinfer-tc", 0, {.split_tokens = 2048}, 0},
    {"flashinfer-tc:split=4096", "flashinfer-tc", 0, {.split_tokens = 4096}, 0},
    {"flashinfer-batch", "flashinfer-batch", 0, {0}, 1},
    {"trtllm-xqa", "trtllm-xqa", 0, {0}, 1},
    {"trtllm-xqa:factor=8", "trtllm-xqa", 0, {.sm_factor = 8}, 0},
    {"vllm-pa1", "vllm-pa1", 0, {0}, 1},
    {"vllm-pa2", "vllm-pa2", 0, {0}, 1},
    {"flashinfer-0.2.5", "flashinfer-0.2.5", 0, {0}, 1},
    {"flashinfer-tc-0.2.5", "flashinfer-tc-0.2.5", 0, {0}, 1},
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

typedef struct Lane { /* an entry set up for the cell in hand */
    const Entry *entry;
    AttnCuda *cuda;
    AttnPlan plan;
    AttnPlanConfig plan_config;
    const PeerOps *ops;
    Peer *peer;
    double kernel[MAX_ROUNDS], kernel_us, graph_us, plan_us, wall_us, tables_us;
    long long plan_bytes;
    int launches;
    Errors errors;
    char note[300];
    int runs; /* 0: not in this cell, see note */
} Lane;

typedef struct Lab {
    AttnPool pool, view; /* all of it; what the cell in hand uses */
    int64_t bytes;
    double rate; /* bytes/us */
    FILE *csv;
    const char *commit, *cells, *routes;
    char gpu[300], driver[32], date[32];
    int sms, rounds, check;
    double seconds, started;
    cudaStream_t stream;
    cudaEvent_t e0, e1;
    Random random;
    char summary[64][200];
    int n_summary;
    Lane lane[N_ENTRIES];
    int **tables; /* [sets] host copies */
    uint16_t *first_out;
    int turn; /* which set is next: by the time one comes again, L2 holds others */
} Lab;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
    if (n == 0)
        return -1;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static int listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    if (list == NULL)
        return 1;
    for (const char *p = list; (p = strstr(p, name)) != NULL; p++)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == 0))
            return 1;
    return 0;
}

/* --- lengths: the published batches (bimodal: 1 in 4 rows long; zipf by rank) --- */

static int one_len(const Cell *c, Random *r, int i)
{
    if (c->len == BIMODAL)
        return i % 4 == 0 ? 24576 + random_below(r, 40961) : 2048 + random_below(r, 10241);
    if (c->len == UNIFORM)
        return 4096 + random_below(r, 28673);
    if (c->len == ZIPF) {
        const int rank = 1 + random_below(r, 32);
        const int len = (int)(2048 + 65536 / sqrt((double)rank)) + random_below(r, 1025) - 512;
        return len < 1024 ? 1024 : len;
    }
    return c->len;
}

/* --- one lane --- */

static void note(Lane *l, const char *text)
{
    snprintf(l->note, sizeof l->note, "%s", text);
    for (char *p = l->note; *p; p++)
        if (*p == ',' || *p == '"' || *p == '\n')
            *p = ';';
    l->runs = 0;
}

static void lane_free(Lane *l)
{
    if (l->peer != NULL)
        l->ops->free(l->peer);
    if (l->cuda != NULL) {
        attn_plan_free(&l->plan);
        attn_cuda_free(l->cuda);
    }
    l->peer = NULL, l->cuda = NULL;
}

static void open_ours(Lane *l, const Batch *b)
{
    AttnCudaConfig cc = {
        .shape = b->shape, .max_rows = b->rows, .max_tasks = 200000, .max_slots = 40000};
    OK(attn_cuda_new(&l->cuda, &cc, &lab_error));
    attn_plan_init(&l->plan);
    attn_plan_config_init(&l->plan_config, l->entry->route,
                          attn_cuda_workers(l->cuda, l->entry->route));
    l->plan_config.c0_tiles = l->plan_config.c0_tiles * 128 / b->shape.head_dim;
    if (attn_plan_build(&l->plan, &l->plan_config, &b->shape, b->rows, b->lens) != ATTN_OK)
        lab_fail(__FILE__, __LINE__, "plan");
    l->launches = l->plan.counts.launches;
    l->runs = 1;
}

static void open_peer(const Lab *lab, Lane *l, const Batch *b)
{
    PeerError error = {{0}};
    size_t left = 0, all = 0;
    int longest = 0;
    for (int r = 0; r < b->rows; r++)
        longest = b->lens[r] > longest ? b->lens[r] : longest;
    const PeerConfig config = {.shape = b->shape,
                               .pool = lab->view,
                               .max_rows = b->rows,
                               .max_len = longest,
                               .max_pages = b->n_pages,
                               .settings = l->entry->settings};
    l->ops = peer_find(l->entry->peer);
    if (l->ops == NULL || !l->ops->built) {
        note(l, "not built");
        return;
    }
    if (peer_supports(l->ops, &config, &error) != ATTN_OK) {
        note(l, error.text);
        return;
    }
    CUDA(cudaMemGetInfo(&left, &all));
    const int64_t need = l->ops->workspace(&config);
    if (need > (int64_t)left) {
        snprintf(error.text, sizeof error.text, "needs %.1f GB of device memory: %.1f GB left",
                 1e-9 * (double)need, 1e-9 * (double)left);
        note(l, error.text);
        return;
    }
    if (l->ops->create(&l->peer, &config, &error) != ATTN_OK)
        note(l, error.text);
    else
        l->runs = 1;
}

/* Everything up to the launches, for set `set`; FALSE with a note on failure. */
static int prepare(Lab *lab, Lane *l, const Batch *b, int set)
{
    PeerError error = {{0}};
    if (l->peer == NULL)
        return 1;
    double at = now_us();
    if (l->ops->tables(l->peer, b->rows, b->lens, lab->tables[set], b->offset, lab->stream,
                       &error) != ATTN_OK) {
        note(l, error.text);
        return 0;
    }
    l->tables_us = now_us() - at;
    return 1;
}

static int plan_lane(Lab *lab, Lane *l, const Batch *b)
{
    PeerError error = {{0}};
    if (l->peer != NULL) {
        if (l->ops->plan(l->peer, lab->stream, &error) != ATTN_OK)
            note(l, error.text);
        return l->runs;
    }
    if (l->entry->route != ATTN_PERSISTENT)
        attn_plan_build(&l->plan, &l->plan_config, &b->shape, b->rows, b->lens);
    int64_t bytes = 0;
    OK(attn_cuda_upload(l->cuda, &l->plan, lab->stream, &bytes, &lab_error));
    l->plan_bytes = bytes;
    return 1;
}

static int launch(Lab *lab, Lane *l, const Batch *b, int set)
{
    PeerError error = {{0}};
    if (l->peer != NULL) {
        if (l->ops->run(l->peer, b->q, b->out, b->on[0].scale, lab->stream, &error) != ATTN_OK)
            note(l, error.text);
        return l->runs;
    }
    OK(attn_cuda_run(l->cuda, &lab->view, &b->on[set], &l->plan, lab->stream, &lab_error));
    return 1;
}

static void poison(Lab *lab, const Batch *b)
{
    OK(attn_device_poison(b->out, (int64_t)b->rows * b->shape.q_heads * b->shape.head_dim,
                          lab->stream, &lab_error));
}

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

static void check_lane(Lab *lab, Lane *l, const Batch *b)
{
    const size_t n = (size_t)b->rows * (size_t)b->shape.q_heads * (size_t)b->shape.head_dim;
    poison(lab, b);
    if (!prepare(lab, l, b, 0) || !plan_lane(lab, l, b) || !launch(lab, l, b, 0))
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
        note(l, text);
    }
}

/* --- times --- */

static double between(const Lab *lab)
{
    float ms;
    CUDA(cudaEventSynchronize(lab->e1));
    CUDA(cudaEventElapsedTime(&ms, lab->e0, lab->e1));
    return 1e3 * (double)ms;
}

static void time_kernels(Lab *lab, const Batch *b)
{
    for (int round = -2; round < lab->rounds; round++)
        for (int k = 0; k < N_ENTRIES; k++) {
            Lane *l = &lab->lane[(k + round + 2) % N_ENTRIES];
            const int set = lab->turn % b->sets;
            lab->turn += l->runs;
            if (!l->runs || !prepare(lab, l, b, set) || !plan_lane(lab, l, b))
                continue;
            OK(attn_device_spin(40000, lab->stream, &lab_error));
            CUDA(cudaEventRecord(lab->e0, lab->stream));
            if (!launch(lab, l, b, set))
                continue;
            CUDA(cudaEventRecord(lab->e1, lab->stream));
            const double us = between(lab);
            if (round >= 0)
                l->kernel[round] = us;
        }
    for (int k = 0; k < N_ENTRIES; k++)
        if (lab->lane[k].runs)
            lab->lane[k].kernel_us = median(lab->lane[k].kernel, lab->rounds);
}

static void time_wall(Lab *lab, Lane *l, const Batch *b)
{
    double plan[WALLS], wall[WALLS];
    for (int i = 0; i < WALLS; i++) {
        const int set = lab->turn++ % b->sets;
        if (!prepare(lab, l, b, set))
            return;
        CUDA(cudaStreamSynchronize(lab->stream));
        const double t0 = now_us();
        plan_lane(lab, l, b);
        const double t1 = now_us();
        launch(lab, l, b, set);
        CUDA(cudaStreamSynchronize(lab->stream));
        plan[i] = t1 - t0, wall[i] = now_us() - t0;
    }
    l->plan_us = median(plan, WALLS), l->wall_us = median(wall, WALLS);
}

/* A graph of one run, or NULL where the lane's launches differ from step to step: it fits our
 * persistent route, peers planned for graphs, and peers without a plan. */
static cudaGraphExec_t capture(Lab *lab, Lane *l, const Batch *b)
{
    const Entry *e = l->entry;
    const int fits = e->peer == NULL ? e->route == ATTN_PERSISTENT
                                     : e->settings.graph || strncmp(e->peer, "trtllm", 6) == 0;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (!fits || !prepare(lab, l, b, 0) || !plan_lane(lab, l, b))
        return NULL;
    CUDA(cudaStreamSynchronize(lab->stream));
    CUDA(cudaStreamBeginCapture(lab->stream, cudaStreamCaptureModeThreadLocal));
    const int ok = launch(lab, l, b, 0);
    if (cudaStreamEndCapture(lab->stream, &graph) != cudaSuccess || !ok || graph == NULL) {
        (void)cudaGetLastError();
        return NULL;
    }
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* Other pages where the graph reads them (ours: set 0's arrays), and the plan. */
static void rewrite(Lab *lab, Lane *l, const Batch *b, int set)
{
    if (l->peer == NULL)
        CUDA(cudaMemcpy((void *)b->on[0].table, lab->tables[set], sizeof(int) * (size_t)b->n_pages,
                        cudaMemcpyHostToDevice));
    else
        prepare(lab, l, b, set);
}

/* Wall becomes that of the graph where it is shorter. */
static void time_graph(Lab *lab, Lane *l, const Batch *b)
{
    double x[GRAPHS], wall[GRAPHS];
    cudaGraphExec_t exec = capture(lab, l, b);
    if (exec == NULL)
        return;
    for (int i = 0; i < GRAPHS; i++) {
        rewrite(lab, l, b, lab->turn++ % b->sets);
        plan_lane(lab, l, b);
        OK(attn_device_spin(40000, lab->stream, &lab_error));
        CUDA(cudaEventRecord(lab->e0, lab->stream));
        CUDA(cudaGraphLaunch(exec, lab->stream));
        CUDA(cudaEventRecord(lab->e1, lab->stream));
        x[i] = between(lab);
        rewrite(lab, l, b, lab->turn++ % b->sets);
        CUDA(cudaStreamSynchronize(lab->stream));
        const double t0 = now_us();
        plan_lane(lab, l, b);
        CUDA(cudaGraphLaunch(exec, lab->stream));
        CUDA(cudaStreamSynchronize(lab->stream));
        wall[i] = now_us() - t0;
    }
    rewrite(lab, l, b, 0);
    l->graph_us = median(x, GRAPHS);
    const double with = median(wall, GRAPHS);
    l->wall_us = with < l->wall_us || l->wall_us <= 0 ? with : l->wall_us;
    CUDA(cudaGraphExecDestroy(exec));
}

/* --- output --- */

static void number(FILE *f, double x, const char *format)
{
    fputc(',', f);
    if (x > 0)
        fprintf(f, format, x);
}

static void write_lane(const Lab *lab, const Cell *c, const Batch *b, const Lane *l)
{
    FILE *f = lab->csv;
    if (f == NULL)
        return;
    fprintf(f, "%s,%s,%d.%d,%s,%s,%s_B%d,%s,%d,%d,%d,%d,16,fp16,HND,%.0f,%.2f", lab->gpu,
            lab->driver, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, lab->commit, lab->date,
            c->family, c->rows, l->entry->label, c->rows, c->q_heads, c->kv_heads, c->head_dim,
            b->kv_bytes, 5 + b->kv_bytes / lab->rate);
    number(f, l->runs ? l->kernel_us : 0, "%.2f");
    number(f, l->runs ? l->graph_us : 0, "%.2f");
    number(f, l->runs ? l->plan_us : 0, "%.2f");
    number(f, l->runs ? l->wall_us : 0, "%.2f");
    number(f, l->runs ? 1e-3 * b->kv_bytes / l->kernel_us : 0, "%.1f");
    number(f, l->runs ? l->launches : 0, "%.0f");
    fprintf(f, ",%lld",
            l->cuda != NULL && l->runs ? (long long)l->plan.counts.merge_state_bytes : 0LL);
    if (l->errors.values > 0)
        fprintf(f, ",%.3g,%.3g", l->errors.max_abs, l->errors.mean_abs);
    else
        fprintf(f, ",,");
    fprintf(f, ",%d", lab->rounds);
    number(f, l->runs ? l->tables_us : 0, "%.1f");
    fprintf(f, ",%lld,%s\n", l->plan_bytes, l->runs ? "" : l->note);
    fflush(f);
}

/* Best of ours, of all peers and settings, of the peers' defaults, of flashinfer-tc's. */
static void summarise(Lab *lab, const Cell *c, const Batch *b)
{
    const Lane *ours = NULL, *best = NULL, *plain = NULL, *tc = NULL;
    double wall = 1e30, our_wall = 1e30;
    for (int k = 0; k < N_ENTRIES; k++) {
        const Lane *l = &lab->lane[k];
        if (!l->runs)
            continue;
        const int mine = l->entry->peer == NULL;
        const Lane **to = mine ? &ours : &best;
        if (*to == NULL || l->kernel_us < (*to)->kernel_us)
            *to = l;
        if (l->entry->is_default && (plain == NULL || l->kernel_us < plain->kernel_us))
            plain = l;
        if (strcmp(l->entry->label, "flashinfer-tc") == 0)
            tc = l;
        double *w = mine ? &our_wall : &wall;
        *w = l->wall_us > 0 && l->wall_us < *w ? l->wall_us : *w;
    }
    if (ours == NULL || best == NULL || plain == NULL || lab->n_summary == 64)
        return;
    const double floor = 5 + b->kv_bytes / lab->rate;
    char name[32];
    snprintf(name, sizeof name, "%s_B%d", c->family, c->rows);
    snprintf(lab->summary[lab->n_summary++], sizeof lab->summary[0],
             "%-15s %7.0f %7.1f %7.1f %-10.10s %7.1f %-22.22s %5.2f %5.2f %5.2f wall %5.2f", name,
             b->kv_bytes * 1e-6, floor, ours->kernel_us, ours->entry->label, best->kernel_us,
             best->entry->label, best->kernel_us / ours->kernel_us,
             plain->kernel_us / ours->kernel_us, tc ? tc->kernel_us / ours->kernel_us : 0,
             wall / our_wall);
}

/* --- a cell --- */

static void host_tables(Lab *lab, const Batch *b)
{
    lab->tables = calloc((size_t)b->sets, sizeof *lab->tables);
    for (int s = 0; s < b->sets; s++) {
        lab->tables[s] = malloc(sizeof(int) * (size_t)(b->n_pages + 1));
        CUDA(cudaMemcpy(lab->tables[s], b->on[s].table, sizeof(int) * (size_t)b->n_pages,
                        cudaMemcpyDeviceToHost));
    }
}

/* Pages in use: enough for cold sets, and below 2^32 elements a tensor where the cell allows. */
static void set_view(Lab *lab, const AttnShape *s, int64_t pages)
{
    lab->view = lab->pool;
    attn_pool_strides(&lab->view, s);
    const int64_t all = lab->bytes / (2 * lab->view.page_stride);
    const int64_t narrow = (((int64_t)1 << 32) - 1) / lab->view.page_stride;
    int64_t want = pages + (int64_t)1200000000 / (4 * lab->view.page_stride);
    if (want > narrow && pages <= narrow)
        want = narrow;
    lab->view.pages = want < all ? want : all;
}

static void run_cell(Lab *lab, const Cell *c)
{
    int lens[MAX_ROWS];
    const AttnShape s = {c->q_heads, c->kv_heads, c->head_dim, 16, ATTN_F16, ATTN_HND};
    Random random = {7};
    int64_t pages = 0;
    for (int r = 0; r < c->rows; r++) {
        lens[r] = one_len(c, &random, r);
        pages += (lens[r] + 15) / 16;
    }
    set_view(lab, &s, pages);
    if (pages > lab->view.pages) {
        printf("%s_B%d: %lld pages of %d bytes do not fit the pool of %lld\n", c->family, c->rows,
               (long long)pages, 4 * (int)lab->view.page_stride, (long long)lab->view.pages);
        return;
    }
    const double bytes = 4.0 * (double)pages * (double)lab->view.page_stride;
    const int sets = bytes > 6e8 ? 2 : (int)(6e8 / bytes) + 2;
    Batch *b = batch_new(&s, c->rows, lens, lab->view.pages, sets > 16 ? 16 : sets, &lab->random);
    host_tables(lab, b);
    for (int k = 0; k < N_ENTRIES; k++) {
        Lane *l = &lab->lane[k];
        *l = (Lane){.entry = &entries[k]};
        if (!listed(lab->routes, entries[k].label))
            note(l, "not asked for");
        else if (entries[k].peer == NULL)
            open_ours(l, b);
        else
            open_peer(lab, l, b);
        if (l->runs && lab->check)
            check_lane(lab, l, b);
    }
    time_kernels(lab, b);
    for (int k = 0; k < N_ENTRIES; k++) {
        Lane *l = &lab->lane[k];
        if (l->runs)
            time_wall(lab, l, b);
        if (l->runs)
            time_graph(lab, l, b);
        if (!l->runs)
            printf("%s_B%d %s: %s\n", c->family, c->rows, l->entry->label, l->note);
        write_lane(lab, c, b, l);
    }
    summarise(lab, c, b);
    for (int k = 0; k < N_ENTRIES; k++)
        lane_free(&lab->lane[k]);
    for (int i = 0; i < b->sets; i++)
        free(lab->tables[i]);
    free(lab->tables), free(lab->first_out);
    lab->first_out = NULL;
    batch_free(b);
}

/* --- the run --- */

static void measure_rate(Lab *lab)
{
    double x[9];
    const int64_t half = lab->bytes / 2 / 4096 * 4096;
    const int64_t size = half < 2147483648 ? half : 2147483648;
    for (int i = 0; i < 9; i++) {
        OK(attn_device_spin(40000, lab->stream, &lab_error));
        CUDA(cudaEventRecord(lab->e0, lab->stream));
        OK(attn_device_read((char *)lab->pool.k + (i % 2) * size, size, lab->pool.v, lab->sms,
                            lab->stream, &lab_error));
        CUDA(cudaEventRecord(lab->e1, lab->stream));
        x[i] = between(lab);
    }
    lab->rate = (double)size / (median(x, 9) - 5);
    printf("%s: read %.0f GB/s\n", lab->gpu, 1e-3 * lab->rate);
}

static void lab_open(Lab *lab, double gib, const char *csv)
{
    struct cudaDeviceProp p;
    int driver = 0;
    time_t now = time(NULL);
    CUDA(cudaGetDeviceProperties(&p, 0));
    CUDA(cudaDriverGetVersion(&driver));
    snprintf(lab->gpu, sizeof lab->gpu, "%s", p.name);
    if (lab->driver[0] == 0)
        snprintf(lab->driver, sizeof lab->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
    strftime(lab->date, sizeof lab->date, "%Y-%m-%d", gmtime(&now));
    lab->sms = p.multiProcessorCount;
    const AttnShape s = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    lab->pool.pages = (int64_t)(gib * (1 << 30)) / 2 / attn_pool_bytes(&s, 1);
    lab->bytes = attn_pool_bytes(&s, lab->pool.pages);
    attn_pool_strides(&lab->pool, &s);
    CUDA(cudaMalloc(&lab->pool.k, (size_t)lab->bytes));
    CUDA(cudaMalloc(&lab->pool.v, (size_t)lab->bytes));
    CUDA(cudaStreamCreateWithFlags(&lab->stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&lab->e0));
    CUDA(cudaEventCreate(&lab->e1));
    OK(attn_device_fill(&s, &lab->pool, 1, lab->stream, &lab_error));
    CUDA(cudaDeviceSynchronize());
    if (csv != NULL && (lab->csv = fopen(csv, "w")) == NULL)
        lab_fail(__FILE__, __LINE__, csv);
    if (lab->csv != NULL)
        fprintf(lab->csv, "gpu,driver,toolkit,commit,date,cell,route,rows,q_heads,kv_heads,"
                          "head_dim,page_size,dtype,layout,kv_bytes,floor_us,kernel_us,graph_us,"
                          "plan_us,wall_us,gb_per_s,launches,merge_state_bytes,max_abs_err,"
                          "mean_abs_err,repeats,tables_us,plan_bytes,note\n");
}

static int parse(Lab *lab, int argc, char **argv, const char **csv, double *gib)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--no-check") == 0) {
            lab->check = 0;
            continue;
        }
        if (strcmp(a, "--csv") == 0)
            *csv = next;
        else if (strcmp(a, "--cells") == 0)
            lab->cells = next;
        else if (strcmp(a, "--routes") == 0)
            lab->routes = next;
        else if (strcmp(a, "--pool") == 0)
            *gib = strtod(next, NULL);
        else if (strcmp(a, "--repeats") == 0)
            lab->rounds = atoi(next) < MAX_ROUNDS ? atoi(next) : MAX_ROUNDS;
        else if (strcmp(a, "--seconds") == 0)
            lab->seconds = strtod(next, NULL);
        else if (strcmp(a, "--commit") == 0)
            lab->commit = next;
        else if (strcmp(a, "--driver") == 0)
            snprintf(lab->driver, sizeof lab->driver, "%s", next);
        else {
            fprintf(stderr, "peers-lab: unknown option %s\n", a);
            return 2;
        }
        i++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static Lab lab = {.commit = "unknown", .rounds = 15, .check = 1, .seconds = 1e9, .random = {3}};
    const char *csv = NULL;
    double gib = 36;
    int devices = 0;
    const int bad = parse(&lab, argc, argv, &csv, &gib);
    if (bad)
        return bad;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no CUDA device: skipped\n");
        return 77;
    }
    lab.started = now_us();
    lab_open(&lab, gib, csv);
    measure_rate(&lab);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_B%d", cells[i].family, cells[i].rows);
        if (!listed(lab.cells, name) && !listed(lab.cells, cells[i].family))
            continue;
        if (1e-6 * (now_us() - lab.started) > lab.seconds) {
            printf("%s and later cells: no time left\n", name);
            break;
        }
        run_cell(&lab, &cells[i]);
    }
    printf("%-15s %7s %7s %7s %-10s %7s %-22s %5s %5s %5s\n", "cell", "MB", "floor", "ours", "",
           "peer", "best of all settings", "/best", "/def", "/tc");
    for (int i = 0; i < lab.n_summary; i++)
        puts(lab.summary[i]);
    printf("seconds %.0f\n", 1e-6 * (now_us() - lab.started));
    if (lab.csv != NULL)
        fclose(lab.csv);
    return 0;
}
