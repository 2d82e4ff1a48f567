#include "tests/sim/support.h"
#include "base/outfile.h"

#include <glib/gstdio.h>
#include <string.h>

static int log_next(RequestSource *self, Request *ret, GError **error)
{
    Log *log = (Log *)self;
    if (log->next == log->requests->len)
        return 0;
    *ret = g_array_index(log->requests, Request, log->next++);
    return 1;
}

static const RequestSourceOps log_ops = {"memory", log_next, NULL, NULL};

void log_init(Log *log)
{
    log->base.ops = &log_ops;
    log->requests = g_array_new(FALSE, FALSE, sizeof(Request));
    log->next = 0;
}

void log_clear(Log *log)
{
    for (guint i = 0; i < log->requests->len; i++)
        g_free((gpointer)g_array_index(log->requests, Request, i).blocks);
    g_array_unref(log->requests);
}

Request *log_add(Log *log, kv_ns arrival, gint32 prompt, gint32 output)
{
    Request q = {
        .id = log->requests->len,
        .arrival = arrival,
        .sent = arrival,
        .prompt = prompt,
        .output = output,
        .deadline = KV_NS_NONE,
        .session = KV_NO_SESSION,
    };
    g_array_append_val(log->requests, q);
    return &g_array_index(log->requests, Request, log->requests->len - 1);
}

void log_blocks(Log *log, gint32 tokens, const guint64 *ids, guint n)
{
    Request *q = &g_array_index(log->requests, Request, log->requests->len - 1);
    q->block_tokens = tokens;
    q->n_blocks = n;
    q->blocks = g_memdup2(ids, n * sizeof *ids);
}

RequestSource *log_source(Log *log)
{
    log->next = 0;
    return &log->base;
}

void outcome_clear(Outcome *o)
{
    g_free(o->csv);
    g_free(o->steps);
    g_clear_error(&o->error);
}

void config_for(SimConfig *config, const char *scheduler, guint64 pool_pages)
{
    g_autoptr(GError) error = NULL;
    sim_config_init(config);
    config->check = TRUE;
    config->pool_pages = pool_pages;
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "scheduler", schedulers, scheduler, &error);
    g_assert_no_error(error);
    plugin_choice_clear(&config->scheduler);
    config->scheduler = choice;
}

static StepClock *make_clock(const char *text)
{
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks, text, &error);
    g_assert_no_error(error);
    StepClock *clock = step_clock_new(&choice, &error);
    g_assert_no_error(error);
    plugin_choice_clear(&choice);
    return clock;
}

void run_log(const SimConfig *config, Log *log, const char *clock_text, Outcome *o)
{
    memset(o, 0, sizeof *o);
    g_autofree char *dir = g_dir_make_tmp("kvsim-XXXXXX", NULL);
    g_autofree char *steps = g_build_filename(dir, "a.kvsteps", NULL);
    g_autofree char *csv = g_build_filename(dir, "requests.csv", NULL);
    g_autoptr(StepClock) clock = make_clock(clock_text);
    StepsHeader header = {.page_size = config->page_size, .pool_pages = config->pool_pages};
    g_autoptr(StepsWriter) writer = steps_writer_new(steps, &header, &o->error);
    g_assert_no_error(o->error);
    g_autoptr(OutFile) out = out_file_new(csv, &o->error);
    RequestSink *sink = request_csv_sink_new(out);
    if (sim_run(config, log_source(log), clock, steps_writer_sink(writer), sink, NULL, &o->result,
                &o->error)) {
        steps_writer_commit(writer, &o->error);
        g_assert_no_error(o->error);
        out_file_commit(out, &o->error);
        g_assert_no_error(o->error);
        g_assert_true(g_file_get_contents(steps, &o->steps, &o->steps_size, NULL));
        g_assert_true(g_file_get_contents(csv, &o->csv, NULL, NULL));
    }
    request_csv_sink_free(sink);
    g_remove(steps);
    g_remove(csv);
    g_clear_pointer(&writer, steps_writer_free);
    g_clear_pointer(&out, out_file_free);
    g_rmdir(dir);
}

void run_log_ok(const SimConfig *config, Log *log, const char *clock, Outcome *o)
{
    run_log(config, log, clock, o);
    g_assert_no_error(o->error);
}

char *run_ledger(const SimConfig *config, Log *log, const char *clock_text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(StepClock) clock = make_clock(clock_text);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    SimResult result;
    sim_run_ledger(config, log_source(log), clock, out, NULL, &result, &error);
    fclose(out);
    g_assert_no_error(error);
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

static void add_shared_blocks(Log *log, GRand *rand, gint32 prompt, gint32 tokens)
{
    guint n = (guint)((prompt + tokens - 1) / tokens);
    guint family = (guint)g_rand_int_range(rand, 0, 4);
    guint common = (guint)g_rand_int_range(rand, 0, (gint32)n + 1);
    g_autofree guint64 *ids = g_new(guint64, n + 1);
    for (guint i = 0; i < n; i++)
        ids[i] = i < common ? 1000 * family + i : 1000000 + 1000 * log->requests->len + i;
    log_blocks(log, tokens, ids, n);
}

void log_random(Log *log, GRand *rand, guint n, gint32 page_size, gint32 max_tokens,
                gboolean blocks)
{
    kv_ns now = 0;
    gint32 pace = g_rand_int_range(rand, 1, 60);
    for (guint i = 0; i < n; i++) {
        if (g_rand_int_range(rand, 0, 4))
            now += KV_MS * g_rand_int_range(rand, 0, pace);
        gint32 prompt = g_rand_int_range(rand, 1, max_tokens);
        if (g_rand_int_range(rand, 0, 4) == 0) /* page edges */
            prompt = MAX(1, prompt / page_size * page_size + g_rand_int_range(rand, -1, 2));
        gint32 output = g_rand_int_range(rand, 0, 5) ? g_rand_int_range(rand, 1, max_tokens) : 1;
        Request *q = log_add(log, now, prompt, output);
        q->priority = g_rand_int_range(rand, 0, 3);
        if (g_rand_int_range(rand, 0, 2))
            q->deadline = KV_MS * g_rand_int_range(rand, 1, 5000);
        if (g_rand_int_range(rand, 0, 10) == 0)
            q->sent = now + KV_MS * g_rand_int_range(rand, 0, 100);
        if (blocks)
            add_shared_blocks(log, rand, prompt, page_size);
    }
}
