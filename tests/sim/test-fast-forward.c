/* Fast-forward equals one step at a time: the same steps file, requests.csv and figures, byte for
 * byte, on random workloads, with every scheduler, under pressure, with checks after every event.
 */
#include "tests/sim/support.h"

#include <string.h>

static void compare(const SimConfig *config, Log *log, const char *clock, const char *what)
{
    SimConfig slow = *config;
    slow.fast_forward = FALSE;
    Outcome a, b;
    run_log_ok(config, log, clock, &a);
    run_log_ok(&slow, log, clock, &b);
    a.result.wall_seconds = b.result.wall_seconds = 0;
    gboolean same = strcmp(a.csv, b.csv) == 0 && a.steps_size == b.steps_size &&
                    memcmp(a.steps, b.steps, a.steps_size) == 0 &&
                    memcmp(&a.result, &b.result, sizeof a.result) == 0;
    if (!same)
        g_test_message("differs: %s", what);
    g_assert_true(same);
    g_assert_cmpuint(a.result.requests, ==, log->requests->len);
    g_assert_cmpuint(a.result.pages_end, ==, 0);
    outcome_clear(&a);
    outcome_clear(&b);
}

static const char *const v1_texts[] = {
    "vllm-v1:budget=64,seqs=4",
    "vllm-v1:budget=256,seqs=16",
    "vllm-v1:budget=7,seqs=12",
    "vllm-v1:budget=2048,seqs=256",
    "vllm-v1:budget=128,seqs=16,long_threshold=20",
    "vllm-v1:budget=400,seqs=16,chunked=no",
    "vllm-v1:budget=100,seqs=8,compat=2025",
    "vllm-v1:budget=100,seqs=8,watermark=0.1",
    "vllm-v1:budget=100,seqs=8,full_isl=no",
    "vllm-v1:budget=100,seqs=8,offload=60MB",
    "vllm-v1:budget=100,seqs=8,offload=20MB,full_isl=no,pcie=1GB",
    "vllm-v1:budget=100,seqs=8,queue=priority",
    "vllm-v1:budget=100,seqs=8,queue=sjf",
    "vllm-v1:budget=100,seqs=8,queue=edf",
};

static const char *const clocks[] = {
    "linear:base=4ms,prefill_token=25us,decode_row=60us,kv_token=200ns",
    "fixed:step=10ms",
    "roofline:gpu=h100",
};

static void random_runs(const char *scheduler, guint runs, gboolean blocks)
{
    for (guint i = 0; i < runs; i++) {
        guint32 seed = (guint32)g_test_rand_int();
        GRand *rand = g_rand_new_with_seed(seed);
        Log log;
        log_init(&log);
        gint32 page = 1 << g_rand_int_range(rand, 0, 5);
        gint32 longest = g_rand_int_range(rand, 3, 150);
        log_random(&log, rand, (guint)g_rand_int_range(rand, 1, 60), page, longest, blocks);
        SimConfig config;
        guint64 largest = (guint64)(2 * longest / page + 1);
        config_for(&config, scheduler, largest + (guint64)g_rand_int_range(rand, -1, 40));
        config.page_size = (guint32)page;
        config.warmup = KV_MS * g_rand_int_range(rand, 0, 200);
        g_autofree char *what = g_strdup_printf("%s seed %u", scheduler, seed);
        compare(&config, &log, clocks[g_rand_int_range(rand, 0, G_N_ELEMENTS(clocks))], what);
        sim_config_clear(&config);
        log_clear(&log);
        g_rand_free(rand);
    }
}

static void test_v1(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(v1_texts); i++)
        random_runs(v1_texts[i], 5, FALSE);
}

static void test_v1_cache(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(v1_texts); i++)
        random_runs(v1_texts[i], 5, TRUE);
}

static const char *const other_texts[] = {
    "vllm-v0:budget=400,seqs=8",
    "vllm-v0:budget=400,seqs=64,watermark=0.05,padded=yes",
    "vllm-v0:budget=400,seqs=16,swap=yes",
    "vllm-v0:budget=400,seqs=8,queue=sjf",
    "sarathi:chunk=32,seqs=8",
    "sarathi:chunk=3,seqs=16",
    "sarathi:chunk=64,seqs=64,queue=edf",
    "orca:seqs=4",
    "orca:seqs=64,max_output=100",
    "orca:seqs=8,queue=priority",
    "static:batch=4",
    "static:batch=16,queue=sjf",
};

static void test_others(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(other_texts); i++)
        random_runs(other_texts[i], 5, FALSE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fast-forward/vllm-v1", test_v1);
    g_test_add_func("/fast-forward/vllm-v1-cache", test_v1_cache);
    g_test_add_func("/fast-forward/others", test_others);
    return g_test_run();
}
