#include "tests/workloads/format_texts.h"

#define G G_GINT64_FORMAT

static void put_calendar(GString *out, kv_ns t, char sep, int digits, const char *zone)
{
    g_autoptr(GDateTime) base = g_date_time_new_utc(2024, 2, 28, 23, 59, 30);
    g_autoptr(GDateTime) at = g_date_time_add_seconds(base, (double)(t / KV_SECOND));
    g_autofree char *text =
        g_date_time_format(at, sep == 'T' ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S");
    g_autofree char *nano = g_strdup_printf("%09" G, t % KV_SECOND);
    g_string_append_printf(out, "%s.%.*s%s", text, digits, nano, zone);
}

static void put_seconds(GString *out, kv_ns t)
{
    char text[KV_NS_TEXT_SIZE];
    g_string_append(out, kv_ns_text(t, text));
}

/* Ids 0, 1, 2 ... shared by all rows: the longer prompt begins with the shorter one. */
static void put_ids(GString *out, gint32 prompt, gint32 block, gboolean floor, guint64 offset)
{
    gint32 n = floor ? prompt / block : (prompt + block - 1) / block;
    for (gint32 i = 0; i < n; i++)
        g_string_append_printf(out, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", offset + (guint64)i);
}

static void azure(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "TIMESTAMP,ContextTokens,GeneratedTokens\r\n");
    for (guint i = 0; i < n; i++) {
        put_calendar(out, rows[i].arrival, ' ', 7, i % 3 == 0 ? "+00:00" : "");
        g_string_append_printf(out, ",%d,%d%s", rows[i].prompt, rows[i].output,
                               i + 1 < n ? "\r\n" : "");
    }
}

static void vidur(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "arrived_at,num_prefill_tokens,num_decode_tokens\n");
    for (guint i = 0; i < n; i++) {
        put_seconds(out, rows[i].arrival);
        g_string_append_printf(out, ",%d,%d\n", rows[i].prompt, rows[i].output);
    }
}

static void burst_v1(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "%" G ",ChatGPT,%d,%d,%d,API log\n",
                               rows[i].arrival / KV_SECOND + 5, rows[i].prompt, rows[i].output,
                               rows[i].prompt + rows[i].output);
}

static void burst_v2(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response "
                         "tokens,Total tokens,Log Type\n");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "%" G ".0,s%u,3,GPT-4,%d,%d,%d,Conversation log\n",
                               rows[i].arrival / KV_SECOND + 19440110, rows[i].session,
                               rows[i].prompt, rows[i].output, rows[i].prompt + rows[i].output);
}

static void mooncake(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(out,
                               "{\"timestamp\": %" G
                               ", \"input_length\": %d, \"output_length\": %d, \"hash_ids\": [",
                               rows[i].arrival / KV_MS, rows[i].prompt, rows[i].output);
        put_ids(out, rows[i].prompt, 512, FALSE, 0);
        g_string_append(out, "]}\n");
    }
}

static void bailian(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(out, "{\"chat_id\": %u, \"parent_chat_id\": -1, \"timestamp\": ", i);
        put_seconds(out, rows[i].arrival);
        g_string_append_printf(out,
                               ", \"input_length\": %d, \"output_length\": %d, \"type\": \"text\", "
                               "\"turn\": 1, \"hash_ids\": [",
                               rows[i].prompt, rows[i].output);
        put_ids(out, rows[i].prompt, 16, FALSE, 0);
        g_string_append(out, "]}\n");
    }
}

static void ragpulse(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(
            out,
            "{\"timestamp\": \"%" G
            "\", \"input_length\": %d, \"output_length\": %d, \"hash_ids\": {\"sys_prompt\": [1], "
            "\"passages_ids\": [], \"history\": [], \"web_search\": [], \"user_input\": [2]}, "
            "\"session_id\": \"a-%u\"}\n",
            rows[i].arrival / KV_SECOND, rows[i].prompt, rows[i].output, rows[i].session);
}

static void splitwise(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "request_id,request_type,application_id,arrival_timestamp,batch_size,"
                         "prompt_size,token_size\n");
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(out, "%u,2,0,", i);
        put_seconds(out, rows[i].arrival);
        g_string_append_printf(out, ",1,%d,%d\n", rows[i].prompt, rows[i].output);
    }
}

static void sim_flat(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(
            out, "{\"input_toks\": %d, \"output_toks\": %d, \"arrival_time_ns\": %" G "}\n",
            rows[i].prompt, rows[i].output, rows[i].arrival + 17);
}

static void sim_agentic(GString *out, const TextRow *rows, guint n)
{
    g_string_append_printf(
        out, "{\"session_id\": \"x\", \"arrival_time_ns\": %" G ", \"sub_requests\": [",
        rows[0].arrival);
    for (guint i = 0; i < n; i++)
        g_string_append_printf(
            out, "%s{\"input_toks\": %d, \"output_toks\": %d, \"tool_duration_ns\": %" G "}",
            i > 0 ? ", " : "", rows[i].prompt, rows[i].output,
            i + 1 < n ? rows[i + 1].arrival - rows[i].arrival : 0);
    g_string_append(out, "]}\n");
}

static void sim_out(GString *out, const TextRow *rows, guint n)
{
    g_string_append(
        out, "instance id,request "
             "id,model,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT,ITL\r\n");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "0,%u,a/b,%d,%d,%" G ",%" G ",900,10,100,5,\"[7, 8]\"\r\n", i,
                               rows[i].prompt, rows[i].output, rows[i].arrival,
                               rows[i].arrival + 900);
}

static void export_new(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(
            out,
            "{\"metadata\": {\"conversation_id\": \"c%u\", \"turn_index\": 0, "
            "\"request_start_ns\": %" G
            ", \"benchmark_phase\": \"profiling\"}, \"metrics\": {\"input_sequence_length\": "
            "{\"value\": %d, \"unit\": \"tokens\"}, \"output_sequence_length\": {\"value\": %d, "
            "\"unit\": \"tokens\"}, \"time_to_first_token\": {\"value\": 1.5, \"unit\": \"ms\"}, "
            "\"request_latency\": {\"value\": 9.5, \"unit\": \"ms\"}}, \"error\": null}\n",
            i, rows[i].arrival + G_GINT64_CONSTANT(1759522419159192409), rows[i].prompt,
            rows[i].output);
}

static void bench_array(GString *out, const char *name, const TextRow *rows, guint n, int what)
{
    g_string_append_printf(out, " \"%s\": [", name);
    for (guint i = 0; i < n; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        if (what == 2)
            put_seconds(out, rows[i].arrival + 10 * KV_SECOND);
        else
            g_string_append_printf(out, "%d", what == 0 ? rows[i].prompt : rows[i].output);
    }
    g_string_append(out, what == 2 ? "]\n" : "],\n");
}

static void vllm_bench(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "{\"duration\": 5.5, \"completed\": 1,\n");
    bench_array(out, "input_lens", rows, n, 0);
    bench_array(out, "output_lens", rows, n, 1);
    bench_array(out, "start_times", rows, n, 2);
    g_string_append(out, "}\n");
}

static void vllm_log(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_autoptr(GDateTime) base = g_date_time_new_utc(2024, 1, 31, 23, 59, 30);
        g_autoptr(GDateTime) at =
            g_date_time_add_seconds(base, (double)(rows[i].arrival / KV_SECOND));
        g_autofree char *time = g_date_time_format(at, "%m-%d %H:%M:%S");
        g_string_append_printf(
            out,
            "INFO %s [logger.py:43] Received request c-%u: prompt: '[1, 2', params: "
            "SamplingParams(n=1, max_tokens=%d, x=1), prompt_token_ids: [",
            time, i, rows[i].output);
        put_ids(out, rows[i].prompt, 1, FALSE, 7);
        g_string_append(out, "], lora_request: None.\nINFO: other line\n");
    }
}

static void weka(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "{\"id\":\"t\",\"models\":[\"m\"],\"block_size\":64,\"hash_id_scope\":"
                         "\"local\",\"requests\":[");
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(out, "%s{\"t\":", i > 0 ? "," : "");
        put_seconds(out, rows[i].arrival);
        g_string_append_printf(out, ",\"type\":\"n\",\"in\":%d,\"out\":%d,\"hash_ids\":[",
                               rows[i].prompt, rows[i].output);
        put_ids(out, rows[i].prompt, 64, TRUE, 1);
        g_string_append(out, "],\"api_time\":1.5}");
    }
    g_string_append(out, "]}\n");
}

static void rounds(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(
            out,
            "{\"session_id\":\"s%u\",\"round_index\":0,\"input_tokens_total\":%d,\"prefix_tokens\":"
            "%d,\"newly_append_tokens\":%d,\"output_tokens\":%d,\"timing_events\":[{\"event_type\":"
            "\"user_message\",\"timestamp\":\"",
            i, rows[i].prompt, rows[i].prompt / 2, rows[i].prompt - rows[i].prompt / 2,
            rows[i].output);
        put_calendar(out, rows[i].arrival, 'T', 3, "Z");
        g_string_append(out, "\"}]}\n");
    }
}

static void replay(GString *out, const TextRow *rows, guint n)
{
    g_string_append(
        out,
        "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "s%u,%" G ",0,%d,%d,%d,0\n", i, rows[i].arrival / KV_MS,
                               rows[i].prompt / 3, rows[i].prompt - rows[i].prompt / 3,
                               rows[i].output);
}

static void aibrix(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out,
                               "{\"timestamp\": %" G
                               ", \"requests\": [{\"Prompt Length\": %d, \"Output Length\": %d, "
                               "\"prompt\": \"\\u00e9\"}]}\n",
                               rows[i].arrival / KV_MS, rows[i].prompt, rows[i].output);
}

static void tair(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(out, "{\"timestamp_us\": %" G ", \"keys\": [-9223372036854775808",
                               rows[i].arrival / KV_US + 1704081600000000);
        for (gint32 k = 1; k < rows[i].prompt / 16; k++)
            g_string_append_printf(out, ", %d", -k);
        g_string_append_printf(out, "], \"input_len\": %d, \"output_len\": %d}\n", rows[i].prompt,
                               rows[i].output);
    }
}

static void blis(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "request_id,arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_"
                         "time_us,input_tokens,output_tokens,status,error_message\n");
    for (guint i = 0; i < n; i++) {
        gint64 us = rows[i].arrival / KV_US;
        g_string_append_printf(out, "%u,%" G ",%" G ",%" G ",%" G ",%d,%d,ok,\"a, \"\"b\"\"\"\n", i,
                               us, us, us + 50, us + 90, rows[i].prompt, rows[i].output);
    }
}

static void otel(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "{\"spans\": [\n");
    for (guint i = 0; i < n; i++) {
        g_string_append(out, i > 0 ? ",\n" : "");
        g_string_append_printf(out,
                               "{\"trace_id\": \"t%u\", \"span_id\": \"%u\", \"start_time\": \"",
                               rows[i].session, i);
        put_calendar(out, rows[i].arrival, 'T', 6, "");
        g_string_append(out, "\", \"end_time\": \"");
        put_calendar(out, rows[i].arrival + KV_SECOND, 'T', 6, "");
        g_string_append_printf(out,
                               "\", \"attributes\": {\"gen_ai.usage.input_tokens\": %d, "
                               "\"gen_ai.usage.output_tokens\": %d}, \"status\": {\"code\": 1}}",
                               rows[i].prompt, rows[i].output);
    }
    g_string_append(out, "]}\n");
}

static void mapped_csv(GString *out, const TextRow *rows, guint n)
{
    g_string_append(out, "when;\"the prompt\";total\n");
    for (guint i = 0; i < n; i++) {
        put_calendar(out, rows[i].arrival, 'T', 9, "Z");
        g_string_append_printf(out, ";%d;\"%d\"\n", rows[i].prompt,
                               rows[i].prompt + rows[i].output);
    }
}

static void mapped_jsonl(GString *out, const TextRow *rows, guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "{\"at\": %" G ", \"usage\": {\"in\": %d, \"out\": \"%d\"}}\n",
                               rows[i].arrival, rows[i].prompt, rows[i].output);
}

const FormatText format_texts[] = {
    {"azure", NULL, "a.csv", 100, TRUE, 0, FALSE, FALSE, FALSE, TRUE, azure},
    {"vidur", NULL, "a.csv", 1, TRUE, 0, FALSE, FALSE, FALSE, FALSE, vidur},
    {"burstgpt", NULL, "a.csv", KV_SECOND, TRUE, 0, FALSE, FALSE, FALSE, FALSE, burst_v1},
    {"burstgpt", NULL, "b.csv", KV_SECOND, TRUE, 0, FALSE, FALSE, FALSE, FALSE, burst_v2},
    {"mooncake", NULL, "a.jsonl", KV_MS, TRUE, 512, FALSE, FALSE, FALSE, TRUE, mooncake},
    {"bailian", NULL, "a.jsonl", 1, TRUE, 16, FALSE, FALSE, FALSE, FALSE, bailian},
    {"ragpulse", NULL, "a.jsonl", KV_SECOND, TRUE, 0, FALSE, FALSE, FALSE, FALSE, ragpulse},
    {"splitwise", NULL, "a.csv", 1, TRUE, 0, FALSE, FALSE, FALSE, FALSE, splitwise},
    {"llmservingsim", NULL, "a.jsonl", 1, TRUE, 0, FALSE, FALSE, FALSE, FALSE, sim_flat},
    {"llmservingsim", NULL, "b.jsonl", 1, TRUE, 0, FALSE, TRUE, FALSE, FALSE, sim_agentic},
    {"llmservingsim-out", NULL, "a.csv", 1, TRUE, 0, FALSE, FALSE, FALSE, TRUE, sim_out},
    {"aiperf-export", NULL, "a.jsonl", 1, TRUE, 0, FALSE, FALSE, FALSE, FALSE, export_new},
    {"vllm-bench", NULL, "a.json", 1, TRUE, 0, FALSE, FALSE, TRUE, TRUE, vllm_bench},
    {"vllm-log:output=max_tokens", NULL, "a.log", KV_SECOND, FALSE, 0, FALSE, FALSE, FALSE, TRUE,
     vllm_log},
    {"weka", NULL, "a.json", 1, TRUE, 64, TRUE, FALSE, FALSE, TRUE, weka},
    {"tracelab", NULL, "a.jsonl", KV_MS, TRUE, 16, TRUE, FALSE, FALSE, FALSE, rounds},
    {"tracelab-replay", NULL, "a.csv", KV_MS, TRUE, 16, TRUE, FALSE, FALSE, FALSE, replay},
    {"aibrix", NULL, "a.jsonl", KV_MS, TRUE, 0, FALSE, FALSE, FALSE, FALSE, aibrix},
    {"tair", NULL, "a.jsonl", KV_US, TRUE, 16, TRUE, FALSE, FALSE, FALSE, tair},
    {"blis", NULL, "a.csv", KV_US, TRUE, 0, FALSE, FALSE, FALSE, FALSE, blis},
    {"otel", NULL, "a.json", KV_US, TRUE, 0, FALSE, FALSE, TRUE, FALSE, otel},
    {"csv", "arrival=when:iso,prompt=the prompt,total=total", "a.csv", 1, FALSE, 0, FALSE, FALSE,
     FALSE, FALSE, mapped_csv},
    {"jsonl", "arrival=at:ns,prompt=usage.in,output=usage.out", "a.jsonl", 1, FALSE, 0, FALSE,
     FALSE, FALSE, TRUE, mapped_jsonl},
    {NULL},
};
