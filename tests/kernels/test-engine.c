/* The CPU engine against the fp64 reference: every route, shape, page size and layout, at every
 * page edge, with NaN beside every row; bits equal whatever the number of threads.
 *
 * Gate for fp16: that of arXiv 2606.26666, max < 2e-3 and mean < 3e-4. For bf16 the output alone is
 * rounded by up to 2^-7 (values of up to 3.5, 8 bits), 8 times fp16's: max < 1.6e-2, mean < 2.4e-3.
 */
#include <glib.h>
#include <math.h>

#include "attn-case.h"
#include "kernels/cpu_engine.h"

static AttnPartials partials_new(const AttnShape *s, const AttnPlan *plan)
{
    AttnPartials p = {.slots = plan->counts.partial_slots};
    const gsize states = (gsize)p.slots * (gsize)attn_group(s);
    /* Poisoned: a state that nobody wrote must show. */
    const gsize ml = sizeof(float) * 2 * states + 1;
    const gsize acc = sizeof(float) * (gsize)s->head_dim * states + 1;
    p.ml = memset(g_malloc(ml), 0xff, ml);
    p.acc = memset(g_malloc(acc), 0xff, acc);
    return p;
}

static void run_plan(AttnCpu *cpu, AttnCase *c, const AttnPlan *plan)
{
    AttnPartials partials = partials_new(&c->shape, plan);
    memset(c->batch.out, 0xff, c->out_bytes);
    const AttnStatus status = attn_cpu_run(cpu, &c->shape, &c->pool, &c->batch, plan, &partials);
    g_assert_cmpint(status, ==, ATTN_OK);
    g_free(partials.ml);
    g_free(partials.acc);
}

static void errors_of(const AttnCase *c, const double *want, double *ret_max, double *ret_mean)
{
    const guint16 *out = c->batch.out;
    const gsize n = c->out_bytes / 2;
    double top = 0, sum = 0;
    for (gsize i = 0; i < n; i++) {
        const float got =
            c->shape.dtype == ATTN_F16 ? attn_f16_to_f32(out[i]) : attn_bf16_to_f32(out[i]);
        const double e = fabs((double)got - want[i]);
        top = e <= top ? top : e; /* NaN stays */
        sum += e;
    }
    *ret_max = top;
    *ret_mean = sum / (double)n;
}

static double *reference(const AttnCase *c)
{
    double *want = g_new(double, c->out_bytes / 2 + 1);
    for (gint r = 0; r < c->batch.rows; r++)
        attn_reference_row(&c->shape, &c->pool, &c->batch, r,
                           want + (gsize)r * (gsize)(c->shape.q_heads * c->shape.head_dim));
    return want;
}

static void check_routes(AttnCpu *cpu, AttnCase *c, const double *want, int s)
{
    const double gate = c->shape.dtype == ATTN_F16 ? 1 : 8;
    AttnPlan plan;
    attn_plan_init(&plan);
    for (int route = 0; route < ATTN_ROUTE_MAX; route++) {
        AttnPlanConfig config;
        attn_plan_config_init(&config, route, 13);
        config.min_tokens = 16;
        config.rule = s > 0 ? ATTN_SPLITS_FIXED : ATTN_SPLITS_BALANCED;
        config.s = s;
        config.bucket_width = s == 5 ? 64 : 0;
        g_assert_cmpint(attn_plan_build(&plan, &config, &c->shape, c->batch.rows, c->lens), ==,
                        ATTN_OK);
        run_plan(cpu, c, &plan);
        double max, mean;
        errors_of(c, want, &max, &mean);
        if (!(max < 2e-3 * gate && mean < 3e-4 * gate))
            g_error("%s S %d G %d d %d page %d layout %d dtype %d %s: max %g mean %g",
                    attn_route_name(route), s, attn_group(&c->shape), c->shape.head_dim,
                    c->shape.page_size, c->shape.layout, c->shape.dtype, attn_cpu_isa(cpu), max,
                    mean);
    }
    attn_plan_free(&plan);
}

/* One-token rows, no tokens, page edges +-1, tile edges +-1, rows shorter than S tiles. */
static gint edge_lengths(gint32 page, gint32 *ret)
{
    gint n = 0;
    for (gint32 e = 1; e <= 2; e++)
        for (gint32 by = -1; by <= 1; by++)
            ret[n++] = MAX(e * page + by, 1);
    const gint32 more[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 290};
    for (guint i = 0; i < G_N_ELEMENTS(more); i++)
        ret[n++] = more[i];
    return n;
}

static void check_shape(AttnCpu *cpu, const AttnShape *shape, guint64 seed)
{
    gint32 lens[32];
    const gint rows = edge_lengths(shape->page_size, lens);
    AttnCase c;
    attn_case_init(&c, shape, rows, lens, seed);
    g_autofree double *want = reference(&c);
    check_routes(cpu, &c, want, 0);
    check_routes(cpu, &c, want, 3);
    check_routes(cpu, &c, want, 5);
    attn_case_clear(&c);
}

static const gint32 groups[] = {1, 2, 4, 7, 8, 16}, dims[] = {64, 128, 256};

static void test_shapes(void)
{
    AttnCpu *cpu = attn_cpu_new(2);
    guint64 seed = 1;
    for (guint g = 0; g < G_N_ELEMENTS(groups); g++)
        for (guint d = 0; d < G_N_ELEMENTS(dims); d++)
            for (guint kind = (g + d) % 2; kind < 4; kind += 1 + d % 2) {
                const gint32 page = 1 << (seed * 5 % 8);
                const AttnShape shape = {2 * groups[g], 2, dims[d], page, kind & 1, kind >> 1 & 1};
                check_shape(cpu, &shape, seed++);
            }
    attn_cpu_free(cpu);
}

static void test_pages(void)
{
    AttnCpu *cpu = attn_cpu_new(2);
    for (gint32 page = 1; page <= 128; page *= 2)
        for (gint layout = 0; layout < 2; layout++) {
            const AttnShape shape = {8, 2, 128, page, ATTN_F16, layout};
            check_shape(cpu, &shape, (guint64)(1000 + page));
        }
    attn_cpu_free(cpu);
}

static void test_instruction_sets(void)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    AttnCpu *cpu = attn_cpu_new(1);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!attn_cpu_force_isa(cpu, names[i])) {
            g_test_message("%s: not on this processor", names[i]);
            continue;
        }
        for (guint g = 0; g < G_N_ELEMENTS(groups); g++)
            for (gint dtype = 0; dtype < 2; dtype++) {
                const AttnShape shape = {groups[g], 1, dims[g % 3], 16, dtype, ATTN_HND};
                check_shape(cpu, &shape, 2000 + g);
            }
    }
    attn_cpu_free(cpu);
}

static void test_threads(void)
{
    const gint32 lens[] = {5000, 17, 1, 900, 900, 3000};
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    AttnCase c;
    attn_case_init(&c, &shape, 6, lens, 77);
    AttnPlan plan;
    attn_plan_init(&plan);
    for (int route = 0; route < ATTN_ROUTE_MAX; route++) {
        AttnPlanConfig config;
        attn_plan_config_init(&config, route, 28);
        attn_plan_build(&plan, &config, &shape, 6, lens);
        g_autofree guint8 *first = NULL;
        for (int threads = 1; threads <= 7; threads += 2) {
            AttnCpu *cpu = attn_cpu_new(threads);
            run_plan(cpu, &c, &plan);
            if (first == NULL)
                first = g_memdup2(c.batch.out, c.out_bytes);
            g_assert_cmpmem(first, c.out_bytes, c.batch.out, c.out_bytes);
            attn_cpu_free(cpu);
        }
    }
    attn_plan_free(&plan);
    attn_case_clear(&c);
}

static void put_entry(AttnCase *c, void *of, gint32 token, double value)
{
    guint16 *to = (guint16 *)of + c->table[token / c->shape.page_size] * c->pool.page_stride +
                  (gint64)(token % c->shape.page_size) * c->pool.token_stride;
    for (gint32 i = 0; i < c->shape.head_dim; i++)
        to[i] = attn_f32_to_f16((float)value);
}

/* The reference itself, by hand: equal keys give the mean of V; keys of 0 except two of x give
 * those two the weight e^y, y = scale * 64 q x. */
static void test_reference(void)
{
    const gint32 lens[] = {20};
    const AttnShape shape = {1, 1, 64, 8, ATTN_F16, ATTN_NHD};
    AttnCase c;
    attn_case_init(&c, &shape, 1, lens, 3);
    guint16 *q = (guint16 *)(gpointer)c.batch.q;
    for (gint i = 0; i < 64; i++)
        q[i] = attn_f32_to_f16(0.5f);
    for (gint32 t = 0; t < 20; t++) {
        put_entry(&c, c.pool.k, t, 0.25);
        put_entry(&c, c.pool.v, t, t);
    }
    double ret[64];
    g_assert_cmpint(attn_reference_row(&shape, &c.pool, &c.batch, 0, ret), ==, ATTN_OK);
    for (gint i = 0; i < 64; i++)
        g_assert_cmpfloat(fabs(ret[i] - 9.5), <, 1e-12);
    for (gint32 t = 0; t < 20; t++)
        put_entry(&c, c.pool.k, t, t == 7 || t == 16 ? 0.125 : 0);
    attn_reference_row(&shape, &c.pool, &c.batch, 0, ret);
    const double w = exp((double)c.batch.scale * 64 * 0.5 * 0.125);
    const double want = (190 - 23 + 23 * w) / (18 + 2 * w);
    for (gint i = 0; i < 64; i++)
        g_assert_cmpfloat(fabs(ret[i] - want), <, 1e-12);
    attn_case_clear(&c);
}

/* A NaN inside a row must come out, by whatever route: never hidden by a maximum. */
static void test_nan_shows(void)
{
    const gint32 lens[] = {400};
    const AttnShape shape = {4, 1, 64, 16, ATTN_F16, ATTN_HND};
    for (int where = 0; where < 2; where++) {
        AttnCase c;
        attn_case_init(&c, &shape, 1, lens, 5);
        guint16 *of = where ? c.pool.v : c.pool.k;
        of[c.table[10] * c.pool.page_stride + 3 * c.pool.token_stride + 9] = 0x7e00;
        AttnCpu *cpu = attn_cpu_new(1);
        AttnPlan plan;
        attn_plan_init(&plan);
        for (int route = 0; route < ATTN_ROUTE_MAX; route++) {
            AttnPlanConfig config;
            attn_plan_config_init(&config, route, 4);
            attn_plan_build(&plan, &config, &shape, 1, lens);
            run_plan(cpu, &c, &plan);
            g_assert_true(isnan(attn_f16_to_f32(((guint16 *)c.batch.out)[9])));
        }
        attn_plan_free(&plan);
        attn_cpu_free(cpu);
        attn_case_clear(&c);
    }
}

static void test_capacity(void)
{
    const gint32 lens[] = {4000};
    const AttnShape shape = {4, 1, 64, 16, ATTN_F16, ATTN_HND};
    AttnCase c;
    attn_case_init(&c, &shape, 1, lens, 5);
    AttnCpu *cpu = attn_cpu_new(1);
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnPlanConfig config;
    attn_plan_config_init(&config, ATTN_WORKQUEUE, 4);
    attn_plan_build(&plan, &config, &shape, 1, lens);
    AttnPartials few = partials_new(&shape, &plan);
    few.slots--;
    g_assert_cmpint(attn_cpu_run(cpu, &shape, &c.pool, &c.batch, &plan, &few), ==, ATTN_CAPACITY);
    AttnShape odd = shape;
    odd.head_dim = 96;
    g_assert_cmpint(attn_cpu_run(cpu, &odd, &c.pool, &c.batch, &plan, &few), ==,
                    ATTN_UNSUPPORTED_SHAPE);
    g_free(few.ml);
    g_free(few.acc);
    attn_plan_free(&plan);
    attn_cpu_free(cpu);
    attn_case_clear(&c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/reference", test_reference);
    g_test_add_func("/engine/shapes", test_shapes);
    g_test_add_func("/engine/pages", test_pages);
    g_test_add_func("/engine/instruction-sets", test_instruction_sets);
    g_test_add_func("/engine/threads", test_threads);
    g_test_add_func("/engine/nan-shows", test_nan_shows);
    g_test_add_func("/engine/capacity", test_capacity);
    return g_test_run();
}
