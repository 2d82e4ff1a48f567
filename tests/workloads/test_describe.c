/* Descriptions against sums done by hand, and every writer read back. */
#include "tests/workloads/support.h"

#include <string.h>

#include "workloads/describe.h"
#include "workloads/mix.h"
#include "workloads/token_counts.h"
#include "workloads/write.h"

static const char *const own = "# kvreplay-workload 1\n"
                               "arrival_ns,sent_ns,prompt_tokens,output_tokens,session,turn,wait_"
                               "ns,priority,class,deadline_ns,"
                               "block_tokens,blocks\n"
                               "0,,40,5,7,0,,,gold,,16,1 2 3\n"
                               ",,64,6,7,1,2000000000,,gold,,16,1 2 4 5\n"
                               "1000000000,1250000000,17,1,,,,-3,\"a \"\"b\"\", c\",500000000,,\n"
                               "3000000001,,33,9,,,,,,,16,1 ffffffffffffffff\n";

static void test_description(void)
{
    g_autofree char *path = test_write("own.csv", own, -1);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autofree Description *d = workload_describe(workload, NULL, NULL);
    g_assert_nonnull(d);
    g_assert_cmpuint(d->requests, ==, 4);
    g_assert_cmpuint(d->prompt_tokens, ==, 154);
    g_assert_cmpuint(d->output_tokens, ==, 21);
    g_assert_cmpint(d->last_arrival, ==, 3000000001);
    g_assert_cmpuint(d->closed_turns, ==, 1);
    g_assert_cmpuint(d->sessions, ==, 1);
    /* Turn 1 finds blocks 1 and 2 of turn 0; the last row finds block 1; block 3 of turn 0 is
     * partial. */
    g_assert_cmpuint(d->hit_tokens, ==, 48);
    g_assert_cmpuint(d->distinct_blocks, ==, 5);
    /* Gaps 1 s and 2.000000001 s: mean 1.5, deviation 0.5 (nearly). */
    g_assert_cmpfloat_with_epsilon(d->gap_cv, 1.0 / 3, 1e-9);
    g_assert_cmpfloat(d->prompt.p50, ==, 36.5);
    g_autofree char *json = description_json(d);
    static const char *const parts[] = {"\"span_s\": 3.000000001",  "\"hit_tokens\": 48",
                                        "\"format\": \"kvreplay\"", "\"first_arrival\": \"0\"",
                                        "\"sha256\": \"",           "\"dropped\": {}"};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        g_assert_nonnull(strstr(json, parts[i]));
    g_autofree char *text = description_text(d);
    g_assert_nonnull(strstr(text, "3.000000001 s"));
}

/* Against the sampler of base/, which sorts: random lengths, some beyond the dense range. */
static void test_token_counts(void)
{
    for (guint round = 0; round < 20; round++) {
        g_autoptr(Sampler) sampler = sampler_new(100000);
        TokenCounts *counts = token_counts_new();
        guint n = (guint)g_test_rand_int_range(1, 3000);
        for (guint i = 0; i < n; i++) {
            gint32 v = g_test_rand_int_range(0, g_test_rand_bit() ? 300 : 5000000);
            sampler_add(sampler, v);
            token_counts_add(counts, v);
        }
        Summary a = sampler_summary(sampler, 1), b = token_counts_summary(counts);
        g_assert_cmpuint(a.n, ==, b.n);
        g_assert_cmpfloat(a.min, ==, b.min);
        g_assert_cmpfloat(a.p50, ==, b.p50);
        g_assert_cmpfloat(a.p90, ==, b.p90);
        g_assert_cmpfloat(a.p95, ==, b.p95);
        g_assert_cmpfloat(a.p99, ==, b.p99);
        g_assert_cmpfloat(a.max, ==, b.max);
        g_assert_cmpfloat_with_epsilon(a.mean, b.mean, 1e-6);
        token_counts_free(counts);
    }
}

static char *write_as(const char *path, const char *writer, const char *name, char **ret_warning)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *blank = test_write(name, "", 0);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(OutFile) out = out_file_new(blank, &error);
    g_assert_no_error(error);
    g_assert_true(workload_write(workload, writer, out, NULL, ret_warning, &error));
    g_assert_true(out_file_commit(out, &error));
    g_assert_no_error(error);
    return g_steal_pointer(&blank);
}

static void same_requests(const GArray *a, const GArray *b)
{
    g_assert_cmpuint(a->len, ==, b->len);
    for (guint i = 0; i < a->len; i++) {
        const Request *x = REQUEST(a, i), *y = REQUEST(b, i);
        g_assert_cmpint(x->arrival, ==, y->arrival);
        g_assert_cmpint(x->sent, ==, y->sent);
        g_assert_cmpint(x->prompt, ==, y->prompt);
        g_assert_cmpint(x->output, ==, y->output);
        g_assert_cmpint(x->wait, ==, y->wait);
        g_assert_cmpint(x->session, ==, y->session);
        g_assert_cmpint(x->turn, ==, y->turn);
        g_assert_cmpint(x->priority, ==, y->priority);
        g_assert_cmpuint(x->klass, ==, y->klass);
        g_assert_cmpint(x->deadline, ==, y->deadline);
        g_assert_cmpint(x->block_tokens, ==, y->block_tokens);
        g_assert_cmpmem(x->blocks, x->n_blocks * 8, y->blocks, y->n_blocks * 8);
    }
}

static void test_own_round_trip(void)
{
    g_autofree char *path = test_write("own.csv", own, -1);
    g_autofree char *copy = write_as(path, "kvreplay", "copy.csv", NULL);
    g_autoptr(GArray) a = test_read(path, NULL);
    g_autoptr(GArray) b = test_read(copy, NULL);
    same_requests(a, b);
    g_assert_cmpint(REQUEST(a, 1)->wait, ==, 2 * KV_SECOND);
    g_assert_cmpint(REQUEST(a, 2)->sent - REQUEST(a, 2)->arrival, ==, 250 * KV_MS);
    g_autofree char *again = write_as(copy, "kvreplay", "again.csv", NULL);
    g_autofree char *one = NULL, *two = NULL;
    gsize n1, n2;
    g_assert_true(g_file_get_contents(copy, &one, &n1, NULL));
    g_assert_true(g_file_get_contents(again, &two, &n2, NULL));
    g_assert_cmpmem(one, n1, two, n2);
}

/* Headers are written before the first request: a file's hash is known by then. */
static void test_hash_from_the_start(void)
{
    g_autofree char *path = test_write("own.csv", own, -1);
    g_autofree char *expected = g_compute_checksum_for_string(G_CHECKSUM_SHA256, own, -1);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_assert_cmpstr(workload_info(workload)->sha256, ==, expected);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpstr(workload_info(workload)->sha256, ==, expected);
}

static void test_own_bad(void)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"# kvreplay-workload 2\nprompt_tokens,output_tokens\n", ":1: workload file version: '2'"},
        {"# kvreplay-workload 1\nprompt_tokens\n", ":2: no column 'output_tokens'"},
        {"# kvreplay-workload 1\narrival_ns,prompt_tokens,output_tokens\n,1,1\n",
         ":3: column 'arrival_ns'"},
        {"# kvreplay-workload "
         "1\narrival_ns,prompt_tokens,output_tokens,block_tokens,blocks\n0,1,1,16,xyz\n",
         "hexadecimal"},
        {"# kvreplay-workload 1\narrival_ns,prompt_tokens,output_tokens\n9223372036854775808,1,1\n",
         ":3: column 'arrival_ns': '9223372036854775808'"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = test_write("own.csv", cases[i].text, -1);
        test_refused(path, NULL, "own.csv", cases[i].part, NULL);
    }
}

/* The heavier part is kept whole, the lighter one to its share; classes tell them apart. */
static void test_mix(void)
{
    g_autoptr(GError) error = NULL;
    Workload *parts[2];
    for (guint i = 0; i < 2; i++) {
        WorkloadConfig config;
        workload_config_init(&config);
        config.requests = 20000;
        config.seed = 10 + i;
        parts[i] = workload_open(&config, &error);
        g_assert_no_error(error);
        workload_config_clear(&config);
    }
    static const double weights[] = {1, 4};
    g_autoptr(Workload) mix = workload_mix(parts, weights, 2, 1, &error);
    g_assert_no_error(error);
    g_autoptr(GArray) all = test_collect(mix);
    guint count[2] = {0};
    for (guint i = 0; i < all->len; i++) {
        count[REQUEST(all, i)->klass]++;
        g_assert_true(i == 0 || REQUEST(all, i)->arrival >= REQUEST(all, i - 1)->arrival);
        g_assert_cmpuint(REQUEST(all, i)->id, ==, i);
    }
    g_assert_cmpuint(count[1], ==, 20000);
    g_assert_cmpint(ABS((int)count[0] - 5000), <, 245); /* 4 standard deviations */
    g_assert_cmpuint(workload_info(mix)->classes->len, ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/describe/by-hand", test_description);
    g_test_add_func("/describe/token-counts", test_token_counts);
    g_test_add_func("/write/kvreplay", test_own_round_trip);
    g_test_add_func("/kvreplay/bad-input", test_own_bad);
    g_test_add_func("/kvreplay/hash", test_hash_from_the_start);
    g_test_add_func("/mix/weights", test_mix);
    return g_test_run();
}
