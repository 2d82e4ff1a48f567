/* attn-lab time [--csv FILE] [--cells a,b,..] [--pool GiB] [--tune WxSxC,..] [--sms N] [--routes
 * a,b]
 *               [--commit ID] [--repeats N] [--no-check] [--skew FILE]
 *
 * Times cells (batch x context x shape): events around one launch behind a spinning kernel, a graph
 * of launches, host planning, and wall time; L2 cold by taking other pages, lengths and tables each
 * time. The floor is measured in the same run: a streaming read of 2 GB gives the rate, and floor =
 * 5 us + bytes / rate; `gather` lines are the kernel's loads without arithmetic. Rows of every cell
 * are checked against the fp64 reference before any is timed.
 *
 * --skew: after each cell of unequal rows (bimodal, uniform, zipf; not with NHD or other shapes)
 * its even twin, NAME_even: as many rows, as many tokens in all, of equal length. The file, and
 * lines that begin with "skew", have the ratio of the two read rates by route: 1 = skew costs
 * nothing.
 */
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ROWS = 256, GRAPH = 16 };

typedef struct Cell {
    const char *name;
    int rows, min, max; /* lengths uniform in min..max; max < 0: special */
    int q_heads, kv_heads, head_dim, layout, dtype, page;
} Cell;

enum { BIMODAL = -1, ZIPF = -2 };

#define LLAMA 32, 8, 128, ATTN_HND, ATTN_F16, 16
#define G8 64, 8, 128, ATTN_HND, ATTN_F16, 16
#define G1 8, 8, 128, ATTN_HND, ATTN_F16, 16
#define D64 32, 8, 64, ATTN_HND, ATTN_F16, 16
#define D256 16, 4, 256, ATTN_HND, ATTN_F16, 16
#define BF16 32, 8, 128, ATTN_HND, ATTN_BF16, 16
#define NHD 32, 8, 128, ATTN_NHD, ATTN_F16, 16
static const Cell cells[] = {
    {"2K_B1", 1, 2048, 2048, LLAMA},          {"2K_B4", 4, 2048, 2048, LLAMA},
    {"2K_B8", 8, 2048, 2048, LLAMA},          {"2K_B64", 64, 2048, 2048, LLAMA},
    {"8K_B1", 1, 8192, 8192, LLAMA},          {"8K_B4", 4, 8192, 8192, LLAMA},
    {"8K_B8", 8, 8192, 8192, LLAMA},          {"8K_B16", 16, 8192, 8192, LLAMA},
    {"8K_B32", 32, 8192, 8192, LLAMA},        {"32K_B1", 1, 32768, 32768, LLAMA},
    {"32K_B4", 4, 32768, 32768, LLAMA},       {"32K_B16", 16, 32768, 32768, LLAMA},
    {"short256", 256, 1, 300, LLAMA},         {"bimodal_B4", 4, 0, BIMODAL, LLAMA},
    {"bimodal_B8", 8, 0, BIMODAL, LLAMA},     {"bimodal_B16", 16, 0, BIMODAL, LLAMA},
    {"bimodal_B32", 32, 0, BIMODAL, LLAMA},   {"bimodal_B64", 64, 0, BIMODAL, LLAMA},
    {"uniform_B4", 4, 4096, 32768, LLAMA},    {"uniform_B8", 8, 4096, 32768, LLAMA},
    {"uniform_B16", 16, 4096, 32768, LLAMA},  {"uniform_B32", 32, 4096, 32768, LLAMA},
    {"uniform_B64", 64, 4096, 32768, LLAMA},  {"zipf_B4", 4, 0, ZIPF, LLAMA},
    {"zipf_B8", 8, 0, ZIPF, LLAMA},           {"zipf_B16", 16, 0, ZIPF, LLAMA},
    {"zipf_B32", 32, 0, ZIPF, LLAMA},         {"zipf_B64", 64, 0, ZIPF, LLAMA},
    {"G8_8K_B1", 1, 8192, 8192, G8},          {"G8_2K_B4", 4, 2048, 2048, G8},
    {"G8_2K_B8", 8, 2048, 2048, G8},          {"G8_8K_B8", 8, 8192, 8192, G8},
    {"G8_8K_B32", 32, 8192, 8192, G8},        {"G8_bimodal_B32", 32, 0, BIMODAL, G8},
    {"D64_8K_B1", 1, 8192, 8192, D64},        {"D64_8K_B4", 4, 8192, 8192, D64},
    {"D64_8K_B16", 16, 8192, 8192, D64},      {"D64_8K_B64", 64, 8192, 8192, D64},
    {"D64_bimodal_B32", 32, 0, BIMODAL, D64}, {"G1_8K_B8", 8, 8192, 8192, G1},
    {"D256_8K_B8", 8, 8192, 8192, D256},      {"bf16_8K_B8", 8, 8192, 8192, BF16},
    {"NHD_8K_B8", 8, 8192, 8192, NHD},        {"NHD_8K_B32", 32, 8192, 8192, NHD},
};

typedef struct Lab {
    AttnPool pool; /* memory; strides by shape */
    int64_t bytes;
    double rate; /* bytes/us */
    FILE *csv, *skew;
    const char *commit, *cells, *routes, *tune;
    char gpu[320], driver[32], date[32];
    int sms, all_sms, repeats;
    bool check;
    cudaStream_t stream;
    cudaEvent_t e0, e1;
    Random random;
    double took[ATTN_ROUTE_MAX]; /* kernel time of the cell last timed, by route; 0 = not timed */
} Lab;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double between(const Lab *lab)
{
    float ms;
    CUDA(cudaEventSynchronize(lab->e1));
    CUDA(cudaEventElapsedTime(&ms, lab->e0, lab->e1));
    return 1e3 * (double)ms;
}

static void behind_spin(Lab *lab)
{
    OK(attn_device_spin(30000, lab->stream, &lab_error));
    CUDA(cudaEventRecord(lab->e0, lab->stream));
}

static double timed(Lab *lab)
{
    CUDA(cudaEventRecord(lab->e1, lab->stream));
    return between(lab);
}

/* Does a read of other data empty the caches, as replays and benches believe? Reading 32 MB that an
 * ordinary load left there, again, and after reading 256 MB of something else in both ways: the
 * last is to take as long as data that was never there. */
static void print_emptied(Lab *lab)
{
    const int64_t n = 33554432, other = 268435456;
    char *from = lab->pool.k;
    double x[3][15];
    for (int how = 0; how < 3 && other + n <= lab->bytes; how++)
        for (int r = 0; r < 15; r++) {
            OK(attn_device_displace(from, n, lab->pool.v, lab->all_sms, lab->stream, &lab_error));
            if (how > 0)
                OK((how == 1 ? attn_device_read : attn_device_displace)(
                    from + n, other, lab->pool.v, lab->all_sms, lab->stream, &lab_error));
            behind_spin(lab);
            OK(attn_device_read(from, n, lab->pool.v, lab->all_sms, lab->stream, &lab_error));
            x[how][r] = timed(lab);
        }
    if (other + n <= lab->bytes)
        printf(
            "read 33 MB again: %.1f us; after other data was streamed %.1f, after it was read by "
            "ordinary loads %.1f\n",
            median(x[0], 15), median(x[1], 15), median(x[2], 15));
}

static void measure_floor(Lab *lab)
{
    double x[30];
    static const int64_t sizes[] = {8388608, 33554432, 134217728, 536870912, 2147483648};
    for (int i = 0; i < 5; i++) {
        for (int r = 0; r < 15; r++) {
            const int64_t at = (int64_t)r * 2 % 8 * (lab->bytes / 8) / 4096 * 4096;
            behind_spin(lab);
            OK(attn_device_read((char *)lab->pool.k + (at + sizes[i] <= lab->bytes ? at : 0),
                                sizes[i], lab->pool.v, lab->all_sms, lab->stream, &lab_error));
            x[r] = timed(lab);
        }
        const double us = median(x, 15);
        printf("read %5lld MB: %.1f us, %.0f GB/s\n", (long long)(sizes[i] / 1000000), us,
               1e-3 * (double)sizes[i] / us);
        lab->rate = (double)sizes[i] / (us - 5);
    }
    print_emptied(lab);
    for (int r = 0; r < 30; r++) {
        behind_spin(lab);
        OK(attn_device_empty(lab->stream, &lab_error));
        x[r] = timed(lab);
    }
    printf("empty kernel: %.2f us; rate for the floor: %.0f GB/s\n", median(x, 30),
           1e-3 * lab->rate);
}

/* The published batches (the PersistentKV experiments): bimodal, 1 in 4 rows long; zipf by rank. */
static int bimodal(Random *r, int i)
{
    return i % 4 == 0 ? 24576 + random_below(r, 40961) : 2048 + random_below(r, 10241);
}

static int zipf(Random *r)
{
    const int rank = 1 + random_below(r, 32);
    const int len = (int)(2048 + 65536 / sqrt((double)rank)) + random_below(r, 1025) - 512;
    return len < 1024 ? 1024 : len;
}

/* Unequal rows of the default shape: what skew is judged on. */
static bool has_twin(const Cell *c)
{
    return c->min != c->max && c->rows <= 64 && c->q_heads == 32 && c->head_dim == 128;
}

/* As many tokens in all, as evenly as they go. */
static void even_lens(int rows, const int *lens, int *even)
{
    int64_t all = 0;
    for (int i = 0; i < rows; i++)
        all += lens[i];
    for (int i = 0; i < rows; i++)
        even[i] = (int)(all / rows + (i < all % rows));
}

static void cell_lens(const Cell *c, int *lens, Random *r)
{
    for (int i = 0; i < c->rows; i++)
        lens[i] = c->max == BIMODAL ? bimodal(r, i)
                  : c->max == ZIPF  ? zipf(r)
                                    : c->min + random_below(r, c->max - c->min + 1);
}

typedef struct Line {
    double kernel, graph, plan, wall, host; /* host: plan, upload and launches, not waiting */
    int launches;
    int64_t merge_bytes;
    Errors errors;
} Line;

static void write_line(Lab *lab, const Cell *c, const Batch *b, const char *route, const Line *l)
{
    const double floor = 5 + b->kv_bytes / lab->rate;
    if (lab->csv == NULL)
        return;
    fprintf(lab->csv, "%s,%s,%d.%d,%s,%s,%s,%s,%d,%d,%d,%d,%d,%s,%s,%.0f,%.2f,%.2f,", lab->gpu,
            lab->driver, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, lab->commit, lab->date,
            c->name, route, c->rows, c->q_heads, c->kv_heads, c->head_dim, c->page,
            c->dtype == ATTN_BF16 ? "bf16" : "fp16", c->layout == ATTN_NHD ? "NHD" : "HND",
            b->kv_bytes, floor, l->kernel);
    if (l->graph > 0)
        fprintf(lab->csv, "%.2f", l->graph);
    fprintf(lab->csv, ",%.2f,%.2f,%.1f,%d,%lld,", l->plan, l->wall, 1e-3 * b->kv_bytes / l->kernel,
            l->launches, (long long)l->merge_bytes);
    if (l->errors.values > 0)
        fprintf(lab->csv, "%.3g,%.3g", l->errors.max_abs, l->errors.mean_abs);
    else
        fprintf(lab->csv, ",");
    fprintf(lab->csv, ",%d\n", lab->repeats);
    fflush(lab->csv);
}

typedef struct Job {
    Lab *lab;
    AttnCuda *cuda;
    const Batch *b;
    AttnPlan *plan;
    bool gather;
} Job;

static void job_launch(Job *j, int set)
{
    if (j->gather)
        gather_run(j->cuda, &j->lab->pool, &j->b->on[set % j->b->sets], j->plan, &j->b->shape,
                   j->lab->stream);
    else
        OK(attn_cuda_run(j->cuda, &j->lab->pool, &j->b->on[set % j->b->sets], j->plan,
                         j->lab->stream, &lab_error));
}

static double time_events(Job *j)
{
    double x[256];
    for (int r = -3; r < j->lab->repeats; r++) {
        behind_spin(j->lab);
        job_launch(j, r + 3);
        const double us = timed(j->lab);
        if (r >= 0)
            x[r] = us;
    }
    return median(x, j->lab->repeats);
}

static double time_graph(Job *j)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    double x[12];
    CUDA(cudaStreamBeginCapture(j->lab->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < GRAPH; i++)
        job_launch(j, i);
    CUDA(cudaStreamEndCapture(j->lab->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int r = -1; r < 11; r++) {
        behind_spin(j->lab);
        CUDA(cudaGraphLaunch(exec, j->lab->stream));
        const double us = timed(j->lab) / GRAPH;
        if (r >= 0)
            x[r] = us;
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    return median(x, 11);
}

/* Host: plan and upload; then all of it, synchronised. */
static void time_host(Job *j, AttnPlanConfig *pc, Line *l)
{
    double plan[21], wall[21], host[21];
    for (int r = 0; r < 21; r++) {
        CUDA(cudaStreamSynchronize(j->lab->stream));
        const double t0 = now_us();
        attn_cuda_fit_plan(j->cuda, pc, j->b->rows, j->b->lens);
        if (pc->route != ATTN_PERSISTENT)
            attn_plan_build(j->plan, pc, &j->b->shape, j->b->rows, j->b->lens);
        OK(attn_cuda_upload(j->cuda, j->plan, j->lab->stream, NULL, &lab_error));
        const double t1 = now_us();
        job_launch(j, r);
        host[r] = now_us() - t0;
        CUDA(cudaStreamSynchronize(j->lab->stream));
        plan[r] = t1 - t0, wall[r] = now_us() - t0;
    }
    l->plan = median(plan, 21), l->wall = median(wall, 21), l->host = median(host, 21);
}

static bool listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    if (list == NULL)
        return true;
    for (const char *p = list; (p = strstr(p, name)) != NULL; p++)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == 0))
            return true;
    return false;
}

static void time_route(Lab *lab, const Cell *c, Batch *b, const double *want, AttnRoute route,
                       const AttnCudaTuning *tune, const char *label)
{
    AttnCuda *cuda = NULL;
    AttnCudaConfig cc = {.shape = b->shape,
                         .max_rows = b->rows,
                         .max_tasks = 200000,
                         .max_slots = 40000,
                         .sms = lab->sms};
    cc.persistent = cc.tasks = *tune;
    OK(attn_cuda_new(&cuda, &cc, &lab_error));
    AttnPlan plan;
    AttnPlanConfig pc;
    attn_plan_init(&plan);
    attn_plan_config_init(&pc, route, 1);
    attn_cuda_fit_plan(cuda, &pc, b->rows, b->lens);
    if (attn_plan_build(&plan, &pc, &b->shape, b->rows, b->lens) != ATTN_OK)
        lab_fail(__FILE__, __LINE__, "plan");
    Line l = {.launches = plan.counts.launches, .merge_bytes = plan.counts.merge_state_bytes};
    Job j = {lab, cuda, b, &plan, false};
    OK(attn_device_poison(b->out, (int64_t)b->rows * c->q_heads * c->head_dim, lab->stream,
                          &lab_error));
    OK(attn_cuda_upload(cuda, &plan, lab->stream, NULL, &lab_error));
    job_launch(&j, 0);
    CUDA(cudaStreamSynchronize(lab->stream));
    if (want != NULL)
        batch_compare(b, want, lab->check ? (b->rows + 3) / 4 : 1, &l.errors);
    l.kernel = time_events(&j);
    if (tune->warps == 0)
        lab->took[route] = l.kernel;
    if (plan.counts.launches <= 8)
        l.graph = time_graph(&j);
    time_host(&j, &pc, &l);
    const AttnCudaTuning t = attn_cuda_tuning(cuda, route, pc.workers);
    const double floor = 5 + b->kv_bytes / lab->rate;
    printf("%-15s %-15s %dx%d %3d %8.1f MB floor %7.1f event %7.1f (%.2f, %+5.1f) graph %7.1f plan "
           "%5.1f host %5.1f wall %6.1f err %.2g%s\n",
           c->name, label, t.warps, t.stages, pc.workers, b->kv_bytes * 1e-6, floor, l.kernel,
           l.kernel / floor, l.kernel - floor, l.graph, l.plan, l.host, l.wall, l.errors.max_abs,
           l.errors.bad ? " WRONG" : "");
    write_line(lab, c, b, label, &l);
    if (route == ATTN_PERSISTENT && c->head_dim == 128 && tune->warps == 0 && lab->sms == 0) {
        j.gather = true;
        Line g = {.launches = 1};
        g.kernel = time_events(&j), g.graph = time_graph(&j);
        printf("%-15s gather %56.1f (%.2f, %+5.1f) graph %7.1f\n", c->name, g.kernel,
               g.kernel / floor, g.kernel - floor, g.graph);
        write_line(lab, c, b, "gather", &g);
    }
    attn_plan_free(&plan);
    attn_cuda_free(cuda);
}

static void time_lens(Lab *lab, const Cell *c, const int *lens)
{
    const AttnShape s = {c->q_heads, c->kv_heads, c->head_dim, c->page, c->dtype, c->layout};
    attn_pool_strides(&lab->pool, &s);
    lab->pool.pages = lab->bytes / (2 * lab->pool.page_stride);
    memset(lab->took, 0, sizeof lab->took);
    int64_t pages = 0;
    for (int r = 0; r < c->rows; r++)
        pages += (lens[r] + c->page - 1) / c->page;
    if (pages > lab->pool.pages) {
        printf("%-15s does not fit the pool\n", c->name);
        return;
    }
    const double bytes = 4.0 * (double)pages * (double)lab->pool.page_stride;
    int sets = (int)(6e8 / bytes) + 2;
    if (sets > 2 * lab->bytes / (int64_t)bytes)
        sets = (int)(2 * lab->bytes / (int64_t)bytes);
    Batch *b = batch_new(&s, c->rows, lens, lab->pool.pages, sets < 1 ? 1 : sets, &lab->random);
    double *want = lab->check ? batch_reference(b, &lab->pool, 0, (c->rows + 3) / 4) : NULL;
    for (int r = 0; r < ATTN_ROUTE_MAX; r++) {
        if (!listed(lab->routes, attn_route_name(r)))
            continue;
        AttnCudaTuning tune = {0};
        time_route(lab, c, b, want, r, &tune, attn_route_name(r));
        for (const char *p = lab->tune; p != NULL && r >= ATTN_WORKQUEUE_FUSED;
             p = strchr(p, ',')) {
            char label[64];
            p += *p == ',';
            if (sscanf(p, "%dx%dx%dx%dx%d", &tune.warps, &tune.stages, &tune.ctas_per_sm,
                       &tune.buffers, &tune.rounds) < 3)
                break;
            snprintf(label, sizeof label, "%.4s-%dx%dx%dx%dx%d", attn_route_name(r), tune.warps,
                     tune.stages, tune.ctas_per_sm, tune.buffers, tune.rounds);
            time_route(lab, c, b, want, r, &tune, label);
        }
    }
    free(want);
    batch_free(b);
}

/* Equal bytes: the ratio of read rates is that of times. */
static void write_skew(Lab *lab, const Cell *c, double bytes, const double *took)
{
    for (int r = 0; r < ATTN_ROUTE_MAX; r++) {
        if (took[r] <= 0 || lab->took[r] <= 0)
            continue;
        printf("skew %-12s %-15s %8.1f MB %7.1f us, even %7.1f us: %.3f of its rate\n", c->name,
               attn_route_name(r), bytes * 1e-6, took[r], lab->took[r], lab->took[r] / took[r]);
        if (lab->skew != NULL)
            fprintf(lab->skew, "%s,%s,%d.%d,%s,%s,%s,%s,%d,%.0f,%.2f,%.1f,%.2f,%.1f,%.4f,%d\n",
                    lab->gpu, lab->driver, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                    lab->commit, lab->date, c->name, attn_route_name(r), c->rows, bytes, took[r],
                    1e-3 * bytes / took[r], lab->took[r], 1e-3 * bytes / lab->took[r],
                    lab->took[r] / took[r], lab->repeats);
    }
    if (lab->skew != NULL)
        fflush(lab->skew);
}

static void time_cell(Lab *lab, const Cell *c)
{
    int lens[MAX_ROWS], even[MAX_ROWS];
    double took[ATTN_ROUTE_MAX], bytes = 0;
    char name[64];
    Random random = {7};
    cell_lens(c, lens, &random);
    time_lens(lab, c, lens);
    if (lab->skew == NULL || !has_twin(c))
        return;
    memcpy(took, lab->took, sizeof took);
    even_lens(c->rows, lens, even);
    Cell twin = *c;
    snprintf(name, sizeof name, "%s_even", c->name);
    twin.name = name;
    time_lens(lab, &twin, even);
    for (int i = 0; i < c->rows; i++)
        bytes += 4.0 * lens[i] * c->kv_heads * c->head_dim;
    write_skew(lab, c, bytes, took);
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
    lab->all_sms = p.multiProcessorCount;
    if (lab->sms > 0)
        snprintf(lab->gpu, sizeof lab->gpu, "%s limited to %d SMs", p.name, lab->sms);
    const AttnShape s = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    lab->bytes = (int64_t)(gib * (1 << 30)) / 2;
    lab->pool.pages = lab->bytes / attn_pool_bytes(&s, 1);
    lab->bytes = lab->pool.pages * attn_pool_bytes(&s, 1);
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
        fprintf(lab->csv,
                "gpu,driver,toolkit,commit,date,cell,route,rows,q_heads,kv_heads,head_dim,"
                "page_size,dtype,layout,kv_bytes,floor_us,kernel_us,graph_us,plan_us,wall_us,"
                "gb_per_s,launches,merge_state_bytes,max_abs_err,mean_abs_err,repeats\n");
}

/* 0 where --sms says nothing or limits the grid; else 77: there is nothing to limit. */
static int check_sms(const Lab *lab)
{
    struct cudaDeviceProp p;
    CUDA(cudaGetDeviceProperties(&p, 0));
    if (lab->sms > 0 && lab->sms < p.multiProcessorCount)
        printf("grid limited to %d of %d SMs; the floor is the whole card's\n", lab->sms,
               p.multiProcessorCount);
    else if (lab->sms != 0)
        printf("%s has %d SMs: no fewer were asked for\n", p.name, p.multiProcessorCount);
    return lab->sms == 0 || (lab->sms > 0 && lab->sms < p.multiProcessorCount) ? 0 : 77;
}

/* A table that could not be written whole is none. */
static void close_table(FILE *f, const char *name)
{
    if (f == NULL)
        return;
    const bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        lab_fail(__FILE__, __LINE__, name);
}

int lab_time(int argc, char **argv)
{
    Lab lab = {.commit = "unknown", .repeats = 31, .check = true, .random = {3}};
    const char *csv = NULL, *skew = NULL;
    double gib = 32;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "", *a = argv[i];
        if (strcmp(a, "--no-check") == 0) {
            lab.check = false;
            continue;
        }
        if (strcmp(a, "--csv") == 0)
            csv = next;
        else if (strcmp(a, "--skew") == 0)
            skew = next;
        else if (strcmp(a, "--cells") == 0)
            lab.cells = next;
        else if (strcmp(a, "--routes") == 0)
            lab.routes = next;
        else if (strcmp(a, "--tune") == 0)
            lab.tune = next;
        else if (strcmp(a, "--commit") == 0)
            lab.commit = next;
        else if (strcmp(a, "--driver") == 0)
            snprintf(lab.driver, sizeof lab.driver, "%s", next);
        else if (strcmp(a, "--pool") == 0)
            gib = strtod(next, NULL);
        else if (strcmp(a, "--sms") == 0)
            lab.sms = atoi(next);
        else if (strcmp(a, "--repeats") == 0)
            lab.repeats = atoi(next) < 256 ? atoi(next) : 255;
        else
            lab_fail(__FILE__, __LINE__, a);
        i++;
    }
    const int skipped = check_sms(&lab);
    if (skipped != 0)
        return skipped;
    lab_open(&lab, gib, csv);
    if (skew != NULL && (lab.skew = fopen(skew, "w")) == NULL)
        lab_fail(__FILE__, __LINE__, skew);
    if (lab.skew != NULL)
        fprintf(lab.skew, "gpu,driver,toolkit,commit,date,cell,route,rows,kv_bytes,kernel_us,"
                          "gb_per_s,even_kernel_us,even_gb_per_s,rate_to_even,repeats\n");
    measure_floor(&lab);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        if (listed(lab.cells, cells[i].name))
            time_cell(&lab, &cells[i]);
    close_table(lab.csv, csv);
    close_table(lab.skew, skew);
    return 0;
}
