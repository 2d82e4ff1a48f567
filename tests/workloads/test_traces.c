/* Published facts about whole public logs. The logs are not shipped: their folder is given by the
 * environment variable KVREPLAY_TRACES; what is not there is skipped. */
#include "tests/workloads/support.h"

#include <math.h>
#include <string.h>

#include "workloads/describe.h"
#include "workloads/json_input.h"
#include "workloads/key_set.h"

static char *trace(const char *name)
{
    const char *folder = g_getenv("KVREPLAY_TRACES");
    g_autofree char *path = folder != NULL ? g_build_filename(folder, name, NULL) : NULL;
    if (path != NULL && g_file_test(path, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&path);
    g_test_skip("log not at hand (KVREPLAY_TRACES)");
    return NULL;
}

static Description *describe_trace(const char *path, Workload **ret)
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    config.keep_unknown = config.allow_empty = TRUE;
    *ret = workload_open(&config, &error);
    g_assert_no_error(error);
    workload_config_clear(&config);
    Description *d = workload_describe(*ret, NULL, &error);
    g_assert_no_error(error);
    return d;
}

typedef struct Facts {
    const char *file, *format;
    guint64 rows, requests, prompt_tokens, output_tokens; /* 0 = not known */
    kv_ns span;                                           /* -1 = not known */
    guint64 hit_tokens;
    double prompt_min, prompt_p50, prompt_max, output_min, output_p50,
        output_max; /* 0 = not known */
} Facts;

static const Facts facts[] = {
    {"azure/AzureLLMInferenceTrace_code.csv", "azure", 8819, 8819, 18059974, 245896, 3435948056000,
     0, 3, 1469, 7437, 6, 13, 1899},
    {"azure/AzureLLMInferenceTrace_conv.csv", "azure", 19366, 19366, 22361870, 4088665,
     3501721937000, 0, 2, 1020, 14050, 7, 129, 1000},
    {"vidur/splitwise_conv.csv", "vidur", 19366, 19366, 22361870, 4088665, 3501721937000, 0, 2,
     1020, 14050, 7, 129, 1000},
    {"vidur/splitwise_code.csv", "vidur", 8819, 8819, 18059974, 245896, 3435948056000, 0, 0, 0, 0,
     0, 0, 0},
    {"vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", "vidur", 28257, 28257, 0,
     0, 0, 0, 1, 0, 4054, 5, 0, 4056},
    {"sarathi/sharegpt_8k_filtered_stats_llama2_tokenizer.csv", "vidur", 30731, 30731, 0, 0, 0, 0,
     1, 0, 8141, 2, 0, 1024},
    {"mooncake/conversation_trace.jsonl", "mooncake", 12031, 12031, 144793823, 4122048,
     3536999 * KV_MS, 54063104, 891, 6909, 126195, 1, 350, 2000},
    {"mooncake/synthetic_trace.jsonl", "mooncake", 3993, 3993, 61194628, 595432, -1, 39802880, 13,
     11587, 191378, 1, 69, 893},
    {"mooncake/mooncake_trace.EXCERPT-53rows.jsonl", "mooncake", 53, 53, 0, 0, 6109 * KV_MS, 0, 0,
     0, 0, 0, 0, 0},
    {"ragpulse/0_trace.jsonl", "ragpulse", 7106, 7106, 0, 0, -1, 0, 1052, 0, 7712, 7, 0, 2183},
    {"llmservingsim/workload_me2_01_mixed.jsonl", "llmservingsim", 608, 608, 0, 0, -1, 0, 687, 0,
     31383, 234, 0, 15890},
    {"llmservingsim/example_trace.jsonl", "llmservingsim", 10, 10, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0},
    {"splitwise-sim/test_trace.csv", "splitwise", 3, 3, 8192, 56, 3 * KV_SECOND, 0, 0, 0, 0, 0, 0,
     0},
    {"inference-perf/azure-sample-trace.csv", "azure", 20, 20, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0},
    {"aiperf/run1-profile_export.jsonl", "aiperf-export", 100, 89, 89 * 550, 0, -1, 0, 550, 550,
     550, 193, 247, 247},
    {"tracelab/round_trace.jsonl", "tracelab", 19, 19, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0},
    {"tair/event_publisher.log", "tair", 300, 102, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0},
    {"weka/trace_0707.json", "weka", 24, 24, 1848820, 15927, -1, 0, 0, 0, 157172, 0, 0, 0},
    {"aibrix/one_request.jsonl", "aibrix", 1, 1, 3, 22, 0, 0, 0, 0, 0, 0, 0, 0},
};

static void same_unless_zero(double known, double found)
{
    if (known != 0)
        g_assert_cmpfloat(found, ==, known);
}

static void test_facts(gconstpointer data)
{
    const Facts *f = data;
    g_autofree char *path = trace(f->file);
    if (path == NULL)
        return;
    g_autoptr(Workload) workload = NULL;
    g_autofree Description *d = describe_trace(path, &workload);
    const WorkloadInfo *info = workload_info(workload);
    g_assert_cmpstr(info->format, ==, f->format);
    g_assert_cmpuint(info->rows, ==, f->rows);
    g_assert_cmpuint(d->requests, ==, f->requests);
    same_unless_zero((double)f->prompt_tokens, (double)d->prompt_tokens);
    same_unless_zero((double)f->output_tokens, (double)d->output_tokens);
    if (f->span >= 0)
        g_assert_cmpint(d->last_arrival, ==, f->span);
    same_unless_zero((double)f->hit_tokens, (double)d->hit_tokens);
    same_unless_zero(f->prompt_min, d->prompt.min);
    same_unless_zero(f->prompt_p50, d->prompt.p50);
    same_unless_zero(f->prompt_max, d->prompt.max);
    same_unless_zero(f->output_min, d->output.min);
    same_unless_zero(f->output_p50, d->output.p50);
    same_unless_zero(f->output_max, d->output.max);
}

/* vidur's processed trace is the Azure one: the same requests, row for row, to the nanosecond. */
static void test_vidur_is_azure(void)
{
    g_autofree char *a = trace("azure/AzureLLMInferenceTrace_conv.csv");
    g_autofree char *b = a != NULL ? trace("vidur/splitwise_conv.csv") : NULL;
    if (b == NULL)
        return;
    g_autoptr(GArray) x = test_read(a, NULL);
    g_autoptr(GArray) y = test_read(b, NULL);
    g_assert_cmpuint(x->len, ==, y->len);
    for (guint i = 0; i < x->len; i++) {
        g_assert_cmpint(REQUEST(x, i)->arrival, ==, REQUEST(y, i)->arrival);
        g_assert_cmpint(REQUEST(x, i)->prompt, ==, REQUEST(y, i)->prompt);
        g_assert_cmpint(REQUEST(x, i)->output, ==, REQUEST(y, i)->output);
    }
}

/* Every row's ids fit its length and form a tree; partial blocks counted: 105,710 of 288,500 known.
 */
static void test_mooncake_blocks(void)
{
    g_autofree char *path = trace("mooncake/conversation_trace.jsonl");
    if (path == NULL)
        return;
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpuint(workload_info(workload)->warnings->len, ==, 0);
    g_autoptr(KeySet) seen = key_set_new();
    guint64 blocks = 0, hits = 0;
    kv_ns ticks = 0, last = -1;
    for (guint i = 0; i < all->len; i++) {
        const Request *r = REQUEST(all, i);
        for (guint k = 0; k < r->n_blocks; k++, blocks++)
            hits += !key_set_add(seen, r->blocks[k]);
        ticks += r->arrival != last;
        last = r->arrival;
    }
    g_assert_cmpuint(blocks, ==, 288500);
    g_assert_cmpuint(hits, ==, 105710);
    g_assert_cmpuint(key_set_count(seen), ==, 182790);
    g_assert_cmpint(ticks, ==, 1180);
}

static void test_ragpulse_week(void)
{
    g_autofree char *path = trace("ragpulse/0_trace.jsonl");
    if (path == NULL)
        return;
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    GHashTable *sessions = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    guint equal = 0;
    for (guint i = 0; i < all->len; i++) {
        g_hash_table_add(sessions, g_memdup2(&REQUEST(all, i)->session, 8));
        equal += i > 0 && REQUEST(all, i)->arrival == REQUEST(all, i - 1)->arrival;
    }
    g_assert_cmpuint(g_hash_table_size(sessions), ==, 3990);
    g_assert_cmpuint(equal, ==, 64);
    g_assert_cmpint(REQUEST(all, 3800)->arrival - REQUEST(all, 3799)->arrival, ==,
                    (604800 - 604453) * KV_SECOND);
    g_hash_table_unref(sessions);
}

/* In order of completion: 45 rows start before the row above; 4 of 89 have chunks + 1 != tokens. */
static void test_aiperf_order(void)
{
    g_autofree char *path = trace("aiperf/run1-profile_export.jsonl");
    if (path == NULL)
        return;
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpuint(test_dropped(workload, "failed"), ==, 11);
    g_assert_nonnull(strstr(g_ptr_array_index(workload_info(workload)->warnings, 0), "(45 times)"));
    guint odd = 0;
    for (guint i = 0; i < all->len; i++)
        odd += REQUEST(all, i)->observed->n_itl + 1 != (guint)REQUEST(all, i)->output;
    g_assert_cmpuint(odd, ==, 4);
}

/* Keys are signed and large: 4,504 below 0 and 8,631 beyond what a double holds exactly. */
static void test_tair_keys(void)
{
    g_autofree char *path = trace("tair/event_publisher.log");
    if (path == NULL)
        return;
    g_autoptr(Input) input = input_open(path, NULL);
    g_autoptr(JsonInput) json = json_input_new(input);
    guint64 negative = 0, large = 0;
    while (json_input_next(json, NULL) == 1) {
        const guint64 *ids;
        gsize n;
        g_assert_true(
            json_ids(json, json_member(json, json_root(json), "keys"), "keys", &ids, &n, NULL));
        for (gsize i = 0; i < n; i++) {
            gint64 v = (gint64)ids[i];
            negative += v < 0;
            large += v > (G_GINT64_CONSTANT(1) << 53) || v < -(G_GINT64_CONSTANT(1) << 53);
        }
    }
    g_assert_cmpuint(negative, ==, 4504);
    g_assert_cmpuint(large, ==, 8631);
}

/* The output's list of gaps has one less than the tokens, on every row. */
static void test_llmservingsim_itl(void)
{
    g_autofree char *path = trace("llmservingsim/example_single_run.csv");
    if (path == NULL)
        return;
    g_autoptr(GArray) all = test_read(path, NULL);
    for (guint i = 0; i < all->len; i++)
        g_assert_cmpuint(REQUEST(all, i)->observed->n_itl, ==, REQUEST(all, i)->output - 1);
}

/* Drawn from windows: the mean rate of each busy window is kept within its standard error. */
static void test_servegen_rate(void)
{
    g_autofree char *path = trace("servegen/mm-image-chunk-25-trace.csv");
    if (path == NULL)
        return;
    g_autoptr(GArray) all = test_read(path, NULL);
    g_assert_cmpuint(all->len, >, 1000);
    for (guint i = 0; i < all->len; i++) {
        g_assert_cmpint(REQUEST(all, i)->output, ==, 2);
        g_assert_cmpint(REQUEST(all, i)->prompt, >, 52 + 100);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
        g_autofree char *name = g_strdup_printf("/traces/%s", facts[i].file);
        g_test_add_data_func(name, &facts[i], test_facts);
    }
    g_test_add_func("/traces/vidur-is-azure", test_vidur_is_azure);
    g_test_add_func("/traces/mooncake-blocks", test_mooncake_blocks);
    g_test_add_func("/traces/ragpulse-week", test_ragpulse_week);
    g_test_add_func("/traces/aiperf-order", test_aiperf_order);
    g_test_add_func("/traces/tair-keys", test_tair_keys);
    g_test_add_func("/traces/llmservingsim-itl", test_llmservingsim_itl);
    g_test_add_func("/traces/servegen-rate", test_servegen_rate);
    return g_test_run();
}
