#include "support.h"

#include <glib/gstdio.h>
#include <string.h>

static const SmallRow rows[] = {{1, 20, 15}, {1, 9, 100}, {3, 20, 1}, {5, 18, 63}, {10, 20, 700}};
const SmallRun small_run = {
    .rows = rows,
    .n_rows = G_N_ELEMENTS(rows),
    .steps = 20,
    .page_size = 16,
    .q_heads = 8,
    .kv_heads = 2,
    .head_dim = 64,
    .paused_row = 2,
    .paused_from = 6,
    .paused_to = 8,
};

typedef struct Deltas {
    guint32 left[8], paused[8], resumed[8];
    StepJoin joined[8];
    StepAppend appended[8];
    guint32 pages[8][256];
    StepPrefill prefill[1];
} Deltas;

static gboolean is_paused(const SmallRun *run, guint r, guint32 step)
{
    return r == run->paused_row && step >= run->paused_from && step < run->paused_to;
}

static guint32 length_at(const SmallRun *run, guint r, guint32 step)
{
    guint32 len = run->rows[r].length;
    for (guint32 s = run->rows[r].joins + 1; s <= step; s++)
        len += !is_paused(run, r, s);
    return len;
}

static guint32 pages_for(const SmallRun *run, guint32 length)
{
    return (length + run->page_size - 1) / run->page_size;
}

static guint32 page_id(guint r, guint32 i)
{
    return 256 * r + (i * 37 + 11) % 256;
}

static void add_row(const SmallRun *run, guint r, guint32 s, Step *step, Deltas *d)
{
    const SmallRow *row = &run->rows[r];
    const guint32 len = length_at(run, r, s), n_pages = pages_for(run, len);
    if (s == row->joins) {
        for (guint32 i = 0; i < n_pages; i++)
            d->pages[r][i] = page_id(r, i);
        d->joined[step->n_joined++] = (StepJoin){
            .request = r, .slot = r, .length = len, .n_pages = n_pages, .pages = d->pages[r]};
    } else {
        if (is_paused(run, r, s) && !is_paused(run, r, s - 1))
            d->paused[step->n_paused++] = r;
        if (!is_paused(run, r, s) && is_paused(run, r, s - 1))
            d->resumed[step->n_resumed++] = r;
        if (n_pages > pages_for(run, length_at(run, r, s - 1)))
            d->appended[step->n_appended++] = (StepAppend){r, page_id(r, n_pages - 1)};
    }
    if (is_paused(run, r, s))
        return;
    step->rows++;
    step->max_length = MAX(step->max_length, len);
    step->sum_length += len;
}

void small_run_write(const SmallRun *run, const char *path)
{
    const StepsHeader header = {
        .workload = (char *)"small",
        .scenario = (char *)"",
        .model = (char *)"small",
        .layers = 3,
        .q_heads = run->q_heads,
        .kv_heads = run->kv_heads,
        .head_dim = run->head_dim,
        .dtype = (char *)"fp16",
        .page_size = run->page_size,
        .pool_pages = 256 * run->n_rows,
        .seed = 1,
        .replica = run->replica,
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(StepsWriter) writer = steps_writer_new(path, &header, &error);
    g_assert_no_error(error);
    StepSink *sink = steps_writer_sink(writer);
    if (sink->begin != NULL)
        g_assert_true(sink->begin(sink, header.pool_pages, &error));
    for (guint32 s = 0; s < run->steps; s++) {
        g_autofree Deltas *d = g_new0(Deltas, 1);
        Step step = {.index = s, .start = 1000 * (kv_ns)s, .duration = 1000, .waiting = s % 3};
        if (s == 0) {
            d->prefill[0] = (StepPrefill){.request = 0, .tokens = 14};
            step.n_prefill = 1;
        }
        for (guint r = 0; r < run->n_rows; r++) {
            if (s == run->rows[r].leaves)
                d->left[step.n_left++] = r;
            if (s >= run->rows[r].joins && s < run->rows[r].leaves)
                add_row(run, r, s, &step, d);
        }
        step.left = d->left;
        step.paused = d->paused;
        step.resumed = d->resumed;
        step.joined = d->joined;
        step.appended = d->appended;
        step.prefill = d->prefill;
        g_assert_true(sink->step(sink, &step, &error));
    }
    g_assert_true(steps_writer_commit(writer, &error));
}

PluginChoice test_choice(const char *kind, const PluginInfo *const *registry, const char *text)
{
    PluginChoice choice = {0};
    g_autoptr(GError) error = NULL;
    plugin_choice_parse(&choice, kind, registry, text, &error);
    g_assert_no_error(error);
    return choice;
}

void test_config(ReplayConfig *ret, const char *backend, const char *policy, const char *splits,
                 const char *execute, const char *const *route_texts)
{
    g_autoptr(GError) error = NULL;
    replay_config_init(ret);
    plugin_choice_clear(&ret->policy);
    plugin_choice_clear(&ret->splits);
    ret->backend = test_choice("backend", backends, backend);
    ret->policy = test_choice("policy", policies, policy);
    ret->splits = test_choice("split rule", split_rules, splits);
    ret->config.threads = 2;
    replay_parse_execute(ret, execute, &error);
    g_assert_no_error(error);
    for (guint i = 0; route_texts != NULL && route_texts[i] != NULL; i++) {
        PluginChoice *choice = g_new0(PluginChoice, 1);
        *choice = test_choice("route", routes, route_texts[i]);
        g_ptr_array_add(ret->routes, choice);
    }
}

ReplayResult *test_replay(const ReplayConfig *config, const char *steps_path, char **ret_csv,
                          GError **error)
{
    g_autoptr(StepsReader) steps = steps_reader_open(steps_path, error);
    g_assert_nonnull(steps);
    g_autofree char *csv_path = g_strconcat(steps_path, ".csv", NULL);
    g_autoptr(OutFile) csv = out_file_new(csv_path, error);
    ReplayResult *result = replay_run(config, steps, csv, NULL, error);
    if (result == NULL)
        return NULL;
    g_assert_true(out_file_commit(csv, error));
    if (ret_csv != NULL)
        g_assert_true(g_file_get_contents(csv_path, ret_csv, NULL, error));
    g_unlink(csv_path);
    return result;
}

JsonObject *test_json(const ReplayResult *result, JsonNode **ret_owner)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    replay_result_to_json(result, b);
    json_builder_end_object(b);
    *ret_owner = json_builder_get_root(b);
    return json_node_get_object(*ret_owner);
}

double test_number(JsonObject *o, const char *path)
{
    g_auto(GStrv) part = g_strsplit(path, ".", -1);
    guint i = 0;
    for (; part[i + 1] != NULL; i++) {
        g_assert_true(json_object_has_member(o, part[i]));
        o = json_object_get_object_member(o, part[i]);
    }
    if (!json_object_has_member(o, part[i]))
        g_error("no %s", path);
    return json_node_get_double(json_object_get_member(o, part[i]));
}
