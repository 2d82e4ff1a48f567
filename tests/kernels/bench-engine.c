/* Benchmark: how fast the CPU engine reads K and V, beside what this machine reads at all with the
 * same threads, streaming. The two alternate; the share is of the best of each. Rates are by wall
 * time and, because a busy machine steals that, by processor time (bytes over processor seconds,
 * times threads).
 */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "attn-case.h"
#include "kernels/cpu_engine.h"

typedef struct Rate {
    double wall, cpu; /* bytes/s, best so far */
} Rate;

typedef struct Stopwatch {
    double wall, cpu;
} Stopwatch;

static double clock_seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Stopwatch stopwatch(void)
{
    return (Stopwatch){clock_seconds(CLOCK_MONOTONIC), clock_seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static void rate_update(Rate *rate, Stopwatch from, double bytes, int threads)
{
    const Stopwatch now = stopwatch();
    rate->wall = MAX(rate->wall, bytes / (now.wall - from.wall));
    rate->cpu = MAX(rate->cpu, bytes * threads / (now.cpu - from.cpu));
}

typedef struct Stream {
    void *data;
    gint64 bytes;
} Stream;

static void cell(AttnCpu *cpu, Stream stream, gint32 group, gint32 d, AttnDtype dtype,
                 AttnRoute route)
{
    const AttnShape shape = {8 * group, 8, d, 16, dtype, ATTN_HND};
    gint32 lens[8];
    for (gint i = 0; i < 8; i++)
        lens[i] = (i % 4 == 0 ? 12000 : 2000) * 128 / d;
    AttnCase c;
    attn_case_init(&c, &shape, 8, lens, 1);
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnPlanConfig config;
    attn_plan_config_init(&config, route, attn_cpu_threads(cpu));
    attn_plan_build(&plan, &config, &shape, 8, lens);
    AttnPartials p = {.slots = plan.counts.partial_slots};
    p.ml = g_new(float, p.slots *group * 2 + 1);
    p.acc = g_new(float, p.slots *group *d + 1);
    Rate read = {0}, engine = {0};
    const int threads = attn_cpu_threads(cpu);
    for (gint i = 0; i < 7; i++) {
        Stopwatch from = stopwatch();
        attn_cpu_read_rate(cpu, stream.data, stream.bytes, 1);
        rate_update(&read, from, (double)stream.bytes, threads);
        from = stopwatch();
        attn_cpu_run(cpu, &shape, &c.pool, &c.batch, &plan, &p);
        rate_update(&engine, from, (double)plan.counts.kv_bytes, threads);
    }
    printf(
        "%-16s G %2d d %3d %s: %6.1f MB  %5.1f of %5.1f GB/s = %3.0f %%; by processor time %5.1f "
        "of %5.1f = %3.0f %%\n",
        attn_route_name(route), group, d, dtype == ATTN_F16 ? "fp16" : "bf16",
        (double)plan.counts.kv_bytes / 1e6, engine.wall / 1e9, read.wall / 1e9,
        100 * engine.wall / read.wall, engine.cpu / 1e9, read.cpu / 1e9,
        100 * engine.cpu / read.cpu);
    g_free(p.ml);
    g_free(p.acc);
    attn_plan_free(&plan);
    attn_case_clear(&c);
}

int main(void)
{
    AttnCpu *cpu = attn_cpu_new(0);
    const gsize bytes = 256u << 20;
    void *data = g_aligned_alloc(1, bytes, 64);
    memset(data, 1, bytes);
    const Stream stream = {data, (gint64)bytes};
    printf("%d threads, %s; pages in random order\n", attn_cpu_threads(cpu), attn_cpu_isa(cpu));
    static const gint32 groups[] = {1, 2, 4, 7, 8, 16};
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++)
        cell(cpu, stream, groups[i], 128, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, stream, 4, 128, ATTN_BF16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, stream, 4, 64, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, stream, 4, 256, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, stream, 4, 128, ATTN_F16, ATTN_BUCKETS);
    cell(cpu, stream, 4, 128, ATTN_F16, ATTN_PERSISTENT);
    g_aligned_free(data);
    attn_cpu_free(cpu);
    return 0;
}
