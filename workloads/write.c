#include "workloads/write.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/units.h"

/* What a writer keeps between requests. */
typedef struct Writing {
    FILE *out;
    const GPtrArray *classes;
    GHashTable *ids;     /* mooncake: key -> small id + 1 */
    GString *columns[3]; /* vllm-bench: arrays under way */
    guint64 written, lost_keys, lost_waits;
} Writing;

typedef struct WriterOps {
    PluginInfo info;
    void (*begin)(Writing *w);
    gboolean (*request)(Writing *w, const Request *r, GError **error);
    void (*end)(Writing *w);
} WriterOps;

/* --- kvreplay --- */

static void kvreplay_begin(Writing *w)
{
    fputs("# kvreplay-workload "
          "1\narrival_ns,sent_ns,prompt_tokens,output_tokens,session,turn,wait_ns,"
          "priority,class,deadline_ns,block_tokens,blocks\n",
          w->out);
}

static void put_ns(FILE *out, kv_ns t)
{
    if (t != KV_NS_NONE)
        fprintf(out, "%" PRId64, t);
    fputc(',', out);
}

static void put_class(FILE *out, const char *name)
{
    fputc('"', out);
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '"')
            fputc('"', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

static gboolean kvreplay_request(Writing *w, const Request *r, GError **error)
{
    gboolean closed = r->wait != KV_NS_NONE;
    put_ns(w->out, closed ? KV_NS_NONE : r->arrival);
    put_ns(w->out, closed || r->sent == r->arrival ? KV_NS_NONE : r->sent);
    fprintf(w->out, "%d,%d,", r->prompt, r->output);
    if (r->session != KV_NO_SESSION)
        fprintf(w->out, "%" PRId64 ",%d,", r->session, r->turn);
    else
        fputs(",,", w->out);
    put_ns(w->out, r->wait);
    if (r->priority != 0)
        fprintf(w->out, "%d", r->priority);
    fputc(',', w->out);
    if (r->klass < w->classes->len)
        put_class(w->out, g_ptr_array_index(w->classes, r->klass));
    fputc(',', w->out);
    put_ns(w->out, r->deadline);
    if (r->n_blocks > 0)
        fprintf(w->out, "%d", r->block_tokens);
    fputc(',', w->out);
    for (guint i = 0; i < r->n_blocks; i++)
        fprintf(w->out, "%s%" PRIx64, i > 0 ? " " : "", r->blocks[i]);
    fputc('\n', w->out);
    return TRUE;
}

/* --- mooncake --- */

static void mooncake_begin(Writing *w)
{
    w->ids = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

static guint small_id(GHashTable *ids, guint64 key)
{
    gpointer id = g_hash_table_lookup(ids, &key);
    if (id == NULL) {
        id = GUINT_TO_POINTER(g_hash_table_size(ids) + 1);
        g_hash_table_insert(ids, g_memdup2(&key, sizeof key), id);
    }
    return GPOINTER_TO_UINT(id) - 1;
}

/* Nanoseconds as milliseconds, exactly, without needless digits. */
static void put_ms(FILE *out, kv_ns t)
{
    kv_ns whole = t / KV_MS, rest = t % KV_MS;
    fprintf(out, "%" PRId64, whole);
    if (rest == 0)
        return;
    char digits[8];
    g_snprintf(digits, sizeof digits, "%06d", (int)rest);
    int n = 6;
    while (digits[n - 1] == '0')
        digits[--n] = '\0';
    fprintf(out, ".%s", digits);
}

static gboolean mooncake_request(Writing *w, const Request *r, GError **error)
{
    fputc('{', w->out);
    if (r->session != KV_NO_SESSION)
        fprintf(w->out, "\"session_id\": \"%" PRId64 "\", ", r->session);
    fputs(r->wait != KV_NS_NONE ? "\"delay\": " : "\"timestamp\": ", w->out);
    put_ms(w->out, r->wait != KV_NS_NONE ? r->wait : r->arrival);
    fprintf(w->out, ", \"input_length\": %d, \"output_length\": %d", r->prompt, r->output);
    if (r->n_blocks > 0) {
        fputs(", \"hash_ids\": [", w->out);
        for (guint i = 0; i < r->n_blocks; i++)
            fprintf(w->out, "%s%u", i > 0 ? ", " : "", small_id(w->ids, r->blocks[i]));
        fputc(']', w->out);
    }
    fputs("}\n", w->out);
    return TRUE;
}

static void mooncake_end(Writing *w)
{
    g_hash_table_unref(w->ids);
}

/* --- vllm-bench --- */

static void vllm_begin(Writing *w)
{
    for (guint i = 0; i < 3; i++)
        w->columns[i] = g_string_new(NULL);
}

static gboolean vllm_request(Writing *w, const Request *r, GError **error)
{
    char t[KV_NS_TEXT_SIZE];
    const char *comma = w->written > 0 ? ", " : "";
    g_string_append_printf(w->columns[0], "%s%d", comma, r->prompt);
    g_string_append_printf(w->columns[1], "%s%d", comma, r->output);
    g_string_append_printf(w->columns[2], "%s%s", comma, kv_ns_text(r->arrival, t));
    w->lost_keys += r->n_blocks > 0;
    w->lost_waits += r->wait != KV_NS_NONE;
    return TRUE;
}

static void vllm_end(Writing *w)
{
    fprintf(w->out,
            "{\"completed\": %" PRIu64 ",\n \"input_lens\": [%s],\n \"output_lens\": [%s],\n"
            " \"start_times\": [%s]}\n",
            w->written, w->columns[0]->str, w->columns[1]->str, w->columns[2]->str);
    for (guint i = 0; i < 3; i++)
        g_string_free(w->columns[i], TRUE);
}

static const WriterOps writers[] = {
    {{"kvreplay", "kvreplay's own workload file: everything, exactly", NULL, 0},
     kvreplay_begin,
     kvreplay_request,
     NULL},
    {{"mooncake", "Mooncake JSON lines, with AIPerf's sessions and delays where there are turns",
      NULL, 0},
     mooncake_begin,
     mooncake_request,
     mooncake_end},
    {{"vllm-bench", "vLLM benchmark JSON: lengths and start times", NULL, 0},
     vllm_begin,
     vllm_request,
     vllm_end},
};

const PluginInfo *const workload_writers[] = {&writers[0].info, &writers[1].info, &writers[2].info,
                                              NULL};

static int write_all(const WriterOps *ops, Writing *w, RequestSource *source, OutFile *out,
                     Progress *progress, GError **error)
{
    Request r;
    int got;
    while ((got = request_source_next(source, &r, error)) == 1) {
        do {
            if (!ops->request(w, &r, error) || !progress_check(progress, error))
                return -1;
            progress_tick(progress, ++w->written);
            if (w->written % 4096 == 0 && !out_file_ok(out, error))
                return -1;
            Request last = r;
            got = request_source_next_turn(source, &last, 0, &r, error);
        } while (got == 1);
        if (got < 0)
            return -1;
    }
    return got;
}

gboolean workload_write(Workload *workload, const char *writer, OutFile *out, Progress *progress,
                        char **ret_warning, GError **error)
{
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "workload writer", workload_writers, writer, error))
        return FALSE;
    const WriterOps *ops = (const WriterOps *)choice.info;
    plugin_choice_clear(&choice);
    Writing w = {.out = out_file_stream(out), .classes = workload_info(workload)->classes};
    progress_begin(progress, "writing", 0);
    ops->begin(&w);
    int got = write_all(ops, &w, workload_source(workload), out, progress, error);
    if (ops->end != NULL)
        ops->end(&w);
    progress_end(progress);
    if (got < 0 || !out_file_ok(out, error))
        return FALSE;
    if (ret_warning != NULL)
        *ret_warning = w.lost_keys + w.lost_waits == 0
                           ? NULL
                           : g_strdup_printf("%s cannot hold the block keys of %" PRIu64
                                             " requests and the waits of %" PRIu64,
                                             writer, w.lost_keys, w.lost_waits);
    return TRUE;
}
