/* Small workloads whose right answer can be told by hand (tests/cases/NN-*): what a token, a page
 * and a step mean. Times are those of a fixed clock of 10 ms. */
#include "tests/sim/support.h"

#include <string.h>

#define CLOCK "fixed:step=10ms"

/* Totals over the steps file of an outcome. */
typedef struct Seen {
    guint64 steps, prefill_steps, prefill_tokens;
    guint32 first_length, last_length; /* of decode rows, whole batch */
    guint32 pages_most;
    guint64 tokens_most;
} Seen;

static Seen look(const Outcome *o)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("kvsim-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "a.kvsteps", NULL);
    g_assert_true(g_file_set_contents(path, o->steps, (gssize)o->steps_size, NULL));
    g_autoptr(StepsReader) r = steps_reader_open(path, &error);
    g_assert_no_error(error);
    Seen seen = {0};
    const Step *s;
    while (steps_reader_next(r, &s, &error) == 1) {
        seen.steps++;
        seen.prefill_steps += s->n_prefill > 0;
        for (guint32 i = 0; i < s->n_prefill; i++)
            seen.prefill_tokens += s->prefill[i].tokens;
        if (s->rows && seen.first_length == 0)
            seen.first_length = s->max_length;
        if (s->rows)
            seen.last_length = s->max_length;
        seen.pages_most = MAX(seen.pages_most, s->pages_used);
        seen.tokens_most = MAX(seen.tokens_most, s->tokens_held);
    }
    g_assert_no_error(error);
    remove(path);
    remove(dir);
    return seen;
}

/* The prompt's step makes token 1: D-1 decode steps, P+D-1 entries. The limit is on entries. */
static void test_first_token(void)
{
    static const gint32 lengths[][2] = {{200, 50}, {16, 1}, {16, 2}, {2048, 1}, {2048, 2}};
    Log log;
    log_init(&log);
    for (gsize i = 0; i < G_N_ELEMENTS(lengths); i++)
        log_add(&log, 0, lengths[i][0], lengths[i][1]);
    SimConfig config;
    config_for(&config, "vllm-v1", 2560);
    config.context_limit = 2048;
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 4);
    g_assert_cmpuint(o.result.refused, ==, 1);
    g_assert_cmpstr(o.result.refused_by[0].reason, ==, "context_limit");
    g_assert_cmpuint(o.result.output_tokens, ==, 54);
    g_assert_cmpuint(o.result.row_steps, ==, 50);
    outcome_clear(&o);
    config.clip = TRUE; /* asked for: the last one is cut to one token, and counted */
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.output_tokens, ==, 55);
    g_assert_cmpuint(o.result.clipped, ==, 1);
    outcome_clear(&o);
    config.clip = FALSE;
    config.context_limit = 0;
    config.max_model_len = 2048; /* counts P+D: 2048 + 1 is too long as well */
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.refused, ==, 2);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
    log_init(&log);
    log_add(&log, 0, 200, 50);
    config_for(&config, "vllm-v1", 2560);
    run_log_ok(&config, &log, CLOCK, &o);
    Seen seen = look(&o);
    g_assert_cmpuint(seen.first_length, ==, 201);
    g_assert_cmpuint(seen.last_length, ==, 249);
    g_assert_cmpuint(seen.pages_most, ==, 16);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* The last token is never attended to: no page for it. */
static void test_last_token(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 31, 2);
    log_add(&log, 100 * KV_SECOND, 32, 1);
    log_add(&log, 200 * KV_SECOND, 32, 2);
    SimConfig config;
    config_for(&config, "vllm-v1", 2);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 2);
    g_assert_cmpuint(o.result.pages_peak, ==, 2);
    g_assert_cmpuint(o.result.preemptions, ==, 0);
    g_assert_cmpuint(o.result.refused, ==, 1);
    g_assert_cmpstr(o.result.refused_by[0].reason, ==, "pool");
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Larger than the pool: refused at once, and nobody waits behind it. */
static void test_too_big(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 100, 10);
    log_add(&log, KV_SECOND / 10, 5000, 10);
    log_add(&log, KV_SECOND / 5, 100, 10);
    log_add(&log, KV_SECOND * 3 / 10, 900, 200);
    SimConfig config;
    config_for(&config, "vllm-v1", 64);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 2);
    g_assert_cmpuint(o.result.output_tokens, ==, 20);
    g_assert_cmpuint(o.result.refused, ==, 2);
    g_assert_cmpuint(o.result.refused_by[0].count, ==, 2);
    g_assert_cmpuint(o.result.preemptions, ==, 0);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* At least one token is computed, and only whole blocks are shared. */
static void test_all_cached(void)
{
    static const guint64 ids[] = {1, 2, 3, 4, 5};
    Log log;
    log_init(&log);
    for (guint i = 0; i < 4; i++) {
        log_add(&log, 100 * KV_SECOND * i, i < 2 ? 64 : 65, 1);
        log_blocks(&log, 16, ids, i < 2 ? 4 : 5);
    }
    SimConfig config;
    config_for(&config, "vllm-v1", 100);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.prefix_queried_tokens, ==, 258);
    g_assert_cmpuint(o.result.prefix_hit_tokens, ==, 48 + 64 + 64);
    g_assert_cmpuint(o.result.prefill_tokens, ==, 64 + 16 + 1 + 1);
    outcome_clear(&o);
    config.prefix_cache = 0;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.prefill_tokens, ==, 258);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Evicted pages come back from host memory instead of being computed again; bytes and time count.
 */
static void test_host_tier(void)
{
    static const guint64 a[] = {1, 2, 3}, b[] = {4, 5, 6, 7};
    Log log;
    log_init(&log);
    log_add(&log, 0, 49, 1);
    log_blocks(&log, 16, a, 3);
    log_add(&log, KV_SECOND, 64, 1); /* takes all four pages */
    log_blocks(&log, 16, b, 4);
    log_add(&log, 2 * KV_SECOND, 49, 1); /* the first again */
    log_blocks(&log, 16, a, 3);
    SimConfig config;
    config_for(&config, "vllm-v1:offload=1GB,pcie=1GB", 4);
    config.entry_bytes = 125000; /* a page is 2 MB: 2 ms */
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.prefill_tokens, ==, 49 + 64 + 1);
    g_assert_cmpuint(o.result.host_hit_tokens, ==, 48);
    g_assert_cmpuint(o.result.prefix_hit_tokens, ==, 48);
    g_assert_cmpuint(o.result.host_bytes_in, ==, 6000000);
    g_assert_cmpuint(o.result.host_bytes_out, ==, 3 * 2000000 + 4 * 2000000);
    g_assert_nonnull(strstr(o.csv, "\n2,,0,0,0,2000000000,2000000000,2000000000,2016000000,"));
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* A hit on a free page takes it out of the free ones: they cannot be counted twice. */
static void test_cached_and_free(void)
{
    static const guint64 a[] = {1, 2}, b[] = {3, 4, 5}, c[] = {1, 2, 6, 7, 8, 9};
    Log log;
    log_init(&log);
    log_add(&log, 0, 32, 1);
    log_blocks(&log, 16, a, 2);
    log_add(&log, 1000 * KV_MS, 33, 12);
    log_blocks(&log, 16, b, 3);
    log_add(&log, 1001 * KV_MS, 96, 1);
    log_blocks(&log, 16, c, 6);
    SimConfig config;
    config_for(&config, "vllm-v1", 8);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 3);
    g_assert_cmpuint(o.result.pages_peak, ==, 6);
    g_assert_cmpuint(o.result.prefix_hit_tokens, ==, 32);
    /* request 1 makes its 12 tokens in steps from 1.00 to 1.12 s; only then does request 2 begin */
    g_assert_nonnull(strstr(o.csv, "\n2,,0,0,0,1001000000,1001000000,1120000000,1130000000,"));
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Pages used and entries held are two numbers. */
static void test_filled(void)
{
    Log log;
    log_init(&log);
    for (guint i = 0; i < 20; i++)
        log_add(&log, 0, 17, 1);
    SimConfig config;
    config_for(&config, "vllm-v1", 60);
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    Seen seen = look(&o);
    g_assert_cmpuint(seen.pages_most, ==, 40);
    g_assert_cmpuint(seen.tokens_most, ==, 340);
    g_assert_cmpfloat_with_epsilon(o.result.pages_filled_mean, 340.0 / 640.0, 1e-12);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* A chunk is cut to what is left of the budget; without chunks the second prompt waits. */
static void test_budget_left(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 4, 1);
    log_add(&log, 0, 8, 1);
    SimConfig config;
    config_for(&config, "vllm-v1:budget=8", 100);
    config.page_size = 4;
    g_autofree char *chunked = run_ledger(&config, &log, CLOCK);
    g_assert_nonnull(strstr(chunked, "\"step\":0,\"sched\":[[0,4,0,[1],0],[1,4,0,[2],0]]"));
    g_assert_nonnull(strstr(chunked, "\"step\":1,\"sched\":[[1,4,4,[1],0]]"));
    sim_config_clear(&config);
    config_for(&config, "vllm-v1:budget=8,chunked=no", 100);
    config.page_size = 4;
    g_autofree char *whole = run_ledger(&config, &log, CLOCK);
    g_assert_nonnull(strstr(whole, "\"step\":0,\"sched\":[[0,4,0,[1],0]]"));
    g_assert_nonnull(strstr(whole, "\"step\":1,\"sched\":[[1,8,0,[1,2],0]]"));
    sim_config_clear(&config);
    log_clear(&log);
}

/* Overload and corners: all of them end, with the right counts. */
static void test_corners(void)
{
    const struct {
        const char *scheduler;
        guint64 pool, finished;
    } runs[] = {
        {"vllm-v1", 0, 0},                   /* no pool: all refused */
        {"vllm-v1", 1, 200},                 /* one page: one after the other */
        {"vllm-v1:budget=1,seqs=3", 7, 200}, /* a budget smaller than any prompt */
        {"vllm-v1:seqs=1", 2560, 200},
        {"vllm-v1:budget=5,chunked=no", 2560, 0}, /* prompts that no step could take */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(runs); i++) {
        Log log;
        log_init(&log);
        for (guint k = 0; k < 200; k++)
            log_add(&log, 0, 9, 8); /* 16 entries: exactly a page */
        SimConfig config;
        config_for(&config, runs[i].scheduler, runs[i].pool);
        Outcome o;
        run_log_ok(&config, &log, CLOCK, &o);
        g_assert_cmpuint(o.result.finished, ==, runs[i].finished);
        g_assert_cmpuint(o.result.refused, ==, 200 - runs[i].finished);
        g_assert_cmpuint(o.result.output_tokens, ==, 8 * runs[i].finished);
        outcome_clear(&o);
        sim_config_clear(&config);
        log_clear(&log);
    }
}

/* 100,000 requests at one instant. */
static void test_crowd(void)
{
    Log log;
    log_init(&log);
    for (guint k = 0; k < 100000; k++)
        log_add(&log, 5, 20, 4);
    SimConfig config;
    config_for(&config, "vllm-v1", 300);
    config.check = FALSE;
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 100000);
    g_assert_cmpuint(o.result.output_tokens, ==, 400000);
    g_assert_cmpuint(o.result.waiting_peak, >, 99000);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* What a preempted request had is not counted twice: TTFT stays, D-1 gaps, recomputation apart. */
static void test_preempted(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 17);
    log_add(&log, 0, 16, 17);
    SimConfig config;
    config_for(&config, "vllm-v1", 3); /* two pages each in the end */
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.preemptions, ==, 1);
    g_assert_cmpuint(o.result.recomputed_tokens, ==, 16);
    g_assert_cmpuint(o.result.itl.n, ==, 32);
    g_assert_cmpfloat_with_epsilon(o.result.ttft.max, 0.01, 1e-9);
    g_assert_cmpuint(o.result.output_tokens, ==, 34);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

/* Two classes: latencies and goodput of each, and both make the whole. The first two requests, of
 * class 0, come before a second class is known. */
static void test_classes(void)
{
    Log log;
    log_init(&log);
    log_add(&log, 0, 16, 3);
    log_add(&log, 100 * KV_MS, 16, 1);
    log_add(&log, 200 * KV_MS, 16, 5)->klass = 2;
    log_add(&log, 200 * KV_MS, 999999, 5)->klass = 2;
    log_add(&log, 300 * KV_MS, 16, 11);
    SimConfig config;
    config_for(&config, "vllm-v1", 100);
    config.good_e2e = 40 * KV_MS;
    Outcome o;
    run_log_ok(&config, &log, CLOCK, &o);
    const ClassResult *c = o.result.classes;
    g_assert_cmpuint(o.result.n_classes, ==, 3);
    g_assert_cmpuint(c[0].requests, ==, 3);
    g_assert_cmpuint(c[0].ttft.n, ==, 3);
    g_assert_cmpuint(c[0].tpot.n, ==, 2);
    g_assert_cmpfloat_with_epsilon(c[0].e2e.max, 0.11, 1e-9);
    g_assert_cmpuint(c[0].good, ==, 2);
    g_assert_cmpuint(c[1].requests, ==, 0);
    g_assert_cmpuint(c[2].requests, ==, 2);
    g_assert_cmpuint(c[2].refused, ==, 1);
    g_assert_cmpfloat_with_epsilon(c[2].e2e.max, 0.05, 1e-9);
    g_assert_cmpuint(c[2].good, ==, 0);
    g_assert_cmpuint(o.result.good, ==, 2);
    g_assert_cmpuint(o.result.measured, ==, 4);
    outcome_clear(&o);
    config.warmup = 150 * KV_MS; /* the first two are served, and not measured */
    run_log_ok(&config, &log, CLOCK, &o);
    g_assert_cmpuint(o.result.finished, ==, 4);
    g_assert_cmpuint(o.result.measured, ==, 2);
    g_assert_cmpuint(o.result.ttft.n, ==, 2);
    g_assert_cmpuint(o.result.itl.n, ==, 4 + 10);
    outcome_clear(&o);
    sim_config_clear(&config);
    log_clear(&log);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cases/first-token", test_first_token);
    g_test_add_func("/cases/last-token", test_last_token);
    g_test_add_func("/cases/too-big", test_too_big);
    g_test_add_func("/cases/all-cached", test_all_cached);
    g_test_add_func("/cases/host-tier", test_host_tier);
    g_test_add_func("/cases/cached-and-free", test_cached_and_free);
    g_test_add_func("/cases/filled", test_filled);
    g_test_add_func("/cases/budget-left", test_budget_left);
    g_test_add_func("/cases/corners", test_corners);
    g_test_add_func("/cases/crowd", test_crowd);
    g_test_add_func("/cases/preempted", test_preempted);
    g_test_add_func("/cases/classes", test_classes);
    return g_test_run();
}
