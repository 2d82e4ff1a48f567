/* The other schedulers, each by the decisions that make it what it is, told by hand on a few
 * requests. Steps take 10 ms; pages hold 16 entries unless said otherwise. */
#include "tests/sim/support.h"

#include <string.h>

#define CLOCK "fixed:step=10ms"

typedef struct Expect {
    const char *scheduler;
    guint64 pool;
    const char *steps[8]; /* beginnings of the ledger's `sched` lists, in order */
} Expect;

static void expect_ledger(const Expect *x, Log *log)
{
    SimConfig config;
    config_for(&config, x->scheduler, x->pool);
    g_autofree char *text = run_ledger(&config, log, CLOCK);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; i < G_N_ELEMENTS(x->steps) && x->steps[i]; i++) {
        g_autofree char *begin = g_strdup_printf("{\"step\":%u,\"sched\":[%s", i, x->steps[i]);
        if (!g_str_has_prefix(lines[i], begin))
            g_test_message("%s: expected %s, got %s", x->scheduler, begin, lines[i]);
        g_assert_true(g_str_has_prefix(lines[i], begin));
    }
    sim_config_clear(&config);
}

/* Prompts first: request 1 arrives while 0 decodes, and its prompt stops 0 for a step. */
static void test_v0(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 20, 5);
    log_add(&log, 15 * KV_MS, 40, 2);
    expect_ledger(&(Expect){"vllm-v0",
                            100,
                            {"[0,20,0,[1,2],0]]", "[0,1,20,[],0]]", "[1,40,0,[3,4,5],0]]",
                             "[0,1,21,[],0],[1,1,40,[],0]]", "[0,1,22,[],0]]"}},
                  &log);
    log_clear(&log);
}

/* Two requests of two pages in the end, three pages: the later one is swapped out as the earlier
 * one crosses, and comes back without a prompt's step. */
static void test_v0_swap(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 10);
    log_add(&log, 0, 16, 10);
    SimConfig config;
    config_for(&config, "vllm-v0:watermark=0,swap=yes,pcie=1GB", 3);
    config.entry_bytes = 1000000; /* 1 ms an entry */
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.preemptions, ==, 1);
    g_assert_cmpuint(o.result.recomputed_tokens, ==, 0);
    g_assert_cmpuint(o.result.prefill_tokens, ==, 32);
    g_assert_cmpuint(o.result.itl.n, ==, 18);
    /* 1 + 9 + 9 steps, and 16 entries out and in again */
    g_assert_cmpint(o.result.busy, ==, 19 * 10 * KV_MS + 32 * KV_MS);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* A chunk of 8: the row takes one, the prompt the seven that are left; the row never waits. */
static void test_sarathi(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 8, 5);
    log_add(&log, 5 * KV_MS, 20, 1);
    expect_ledger(
        &(Expect){"sarathi:chunk=8,watermark=0",
                  100,
                  {"[0,8,0,[1],0]]", "[0,1,8,[],0],[1,7,0,[2,3],0]]", "[0,1,9,[],0],[1,7,7,[],0]]",
                   "[0,1,10,[],0],[1,6,14,[],0]]", "[0,1,11,[],0]]"}},
        &log);
    log_clear(&log);
}

/* Pages for all that the first will store (3) leave one of four: the second, of two, must wait for
 * its end, although its prompt would fit. */
static void test_orca(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 18);
    log_add(&log, 0, 16, 2);
    SimConfig config;
    config_for(&config, "orca", 4);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.preemptions, ==, 0);
    g_assert_cmpuint(o.result.pages_peak, ==, 3);
    g_assert_nonnull(strstr(o.csv, "\n1,,0,0,0,0,0,180000000,190000000,200000000,"));
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Batches of two: 2 waits for the longer of 0 and 1, and the shorter one's pages stay taken. */
static void test_static(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 2);
    log_add(&log, 0, 16, 6);
    log_add(&log, 1, 16, 1);
    SimConfig config;
    config_for(&config, "static:batch=2", 100);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.steps, ==, 7);
    g_assert_nonnull(strstr(o.csv, "\n0,,0,0,0,0,0,0,10000000,20000000,"));
    g_assert_nonnull(strstr(o.csv, "\n2,,0,0,0,1,1,60000000,70000000,70000000,"));
    /* pages: 4 for six steps, 1 for one */
    g_assert_cmpfloat_with_epsilon(o.result.pages_mean, (6 * 4 + 1) / 7.0, 1e-9);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Who is served first when three wait for one place. */
static void test_orders(void)
{
    const struct {
        const char *scheduler;
        guint64 order[3];
    } runs[] = {{"orca:seqs=1,queue=fcfs", {1, 2, 3}},
                {"orca:seqs=1,queue=sjf", {2, 3, 1}},
                {"orca:seqs=1,queue=priority", {3, 1, 2}},
                {"orca:seqs=1,queue=edf", {1, 3, 2}}};
    for (gsize i = 0; i < G_N_ELEMENTS(runs); i++) {
        Log log;
        log_init(&log);
        log_add(&log, 0, 16, 3); /* keeps the place while the others arrive */
        log_add(&log, 1, 90, 1)->priority = 5;
        log_add(&log, 2, 10, 1)->priority = 5;
        log_add(&log, 3, 50, 1)->priority = 1;
        g_array_index(log.requests, Request, 1).deadline = KV_MS;
        g_array_index(log.requests, Request, 3).deadline = 2 * KV_MS;
        SimConfig config;
        config_for(&config, runs[i].scheduler, 100);
        g_autofree char *text = run_ledger(&config, &log, CLOCK);
        const char *last = text;
        for (guint k = 0; k < 3; k++) {
            g_autofree char *chunk = g_strdup_printf("\"sched\":[[%d,", (int)runs[i].order[k]);
            const char *found = strstr(text, chunk);
            g_assert_nonnull(found);
            g_assert_true(found > last);
            last = found;
        }
        sim_config_clear(&config);
        log_clear(&log);
    }
}

/* Ids of a churned or holed pool, never two owners: the engine's checks are on. */
static void test_layouts(void)
{
    const char *const layouts[] = {"churned", "holes:fraction=0.5"};
    for (gsize i = 0; i < G_N_ELEMENTS(layouts); i++) {
        GRand *rand = g_rand_new_with_seed(3);
        Log log;
        log_init(&log);
        log_random(&log, rand, 50, 16, 60, TRUE);
        SimConfig config;
        config_for(&config, "vllm-v1:budget=64,seqs=8", 40);
        config.pool_layout = g_strdup(layouts[i]);
        Outcome o, again;
        run_log_ok(&config, &log, CLOCK, &o);
        run_log_ok(&config, &log, CLOCK, &again);
        g_assert_cmpmem(o.steps, o.steps_size, again.steps, again.steps_size);
        outcome_clear(&again);
        outcome_clear(&o);
        sim_config_clear(&config);
        log_clear(&log);
        g_rand_free(rand);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedulers/vllm-v0", test_v0);
    g_test_add_func("/schedulers/vllm-v0-swap", test_v0_swap);
    g_test_add_func("/schedulers/sarathi", test_sarathi);
    g_test_add_func("/schedulers/orca", test_orca);
    g_test_add_func("/schedulers/static", test_static);
    g_test_add_func("/schedulers/orders", test_orders);
    g_test_add_func("/schedulers/layouts", test_layouts);
    return g_test_run();
}
