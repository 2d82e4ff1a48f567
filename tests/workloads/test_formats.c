/* Every recorded format: written and read back equal; and bad input, which is an error with file
 * and line or else read, but never a crash. */
#include "tests/workloads/support.h"

#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "tests/workloads/format_texts.h"

static TextRow *random_rows(const FormatText *f, guint n)
{
    TextRow *rows = g_new0(TextRow, n);
    kv_ns t = 0;
    for (guint i = 0; i < n; i++) {
        rows[i].arrival = t;
        rows[i].prompt = g_test_rand_int_range(16, 3000);
        rows[i].output = g_test_rand_int_range(1, 500);
        rows[i].session = (guint)g_test_rand_int_range(0, 5);
        kv_ns gap = (kv_ns)(g_test_rand_double_range(0, 2) * 1e9);
        t += gap / f->resolution * f->resolution;
        if (f->resolution == KV_SECOND)
            t += g_test_rand_int_range(0, 3) * KV_SECOND;
    }
    return rows;
}

static Workload *try_open(const FormatText *f, const char *path, gboolean named, GError **error)
{
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    config.map = g_strdup(f->map);
    if (named) {
        g_free(config.format);
        config.format = g_strdup(f->format);
    }
    Workload *workload = workload_open(&config, error);
    workload_config_clear(&config);
    return workload;
}

static void check_row(const FormatText *f, const TextRow *rows, const Request *r, guint i)
{
    g_assert_cmpint(r->prompt, ==, rows[i].prompt);
    g_assert_cmpint(r->output, ==, rows[i].output);
    if (f->closed && i > 0)
        g_assert_cmpint(r->wait, ==, rows[i].arrival - rows[i - 1].arrival);
    else
        g_assert_cmpint(r->arrival, ==, rows[i].arrival);
    g_assert_cmpint(r->block_tokens, ==, r->n_blocks > 0 ? f->block_tokens : 0);
    if (f->block_tokens > 0) {
        gint32 b = f->block_tokens, ceil = (r->prompt + b - 1) / b, full = r->prompt / b;
        g_assert_cmpuint(r->n_blocks, ==, f->floor_blocks ? full : ceil);
    }
}

static void test_round_trip(gconstpointer data)
{
    const FormatText *f = data;
    for (guint round = 0; round < 5; round++) {
        guint n = (guint)g_test_rand_int_range(1, 60);
        g_autofree TextRow *rows = random_rows(f, n);
        GString *text = g_string_new(NULL);
        f->print(text, rows, n);
        g_autofree char *path = test_write(f->file, text->str, (gssize)text->len);
        g_string_free(text, TRUE);
        g_autoptr(GError) error = NULL;
        g_autoptr(Workload) workload = try_open(f, path, !f->probed, &error);
        g_assert_no_error(error);
        g_autoptr(GArray) all = test_collect(workload);
        g_assert_true(g_str_has_prefix(f->format, workload_info(workload)->format));
        g_assert_cmpuint(all->len, ==, n);
        for (guint i = 0; i < n; i++)
            check_row(f, rows, REQUEST(all, i), i);
    }
}

/* Reads to the end. NULL = fine; else the error, checked for its form. */
static char *read_whole(const FormatText *f, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Workload) workload = try_open(f, path, TRUE, &error);
    Request r, next;
    int got = 1;
    while (workload != NULL &&
           (got = request_source_next(workload_source(workload), &r, &error)) == 1)
        while ((got = request_source_next_turn(workload_source(workload), &r, 0, &next, &error)) ==
               1)
            r = next;
    if (error == NULL)
        return NULL;
    g_assert_true(error->domain == KV_ERROR);
    g_assert_null(strpbrk(error->message, "\n\r"));
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
    g_assert_nonnull(strstr(error->message, f->file));
    return g_strdup(error->message);
}

static void feed(const FormatText *f, const GString *text)
{
    g_autofree char *path = test_write(f->file, text->str, (gssize)text->len);
    g_free(read_whole(f, path));
    g_remove(path);
}

static void test_damaged(gconstpointer data)
{
    static const char *const bad[] = {
        "NaN",  "-1", "99999999999999999999", "1e400", "\"", "{", "[", "]", "\xff\xfe", "",
        "0x10", "1.5"};
    const FormatText *f = data;
    g_autofree TextRow *rows = random_rows(f, 6);
    GString *whole = g_string_new(NULL);
    f->print(whole, rows, 6);
    for (guint i = 0; i < 40; i++) { /* cut off */
        GString *cut = g_string_new_len(whole->str, g_test_rand_int_range(0, (gint32)whole->len));
        feed(f, cut);
        g_string_free(cut, TRUE);
    }
    for (guint i = 0; i < 100; i++) { /* one stretch replaced */
        GString *text = g_string_new_len(whole->str, (gssize)whole->len);
        gssize at = g_test_rand_int_range(0, (gint32)whole->len);
        gssize len = g_test_rand_int_range(0, 6);
        len = MIN(len, (gssize)whole->len - at);
        g_string_erase(text, at, len);
        const char *piece = bad[g_test_rand_int_range(0, G_N_ELEMENTS(bad))];
        if (i % 10 == 0)
            g_string_insert_len(text, at, "\0", 1);
        else
            g_string_insert(text, at, piece);
        feed(f, text);
        g_string_free(text, TRUE);
    }
    g_string_free(whole, TRUE);
}

/* A line of 10 MB: of digits, and of nested brackets. */
static void test_long_lines(gconstpointer data)
{
    const FormatText *f = data;
    g_autofree TextRow *rows = random_rows(f, 2);
    for (guint kind = 0; kind < 2; kind++) {
        GString *text = g_string_new(NULL);
        f->print(text, rows, 2);
        gsize at = text->len / 2;
        char *filler = g_malloc(10 << 20);
        memset(filler, kind == 0 ? '7' : '[', 10 << 20);
        g_string_insert_len(text, (gssize)at, filler, 10 << 20);
        g_free(filler);
        feed(f, text);
        g_string_free(text, TRUE);
    }
}

/* --- messages --- */

typedef struct Bad {
    const char *format, *text, *line, *what, *expected;
} Bad;

static const Bad bad_inputs[] = {
    {"vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\nx,1,1\n",
     ":2:", "column 'arrived_at': 'x'", "seconds"},
    {"vidur", "num_prefill_tokens,num_decode_tokens,num_total_tokens\n1,1,3\n",
     ":2:", "num_total_tokens", "prefill + decode"},
    {"burstgpt", "Timestamp,Model,Request tokens\n", ":1:", "no column 'Response tokens'",
     "Timestamp,Model"},
    {"burstgpt", "Timestamp,Request tokens,Response tokens\n1,2\n", ":2:", "2 fields",
     "expected 3"},
    {"mooncake", "{\"timestamp\": 0, \"output_length\": 1}\n", ":1:", "no field 'input_length'",
     "tokens"},
    {"mooncake", "{\"timestamp\": 0, \"input_length\": -5, \"output_length\": 1}\n",
     ":1:", "input_length': '-5'", "from 0"},
    {"mooncake", "\n{\"timestamp\": 0, \"input_length\": 5\n", ":2:", "JSON", "object"},
    {"mooncake", "{\"timestamp\": NaN, \"input_length\": 5}\n", ":1:", "JSON", "NaN"},
    {"mooncake", "{\"timestamp\": 0, \"input_length\": 5, \"hash_ids\": [1, \"x\"]}\n",
     ":1:", "hash_ids", "whole numbers"},
    {"mooncake", "{\"timestamp\": \"soon\", \"input_length\": 5}\n", ":1:", "timestamp': 'soon'",
     "milliseconds"},
    {"bailian", "{\"chat_id\": 1, \"parent_chat_id\": -2}\n", ":1:", "parent_chat_id", "-1"},
    {"ragpulse", "{\"timestamp\": \"700000\", \"input_length\": 5, \"output_length\": 1}\n",
     ":1:", "700000", "week"},
    {"splitwise", "arrival_timestamp,prompt_size,token_size\n1,2,three\n",
     ":2:", "token_size': 'three'", "whole number"},
    {"llmservingsim", "{\"input_toks\": 5, \"output_toks\": 1}\n", ":1:", "arrival_time_ns",
     "time"},
    {"llmservingsim", "{\"arrival_time_ns\": 1, \"sub_requests\": [{\"input_toks\": 1}]}\n",
     ":1:", "output_toks", "whole number"},
    {"llmservingsim-out",
     "instance id,request id,input,output,arrival,end_time,latency,TTFT,ITL\n0,0,1,1,0,1,1,1,\"[1, "
     "x]\"\n",
     ":2:", "ITL", "list"},
    {"aiperf-export", "{\"metrics\": {}}\n", ":1:", "metadata", "metadata"},
    {"aiperf-export", "{\"metadata\": {\"request_start_ns\": 1.5}, \"metrics\": {}}\n",
     ":1:", "request_start_ns': '1.5'", "whole number"},
    {"vllm-bench", "{\"input_lens\": [1, 2],\n\"output_lens\": [1]}\n", ":", "output_lens",
     "as many"},
    {"vllm-bench", "{\"completed\": 3}\n", ":1:", "input_lens", "--save-detailed"},
    {"vllm-log",
     "Received request a: prompt: None, params: SamplingParams(), prompt_token_ids: [1]\n",
     ":1:", "request", "MM-DD"},
    {"weka", "{\"block_size\": 0, \"requests\": []}\n", ":1:", "block_size", "from 1"},
    {"weka", "{\"block_size\": 64, \"requests\": [{\"t\": 0, \"in\": 1}]}\n",
     ":1:", "no field 'out'", "whole number"},
    {"tracelab",
     "{\"session_id\": \"a\", \"round_index\": 0, \"input_tokens_total\": 5, \"prefix_tokens\": 1, "
     "\"newly_append_tokens\": 1, \"output_tokens\": 1, \"timing_events\": [{\"event_type\": "
     "\"text\", \"timestamp\": \"2026-01-01T00:00:00Z\"}]}\n",
     ":1:", "input_tokens_total': '5'", "prefix_tokens"},
    {"tracelab-replay",
     "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\na,0,0,5,5,-3\n",
     ":2:", "tool_wait_after_ms': '-3'", "0 milliseconds"},
    {"aibrix", "{\"timestamp\": 0, \"requests\": 5}\n", ":1:", "requests", "array"},
    {"tair", "{\"timestamp_us\": 1, \"keys\": [1.5], \"input_len\": 1, \"output_len\": 1}\n",
     ":1:", "keys", "whole numbers"},
    {"blis", "arrival_time_us,input_tokens,output_tokens\n1,x,1\n", ":2:", "input_tokens': 'x'",
     "whole number"},
    {"otel", "{\"spans\": [{\"attributes\": {\"gen_ai.x\": 1},\n\"start_time\": \"noon\"}]}\n",
     ":2:", "start_time': 'noon'", "a time like"},
    {"servegen", "0,1,1,Cauchy,1,1\n", ":1:", "law': 'Cauchy'", "Gamma"},
    {"servegen", "600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1\n", ":2:", "window", "in order"},
};

static void test_messages(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(bad_inputs); i++) {
        const Bad *b = &bad_inputs[i];
        g_autofree char *path = test_write("bad.log", b->text, -1);
        test_refused(path, b->format, "bad.log", b->line, b->what, b->expected, NULL);
    }
}

static void map_refused(const char *map, const char *text, const char *part)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = test_write("m.csv", text, -1);
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    config.map = g_strdup(map);
    g_autoptr(Workload) workload = workload_open(&config, &error);
    workload_config_clear(&config);
    Request r;
    if (workload != NULL)
        request_source_next(workload_source(workload), &r, &error);
    g_assert_nonnull(error);
    if (strstr(error->message, part) == NULL)
        g_error("expected '%s' in: %s", part, error->message);
}

static void test_mapping(void)
{
    map_refused("prompt", "a\n1\n", "TARGET=COLUMN");
    map_refused("colour=a", "a\n1\n", "colour");
    map_refused("output=a", "a\n1\n", "prompt");
    map_refused("prompt=b", "a\n1\n", "no column 'b'");
    map_refused("prompt=a,output=b,arrival=t:fortnight", "t,a,b\n1,1,1\n", "fortnight");
    map_refused("prompt=a,output=b,arrival=t", "t,a,b\n0,1,1\n5,1,1\n9,1,1\n",
                "unit of time unclear");
    /* Eight rows or more: seconds would be 1 in 100 s or slower, microseconds a thousand a second.
     */
    GString *text = g_string_new("t,a,b\n");
    for (guint i = 0; i < 20; i++)
        g_string_append_printf(text, "%u,5,1\n", i * 200);
    map_refused("prompt=a,output=b,arrival=t", "t,a,b\n0,1,1\n200,1,1\n400,1,1\n600,1,1\n",
                "unclear");
    g_autofree char *path = test_write("m.csv", text->str, -1);
    g_string_free(text, TRUE);
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    config.map = g_strdup("prompt=a,output=b,arrival=t");
    g_autoptr(GError) error = NULL;
    g_autoptr(Workload) workload = workload_open(&config, &error);
    workload_config_clear(&config);
    g_assert_no_error(error);
    g_autoptr(GArray) all = test_collect(workload);
    g_assert_cmpint(REQUEST(all, 1)->arrival, ==, 200 * KV_MS); /* 5/s; as seconds 0.005/s */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; format_texts[i].format != NULL; i++) {
        const FormatText *f = &format_texts[i];
        g_autofree char *stem = g_strdup_printf("%s-%s", f->format, f->file);
        g_strdelimit(stem, ":=", '_');
        g_autofree char *a = g_strdup_printf("/round-trip/%s", stem);
        g_autofree char *b = g_strdup_printf("/damaged/%s", stem);
        g_autofree char *c = g_strdup_printf("/long-lines/%s", stem);
        g_test_add_data_func(a, f, test_round_trip);
        g_test_add_data_func(b, f, test_damaged);
        if (f->long_lines)
            g_test_add_data_func(c, f, test_long_lines);
    }
    g_test_add_func("/messages", test_messages);
    g_test_add_func("/mapping", test_mapping);
    return g_test_run();
}
