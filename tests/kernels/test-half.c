/* Half-precision conversions against an independent rule (scaling and rint in double), for every
 * half value and for floats around every rounding border. Contents: moments and known answers.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "kernels/attn.h"
#include "kernels/content.h"

static double f16_value(guint16 h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double s = h & 0x8000 ? -1 : 1;
    return e == 31  ? (m ? (double)NAN : s * (double)INFINITY)
           : e == 0 ? s * ldexp(m, -24)
                    : s * ldexp(1024 + m, e - 25);
}

static void test_f16(void)
{
    for (guint h = 0; h < 65536; h++) {
        const double want = f16_value((guint16)h);
        const float got = attn_f16_to_f32((guint16)h);
        if (isnan(want)) {
            g_assert_true(isnan(got));
            g_assert_true(isnan(attn_f16_to_f32(attn_f32_to_f16(got))));
            continue;
        }
        g_assert_true((double)got == want && !signbit(got) == !signbit(want));
        g_assert_cmphex(attn_f32_to_f16(got), ==, h);
        /* The middle between this value and the next goes to the even one; a hair off, to the near.
         */
        if ((h & 0x7fff) >= 0x7bff)
            continue;
        const float next = attn_f16_to_f32((guint16)(h + 1));
        const float middle = (got + next) / 2;
        g_assert_cmphex(attn_f32_to_f16(middle), ==, h + (h & 1));
        g_assert_cmphex(attn_f32_to_f16(nextafterf(middle, got)), ==, h);
        g_assert_cmphex(attn_f32_to_f16(nextafterf(middle, next)), ==, h + 1);
    }
    g_assert_cmphex(attn_f32_to_f16(65519.996f), ==, 0x7bff);
    g_assert_cmphex(attn_f32_to_f16(65520.0f), ==, 0x7c00);
    g_assert_cmphex(attn_f32_to_f16(-1e30f), ==, 0xfc00);
    g_assert_cmphex(attn_f32_to_f16(0x1p-26f), ==, 0);
}

static void test_bf16(void)
{
    for (guint h = 0; h < 65536; h++) {
        const float f = attn_bf16_to_f32((guint16)h);
        if (isnan(f)) {
            g_assert_true(isnan(attn_bf16_to_f32(attn_f32_to_bf16(f))));
            continue;
        }
        g_assert_cmphex(attn_f32_to_bf16(f), ==, h);
        if ((h & 0x7fff) >= 0x7f7f)
            continue;
        const float next = attn_bf16_to_f32((guint16)(h + 1));
        const float middle = f / 2 + next / 2;
        if (fabsf(f) < 0x1p-100f)
            continue;
        g_assert_cmphex(attn_f32_to_bf16(middle), ==, h + (h & 1));
        g_assert_cmphex(attn_f32_to_bf16(nextafterf(middle, f)), ==, h);
        g_assert_cmphex(attn_f32_to_bf16(nextafterf(middle, next)), ==, h + 1);
    }
}

static void test_content(void)
{
    double sum = 0, squares = 0, fourth = 0, lag = 0, previous = 0;
    const int n = 1 << 20;
    for (int i = 0; i < n; i++) {
        const double x = (double)attn_content(7, i & 1, i >> 12, i >> 10 & 3, i >> 7 & 7, i & 127);
        g_assert_cmpfloat(fabs(x), <, 3.5);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        lag += x * previous;
        previous = x;
    }
    g_assert_cmpfloat(fabs(sum / n), <, 0.005);
    g_assert_cmpfloat(fabs(squares / n - 1), <, 0.006);
    g_assert_cmpfloat(fabs(fourth / n - 2.7), <, 0.05); /* Irwin-Hall of 4: 3 - 6/(5*4) */
    g_assert_cmpfloat(fabs(lag / n), <, 0.005);
    /* Every argument matters. */
    const float x = attn_content(1, 0, 5, 3, 2, 10);
    g_assert_true(x == attn_content(1, 0, 5, 3, 2, 10));
    int same = (x == attn_content(2, 0, 5, 3, 2, 10)) + (x == attn_content(1, 1, 5, 3, 2, 10)) +
               (x == attn_content(1, 0, 6, 3, 2, 10)) + (x == attn_content(1, 0, 5, 4, 2, 10)) +
               (x == attn_content(1, 0, 5, 3, 3, 10)) + (x == attn_content(1, 0, 5, 3, 2, 11));
    g_assert_cmpint(same, ==, 0);
}

/* Known answers, so that the device's copy of the formula can be held against the host's. */
static void test_content_known(void)
{
    static const struct {
        guint64 seed;
        int which;
        gint64 page;
        gint32 head, token;
        guint32 j;
        guint64 lanes;
    } known[] = {
#include "content-known.inc"
    };
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        const guint64 key = attn_content_key(known[i].seed, known[i].which, known[i].page,
                                             known[i].head, known[i].token);
        g_assert_cmphex(attn_content_lanes(key, known[i].j), ==, known[i].lanes);
    }
    g_assert_cmpfloat(attn_content_value(510, 0), ==, 0.0f);
    g_assert_cmpfloat(attn_content_value((guint64)1020 << 48, 3), ==, 510 * 0x1.bb688cp-8f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/half/f16", test_f16);
    g_test_add_func("/half/bf16", test_bf16);
    g_test_add_func("/content/moments", test_content);
    g_test_add_func("/content/known", test_content_known);
    return g_test_run();
}
