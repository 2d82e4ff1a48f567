/* Generated arrivals, lengths and sessions against their laws: Kolmogorov-Smirnov, chi-square,
 * moments.
 *
 * Seeds are fixed, so a test either always passes or always fails; the bounds are those of the 0.1
 * % level or of four standard errors.
 */
#include "tests/workloads/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "workloads/arrivals/weibull.h"

#define N 20000
#define KS_LIMIT 1.95 /* D sqrt(n) at the 0.1 % level */

static Workload *generate_seeded(const char *arrivals, const char *lengths, const char *sessions,
                                 gint64 n, guint64 seed)
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig config;
    workload_config_init(&config);
    config.arrivals = g_strdup(arrivals);
    config.lengths = g_strdup(lengths);
    config.sessions = g_strdup(sessions);
    config.requests = n;
    config.seed = seed;
    Workload *workload = workload_open(&config, &error);
    g_assert_no_error(error);
    workload_config_clear(&config);
    return workload;
}

static GArray *generate(const char *arrivals, const char *lengths, gint64 n)
{
    g_autoptr(Workload) workload = generate_seeded(arrivals, lengths, NULL, n, 7);
    return test_collect(workload);
}

/* Gaps in seconds. */
static double *gaps_of(const GArray *all, guint *ret_n)
{
    *ret_n = all->len - 1;
    double *gaps = g_new(double, all->len);
    for (guint i = 1; i < all->len; i++)
        gaps[i - 1] = kv_ns_to_seconds(REQUEST(all, i)->arrival - REQUEST(all, i - 1)->arrival);
    return gaps;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* D sqrt(n) of the samples (sorted in place) against a law. */
static double ks(double *samples, guint n, double (*cdf)(double x, double a, double b), double a,
                 double b)
{
    double d = 0;
    qsort(samples, n, sizeof *samples, by_value);
    for (guint i = 0; i < n; i++) {
        double f = cdf(samples[i], a, b);
        d = MAX(d, MAX(f - (double)i / n, (double)(i + 1) / n - f));
    }
    return d * sqrt(n);
}

static void moments(const double *x, guint n, double *ret_mean, double *ret_cv)
{
    double mean = 0, m2 = 0;
    for (guint i = 0; i < n; i++)
        mean += x[i] / n;
    for (guint i = 0; i < n; i++)
        m2 += (x[i] - mean) * (x[i] - mean) / n;
    *ret_mean = mean;
    *ret_cv = sqrt(m2) / mean;
}

static double exponential_cdf(double x, double mean, double unused)
{
    return x <= 0 ? 0 : -expm1(-x / mean);
}

static double weibull_cdf(double x, double shape, double scale)
{
    return x <= 0 ? 0 : -expm1(-pow(x / scale, shape));
}

static double normal_cdf(double x, double mean, double sd)
{
    return 0.5 * erfc(-(x - mean) / (sd * sqrt(2)));
}

/* Regularised lower incomplete gamma function by its series (all x here are small enough for it).
 */
static double gamma_cdf(double x, double shape, double scale)
{
    x /= scale;
    if (x <= 0)
        return 0;
    double term = 1 / shape, sum = term;
    for (int k = 1; k < 2000 && term > sum * 1e-16; k++)
        sum += term *= x / (shape + k);
    return MIN(sum * exp(shape * log(x) - x - lgamma(shape)), 1.0);
}

/* --- arrivals --- */

static void test_poisson(void)
{
    g_autoptr(GArray) all = generate("poisson:rate=5.5", "fixed", N);
    guint n;
    g_autofree double *gaps = gaps_of(all, &n);
    double mean, cv;
    moments(gaps, n, &mean, &cv);
    g_assert_cmpfloat_with_epsilon(mean, 1 / 5.5, 4 / 5.5 / sqrt(n));
    g_assert_cmpfloat_with_epsilon(cv, 1, 4 / sqrt(n));
    g_assert_cmpfloat(ks(gaps, n, exponential_cdf, 1 / 5.5, 0), <, KS_LIMIT);
    g_assert_cmpint(REQUEST(all, 0)->arrival, ==, 0);
}

static void test_constant(void)
{
    g_autoptr(GArray) all = generate("constant:rate=3", "fixed", 3001);
    g_assert_cmpint(REQUEST(all, 1)->arrival, ==, 333333333);
    g_assert_cmpint(REQUEST(all, 3000)->arrival, ==, 1000 * KV_SECOND); /* no drift */
}

/* The index of dispersion of counts in windows of 50 mean gaps. */
static double dispersion(const GArray *all, kv_ns window)
{
    guint bins = (guint)(REQUEST(all, all->len - 1)->arrival / window);
    g_autofree double *count = g_new0(double, bins + 1);
    for (guint i = 0; i < all->len; i++)
        count[MIN((guint)(REQUEST(all, i)->arrival / window), bins)]++;
    double mean, cv;
    moments(count, bins, &mean, &cv);
    return cv * cv * mean;
}

/* burstiness b: mean gap 1/rate and CV 1/sqrt(b) = 1, 2, 0.5, 0; counts disperse like CV^2. */
static void test_gamma_burstiness(void)
{
    static const struct {
        const char *text;
        double cv;
    } cases[] = {{"1.0", 1}, {"0.25", 2}, {"4.0", 0.5}};
    for (guint i = 0; i < 3; i++) {
        g_autofree char *spec = g_strdup_printf("gamma:rate=200,burstiness=%s", cases[i].text);
        g_autoptr(GArray) all = generate(spec, "fixed", 10000);
        guint n;
        g_autofree double *gaps = gaps_of(all, &n);
        double mean, cv, c = cases[i].cv;
        moments(gaps, n, &mean, &cv);
        g_assert_cmpfloat_with_epsilon(mean, 0.005, 3 * c * 0.005 / sqrt(n));
        g_assert_cmpfloat_with_epsilon(cv, c, 0.05 * c + 0.01);
        g_assert_cmpfloat(ks(gaps, n, gamma_cdf, 1 / (c * c), 0.005 * c * c), <, KS_LIMIT);
        double idc = dispersion(all, 250 * KV_MS);
        g_assert_cmpfloat(idc / (c * c), >, 0.65);
        g_assert_cmpfloat(idc / (c * c), <, 1.35);
        g_autoptr(GArray) again = generate(spec, "fixed", 10000);
        for (guint k = 0; k < all->len; k++)
            g_assert_cmpint(REQUEST(all, k)->arrival, ==, REQUEST(again, k)->arrival);
    }
    g_autoptr(GArray) even = generate("gamma:rate=50,burstiness=inf", "fixed", 100);
    for (guint k = 0; k < 100; k++)
        g_assert_cmpint(REQUEST(even, k)->arrival, ==, k * 20 * KV_MS);
}

static void refused(const char *arrivals, const char *lengths)
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig config;
    workload_config_init(&config);
    config.arrivals = g_strdup(arrivals);
    config.lengths = g_strdup(lengths);
    config.requests = 10;
    g_assert_null(workload_open(&config, &error));
    g_assert_true(error != NULL && error->domain == KV_ERROR);
    workload_config_clear(&config);
}

static void test_refused_options(void)
{
    refused("gamma:burstiness=0", NULL);
    refused("gamma:burstiness=-1", NULL);
    refused("poisson:rate=0", NULL);
    refused("mmpp:rate_on=0", NULL);
    refused("steps:levels=\"a b\"", NULL);
    refused("steps:levels=\"0 0\"", NULL);
    refused("spike:every=5s", NULL);
    refused("table:file=/no/such/file", NULL);
    refused(NULL, "uniform:prompt_min=9,prompt_max=3");
    refused(NULL, "empirical:file=/no/such/file");
}

static void test_weibull(void)
{
    static const double cvs[] = {0.3, 1, 3};
    for (guint i = 0; i < 3; i++) {
        double shape = weibull_shape(cvs[i]);
        g_assert_cmpfloat_with_epsilon(weibull_cv(shape), cvs[i], 1e-9);
        g_autofree char *spec =
            g_strdup_printf("weibull:rate=10,cv=%d.%d", (int)cvs[i], (int)(cvs[i] * 10) % 10);
        g_autoptr(GArray) all = generate(spec, "fixed", N);
        guint n;
        g_autofree double *gaps = gaps_of(all, &n);
        double scale = 0.1 / exp(lgamma(1 + 1 / shape));
        g_assert_cmpfloat(ks(gaps, n, weibull_cdf, shape, scale), <, KS_LIMIT);
    }
    g_assert_cmpfloat_with_epsilon(weibull_shape(1), 1, 1e-9); /* then it is exponential */
}

/* Mean rate of the two states, and the limit of the counts' dispersion (Fischer and
 * Meier-Hellstern): 1 + 2 (l1 - l2)^2 r1 r2 / ((r1 + r2)^2 (l1 r2 + l2 r1)), r = 1/mean stay. */
static void test_mmpp(void)
{
    g_autoptr(GArray) all = generate("mmpp:rate_on=20,rate_off=2,on=5s,off=15s", "fixed", 200000);
    double rate = all->len / kv_ns_to_seconds(REQUEST(all, all->len - 1)->arrival);
    double r1 = 1 / 5.0, r2 = 1 / 15.0, l1 = 20, l2 = 2;
    double idc =
        1 + 2 * (l1 - l2) * (l1 - l2) * r1 * r2 / ((r1 + r2) * (r1 + r2) * (l1 * r2 + l2 * r1));
    g_assert_cmpfloat_with_epsilon(rate, (20.0 * 5 + 2 * 15) / 20, 0.2);
    g_assert_cmpfloat_with_epsilon(dispersion(all, 200 * KV_SECOND) / idc, 1, 0.2);
}

static guint between(const GArray *all, double from, double to)
{
    guint n = 0;
    for (guint i = 0; i < all->len; i++) {
        double t = kv_ns_to_seconds(REQUEST(all, i)->arrival);
        n += t >= from && t < to;
    }
    return n;
}

static void about(guint count, double expected)
{
    g_assert_cmpfloat_with_epsilon(count, expected, 4 * sqrt(expected) + 1);
}

static void test_curves(void)
{
    g_autoptr(GArray) steps = generate("steps:levels=\"5 10 20\",hold=1000s", "fixed", 40000);
    about(between(steps, 0, 1000), 5000);
    about(between(steps, 1000, 2000), 10000);
    about(between(steps, 2000, 3000), 20000);
    g_autoptr(GArray) ramp = generate("ramp:from=0,to=10,over=1000s", "fixed", 8000);
    about(between(ramp, 0, 500), 1250);
    about(between(ramp, 500, 1000), 3750);
    about(between(ramp, 1000, 1200), 2000);
    g_autoptr(GArray) spike =
        generate("spike:rate=1,peak=50,at=60s,width=10s,every=100s", "fixed", 60000);
    double in = 0, out = 0;
    for (guint k = 0; k < 90; k++) {
        in += between(spike, 100.0 * k + 60, 100.0 * k + 70);
        out += between(spike, 100.0 * k + 70, 100.0 * k + 160);
    }
    about((guint)in, 90 * 500);
    about((guint)out, 90 * 90);
}

/* Counts by hour of day against the integral of the rate: chi-square with 23 degrees of freedom. */
static void test_diurnal(void)
{
    g_autoptr(GArray) all =
        generate("diurnal:rate=2,amplitude=0.8,period=24h,phase=-0.25", "fixed", 172800);
    double chi = 0, total = 0, count[24] = {0}, expected[24];
    for (guint i = 0; i < all->len; i++) {
        double day = kv_ns_to_seconds(REQUEST(all, i)->arrival) / 86400;
        if (day < 0.999)
            count[(int)(day * 24)]++;
    }
    for (int h = 0; h < 24; h++) {
        double a = 2 * G_PI * (h / 24.0 - 0.25), b = 2 * G_PI * ((h + 1) / 24.0 - 0.25);
        expected[h] = 2 * (3600 + 0.8 * 86400 / (2 * G_PI) * (cos(a) - cos(b)));
        total += expected[h];
    }
    g_assert_cmpfloat_with_epsilon(total, 172800, 1);
    for (int h = 0; h < 23; h++) /* the last hour may be cut by the number of requests */
        chi += (count[h] - expected[h]) * (count[h] - expected[h]) / expected[h];
    g_assert_cmpfloat(chi, <, 51); /* 0.1 % with 23 is 49.7; the polygon adds a little */
}

static void test_rate_table(void)
{
    g_autofree char *path =
        test_write("rates.txt", "t,rate\n# a comment\n0 10\n100s,10\n100s 30\n3m 30\n", -1);
    g_autofree char *spec = g_strdup_printf("table:file=%s", path);
    g_autoptr(GArray) all = generate(spec, "fixed", 5000);
    about(between(all, 0, 100), 1000);
    about(between(all, 100, 200), 3000);
    g_autofree char *bad = test_write("rates.txt", "0 10\n5 x\n", -1);
    g_autofree char *bad_spec = g_strdup_printf("table:file=%s", bad);
    refused(bad_spec, NULL);
}

static void test_batch(void)
{
    g_autoptr(GArray) all = generate("batch:rate=8,size=4", "fixed", N);
    double *gaps = g_new(double, N / 4);
    for (guint i = 0; i < N; i += 4) {
        for (guint k = 1; k < 4; k++)
            g_assert_cmpint(REQUEST(all, i + k)->arrival, ==, REQUEST(all, i)->arrival);
        if (i > 0)
            gaps[i / 4 - 1] =
                kv_ns_to_seconds(REQUEST(all, i)->arrival - REQUEST(all, i - 4)->arrival);
    }
    g_assert_cmpfloat(ks(gaps, N / 4 - 1, exponential_cdf, 0.5, 0), <, KS_LIMIT);
    g_free(gaps);
    g_autoptr(GArray) even = generate("batch:rate=8,size=4,spacing=even", "fixed", 400);
    g_assert_cmpint(REQUEST(even, 399)->arrival, ==, 99 * 500 * KV_MS);
}

/* Never more than the users' number at a time; each next one a think time after the last one's end.
 */
static void test_closed_loop(void)
{
    g_autoptr(Workload) workload =
        generate_seeded("closed:users=5,think=2s,stagger=100ms", "fixed", NULL, 4000, 3);
    RequestSource *source = workload_source(workload);
    Request r, next;
    guint n = 0;
    while (request_source_next(source, &r, NULL) == 1)
        g_assert_cmpint(r.arrival, ==, n++ * 100 * KV_MS);
    g_assert_cmpuint(n, ==, 5);
    g_autofree double *waits = g_new(double, 4000);
    guint k = 0;
    while (request_source_next_turn(source, &r, 1000, &next, NULL) == 1) {
        g_assert_cmpint(next.arrival, ==, 1000 + next.wait);
        waits[k++] = kv_ns_to_seconds(next.wait);
        r = next;
    }
    g_assert_cmpuint(k, ==, 3995); /* the limit counts all */
    g_assert_cmpfloat(ks(waits, k, exponential_cdf, 2, 0), <, KS_LIMIT);
}

/* --- lengths --- */

static double *column(const GArray *all, gboolean output)
{
    double *x = g_new(double, all->len);
    for (guint i = 0; i < all->len; i++)
        x[i] = output ? REQUEST(all, i)->output : REQUEST(all, i)->prompt;
    return x;
}

static double correlation(const double *x, const double *y, guint n)
{
    double mx, my, cx, cy, sum = 0;
    moments(x, n, &mx, &cx);
    moments(y, n, &my, &cy);
    for (guint i = 0; i < n; i++)
        sum += (x[i] - mx) * (y[i] - my) / n;
    return sum / (cx * mx * cy * my);
}

/* Large means, so that rounding to whole tokens does not show. */
static void check_law(const char *spec, double (*cdf)(double, double, double), double a, double b,
                      double oa, double ob, gboolean logs)
{
    g_autoptr(GArray) all = generate("constant", spec, N);
    g_autofree double *prompt = column(all, FALSE);
    g_autofree double *output = column(all, TRUE);
    g_assert_cmpfloat(fabs(correlation(prompt, output, N)), <, 4 / sqrt(N));
    for (guint i = 0; logs && i < N; i++) {
        prompt[i] = log(prompt[i]);
        output[i] = log(output[i]);
    }
    g_assert_cmpfloat(ks(prompt, N, cdf, a, b), <, KS_LIMIT);
    g_assert_cmpfloat(ks(output, N, cdf, oa, ob), <, KS_LIMIT);
}

static void test_lengths_by_mean(void)
{
    check_law("normal:prompt=100000,prompt_cv=0.1,output=50000,output_cv=0.2,max=1000000",
              normal_cdf, 100000, 10000, 50000, 10000, FALSE);
    double s2 = log1p(2.25), o2 = log1p(0.25);
    check_law("lognormal:prompt=200000,prompt_cv=1.5,output=100000,output_cv=0.5,max=100000000",
              normal_cdf, log(200000) - s2 / 2, sqrt(s2), log(100000) - o2 / 2, sqrt(o2), TRUE);
    check_law("gamma:prompt=100000,prompt_cv=0.5,output=100000,output_cv=1,max=100000000",
              gamma_cdf, 4, 25000, 1, 100000, FALSE);
}

static double chi_square(const double *x, guint n, gint64 min, const double *p, guint cells)
{
    double chi = 0;
    g_autofree double *count = g_new0(double, cells);
    for (guint i = 0; i < n; i++) {
        g_assert_cmpfloat(x[i], >=, min);
        g_assert_cmpfloat(x[i], <, min + cells);
        count[(gint64)x[i] - min]++;
    }
    for (guint i = 0; i < cells; i++)
        chi += (count[i] - n * p[i]) * (count[i] - n * p[i]) / (n * p[i]);
    return chi;
}

static void test_lengths_uniform(void)
{
    g_autoptr(GArray) all =
        generate("constant", "uniform:prompt_min=10,prompt_max=29,output_min=1,output_max=20", N);
    g_autofree double *prompt = column(all, FALSE);
    g_autofree double *output = column(all, TRUE);
    double p[20];
    for (guint i = 0; i < 20; i++)
        p[i] = 1 / 20.0;
    g_assert_cmpfloat(chi_square(prompt, N, 10, p, 20), <, 43.8); /* 19 degrees, 0.1 % */
    g_assert_cmpfloat(chi_square(output, N, 1, p, 20), <, 43.8);
    g_assert_cmpfloat(fabs(correlation(prompt, output, N)), <, 4 / sqrt(N));
}

/* Rank k with probability k^-1 / H(16); prompt 16000/k tells the rank. Outputs geometric. */
static void test_lengths_zipf(void)
{
    g_autoptr(GArray) all =
        generate("constant", "zipf:ranks=16,exponent=1,slope=1,largest=160000,output=4", N);
    g_autofree double *rank = column(all, FALSE);
    g_autofree double *output = column(all, TRUE);
    double p[16], sum = 0, mean, cv;
    for (guint i = 0; i < 16; i++)
        sum += p[i] = 1.0 / (i + 1);
    for (guint i = 0; i < 16; i++)
        p[i] /= sum;
    for (guint i = 0; i < N; i++)
        rank[i] = floor(160000 / rank[i] + 0.5);
    g_assert_cmpfloat(chi_square(rank, N, 1, p, 16), <, 37.7); /* 15 degrees */
    moments(output, N, &mean, &cv);
    g_assert_cmpfloat_with_epsilon(mean, 4, 4 * sqrt(12) / sqrt(N));
    g_assert_cmpfloat_with_epsilon(cv, sqrt(0.75), 0.03);
}

static void test_lengths_bimodal(void)
{
    g_autoptr(GArray) all = generate("constant",
                                     "bimodal:share=0.3,long_prompt=1000,short_prompt=100,long_"
                                     "output=50,short_output=5,spread=0.1",
                                     N);
    guint is_long = 0;
    for (guint i = 0; i < N; i++) {
        const Request *r = REQUEST(all, i);
        gboolean l = r->prompt > 500;
        is_long += l;
        g_assert_cmpint(ABS(r->prompt - (l ? 1000 : 100)), <=, l ? 100 : 10);
        g_assert_cmpint(ABS(r->output - (l ? 50 : 5)), <=, l ? 5 : 0);
    }
    g_assert_cmpfloat_with_epsilon(is_long, 0.3 * N, 4 * sqrt(N * 0.21));
}

/* Pairs of the file and no others, each as likely; failed rows are none. */
static void test_lengths_empirical(void)
{
    g_autofree char *path = test_write("lengths.csv",
                                       "num_prefill_tokens,num_decode_tokens\n"
                                       "100,1\n200,2\n300,3\n400,0\n500,5\n",
                                       -1);
    g_autofree char *spec = g_strdup_printf("empirical:file=%s", path);
    g_autoptr(GArray) all = generate("constant", spec, N);
    g_autofree double *output = column(all, TRUE);
    for (guint i = 0; i < N; i++) {
        g_assert_cmpint(REQUEST(all, i)->prompt, ==, 100 * REQUEST(all, i)->output);
        output[i] = output[i] > 4 ? 4 : output[i];
    }
    static const double p[4] = {0.25, 0.25, 0.25, 0.25};
    g_assert_cmpfloat(chi_square(output, N, 1, p, 4), <, 16.3); /* 3 degrees */
}

/* The lengths drawn do not move the arrivals; another seed or replication moves both. */
static void test_streams(void)
{
    g_autoptr(GArray) a = generate("poisson", "fixed", 1000);
    g_autoptr(GArray) b = generate("poisson", "lognormal", 1000);
    for (guint i = 0; i < 1000; i++)
        g_assert_cmpint(REQUEST(a, i)->arrival, ==, REQUEST(b, i)->arrival);
    g_autoptr(Workload) other = generate_seeded("poisson", "lognormal", NULL, 1000, 8);
    g_autoptr(GArray) c = test_collect(other);
    g_assert_cmpint(REQUEST(b, 500)->arrival, !=, REQUEST(c, 500)->arrival);
    g_assert_cmpint(REQUEST(b, 500)->prompt, !=, REQUEST(c, 500)->prompt);
}

/* --- sessions --- */

/* Contexts grow by what was said and answered; sessions of a group share its system prompt's keys
 * and no others; what is drawn does not depend on the order of asking. */
static void test_chat(void)
{
    g_autoptr(Workload) workload =
        generate_seeded("poisson", "uniform:prompt_min=20,prompt_max=90,output_min=5,output_max=60",
                        "chat:turns=5,system=64,groups=1,wait=3s", 4000, 5);
    g_autoptr(GArray) all = test_collect(workload);
    guint sessions = 0, turns = 0;
    for (guint i = 1; i < all->len; i++) {
        const Request *a = REQUEST(all, i - 1), *b = REQUEST(all, i);
        g_assert_cmpuint(b->n_blocks, ==, b->prompt / 16);
        if (b->turn == 0) {
            sessions++;
            g_assert_cmpint(b->wait, ==, KV_NS_NONE);
            g_assert_cmpmem(a->blocks, 32, b->blocks, 32); /* 64 tokens are 4 blocks */
            g_assert_cmpuint(a->blocks[4], !=, b->blocks[4]);
            continue;
        }
        turns++;
        g_assert_cmpint(b->session, ==, a->session);
        g_assert_cmpint(b->turn, ==, a->turn + 1);
        gint32 grown = b->prompt - a->prompt - a->output;
        g_assert_cmpint(grown, >=, 20);
        g_assert_cmpint(grown, <=, 90);
        g_assert_cmpmem(a->blocks, a->n_blocks * 8, b->blocks, a->n_blocks * 8);
    }
    /* Mean turns 5: geometric with variance 20. */
    g_assert_cmpfloat_with_epsilon((double)(sessions + turns) / sessions, 5,
                                   4 * sqrt(20.0 / sessions));
}

static void test_session_order(void)
{
    gint64 sums[2] = {0};
    for (guint pass = 0; pass < 2; pass++) {
        g_autoptr(Workload) w =
            generate_seeded("constant", "lognormal", "agent:turns=3,turns_law=fixed", 300, 5);
        RequestSource *source = workload_source(w);
        Request open[100], r;
        guint n = 0;
        while (n < 100 && request_source_next(source, &r, NULL) == 1)
            open[n++] = r;
        for (guint k = 0; k < n; k++) { /* ask forwards or backwards */
            Request at = open[pass == 0 ? k : n - 1 - k];
            while (request_source_next_turn(source, &at, 0, &r, NULL) == 1) {
                sums[pass] += r.prompt * (r.session * 3 + r.turn + 1);
                at = r;
            }
        }
    }
    g_assert_cmpint(sums[0], ==, sums[1]);
    g_assert_cmpint(sums[0], >, 0);
}

static void test_context_limit(void)
{
    g_autoptr(Workload) w =
        generate_seeded("constant", "fixed:prompt=1000,output=500",
                        "agent:turns=30,turns_law=fixed,system=200,limit=8000", 3000, 5);
    g_autoptr(GArray) all = test_collect(w);
    guint cuts = 0;
    for (guint i = 1; i < all->len; i++) {
        g_assert_cmpint(REQUEST(all, i)->prompt, <=, 8000);
        cuts += REQUEST(all, i)->turn > 0 && REQUEST(all, i)->prompt < REQUEST(all, i - 1)->prompt;
    }
    g_assert_cmpuint(cuts, >, 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/arrivals/poisson", test_poisson);
    g_test_add_func("/arrivals/constant", test_constant);
    g_test_add_func("/cases/28-arrival-generator", test_gamma_burstiness);
    g_test_add_func("/arrivals/weibull", test_weibull);
    g_test_add_func("/arrivals/mmpp", test_mmpp);
    g_test_add_func("/arrivals/curves", test_curves);
    g_test_add_func("/arrivals/diurnal", test_diurnal);
    g_test_add_func("/arrivals/table", test_rate_table);
    g_test_add_func("/arrivals/batch", test_batch);
    g_test_add_func("/arrivals/closed", test_closed_loop);
    g_test_add_func("/lengths/by-mean", test_lengths_by_mean);
    g_test_add_func("/lengths/uniform", test_lengths_uniform);
    g_test_add_func("/lengths/zipf", test_lengths_zipf);
    g_test_add_func("/lengths/bimodal", test_lengths_bimodal);
    g_test_add_func("/lengths/empirical", test_lengths_empirical);
    g_test_add_func("/streams", test_streams);
    g_test_add_func("/sessions/chat", test_chat);
    g_test_add_func("/sessions/order", test_session_order);
    g_test_add_func("/sessions/context-limit", test_context_limit);
    g_test_add_func("/refused-options", test_refused_options);
    return g_test_run();
}
