/* Philox against the published vectors, the stream layout, and the moments of each distribution. */
#include "base/rng.h"

#include <math.h>

#define DRAWS 400000

/* Random123's kat_vectors, "philox4x32 10". */
static void test_known_answers(void)
{
    static const struct {
        guint32 counter[4], key[2], expect[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (gsize v = 0; v < G_N_ELEMENTS(vectors); v++) {
        guint32 got[4];
        philox4x32(vectors[v].counter, vectors[v].key, got);
        for (int i = 0; i < 4; i++)
            g_assert_cmphex(got[i], ==, vectors[v].expect[i]);
    }
}

static void test_stream_layout(void)
{
    RngStream s;
    guint32 block[4];
    const guint32 key[2] = {0x89abcdef, 0x01234567};
    rng_init(&s, G_GUINT64_CONSTANT(0x0123456789abcdef), RNG_LENGTHS,
             G_GUINT64_CONSTANT(0x1122334455667788), 7);
    for (guint32 b = 0; b < 3; b++) {
        const guint32 counter[4] = {b, 0x55667788, 0x11223344, (guint32)RNG_LENGTHS << 24 | 7};
        philox4x32(counter, key, block);
        for (int i = 0; i < 4; i++)
            g_assert_cmphex(rng_u32(&s), ==, block[i]);
    }
    rng_init(&s, 0, 0, 0, 0); /* the first known answer, low word first */
    g_assert_cmphex(rng_u64(&s), ==, G_GUINT64_CONSTANT(0xe169c58d6627e8d5));
    g_assert_cmphex(rng_u64(&s), ==, G_GUINT64_CONSTANT(0x9b00dbd8bc57ac4c));
}

static void test_streams_differ(void)
{
    static const struct {
        guint64 seed;
        RngPurpose purpose;
        guint64 entity;
        guint32 replication;
    } keys[] = {
        {1, RNG_TEST, 0, 0},
        {2, RNG_TEST, 0, 0},
        {1, RNG_KV, 0, 0},
        {1, RNG_TEST, 1, 0},
        {1, RNG_TEST, 0, 1},
        {G_GUINT64_CONSTANT(1) << 32, RNG_TEST, 0, 0},
        {1, RNG_TEST, G_GUINT64_CONSTANT(1) << 32, 0},
    };
    guint64 first[G_N_ELEMENTS(keys)];
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        RngStream s;
        rng_init(&s, keys[i].seed, keys[i].purpose, keys[i].entity, keys[i].replication);
        first[i] = rng_u64(&s);
        for (gsize j = 0; j < i; j++)
            g_assert_cmphex(first[i], !=, first[j]);
    }
}

typedef struct Moments {
    double mean, variance, min, max;
} Moments;

static double draw_gamma(RngStream *s, double shape)
{
    return rng_gamma(s, shape);
}
static double draw_exponential(RngStream *s, double unused)
{
    return rng_exponential(s);
}
static double draw_normal(RngStream *s, double unused)
{
    return rng_normal(s);
}
static double draw_uniform(RngStream *s, double unused)
{
    return rng_uniform(s);
}
static double draw_below(RngStream *s, double n)
{
    return (double)rng_below(s, (guint64)n);
}

static Moments measure(double (*draw)(RngStream *, double), double parameter)
{
    RngStream s;
    double sum = 0, squares = 0;
    Moments m = {.min = INFINITY, .max = -INFINITY};
    rng_init(&s, 1, RNG_TEST, 1, 0);
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(&s, parameter);
        sum += x;
        squares += x * x;
        m.min = MIN(m.min, x);
        m.max = MAX(m.max, x);
    }
    m.mean = sum / DRAWS;
    m.variance = squares / DRAWS - m.mean * m.mean;
    return m;
}

/* The sample mean is within five standard errors of the mean (one stream in two million fails). */
static void test_moments(void)
{
    static const struct {
        double (*draw)(RngStream *, double);
        double parameter, mean, variance, min, max;
    } cases[] = {
        {draw_uniform, 0, 0.5, 1.0 / 12, 0, 1}, {draw_exponential, 0, 1, 1, 0, 50},
        {draw_normal, 0, 0, 1, -8, 8},          {draw_below, 1, 0, 0, 0, 0},
        {draw_below, 10, 4.5, 8.25, 0, 9},      {draw_below, 1e15, 5e14, 1e30 / 12, 0, 1e15},
        {draw_gamma, 0.05, 0.05, 0.05, 0, 50},  {draw_gamma, 0.5, 0.5, 0.5, 0, 50},
        {draw_gamma, 1, 1, 1, 0, 50},           {draw_gamma, 4.5, 4.5, 4.5, 0, 100},
        {draw_gamma, 250, 250, 250, 100, 500},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Moments m = measure(cases[i].draw, cases[i].parameter);
        double error = 5 * sqrt(cases[i].variance / DRAWS);
        g_test_message("case %zu: mean %g, variance %g", i, m.mean, m.variance);
        g_assert_cmpfloat(fabs(m.mean - cases[i].mean), <=, error);
        g_assert_cmpfloat(fabs(m.variance - cases[i].variance), <=, 0.1 * cases[i].variance);
        g_assert_cmpfloat(m.min, >=, cases[i].min);
        g_assert_cmpfloat(m.max, <=, cases[i].max);
    }
}

/* P(X <= 1) of gamma(2) is 1 - 2/e, of the exponential 1 - 1/e, of the normal 0.841345. */
static void test_shapes(void)
{
    RngStream s;
    guint gamma = 0, exponential = 0, normal = 0;
    rng_init(&s, 5, RNG_TEST, 2, 0);
    for (int i = 0; i < DRAWS; i++) {
        gamma += rng_gamma(&s, 2) <= 1;
        exponential += rng_exponential(&s) <= 1;
        normal += rng_normal(&s) <= 1;
    }
    g_assert_cmpfloat_with_epsilon((double)gamma / DRAWS, 1 - 2 / G_E, 0.004);
    g_assert_cmpfloat_with_epsilon((double)exponential / DRAWS, 1 - 1 / G_E, 0.004);
    g_assert_cmpfloat_with_epsilon((double)normal / DRAWS, 0.841345, 0.004);
}

/* Three quarters of 2^64: without refusal two of three thirds would come twice as often. */
static void test_below_unbiased(void)
{
    RngStream s;
    guint64 n = G_GUINT64_CONSTANT(3) << 62;
    guint low = 0;
    rng_init(&s, 9, RNG_TEST, 3, 0);
    for (int i = 0; i < DRAWS; i++) {
        guint64 x = rng_below(&s, n);
        g_assert_cmpuint(x, <, n);
        low += x < n / 3;
    }
    g_assert_cmpfloat_with_epsilon((double)low / DRAWS, 1.0 / 3, 0.004);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rng/known-answers", test_known_answers);
    g_test_add_func("/rng/stream-layout", test_stream_layout);
    g_test_add_func("/rng/streams-differ", test_streams_differ);
    g_test_add_func("/rng/moments", test_moments);
    g_test_add_func("/rng/shapes", test_shapes);
    g_test_add_func("/rng/below-unbiased", test_below_unbiased);
    return g_test_run();
}
