/* The published traces: first outputs of the generator, first requests, calibration totals. */
#include "tests/workloads/support.h"

#include "workloads/paper_trace.h"

#define SEED 20260622

static void test_twister(void)
{
    static const guint32 expected[] = {1853204539u, 1829734090u, 3336750361u, 2922804656u,
                                       2285540170u};
    Mt19937 mt;
    mt19937_seed(&mt, SEED);
    for (guint i = 0; i < 5; i++)
        g_assert_cmpuint(mt19937_next(&mt), ==, expected[i]);
    mt19937_seed(&mt,
                 5489); /* the authors' default seed: its 10000th output is in the C++ standard */
    guint32 last = 0;
    for (guint i = 0; i < 10000; i++)
        last = mt19937_next(&mt);
    g_assert_cmpuint(last, ==, 4123659995u);
}

static void check_first(PaperFamily family, const gint32 (*expected)[2], guint n)
{
    PaperTrace trace;
    paper_trace_init(&trace, family, SEED);
    for (guint i = 0; i < n; i++) {
        gint32 prompt, decode;
        paper_trace_next(&trace, &prompt, &decode);
        g_assert_cmpint(prompt, ==, expected[i][0]);
        g_assert_cmpint(decode, ==, expected[i][1]);
    }
}

static void test_first_requests(void)
{
    static const gint32 bucketed[][2] = {{8192, 36}, {16384, 47}, {32768, 93}, {65536, 63}};
    static const gint32 bimodal[][2] = {{30592, 36}, {9312, 46},   {7056, 50},
                                        {10656, 29}, {52800, 127}, {3504, 26}};
    static const gint32 uniform[][2] = {{15312, 77}, {20112, 24}, {19440, 88}, {18176, 31}};
    static const gint32 zipf[][2] = {{14368, 40}, {17728, 16}, {48064, 113}, {22960, 28}};
    check_first(PAPER_BUCKETED, bucketed, 4);
    check_first(PAPER_BIMODAL, bimodal, 6);
    check_first(PAPER_UNIFORM, uniform, 4);
    check_first(PAPER_ZIPF, zipf, 4);
}

/* The published protocol on the side: slots by id, `steps` steps with a live request. */
typedef struct Totals {
    gint64 pages;
    double kv_mib, active, buckets; /* means over the steps run */
} Totals;

typedef struct Live {
    gint64 prompt, decode, arrival;
} Live;

static void run_step(const GArray *all, guint step, guint max_active, Totals *sum)
{
    gint64 seen[64];
    guint rows = 0, distinct = 0;
    for (guint i = 0; i < all->len && rows < max_active; i++) {
        const Request *r = REQUEST(all, i);
        if (r->arrival > step || step >= r->arrival + r->output)
            continue;
        gint64 length = r->prompt + (step - r->arrival);
        guint k = 0;
        while (k < distinct && seen[k] != length)
            k++;
        if (k == distinct)
            seen[distinct++] = length;
        rows++;
        sum->kv_mib += (double)(2 * length * 8 * 128 * 2) / 1048576.0;
    }
    sum->active += rows;
    sum->buckets += distinct;
}

static gboolean any_live(const GArray *all, guint step)
{
    for (guint i = 0; i < all->len; i++)
        if (REQUEST(all, i)->arrival <= step &&
            step < REQUEST(all, i)->arrival + REQUEST(all, i)->output)
            return TRUE;
    return FALSE;
}

static Totals totals(const char *spec, guint max_active, guint steps)
{
    g_autoptr(GArray) all = test_read(spec, NULL);
    Totals t = {0};
    for (guint i = 0; i < all->len; i++)
        t.pages += (REQUEST(all, i)->prompt + REQUEST(all, i)->output + 15) / 16;
    guint run = 0;
    for (guint step = 0; run < steps && step < 100000; step++) {
        if (!any_live(all, step))
            continue;
        run_step(all, step, max_active, &t);
        run++;
    }
    g_assert_cmpuint(run, ==, steps);
    t.kv_mib /= steps;
    t.active /= steps;
    t.buckets /= steps;
    return t;
}

static void check_totals(const char *family, guint requests, guint active, guint steps,
                         gint64 pages, double mib)
{
    g_autofree char *spec = g_strdup_printf("paper:trace=%s,requests=%u,max_active=%u,seed=%d",
                                            family, requests, active, SEED);
    Totals t = totals(spec, active, steps);
    g_assert_cmpint(t.pages, ==, pages);
    g_assert_cmpfloat_with_epsilon(t.kv_mib, mib, 0.0005);
}

static void test_calibration_totals(void)
{
    check_totals("bucketed", 16, 1, 64, 30790, 62.120);
    check_totals("bimodal", 24, 8, 48, 25828, 638.067);
    check_totals("uniform", 24, 8, 48, 26265, 567.408);
    check_totals("zipf", 24, 8, 48, 31136, 695.357);
    check_totals("bimodal", 16, 4, 48, 14954, 274.880);
    check_totals("homogeneous", 16, 4, 48, 32838, 512.366);
    Totals b8 = totals("paper:trace=bimodal,requests=24,max_active=8,seed=20260622", 8, 48);
    g_assert_cmpfloat_with_epsilon(b8.active, 7.7708, 0.00005);
    Totals h4 = totals("paper:trace=homogeneous,requests=16,max_active=4", 4, 48);
    g_assert_cmpfloat_with_epsilon(h4.buckets, 1.25, 1e-9);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/paper/twister", test_twister);
    g_test_add_func("/paper/first-requests", test_first_requests);
    g_test_add_func("/paper/calibration-totals", test_calibration_totals);
    return g_test_run();
}
