/* Queueing theory as an outside answer: where the simulator is a known queue, it must wait as that.
 *
 * One request at a time and steps of one length: Poisson arrivals make it M/G/1 exactly (a step
 * begins when a request finds the server idle), with mean wait lambda E[S^2] / (2 (1 - rho))
 * (Pollaczek and Khinchine). c at a time with steps far shorter than the service: M/M/c (Erlang C),
 * and a wait for the next step of at most one step. Tolerances are four standard errors, from batch
 * means. */
#include "base/rng.h"
#include "tests/sim/support.h"

#include <math.h>

#define N 60000
#define BATCHES 30
#define STEP 0.01 /* s */

typedef struct WaitSink {
    RequestSink sink;
    double sum[BATCHES];
    guint64 n;
} WaitSink;

static gboolean add_wait(RequestSink *sink, const RequestRecord *r, GError **error)
{
    WaitSink *self = (WaitSink *)sink;
    self->sum[r->request.id * BATCHES / N] +=
        kv_ns_to_seconds(r->first_scheduled - r->request.arrival);
    self->n++;
    return TRUE;
}

/* Output tokens: constant, or geometric with that mean. One token is one step of service. */
static gint32 draw_tokens(RngStream *rng, gint32 mean, gboolean constant)
{
    if (constant)
        return mean;
    return 1 + (gint32)floor(log(rng_uniform_open(rng)) / log1p(-1.0 / mean));
}

static void fill_log(Log *log, double rate, gint32 mean, gboolean constant)
{
    RngStream gaps, tokens;
    rng_init(&gaps, 7, RNG_TEST, 1, 0);
    rng_init(&tokens, 7, RNG_TEST, 2, 0);
    double t = 0;
    for (guint i = 0; i < N; i++) {
        log_add(log, kv_ns_from_seconds(t), 1, draw_tokens(&tokens, mean, constant));
        t += rng_exponential(&gaps) / rate;
    }
}

static void check_wait(guint servers, double rho, gint32 mean, gboolean constant, double expected,
                       double late)
{
    Log log;
    log_init(&log);
    fill_log(&log, rho * servers / (mean * STEP), mean, constant);
    SimConfig config;
    g_autofree char *scheduler = g_strdup_printf("vllm-v1:seqs=%u", servers);
    config_for(&config, scheduler, 100000);
    config.check = FALSE;
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks, "fixed:step=10ms", &error);
    g_autoptr(StepClock) clock = step_clock_new(&choice, &error);
    WaitSink waits = {.sink = {add_wait}};
    SimResult r;
    sim_run(&config, log_source(&log), clock, NULL, &waits.sink, NULL, &r, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(waits.n, ==, N);
    double sum = 0, squares = 0;
    for (guint b = 0; b < BATCHES; b++) {
        double m = waits.sum[b] / (N / BATCHES);
        sum += m;
        squares += m * m;
    }
    double wait = sum / BATCHES;
    double se = sqrt((squares / BATCHES - wait * wait) / (BATCHES - 1));
    g_test_message("c %u rho %.2f: wait %.5f s, theory %.5f s, standard error %.5f s", servers, rho,
                   wait, expected, se);
    g_assert_cmpfloat(wait, >, expected - 4 * se);
    g_assert_cmpfloat(wait, <, expected + late + 4 * se);
    /* Little: the line's mean length is its rate times the mean wait, on every run */
    g_assert_cmpfloat_with_epsilon(r.waiting_mean * kv_ns_to_seconds(r.duration), N * wait,
                                   1e-6 * N * wait);
    plugin_choice_clear(&choice);
    sim_config_clear(&config);
    log_clear(&log);
}

static double pollaczek_khinchine(double rho, double mean, double second)
{
    double rate = rho / mean;
    return rate * second / (2 * (1 - rho));
}

static void test_one_server(void)
{
    const double loads[] = {0.3, 0.6, 0.8};
    const double mean = 20 * STEP, p = 1.0 / 20;
    for (gsize i = 0; i < G_N_ELEMENTS(loads); i++) {
        double geometric = (2 - p) / (p * p) * STEP * STEP; /* E[S^2] */
        check_wait(1, loads[i], 20, FALSE, pollaczek_khinchine(loads[i], mean, geometric), 0);
        check_wait(1, loads[i], 20, TRUE, pollaczek_khinchine(loads[i], mean, mean * mean), 0);
    }
}

static double erlang_c_wait(guint c, double rho, double mean)
{
    double a = rho * c, term = 1, sum = 1;
    for (guint k = 1; k < c; k++) {
        term *= a / k;
        sum += term;
    }
    double last = term * a / c / (1 - rho);
    return last / (sum + last) * mean / (c * (1 - rho));
}

static void test_many_servers(void)
{
    const guint servers[] = {2, 4};
    for (gsize i = 0; i < G_N_ELEMENTS(servers); i++) {
        double expected = erlang_c_wait(servers[i], 0.8, 200 * STEP);
        check_wait(servers[i], 0.8, 200, FALSE, expected, STEP);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/queueing/one-server", test_one_server);
    g_test_add_func("/queueing/many-servers", test_many_servers);
    return g_test_run();
}
