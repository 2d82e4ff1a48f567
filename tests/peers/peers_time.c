/* Kernel, graph, plan and wall times. */
#include "peers_lab.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double lab_median(double *x, int n)
{
    if (n == 0)
        return -1;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* --- times --- */

double lab_between(const Lab *lab)
{
    float ms;
    CUDA(cudaEventSynchronize(lab->e1));
    CUDA(cudaEventElapsedTime(&ms, lab->e0, lab->e1));
    return 1e3 * (double)ms;
}

void lab_time_kernels(Lab *lab, const Batch *b)
{
    for (int round = -2; round < lab->rounds; round++)
        for (int k = 0; k < N_ENTRIES; k++) {
            Lane *l = &lab->lane[(k + round + 2) % N_ENTRIES];
            if (!l->runs || !lane_tables(lab, l, b, lab->turn++ % b->sets) ||
                !lane_plan(lab, l, b) || !lane_launch(lab, l, b, (lab->turn - 1) % b->sets))
                continue; /* that run was to bring its code back into the caches */
            const int set = lab->turn++ % b->sets;
            if (!lane_tables(lab, l, b, set) || !lane_plan(lab, l, b))
                continue;
            OK(attn_device_spin(40000, lab->stream, &lab_error));
            CUDA(cudaEventRecord(lab->e0, lab->stream));
            if (!lane_launch(lab, l, b, set))
                continue;
            CUDA(cudaEventRecord(lab->e1, lab->stream));
            const double us = lab_between(lab);
            if (round >= 0)
                l->kernel[round] = us;
        }
    for (int k = 0; k < N_ENTRIES; k++)
        if (lab->lane[k].runs)
            lab->lane[k].kernel_us = lab_median(lab->lane[k].kernel, lab->rounds);
}

void lane_time_wall(Lab *lab, Lane *l, const Batch *b)
{
    double plan[WALLS], wall[WALLS];
    for (int i = 0; i < WALLS; i++) {
        const int set = lab->turn++ % b->sets;
        if (!lane_tables(lab, l, b, set))
            return;
        CUDA(cudaStreamSynchronize(lab->stream));
        const double t0 = lab_now_us();
        lane_plan(lab, l, b);
        const double t1 = lab_now_us();
        lane_launch(lab, l, b, set);
        CUDA(cudaStreamSynchronize(lab->stream));
        plan[i] = t1 - t0, wall[i] = lab_now_us() - t0;
    }
    l->plan_us = lab_median(plan, WALLS), l->wall_us = lab_median(wall, WALLS);
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
    if (!fits || !lane_tables(lab, l, b, 0) || !lane_plan(lab, l, b))
        return NULL;
    CUDA(cudaStreamSynchronize(lab->stream));
    CUDA(cudaStreamBeginCapture(lab->stream, cudaStreamCaptureModeThreadLocal));
    const int ok = lane_launch(lab, l, b, 0);
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
        lane_tables(lab, l, b, set);
}

/* Wall becomes that of the graph where it is shorter. */
void lane_time_graph(Lab *lab, Lane *l, const Batch *b)
{
    double x[GRAPHS], wall[GRAPHS];
    cudaGraphExec_t exec = capture(lab, l, b);
    if (exec == NULL)
        return;
    for (int i = 0; i < GRAPHS; i++) {
        rewrite(lab, l, b, lab->turn++ % b->sets);
        lane_plan(lab, l, b);
        OK(attn_device_spin(40000, lab->stream, &lab_error));
        CUDA(cudaEventRecord(lab->e0, lab->stream));
        CUDA(cudaGraphLaunch(exec, lab->stream));
        CUDA(cudaEventRecord(lab->e1, lab->stream));
        x[i] = lab_between(lab);
        rewrite(lab, l, b, lab->turn++ % b->sets);
        CUDA(cudaStreamSynchronize(lab->stream));
        const double t0 = lab_now_us();
        lane_plan(lab, l, b);
        CUDA(cudaGraphLaunch(exec, lab->stream));
        CUDA(cudaStreamSynchronize(lab->stream));
        wall[i] = lab_now_us() - t0;
    }
    rewrite(lab, l, b, 0);
    l->graph_us = lab_median(x, GRAPHS);
    const double with = lab_median(wall, GRAPHS);
    l->wall_us = with < l->wall_us || l->wall_us <= 0 ? with : l->wall_us;
    CUDA(cudaGraphExecDestroy(exec));
}
