/* Benchmark: how fast the CPU engine reads K and V, beside what this machine reads at all with the
 * same threads. Cells: group size and head size; prints GB/s and the share. */
#include <glib.h>
#include <math.h>
#include <stdio.h>

#include "attn-case.h"
#include "kernels/cpu_engine.h"

static void cell(AttnCpu *cpu, double rate, gint32 group, gint32 d, AttnDtype dtype,
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
    double best = 0;
    for (gint i = 0; i < 7; i++) {
        const gint64 from = g_get_monotonic_time();
        attn_cpu_run(cpu, &shape, &c.pool, &c.batch, &plan, &p);
        const double seconds = 1e-6 * (double)(g_get_monotonic_time() - from);
        best = MAX(best, (double)plan.counts.kv_bytes / seconds);
    }
    printf("%-16s G %2d d %3d %s: %6.1f MB  %5.1f GB/s, %3.0f %% of the read rate\n",
           attn_route_name(route), group, d, dtype == ATTN_F16 ? "fp16" : "bf16",
           (double)plan.counts.kv_bytes / 1e6, best / 1e9, 100 * best / rate);
    g_free(p.ml);
    g_free(p.acc);
    attn_plan_free(&plan);
    attn_case_clear(&c);
}

int main(void)
{
    AttnCpu *cpu = attn_cpu_new(0);
    const gsize bytes = 512u << 20;
    void *data = g_aligned_alloc(1, bytes, 64);
    memset(data, 1, bytes);
    const double rate = attn_cpu_read_rate(cpu, data, (gint64)bytes, 7);
    printf("%d threads, %s: this machine reads %.1f GB/s\n", attn_cpu_threads(cpu),
           attn_cpu_isa(cpu), rate / 1e9);
    g_aligned_free(data);
    static const gint32 groups[] = {1, 2, 4, 7, 8, 16};
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++)
        cell(cpu, rate, groups[i], 128, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, rate, 4, 128, ATTN_BF16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, rate, 4, 64, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, rate, 4, 256, ATTN_F16, ATTN_WORKQUEUE_FUSED);
    cell(cpu, rate, 4, 128, ATTN_F16, ATTN_BUCKETS);
    cell(cpu, rate, 4, 128, ATTN_F16, ATTN_PERSISTENT);
    attn_cpu_free(cpu);
    return 0;
}
