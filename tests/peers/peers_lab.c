/* peers-lab [--csv FILE] [--cells a,b,..] [--routes a,b,..] [--pool GiB] [--repeats N]
 *           [--seconds N] [--commit ID] [--driver VERSION] [--no-check]
 *
 * Peers and our own routes, cell by cell, in one run: same pages, tables and queries. In each round
 * every route runs twice, another one first each time, always on other pages, so that K and V are
 * cold in L2; the second run is timed, so that the code is warm for all alike. Kernel: events
 * around the launches, behind a spinning kernel. Graph: the same launches replayed from a graph
 * that was captured once, after tables and plan for other pages were written where it reads them.
 * Plan: the planner with its uploads, block tables not in it. Wall: plan, launches, synchronised.
 * Before any is timed, our first route's longest and shortest row are checked against the fp64
 * reference, and every other route against ours, all rows; a route beyond the tolerance is not
 * timed.
 *
 * The floor is measured in the same run: 5 us + bytes / streaming read rate.
 * Ends after the cell in hand when `--seconds` have passed. Prints the summary last.
 */
#include "peers_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

const Entry entries[N_ENTRIES] = {
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
            lane_note(l, "not asked for");
        else
            lane_open(lab, l, b);
        if (l->runs && lab->check)
            lane_check(lab, l, b);
    }
    lab_time_kernels(lab, b);
    for (int k = 0; k < N_ENTRIES; k++) {
        Lane *l = &lab->lane[k];
        if (l->runs)
            lane_time_wall(lab, l, b);
        if (l->runs)
            lane_time_graph(lab, l, b);
        if (!l->runs)
            printf("%s_B%d %s: %s\n", c->family, c->rows, l->entry->label, l->note);
        lab_write_lane(lab, c, b, l);
    }
    lab_summarise(lab, c, b);
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
        x[i] = lab_between(lab);
    }
    lab->rate = (double)size / (lab_median(x, 9) - 5);
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
        lab_write_header(lab->csv);
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
    lab.started = lab_now_us();
    lab_open(&lab, gib, csv);
    measure_rate(&lab);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_B%d", cells[i].family, cells[i].rows);
        if (!listed(lab.cells, name) && !listed(lab.cells, cells[i].family))
            continue;
        if (1e-6 * (lab_now_us() - lab.started) > lab.seconds) {
            printf("%s and later cells: no time left\n", name);
            break;
        }
        run_cell(&lab, &cells[i]);
    }
    printf("%-15s %7s %7s %7s %-10s %7s %-22s %5s %5s %5s\n", "cell", "MB", "floor", "ours", "",
           "peer", "best of all settings", "/best", "/def", "/tc");
    for (int i = 0; i < lab.n_summary; i++)
        puts(lab.summary[i]);
    printf("seconds %.0f\n", 1e-6 * (lab_now_us() - lab.started));
    if (lab.csv != NULL)
        fclose(lab.csv);
    return 0;
}
