/* The kinds of trouble that recorded logs have, each from a small log under tests/cases, with the
 * right reading worked out by hand. */
#include "tests/workloads/support.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "workloads/describe.h"

#define MS(x) ((kv_ns)(x)*KV_MS)

static void check(const GArray *all, guint i, kv_ns arrival, gint32 prompt, gint32 output)
{
    g_assert_cmpuint(i, <, all->len);
    g_assert_cmpint(REQUEST(all, i)->arrival, ==, arrival);
    g_assert_cmpint(REQUEST(all, i)->prompt, ==, prompt);
    g_assert_cmpint(REQUEST(all, i)->output, ==, output);
}

static Workload *open_with(const char *name, void (*change)(WorkloadConfig *))
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = test_file(name);
    change(&config);
    Workload *workload = workload_open(&config, &error);
    g_assert_no_error(error);
    workload_config_clear(&config);
    return workload;
}

static void keep_zero(WorkloadConfig *config)
{
    config->zero_output = ZERO_OUTPUT_KEEP;
}

/* Both column layouts give the same rows; an output of 0 is a failed call, counted and dropped, or
 * kept as a prefill; the clock need not begin at zero; an empty session is no error. */
static void test_burstgpt_layouts(void)
{
    static const char *const files[] = {"cases/05-burstgpt-two-layouts/v1.csv",
                                        "cases/05-burstgpt-two-layouts/v2.csv"};
    for (guint f = 0; f < 2; f++) {
        g_autofree char *path = test_file(files[f]);
        g_autoptr(Workload) workload = test_open(path, NULL);
        g_autoptr(GArray) all = test_collect(workload);
        g_assert_cmpuint(all->len, ==, 2);
        check(all, 0, 0, 400, 20);
        check(all, 1, 55 * KV_SECOND, 30, 7);
        g_assert_cmpuint(workload_info(workload)->rows, ==, 4);
        g_assert_cmpuint(test_dropped(workload, "zero_output"), ==, 1);
        g_assert_cmpuint(test_dropped(workload, "zero_prompt_and_output"), ==, 1);
        g_autoptr(Workload) kept = open_with(files[f], keep_zero);
        g_autoptr(GArray) three = test_collect(kept);
        g_assert_cmpuint(three->len, ==, 3);
        check(three, 1, 40 * KV_SECOND, 900, 1);
        g_assert_cmpint(REQUEST(all, 1)->session, ==, f == 0 ? KV_NO_SESSION : 0);
        g_assert_cmpint(REQUEST(all, 1)->turn, ==, f);
    }
}

static void slice_tail(WorkloadConfig *config)
{
    config->transforms = g_strdup("slice=300s..320s");
}

/* 10 requests in the first 300 s, 60 in the next 20: a window moves to time 0 and keeps the
 * seconds. */
static void test_quiet_head(void)
{
    g_autofree char *path = test_file("cases/06-quiet-head/trace.csv");
    g_autoptr(Workload) whole = test_open(path, NULL);
    g_autofree Description *d = workload_describe(whole, NULL, NULL);
    g_assert_cmpuint(d->requests, ==, 70);
    g_assert_cmpint(d->last_arrival, ==, 319 * KV_SECOND);
    g_assert_cmpint(d->bin_width, ==, KV_SECOND);
    guint64 head = 0, tail = 0;
    for (guint i = 0; i < d->n_bins; i++)
        *(i < 300 ? &head : &tail) += d->bins[i];
    g_assert_cmpuint(head, ==, 10);
    g_assert_cmpuint(tail, ==, 60);
    g_autoptr(Workload) window = open_with("cases/06-quiet-head/trace.csv", slice_tail);
    g_autoptr(GArray) all = test_collect(window);
    g_assert_cmpuint(all->len, ==, 60);
    for (guint i = 0; i < 60; i++)
        g_assert_cmpint(REQUEST(all, i)->arrival, ==, (i / 3) * KV_SECOND);
}

static gboolean warned(Workload *workload, const char *part)
{
    const GPtrArray *warnings = workload_info(workload)->warnings;
    for (guint i = 0; i < warnings->len; i++)
        if (strstr(g_ptr_array_index(warnings, i), part) != NULL)
            return TRUE;
    return FALSE;
}

static void be_strict(WorkloadConfig *config)
{
    config->strict = TRUE;
}

/* Rows 4, 5, 6 have one id too many, too many, too few; row 7 gives two ids new predecessors. */
static void test_hash_counts(void)
{
    const char *name = "cases/07-hash-count-vs-length/trace.jsonl";
    g_autofree char *path = test_file(name);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpuint(all->len, ==, 7);
    g_assert_true(warned(workload, "3 times; first: line 4: 655 tokens, 3 ids, expected 2"));
    g_assert_true(warned(workload, "2 times; first: line 7: id 1"));
    g_assert_cmpuint(REQUEST(all, 3)->n_blocks, ==, 2);
    g_autoptr(Workload) strict = open_with(name, be_strict);
    g_autoptr(GError) error = NULL;
    Request request;
    g_assert_cmpint(request_source_next(workload_source(strict), &request, &error), ==, -1);
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "trace.jsonl:4:"));
    g_assert_nonnull(strstr(error->message, "expected 2"));
}

/* The same field name means 16 tokens an id in one family and 512 in the other. */
static void test_block_sizes(void)
{
    g_autofree char *small = test_file("cases/08-block-size-16-or-512/bailian_16.jsonl");
    g_autofree char *large = test_file("cases/08-block-size-16-or-512/mooncake_512.jsonl");
    g_autoptr(GArray) a = test_read(small, NULL);
    g_autoptr(GArray) b = test_read(large, NULL);
    g_assert_cmpint(REQUEST(a, 0)->block_tokens, ==, 16);
    g_assert_cmpuint(REQUEST(a, 0)->n_blocks, ==, 32);
    g_assert_cmpint(REQUEST(a, 0)->prompt, ==, 502);
    g_assert_cmpint(REQUEST(b, 0)->block_tokens, ==, 512);
    g_assert_cmpint(REQUEST(b, 0)->prompt, ==, 6758);
    test_refused(large, "mooncake:block=16", "hash_ids", "512 tokens", "block=16", NULL);
    g_autoptr(GArray) c = test_read(small, "mooncake:time=s"); /* inferred from the counts */
    g_assert_cmpint(REQUEST(c, 0)->block_tokens, ==, 16);
}

/* Rows are whole contexts in any order: prompts are not added up; a parent outside the file is no
 * error; with an endless cache the hits are 0, 48, 96, 0 tokens. */
static void test_whole_rows(void)
{
    g_autofree char *path = test_file("cases/10-bailian-rows-are-whole/trace.jsonl");
    g_autoptr(GArray) all = test_read(path, NULL);
    check(all, 0, 0, 48, 40);
    check(all, 1, 3 * KV_SECOND, 96, 10);
    check(all, 2, 8 * KV_SECOND, 128, 8);
    check(all, 3, MS(8500), 16, 8);
    for (guint i = 0; i < 3; i++) {
        g_assert_cmpint(REQUEST(all, i)->session, ==, REQUEST(all, 0)->session);
        g_assert_cmpint(REQUEST(all, i)->turn, ==, i);
    }
    g_assert_cmpint(REQUEST(all, 3)->session, !=, REQUEST(all, 0)->session);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autofree Description *d = workload_describe(workload, NULL, NULL);
    g_assert_cmpuint(d->hit_tokens, ==, 48 + 96);
}

/* Later rows hold new tokens and a delay: contexts 1000, 1350, 1970; the turns wait for the one
 * before. */
static void test_delta_turns(void)
{
    g_autofree char *path = test_file("cases/11-delta-turns/trace.jsonl");
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpuint(all->len, ==, 4);
    check(all, 0, 0, 1000, 50);
    check(all, 1, MS(1500), 1350, 20);
    check(all, 2, 250500000, 1970, 10);
    check(all, 3, MS(100), 512, 5);
    g_assert_cmpint(REQUEST(all, 0)->wait, ==, KV_NS_NONE);
    g_assert_cmpint(REQUEST(all, 1)->wait, ==, MS(1500));
    g_assert_cmpint(REQUEST(all, 2)->wait, ==, 250500000);
    /* The context's full blocks: what was there before keeps its keys. */
    g_assert_cmpuint(REQUEST(all, 2)->n_blocks, ==, 3);
    g_assert_cmpmem(REQUEST(all, 1)->blocks, 16, REQUEST(all, 2)->blocks, 16);
    g_assert_true(warned(workload, "before its row"));
    g_assert_true(warned(workload, "rows=delta"));
    /* After = the wait follows the row that has it: the first turn has none, so turn 1 follows at
     * once. */
    g_autoptr(GArray) after = test_read(path, "mooncake:delay=after,rows=whole");
    g_assert_cmpint(REQUEST(after, 1)->wait, ==, 0);
    g_assert_cmpint(REQUEST(after, 2)->wait, ==, MS(1500));
    g_assert_cmpint(REQUEST(after, 2)->prompt, ==, 600);
    g_autofree char *lone =
        test_write("x.jsonl", "{\"input_length\": 5, \"output_length\": 1}\n", -1);
    test_refused(lone, NULL, "x.jsonl:1:", "no field 'timestamp'", NULL);
}

/* Wall clock and monotonic clock are only compared each with itself. */
static void test_two_clocks(void)
{
    g_autofree char *vllm = test_file("cases/14-two-clocks-in-one-row/vllm_requests.jsonl");
    g_autoptr(GArray) a = test_read(vllm, NULL);
    check(a, 0, 0, 120, 4);
    check(a, 1, MS(500), 80, 2);
    const Observed *o = REQUEST(a, 0)->observed, *p = REQUEST(a, 1)->observed;
    g_assert_cmpint(o->queue, ==, MS(20));
    g_assert_cmpint(p->queue, ==, MS(300));
    g_assert_cmpint(o->ttft, ==, MS(250));
    g_assert_cmpint(p->ttft, ==, MS(500));
    g_assert_cmpint((o->e2e - o->ttft) / 3, ==, MS(100));
    g_assert_cmpint(p->e2e - p->ttft, ==, MS(100));
    g_autofree char *blis = test_file("cases/14-two-clocks-in-one-row/tracev2.csv");
    g_autoptr(Workload) workload = test_open(blis, NULL);
    g_autoptr(GArray) b = test_collect(workload);
    g_assert_cmpuint(b->len, ==, 2);
    check(b, 0, 0, 120, 4);
    check(b, 1, MS(500), 80, 2);
    for (guint i = 0; i < 2; i++) {
        g_assert_cmpint(REQUEST(b, i)->sent, ==, REQUEST(b, i)->arrival);
        g_assert_cmpint(REQUEST(b, i)->observed->ttft, ==, MS(250) * (i + 1));
        g_assert_cmpint(REQUEST(b, i)->deadline, ==, 340 * KV_SECOND);
    }
    g_assert_cmpuint(test_dropped(workload, "failed"), ==, 1);
}

/* The client's wait for a slot is not the server's queue: TTFT is 90 ms from the sending for all.
 */
static void test_sent_later(void)
{
    g_autofree char *path = test_file("cases/15-send-later-than-arrival/trace.csv");
    g_autoptr(GArray) all = test_read(path, NULL);
    for (guint i = 0; i < 3; i++) {
        const Request *r = REQUEST(all, i);
        g_assert_cmpint(r->arrival, ==, MS(10 * i));
        g_assert_cmpint(r->sent - r->arrival, ==, MS(180 * i));
        g_assert_cmpint(r->observed->ttft, ==, MS(90));
        g_assert_cmpint((r->observed->e2e - r->observed->ttft) / 10, ==, MS(10));
    }
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autofree Description *d = workload_describe(workload, NULL, NULL);
    g_assert_cmpfloat_with_epsilon(d->client_wait.mean, 0.18, 1e-12);
    g_assert_cmpfloat_with_epsilon(d->ttft.max, 0.09, 1e-12);
}

static Description *describe_case(const char *name, Workload **ret)
{
    g_autofree char *path = test_file(name);
    *ret = test_open(path, NULL);
    Description *d = workload_describe(*ret, NULL, NULL);
    g_assert_nonnull(d);
    return d;
}

/* The first gap is the TTFT and no sample of ITL. */
static void test_itl_without_ttft(void)
{
    g_autoptr(Workload) workload = NULL;
    g_autofree Description *d = describe_case("cases/24-itl-has-no-ttft/result.json", &workload);
    g_assert_cmpuint(d->itl.n, ==, 3);
    g_assert_cmpfloat_with_epsilon(d->itl.mean, 0.2, 1e-9);
    g_assert_cmpfloat_with_epsilon(d->ttft.mean, 0.6, 1e-9);
    g_assert_cmpfloat_with_epsilon(d->e2e.max, 1.1, 1e-9);
    g_assert_cmpfloat_with_epsilon(d->e2e.min, 0.7, 1e-9);
}

/* One value a request, or all gaps pooled: different means of the same run. */
static void test_tpot_and_itl(void)
{
    g_autoptr(Workload) workload = NULL;
    g_autofree Description *d =
        describe_case("cases/25-tpot-and-itl-weigh-differently/result.json", &workload);
    g_assert_cmpuint(d->tpot.n, ==, 2);
    g_assert_cmpfloat_with_epsilon(d->tpot.mean, 0.055, 1e-6);
    g_assert_cmpfloat_with_epsilon(d->tpot.p50, 0.055, 1e-6);
    g_assert_cmpuint(d->itl.n, ==, 102);
    g_assert_cmpfloat_with_epsilon(d->itl.mean * 1e3, 11.76, 0.005);
    g_assert_cmpfloat_with_epsilon(d->itl.p50, 0.01, 1e-9);
    g_assert_cmpfloat_with_epsilon(d->itl.p99 * 1e3, 99.1, 1e-3);
    g_assert_cmpfloat_with_epsilon(d->speed.mean, 55, 1e-3);
}

/* Failed requests have no tokens, no TTFT, no TPOT; a one-token request has no TPOT. */
static void test_failed_requests(void)
{
    g_autoptr(Workload) workload = NULL;
    g_autofree Description *d =
        describe_case("cases/26-failed-and-one-token-requests/result.json", &workload);
    double seconds = kv_ns_to_seconds(workload_info(workload)->recorded_duration);
    g_assert_cmpuint(d->requests, ==, 3);
    g_assert_cmpuint(test_dropped(workload, "failed"), ==, 1);
    g_assert_cmpuint(d->prompt_tokens, ==, 600);
    g_assert_cmpfloat_with_epsilon((double)d->requests / seconds, 0.3, 1e-12);
    g_assert_cmpfloat_with_epsilon((double)d->output_tokens / seconds, 15.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(d->ttft.mean, 0.3, 1e-9);
    g_assert_cmpuint(d->tpot.n, ==, 2);
    g_assert_cmpfloat_with_epsilon(d->tpot.mean, 0.03, 1e-6);
}

static void keep_unknown(WorkloadConfig *config)
{
    config->keep_unknown = TRUE;
    config->allow_empty = TRUE;
}

/* Four spellings, a year's end without a year, brackets in the prompt's text, no output lengths. */
static void test_vllm_text_log(void)
{
    g_autoptr(Workload) workload = open_with("cases/32-vllm-text-log/server.log", keep_unknown);
    g_autoptr(GArray) all = test_collect(workload);
    static const gint32 prompts[] = {5, 3, 4, 0};
    g_assert_cmpuint(all->len, ==, 4);
    for (guint i = 0; i < 4; i++) {
        g_assert_cmpint(REQUEST(all, i)->prompt, ==, prompts[i]);
        g_assert_cmpint(REQUEST(all, i)->output, ==, 0);
    }
    g_autofree char *path = test_file("cases/32-vllm-text-log/server.log");
    g_autoptr(Workload) described = test_open(path, NULL);
    g_autofree Description *d = workload_describe(described, NULL, NULL);
    g_assert_cmpuint(d->requests, ==, 4);
    g_assert_cmpuint(d->prompt_tokens, ==, 12);
    g_assert_cmpuint(d->unknown_outputs, ==, 4);
    test_refused(path, NULL, "no request", "output_unknown 3", "prompt_unknown 1", NULL);
    g_autoptr(Workload) bound = test_open(path, "vllm-log:output=max_tokens");
    g_autoptr(GArray) three = test_collect(bound);
    g_assert_cmpuint(three->len, ==, 3);
    g_assert_cmpint(REQUEST(three, 0)->output, ==, 20);
    g_assert_cmpint(REQUEST(three, 1)->output, ==, 8158);
    g_assert_cmpint(REQUEST(three, 2)->output, ==, 102);
    g_assert_true(warned(bound, "max_tokens"));
    const char *year_end = "INFO 12-31 23:59:58 x] Received request a: prompt: None, params: "
                           "SamplingParams(n=1), prompt_token_ids: [1].\n"
                           "INFO 01-01 00:00:08 x] Received request b: prompt: None, params: "
                           "SamplingParams(n=1), prompt_token_ids: [1, 2].\n";
    g_autofree char *log = test_write("server.log", year_end, -1);
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(log);
    keep_unknown(&config);
    g_autoptr(Workload) wrap = workload_open(&config, NULL);
    workload_config_clear(&config);
    g_autoptr(GArray) two = test_collect(wrap);
    g_assert_cmpint(REQUEST(two, 1)->arrival, ==, 10 * KV_SECOND);
}

/* Two generations of names, 64-bit nanoseconds, order of completion, reasoning tokens counted. */
static void test_aiperf_export(void)
{
    g_autofree char *path = test_file("cases/34-aiperf-export/profile_export.jsonl");
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpuint(all->len, ==, 2);
    g_assert_cmpuint(test_dropped(workload, "failed"), ==, 1);
    check(all, 0, 0, 550, 11);
    check(all, 1, G_GINT64_CONSTANT(1759522419200000000) - G_GINT64_CONSTANT(1759522419159192409),
          550, 6);
    const Observed *a = REQUEST(all, 0)->observed, *b = REQUEST(all, 1)->observed;
    g_assert_cmpint((a->e2e - a->ttft) / 10, ==, MS(30));
    g_assert_cmpint((b->e2e - b->ttft) / 5, ==, MS(50));
    g_assert_cmpuint(a->n_itl, ==, 3);
    g_assert_cmpint(workload_info(workload)->first_arrival_ns, ==,
                    G_GINT64_CONSTANT(1759522419159192409));
}

/* Sources may be freed with requests left, and turns that nobody asked for. */
static void test_freed_early(void)
{
    g_autofree char *path = test_file("cases/11-delta-turns/trace.jsonl");
    GString *many = g_string_new(NULL);
    for (guint i = 0; i < 3000; i++)
        g_string_append_printf(many,
                               "{\"timestamp\": %u, \"input_length\": 40000, \"output_length\": 1, "
                               "\"hash_ids\": [0%s]}\n",
                               i, ", 1, 2, 3, 4, 5, 6, 7, 8, 9");
    g_autofree char *large = test_write("many.jsonl", many->str, -1);
    g_string_free(many, TRUE);
    const char *const paths[] = {path, large};
    for (guint i = 0; i < 2; i++) {
        g_autoptr(Workload) workload = test_open(paths[i], NULL);
        Request r;
        g_assert_cmpint(request_source_next(workload_source(workload), &r, NULL), ==, 1);
    }
}

/* Percentiles of three samples by the rule used everywhere (linear). */
static void test_three_samples(void)
{
    g_autofree char *path = test_file("cases/29-p99-of-three/samples.csv");
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    double samples[3];
    for (guint i = 0; i < 3; i++)
        samples[i] = g_ascii_strtod(lines[i + 1], NULL);
    sort_doubles(samples, 3);
    g_assert_cmpfloat(quantile_linear(samples, 3, 0.5), ==, 20);
    g_assert_cmpfloat_with_epsilon(quantile_linear(samples, 3, 0.9), 28, 1e-12);
    g_assert_cmpfloat_with_epsilon(quantile_linear(samples, 3, 0.99), 29.8, 1e-12);
    g_assert_cmpfloat(quantile_linear(samples, 3, 1), ==, 30);
    g_assert_cmpfloat(quantile_linear(samples, 1, 0.99), ==, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cases/05-burstgpt-two-layouts", test_burstgpt_layouts);
    g_test_add_func("/cases/06-quiet-head", test_quiet_head);
    g_test_add_func("/cases/07-hash-count-vs-length", test_hash_counts);
    g_test_add_func("/cases/08-block-size-16-or-512", test_block_sizes);
    g_test_add_func("/cases/10-bailian-rows-are-whole", test_whole_rows);
    g_test_add_func("/cases/11-delta-turns", test_delta_turns);
    g_test_add_func("/freed-early", test_freed_early);
    g_test_add_func("/cases/14-two-clocks-in-one-row", test_two_clocks);
    g_test_add_func("/cases/15-send-later-than-arrival", test_sent_later);
    g_test_add_func("/cases/24-itl-has-no-ttft", test_itl_without_ttft);
    g_test_add_func("/cases/25-tpot-and-itl-weigh-differently", test_tpot_and_itl);
    g_test_add_func("/cases/26-failed-and-one-token-requests", test_failed_requests);
    g_test_add_func("/cases/29-p99-of-three", test_three_samples);
    g_test_add_func("/cases/32-vllm-text-log", test_vllm_text_log);
    g_test_add_func("/cases/34-aiperf-export", test_aiperf_export);
    return g_test_run();
}
