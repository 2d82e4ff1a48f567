/* attn-lab check [--quick] [--seed N] [--shapes N]: every route over the shape grid against the
 * fp64 reference.
 *
 * Each case: fresh random lengths (0, 1, tile and page edges among them), pages permuted, K and V
 * of the pool NaN but for the entries that are attended to, outputs poisoned; each route runs
 * twice, and the bits must repeat. One line a shape that fails; a summary line last; exit status 1
 * on failure.
 */
#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, MAX_LEN = 700 };

typedef struct Totals {
    long cases, failures, repeats_differ, capacity;
    double max_abs[2];
} Totals;

static void random_lens(int *lens, const AttnShape *s, Random *random)
{
    for (int r = 0; r < ROWS; r++) {
        const int edge = 16 * (1 + random_below(random, 6)), kind = random_below(random, 8);
        lens[r] = kind == 0   ? 0
                  : kind == 1 ? 1
                  : kind == 2 ? edge + random_below(random, 3) - 1
                  : kind == 3 ? s->page_size * (1 + random_below(random, 3))
                              : 1 + random_below(random, MAX_LEN);
    }
}

/* NaN everywhere, then contents where a row's entries are. */
static void make_pool(AttnPool *pool, const AttnShape *s, const Batch *b, uint64_t seed)
{
    const size_t n = (size_t)(pool->pages * pool->page_stride);
    AttnPool host = *pool, good = *pool;
    host.k = malloc(2 * n), host.v = malloc(2 * n);
    good.k = malloc(2 * n), good.v = malloc(2 * n);
    memset(host.k, 0xff, 2 * n), memset(host.v, 0xff, 2 * n);
    for (int r = 0; r < b->rows; r++)
        for (int t = 0; t < b->lens[r]; t++) {
            const int page = b->table[b->offset[r] + t / s->page_size], in = t % s->page_size;
            if (in == 0)
                attn_fill_page(s, &good, seed, page);
            for (int h = 0; h < s->kv_heads; h++) {
                const size_t at = (size_t)page * (size_t)pool->page_stride +
                                  (size_t)h * (size_t)pool->head_stride +
                                  (size_t)in * (size_t)pool->token_stride;
                memcpy((uint16_t *)host.k + at, (uint16_t *)good.k + at, 2 * (size_t)s->head_dim);
                memcpy((uint16_t *)host.v + at, (uint16_t *)good.v + at, 2 * (size_t)s->head_dim);
            }
        }
    CUDA(cudaMemcpy(pool->k, host.k, 2 * n, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(pool->v, host.v, 2 * n, cudaMemcpyHostToDevice));
    free(host.k), free(host.v), free(good.k), free(good.v);
}

static void run_once(AttnCuda *cuda, const AttnPool *pool, const Batch *b, const AttnPlan *plan,
                     uint16_t *out, size_t count)
{
    OK(attn_device_poison(b->out, (int64_t)count, NULL, &lab_error));
    OK(attn_cuda_upload(cuda, plan, NULL, NULL, &lab_error));
    OK(attn_cuda_run(cuda, pool, &b->on[0], plan, NULL, &lab_error));
    CUDA(cudaMemcpy(out, b->out, 2 * count, cudaMemcpyDeviceToHost));
}

static void check_route(AttnCuda *cuda, const AttnPool *pool, const Batch *b, AttnPlan *plan,
                        const AttnPlanConfig *config, const double *want, const char *label,
                        Totals *t)
{
    const AttnShape *s = &b->shape;
    const size_t count = (size_t)b->rows * (size_t)(s->q_heads * s->head_dim);
    uint16_t *first = malloc(2 * count), *second = malloc(2 * count);
    Errors e;
    if (attn_plan_build(plan, config, s, b->rows, b->lens) != ATTN_OK)
        lab_fail(__FILE__, __LINE__, "plan");
    run_once(cuda, pool, b, plan, first, count);
    batch_compare(b, want, 1, &e);
    run_once(cuda, pool, b, plan, second, count);
    const bool same = memcmp(first, second, 2 * count) == 0;
    t->cases++;
    t->repeats_differ += !same;
    if (e.bad > 0)
        t->failures++;
    if (!(e.max_abs <= t->max_abs[s->dtype]))
        t->max_abs[s->dtype] = e.max_abs;
    if ((e.bad > 0 || !same) && t->failures + t->repeats_differ < 40)
        printf("FAIL %s %s d %d G %d p %d %s %s: %ld of %ld bad, max %.3g%s\n", label,
               attn_route_name(config->route), s->head_dim, attn_group(s), s->page_size,
               s->dtype == ATTN_BF16 ? "bf16" : "fp16", s->layout == ATTN_NHD ? "NHD" : "HND",
               e.bad, e.values, e.max_abs, same ? "" : ", bits differ");
    free(first), free(second);
}

static void check_shape(const AttnShape *s, Random *random, bool split, Totals *t)
{
    int lens[ROWS];
    random_lens(lens, s, random);
    int64_t pages = 8;
    for (int r = 0; r < ROWS; r++)
        pages += (lens[r] + s->page_size - 1) / s->page_size;
    AttnPool pool = {.pages = pages};
    attn_pool_strides(&pool, s);
    CUDA(cudaMalloc(&pool.k, (size_t)attn_pool_bytes(s, pages)));
    CUDA(cudaMalloc(&pool.v, (size_t)attn_pool_bytes(s, pages)));
    Batch *b = batch_new(s, ROWS, lens, pages, 1, random);
    make_pool(&pool, s, b, random_next(random));
    double *want = batch_reference(b, &pool, 0, 1);
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnCuda *cuda = NULL;
    AttnCudaConfig c = {.shape = *s, .max_rows = ROWS, .max_tasks = 4096, .max_slots = 4096};
    c.persistent.buffers = 1 + random_below(random, 2);
    OK(attn_cuda_new(&cuda, &c, &lab_error));
    for (int i = 0; i <= ATTN_ROUTE_MAX; i++) { /* persistent twice: few CTAs, and all of them */
        const AttnRoute r = i == ATTN_ROUTE_MAX ? ATTN_PERSISTENT : i;
        AttnPlanConfig pc;
        attn_plan_config_init(&pc, r, attn_cuda_workers(cuda, r));
        if (i == ATTN_ROUTE_MAX)
            pc.workers = 7;
        pc.min_tokens = 16;
        if (split && r != ATTN_PERSISTENT)
            pc.rule = ATTN_SPLITS_FIXED, pc.s = 5;
        check_route(cuda, &pool, b, &plan, &pc, want, i == ATTN_ROUTE_MAX ? "few" : "all", t);
    }
    if (t->cases / (ATTN_ROUTE_MAX + 1) % 8 == 1 && attn_cuda_slots_left(cuda) != 0) {
        printf("FAIL d %d G %d: slots are not empty\n", s->head_dim, attn_group(s));
        t->failures++;
    }
    attn_cuda_free(cuda);
    free(want);
    attn_plan_free(&plan);
    batch_free(b);
    cudaFree(pool.k), cudaFree(pool.v);
}

int lab_check(int argc, char **argv)
{
    Random random = {1};
    bool quick = false;
    long most = 1 << 20;
    for (int i = 1; i < argc; i++) {
        quick = quick || strcmp(argv[i], "--quick") == 0;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            random.state = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--shapes") == 0 && i + 1 < argc)
            most = atol(argv[++i]);
    }
    Totals t = {0};
    long shapes = 0;
    for (int d = 64; d <= 256; d *= 2)
        for (int p = 1; p <= 128; p *= 2)
            for (int g = 1; g <= 16; g++)
                for (int x = 0; x < 4; x++) {
                    if (shapes >= most || (quick && random_below(&random, 16) != 0))
                        continue;
                    const AttnShape s = {2 * g, 2, d, p, x & 1, x >> 1};
                    check_shape(&s, &random, random_below(&random, 2), &t);
                    shapes++;
                }
    printf(
        "check: %ld shapes, %ld runs of a route, %ld wrong, %ld not repeatable, max |error| fp16 "
        "%.3g bf16 %.3g\n",
        shapes, t.cases, t.failures, t.repeats_differ, t.max_abs[0], t.max_abs[1]);
    return t.failures > 0 || t.repeats_differ > 0;
}
