/* The replay as a whole on a small run: what is counted, executed, checked, written and refused. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "support.h"

static char *folder, *path;

static JsonObject *run_json(const ReplayConfig *config, char **csv, JsonNode **owner)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ReplayResult) result = test_replay(config, path, csv, &error);
    g_assert_no_error(error);
    g_assert_nonnull(result);
    return test_json(result, owner);
}

/* By hand. Step 1: rows of 15 and 100 entries, two KV heads of 64: kv_bytes = 2*115*2*64*2. Step 7:
 * lengths 21, 106 and 65; the third row (2 entries by step 4, 3 by step 5) is paused in steps 6, 7.
 */
static void test_csv(void)
{
    ReplayConfig config;
    const char *const two[] = {"single", "workqueue", NULL};
    test_config(&config, "counters", "always:route=workqueue", "fixed:s=3", "0", two);
    g_autofree char *csv = NULL;
    g_autoptr(JsonNode) owner = NULL;
    JsonObject *o = run_json(&config, &csv, &owner);
    g_auto(GStrv) line = g_strsplit(csv, "\n", -1);
    g_assert_cmpuint(g_strv_length(line), ==, 1 + 2 * 20 + 1);
    g_assert_cmpstr(
        line[0], ==,
        "step,start_ns,duration_ns,rows,prefill_tokens,max_len,sum_len,waiting,"
        "pages_used,route,chosen,launches,merge_launches,copies,memsets,tasks,"
        "nonempty_fraction,kv_bytes,kv_bytes_touched,merge_state_bytes,"
        "merge_traffic_bytes,plan_us,upload_bytes,kernel_us,wall_us,repeats,"
        "max_abs_err,mean_abs_err,replica,device,rank_kernel_us,rank_skew_us,tables_us");
    /* Only prefill: rows 0, launches 0, nothing chosen. */
    g_assert_cmpstr(line[1], ==,
                    "0,0,1000,0,14,0,0,0,0,single,0,0,0,0,0,0,0.000000,0,0,0,0,,,,,,,,0,,,,");
    g_assert_cmpstr(
        line[3], ==,
        "1,1000,1000,2,0,100,115,1,0,single,0,1,0,0,0,4,1.000000,58880,58880,0,0,,,,,,,,0,,,,");
    /* 15 entries: one tile, written out; 100: four tiles in three splits: 3 slots of 4*(2+64)*4
     * bytes for each of two KV heads. */
    g_assert_cmpstr(line[4], ==,
                    "1,1000,1000,2,0,100,115,1,0,workqueue,1,2,1,0,0,8,0.666667,58880,58880,6336,"
                    "12672,,,,,,,,0,,,,");
    g_assert_true(g_str_has_prefix(line[15], "7,7000,1000,3,0,106,192,1,0,single,0,1,0,0,0,6,"));
    g_assert_cmpfloat(test_number(o, "steps"), ==, 20);
    g_assert_cmpfloat(test_number(o, "decode_steps"), ==, 19);
    g_assert_cmpfloat(test_number(o, "prefill_tokens_modelled_not_executed"), ==, 14);
    g_assert_cmpfloat(test_number(o, "policy.shares.workqueue"), ==, 1);
    g_assert_cmpfloat(test_number(o, "routes.single.launches_per_step"), ==, 1);
    g_assert_cmpfloat(test_number(o, "routes.single.one_layer.launches"), ==, 19);
    g_assert_cmpfloat(test_number(o, "routes.single.all_layers.launches"), ==, 57);
    replay_config_clear(&config);
}

/* Every route executed and checked in every step, alternating, with a verdict. */
static void test_cpu(void)
{
    static const char *const splits[] = {"balanced:min=32", "fixed:s=3"};
    for (guint i = 0; i < G_N_ELEMENTS(splits); i++) {
        ReplayConfig config;
        test_config(&config, "cpu", "oracle", splits[i], "all", NULL);
        config.check_every = 1;
        config.repeats = 2;
        config.config.layers = 2;
        g_autoptr(JsonNode) owner = NULL;
        g_autofree char *csv = NULL;
        JsonObject *o = run_json(&config, &csv, &owner);
        g_assert_cmpfloat(test_number(o, "executed_steps"), ==, 19);
        g_assert_cmpfloat(test_number(o, "checked_steps"), ==, 19);
        g_assert_true(json_object_get_boolean_member(o, "correct"));
        static const char *const names[] = {"single",    "buckets",         "masked",
                                            "workqueue", "workqueue-fused", "persistent"};
        for (guint k = 0; k < G_N_ELEMENTS(names); k++) {
            g_autofree char *error = g_strdup_printf("routes.%s.max_abs_err", names[k]);
            g_autofree char *time = g_strdup_printf("routes.%s.kernel_us_mean", names[k]);
            g_assert_cmpfloat(test_number(o, error), <, 2e-3);
            g_assert_cmpfloat(test_number(o, time), >, 0);
        }
        /* The oracle took the best measured route: no regret. */
        g_assert_cmpfloat(test_number(o, "policy.regret.worst"), ==, 0);
        g_assert_cmpfloat(test_number(o, "policy.regret.steps"), ==, 19);
        replay_config_clear(&config);
    }
}

static guint executed_lines(const char *csv)
{
    guint n = 0;
    g_auto(GStrv) line = g_strsplit(csv, "\n", -1);
    for (guint i = 1; line[i] != NULL && line[i][0] != '\0'; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", -1);
        g_assert_cmpuint(g_strv_length(cell), ==, 33);
        n += cell[23][0] != '\0';
    }
    return n;
}

static void test_execute_rules(void)
{
    static const struct {
        const char *rule;
        guint want; /* executed steps, of one route */
    } cases[] = {{"0", 0}, {"5", 5}, {"all", 19}, {"4:9", 5}, {"every=6", 3}, {"100", 19}};
    const char *const one[] = {"single", NULL};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        ReplayConfig config;
        test_config(&config, "cpu", "cost", "balanced", cases[i].rule, one);
        g_autofree char *csv = NULL;
        g_autoptr(JsonNode) owner = NULL;
        run_json(&config, &csv, &owner);
        g_assert_cmpuint(executed_lines(csv), ==, cases[i].want);
        replay_config_clear(&config);
    }
}

static void test_chosen_only(void)
{
    ReplayConfig config;
    test_config(&config, "cpu", "always:route=masked", "balanced", "all", NULL);
    config.chosen_only = TRUE;
    g_autofree char *csv = NULL;
    g_autoptr(JsonNode) owner = NULL;
    JsonObject *o = run_json(&config, &csv, &owner);
    g_assert_cmpuint(executed_lines(csv), ==, 19);
    g_assert_cmpfloat(test_number(o, "routes.masked.executed_steps"), ==, 19);
    g_assert_cmpfloat(test_number(o, "routes.single.executed_steps"), ==, 0);
    replay_config_clear(&config);
}

/* A range starts from a seek and gives the same counters as the whole run. */
static void test_range(void)
{
    ReplayConfig config;
    test_config(&config, "counters", "cost", "balanced", "0", NULL);
    g_autofree char *all = NULL, *part = NULL;
    g_autoptr(JsonNode) a = NULL, b = NULL;
    run_json(&config, &all, &a);
    config.from = 7;
    config.to = 15;
    JsonObject *o = run_json(&config, &part, &b);
    g_assert_cmpfloat(test_number(o, "steps"), ==, 8);
    g_auto(GStrv) whole = g_strsplit(all, "\n", -1);
    g_auto(GStrv) some = g_strsplit(part, "\n", -1);
    g_assert_cmpuint(g_strv_length(some), ==, 1 + 8 * 6 + 1);
    for (guint i = 0; i < 8 * 6; i++)
        g_assert_cmpstr(some[1 + i], ==, whole[1 + 7 * 6 + i]);
    replay_config_clear(&config);
}

static void expect_error(ReplayConfig *config, int code, const char *part)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ReplayResult) result = test_replay(config, path, NULL, &error);
    g_assert_null(result);
    g_assert_error(error, KV_ERROR, code);
    g_assert_nonnull(strstr(error->message, part));
    replay_config_clear(config);
}

static void test_refusals(void)
{
    ReplayConfig config;
    const char *const one[] = {"single", NULL}, *const peer[] = {"flashinfer", NULL};
    const char *const twice[] = {"single", "single", NULL};
    test_config(&config, "counters", "always:route=buckets", "balanced", "0", one);
    expect_error(&config, KV_ERROR_USAGE, "route=buckets");
    test_config(&config, "counters", "paper-v1", "balanced", "0", one);
    expect_error(&config, KV_ERROR_USAGE, "workqueue");
    test_config(&config, "counters", "cost", "balanced", "0", peer);
    expect_error(&config, KV_ERROR_UNSUPPORTED, "flashinfer");
    test_config(&config, "counters", "cost", "balanced", "0", twice);
    expect_error(&config, KV_ERROR_USAGE, "twice");
    test_config(&config, "counters", "learned", "balanced", "0", one);
    expect_error(&config, KV_ERROR_USAGE, "learned");
    test_config(&config, "cpu", "oracle", "balanced", "0", one);
    config.chosen_only = TRUE;
    expect_error(&config, KV_ERROR_USAGE, "chosen-only");
    test_config(&config, "counters", "cost", "balanced", "0", one);
    config.from = 20;
    expect_error(&config, KV_ERROR_USAGE, "20 steps");
    test_config(&config, "counters", "cost", "balanced", "0", one);
    config.profile = g_strdup("/nonexistent/profile.json");
    expect_error(&config, KV_ERROR_INPUT, "profile.json");

    g_autoptr(GError) error = NULL;
    static const char *const bad[] = {"", "x", "5:5", "9:4", "-1", "every=0", "1:2:3", "every="};
    replay_config_init(&config);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(replay_parse_execute(&config, bad[i], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
        g_clear_error(&error);
    }
    replay_config_clear(&config);
}

/* Buckets of two widths beside one another have lines of their own; a refused route says why. */
static void test_labels(void)
{
    ReplayConfig config;
    const char *const some[] = {"buckets", "buckets:width=64", "buckets:width=1024", "vllm-pa1",
                                NULL};
    test_config(&config, "counters", "cost", "balanced", "0", some);
    g_autoptr(JsonNode) owner = NULL;
    JsonObject *o = run_json(&config, NULL, &owner);
    const double exact = test_number(o, "routes.buckets.launches_per_step");
    const double narrow = test_number(o, "routes.buckets-64.launches_per_step");
    g_assert_cmpfloat(test_number(o, "routes.buckets-1024.launches_per_step"), <, narrow);
    g_assert_cmpfloat(narrow, <, exact);
    JsonObject *refused =
        json_object_get_object_member(json_object_get_object_member(o, "routes"), "vllm-pa1");
    g_assert_nonnull(json_object_get_string_member(refused, "refused"));
    replay_config_clear(&config);
}

/* A backend that has one peer, which does not take rows above a length (as one that keeps all
 * scores in shared memory); everything else is the CPU's. */
enum { PEER_MOST = 100 };
static guint32 peer_longest;
static BackendOps standin;

static Backend *standin_create(const BackendConfig *config, GError **error)
{
    Backend *self = backend_cpu.create(config, error);
    if (self != NULL)
        self->ops = &standin;
    return self;
}

static const char *standin_refuses(Backend *self, const Route *route)
{
    return route->ops->kind == ROUTE_PEER ? NULL : backend_cpu.refuses(self, route);
}

static gboolean standin_begin(Backend *self, const Step *step, const StepRow *rows, guint32 n_rows,
                              GError **error)
{
    peer_longest = step->max_length;
    return backend_cpu.begin_step(self, step, rows, n_rows, error);
}

static gboolean standin_execute(Backend *self, const Route *route, const AttnPlan *plan,
                                gint repeats, guint flags, Execution *ret, GError **error)
{
    if (route->ops->kind != ROUTE_PEER)
        return backend_cpu.execute(self, route, plan, repeats, flags, ret, error);
    *ret = (Execution){.repeats = repeats, .kernel_us = 1, .wall_us = 2, .launches_seen = 1};
    if (peer_longest <= PEER_MOST)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "route vllm-pa1: a row is too long");
    return FALSE;
}

/* A peer that cannot take some steps is left out of those, said so, and the run goes on. */
static void test_left_out(void)
{
    standin = backend_cpu;
    standin.create = standin_create;
    standin.refuses = standin_refuses;
    standin.begin_step = standin_begin;
    standin.execute = standin_execute;
    ReplayConfig config;
    const char *const two[] = {"vllm-pa1", "single", NULL};
    test_config(&config, "cpu", "always:route=single", "balanced", "all", two);
    config.backend.info = &standin.info;
    config.check_every = 0;
    g_autofree char *csv = NULL;
    g_autoptr(JsonNode) owner = NULL;
    JsonObject *o = run_json(&config, &csv, &owner);
    const double all = test_number(o, "routes.single.executed_steps");
    const double ran = test_number(o, "routes.vllm-pa1.executed_steps");
    const double out = test_number(o, "routes.vllm-pa1.left_out_steps");
    g_assert_cmpfloat(ran, >, 0);
    g_assert_cmpfloat(out, >, 0);
    g_assert_cmpfloat(ran + out, ==, all);
    JsonObject *peer =
        json_object_get_object_member(json_object_get_object_member(o, "routes"), "vllm-pa1");
    g_assert_nonnull(strstr(json_object_get_string_member(peer, "left_out"), "too long"));
    g_assert_nonnull(csv);
    replay_config_clear(&config);
}

static void test_interrupted(void)
{
    ReplayConfig config;
    test_config(&config, "counters", "cost", "balanced", "0", NULL);
    const volatile int interrupted = 1;
    g_autoptr(Progress) progress = progress_new(TRUE, &interrupted);
    g_autoptr(GError) error = NULL;
    g_autoptr(StepsReader) steps = steps_reader_open(path, &error);
    g_autofree char *csv_path = g_strconcat(path, ".cut", NULL);
    g_autofree char *part = g_strconcat(csv_path, ".part", NULL);
    OutFile *csv = out_file_new(csv_path, &error);
    g_autoptr(ReplayResult) result = replay_run(&config, steps, csv, progress, &error);
    g_assert_null(result);
    g_assert_error(error, KV_ERROR, KV_ERROR_INTERRUPTED);
    out_file_keep(csv);
    out_file_free(csv);
    g_assert_false(g_file_test(csv_path, G_FILE_TEST_EXISTS));
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(part, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(line), ==, 1 + 6 + 1); /* the step in hand, whole lines */
    g_unlink(part);
    replay_config_clear(&config);
}

static void test_backend_line(void)
{
    ReplayConfig config;
    replay_config_init(&config);
    g_autoptr(GError) error = NULL;
    g_autofree char *line = replay_backend_line(&config, &error);
    g_assert_no_error(error);
    g_assert_true(g_str_has_prefix(line, "backend: "));
    g_assert_null(strchr(line, '\n'));
    replay_config_clear(&config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("kvreplay-replay-XXXXXX", NULL);
    path = g_build_filename(folder, "small.kvsteps", NULL);
    small_run_write(&small_run, path);
    g_test_add_func("/replay/csv", test_csv);
    g_test_add_func("/replay/cpu", test_cpu);
    g_test_add_func("/replay/execute-rules", test_execute_rules);
    g_test_add_func("/replay/chosen-only", test_chosen_only);
    g_test_add_func("/replay/range", test_range);
    g_test_add_func("/replay/refusals", test_refusals);
    g_test_add_func("/replay/labels", test_labels);
    g_test_add_func("/replay/left-out", test_left_out);
    g_test_add_func("/replay/interrupted", test_interrupted);
    g_test_add_func("/replay/backend-line", test_backend_line);
    const int status = g_test_run();
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
    return status;
}
