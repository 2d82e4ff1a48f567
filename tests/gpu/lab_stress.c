/* attn-lab stress [--launches N] [--seed N]: the global-memory protocols under bad luck.
 *
 * Routes that merge inside the launch (persistent in both ways, workqueue-fused), thousands of
 * launches with fresh lengths, random waits before the protocol's steps; every output must have
 * the bits of the same plan run without waits, the first of each batch is compared with the
 * reference, and in the end every word of every slot must be empty again. Then one captured graph
 * of `persistent` is replayed with other lengths.
 */
#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, MAX_LEN = 3000, PAGES = 2048 };

typedef struct Stress {
    AttnPool pool;
    AttnShape shape;
    Random random;
    AttnPlan plan;
    size_t count; /* halves of an output */
    uint16_t *want, *got;
    long launches, wrong, differ;
} Stress;

static AttnCuda *make(const Stress *s, int warps, uint32_t delay)
{
    AttnCuda *cuda = NULL;
    AttnCudaConfig c = {.shape = s->shape,
                        .max_rows = ROWS,
                        .max_tasks = 8192,
                        .max_slots = 8192,
                        .persistent = {.warps = warps, .stages = 2 * (warps > 0)},
                        .delay_seed = delay};
    OK(attn_cuda_new(&cuda, &c, &lab_error));
    return cuda;
}

static void run(AttnCuda *cuda, Stress *s, const Batch *b, uint16_t *out)
{
    OK(attn_device_poison(b->out, (int64_t)s->count, NULL, &lab_error));
    OK(attn_cuda_upload(cuda, &s->plan, NULL, NULL, &lab_error));
    OK(attn_cuda_run(cuda, &s->pool, &b->on[0], &s->plan, NULL, &lab_error));
    CUDA(cudaMemcpy(out, b->out, 2 * s->count, cudaMemcpyDeviceToHost));
}

static void one_batch(Stress *s, AttnRoute route, int splits, AttnCuda *calm,
                      AttnCuda *const *delayed, int n)
{
    int lens[ROWS];
    for (int r = 0; r < ROWS; r++)
        lens[r] = random_below(&s->random, random_below(&s->random, 2) ? MAX_LEN : 200);
    Batch *b = batch_new(&s->shape, ROWS, lens, PAGES, 1, &s->random);
    AttnPlanConfig pc;
    attn_plan_config_init(&pc, route, attn_cuda_workers(calm, route));
    if (random_below(&s->random, 2))
        attn_cuda_fit_plan(calm, &pc, ROWS, lens);
    pc.min_tokens = 16 << random_below(&s->random, 4);
    if (splits > 0)
        pc.rule = ATTN_SPLITS_FIXED, pc.s = splits;
    if (attn_plan_build(&s->plan, &pc, &s->shape, ROWS, lens) != ATTN_OK)
        lab_fail(__FILE__, __LINE__, "plan");
    double *want = batch_reference(b, &s->pool, 0, 1);
    Errors e;
    run(calm, s, b, s->want);
    batch_compare(b, want, 1, &e);
    s->wrong += e.bad > 0;
    for (int i = 0; i < n; i++) {
        run(delayed[i % 4], s, b, s->got);
        s->differ += memcmp(s->want, s->got, 2 * s->count) != 0;
        s->launches++;
    }
    free(want);
    batch_free(b);
}

static void replay_graph(Stress *s)
{
    int lens[ROWS], most[ROWS];
    for (int r = 0; r < ROWS; r++)
        most[r] = MAX_LEN;
    Batch *b = batch_new(&s->shape, ROWS, most, PAGES, 1, &s->random);
    AttnCuda *cuda = make(s, 0, 0);
    AttnPlanConfig pc;
    attn_plan_config_init(&pc, ATTN_PERSISTENT, attn_cuda_workers(cuda, ATTN_PERSISTENT));
    attn_plan_build(&s->plan, &pc, &s->shape, ROWS, most);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(attn_cuda_run(cuda, &s->pool, &b->on[0], &s->plan, stream, &lab_error));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    long bad = 0;
    for (int i = 0; i < 50; i++) {
        Errors e;
        for (int r = 0; r < ROWS; r++)
            lens[r] = random_below(&s->random, i % 2 ? MAX_LEN : 40);
        batch_change_lens(b, lens);
        OK(attn_device_poison(b->out, (int64_t)s->count, stream, &lab_error));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        double *want = batch_reference(b, &s->pool, 0, 1);
        batch_compare(b, want, 1, &e);
        bad += e.bad > 0;
        free(want);
    }
    printf("graph: one capture, 50 replays with other lengths, %ld wrong\n", bad);
    s->wrong += bad;
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    attn_cuda_free(cuda);
    batch_free(b);
}

int lab_stress(int argc, char **argv)
{
    Stress s = {.shape = {8, 2, 128, 16, ATTN_F16, ATTN_HND}, .random = {11}};
    int total = 6000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--launches") == 0)
            total = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--seed") == 0)
            s.random.state = strtoull(argv[i + 1], NULL, 0);
    }
    s.pool.pages = PAGES;
    attn_pool_strides(&s.pool, &s.shape);
    CUDA(cudaMalloc(&s.pool.k, (size_t)attn_pool_bytes(&s.shape, PAGES)));
    CUDA(cudaMalloc(&s.pool.v, (size_t)attn_pool_bytes(&s.shape, PAGES)));
    OK(attn_device_fill(&s.shape, &s.pool, 5, NULL, &lab_error));
    s.count = (size_t)(ROWS * s.shape.q_heads * s.shape.head_dim);
    s.want = malloc(2 * s.count), s.got = malloc(2 * s.count);
    attn_plan_init(&s.plan);
    static const struct {
        const char *name;
        AttnRoute route;
        int warps, splits;
    } kinds[] = {{"persistent", ATTN_PERSISTENT, 0, 0},
                 {"persistent, one warp a CTA", ATTN_PERSISTENT, 1, 0},
                 {"workqueue-fused", ATTN_WORKQUEUE_FUSED, 0, 0},
                 {"workqueue-fused, more tasks than run at once", ATTN_WORKQUEUE_FUSED, 0, 90}};
    for (int k = 0; k < 4; k++) {
        AttnCuda *calm = make(&s, kinds[k].warps, 0), *delayed[4];
        for (int i = 0; i < 4; i++)
            delayed[i] = make(&s, kinds[k].warps, (uint32_t)random_next(&s.random) | 1);
        const long before[3] = {s.launches, s.wrong, s.differ};
        for (int i = 0; i < total / 4 / 40; i++)
            one_batch(&s, kinds[k].route, kinds[k].splits, calm, delayed, 40);
        long left = attn_cuda_slots_left(calm) != 0;
        attn_cuda_free(calm);
        for (int i = 0; i < 4; i++) {
            left += attn_cuda_slots_left(delayed[i]) != 0;
            attn_cuda_free(delayed[i]);
        }
        s.wrong += left;
        printf("stress: %s: %ld launches, %ld batches wrong, %ld outputs with other bits, %ld of 5 "
               "workspaces with words left\n",
               kinds[k].name, s.launches - before[0], s.wrong - before[1] - left,
               s.differ - before[2], left);
    }
    replay_graph(&s);
    attn_plan_free(&s.plan);
    free(s.want), free(s.got);
    cudaFree(s.pool.k), cudaFree(s.pool.v);
    return s.wrong > 0 || s.differ > 0;
}
