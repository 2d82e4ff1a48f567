/* The published counters of PersistentKV (arXiv 2606.26666), all rows of published-counters.csv:
 * what we count must round to what was printed. Also: the same steps through a steps file and the
 * replay give the same means.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/paper.h"
#include "replay/paper_published.h"
#include "support.h"

enum { CTA_SMS = 28 }; /* the published card */

/* The printed text's value and half a unit of its last digit. */
static void assert_prints_as(const char *name, double value, const char *printed)
{
    const char *point = strchr(printed, '.');
    const double half = 0.5 * pow(10, point != NULL ? -(double)strlen(point + 1) : 0);
    if (fabs(value - g_ascii_strtod(printed, NULL)) > half * (1 + 1e-9))
        g_error("%s: %.9g does not print as %s", name, value, printed);
}

static void check_route(const PaperRouteCounts *r, char **want)
{
    assert_prints_as("launches", r->launches, want[0]);
    assert_prints_as("cta per sm", r->tasks / CTA_SMS, want[1]);
    assert_prints_as("merge MiB", r->merge_mib, want[2]);
    assert_prints_as("merge launches", r->merge_launches, want[3]);
}

static void check_line(const char *line)
{
    g_auto(GStrv) cell = g_strsplit(line, ",", -1);
    g_assert_cmpuint(g_strv_length(cell), ==, 17);
    g_auto(GStrv) name = g_strsplit(cell[0], "_", -1); /* bimodal_b8 */
    gboolean published;
    g_autoptr(GError) error = NULL;
    PaperExperiment e;
    PaperCounters c;
    g_assert_true(paper_experiment_init(&e, name[0], g_ascii_strtoll(cell[3], NULL, 10),
                                        g_ascii_strtoll(cell[1], NULL, 10), &published, &error));
    g_assert_true(published);
    assert_prints_as("requests", (double)e.requests, cell[2]);
    paper_counters(&e, &c, &error);
    g_assert_no_error(error);
    assert_prints_as("steps", (double)c.steps, cell[4]);
    assert_prints_as("pages", (double)c.physical_pages, cell[5]);
    assert_prints_as("active", c.mean_active, cell[6]);
    assert_prints_as("exact buckets", c.mean_exact_buckets, cell[7]);
    /* Three decimals, trailing zeros left out. */
    g_assert_cmpfloat(fabs(c.kv_mib_per_step - g_ascii_strtod(cell[8], NULL)), <, 5.001e-4);
    check_route(&c.route[ATTN_BUCKETS], cell + 9);
    check_route(&c.route[ATTN_WORKQUEUE], cell + 13);
    const PaperRouteCounts *fused = &c.route[ATTN_WORKQUEUE_FUSED];
    g_assert_cmpfloat(fused->launches, ==, 1);
    g_assert_cmpfloat(fused->merge_mib, ==, c.route[ATTN_WORKQUEUE].merge_mib);
    paper_experiment_clear(&e);
}

static void test_published(void)
{
    g_autofree char *path = g_test_build_filename(G_TEST_DIST, "published-counters.csv", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    guint n = 0;
    for (guint i = 2; line[i] != NULL && line[i][0] != '\0'; i++, n++)
        check_line(line[i]);
    g_assert_cmpuint(n, ==, 12);
}

/* Exact, not rounded: the calibration seed's facts. */
static void test_calibration(void)
{
    static const struct {
        const char *trace;
        gint64 max_active;
        guint64 pages;
        double mib, active;
    } want[] = {
        {"bucketed", 1, 30790, 62.120, 1},  {"bimodal", 8, 25828, 638.067, 7.7708},
        {"uniform", 8, 26265, 567.408, -1}, {"zipf", 8, 31136, 695.357, -1},
        {"bimodal", 4, 14954, 274.880, -1}, {"homogeneous", 4, 32838, 512.366, -1},
    };
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        gboolean published;
        g_autoptr(GError) error = NULL;
        PaperExperiment e;
        PaperCounters c;
        paper_experiment_init(&e, want[i].trace, want[i].max_active, 20260622, &published, &error);
        paper_counters(&e, &c, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(c.physical_pages, ==, want[i].pages);
        g_assert_cmpfloat(fabs(c.kv_mib_per_step - want[i].mib), <, 6e-4);
        if (want[i].active > 0)
            g_assert_cmpfloat(fabs(c.mean_active - want[i].active), <, 6e-5);
        if (strcmp(want[i].trace, "homogeneous") == 0)
            g_assert_cmpfloat(c.mean_exact_buckets, ==, 1.25);
        paper_experiment_clear(&e);
    }
}

static void test_steps_file(void)
{
    gboolean published;
    g_autoptr(GError) error = NULL;
    PaperExperiment e;
    PaperCounters c;
    g_assert_true(paper_experiment_init(&e, "bimodal", 8, 20260623, &published, &error));
    g_assert_true(paper_counters(&e, &c, &error));
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-paper-test.kvsteps", NULL);
    g_assert_true(paper_write_steps(&e, path, &error));
    ReplayConfig config;
    g_assert_true(paper_replay_config(&e, "paper-v1", &config, &error));
    config.backend = test_choice("backend", backends, "counters");
    g_autoptr(ReplayResult) result = test_replay(&config, path, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(JsonNode) owner = NULL;
    JsonObject *o = test_json(result, &owner);
    g_assert_cmpfloat(test_number(o, "routes.buckets.launches_per_step"), ==, 16);
    g_assert_cmpfloat(test_number(o, "routes.workqueue.launches_per_step"), ==, 2);
    g_assert_cmpfloat(test_number(o, "routes.workqueue.tasks_per_step"), ==, 1280);
    g_assert_cmpfloat(test_number(o, "routes.workqueue-fused.launches_per_step"), ==, 1);
    g_assert_cmpfloat(test_number(o, "routes.buckets.merge_mib_per_step"), ==,
                      c.route[ATTN_BUCKETS].merge_mib);
    g_assert_cmpfloat(test_number(o, "routes.single.kv_mib_per_step"), ==, c.kv_mib_per_step);
    g_assert_cmpfloat(test_number(o, "policy.shares.workqueue"), ==, 1);
    replay_config_clear(&config);
    paper_experiment_clear(&e);
    g_unlink(path);
}

static void test_splits(void)
{
    gboolean published;
    g_autoptr(GError) error = NULL;
    PaperExperiment e;
    g_assert_true(paper_experiment_init(&e, "uniform", 3, 1, &published, &error));
    g_assert_false(published);
    g_assert_true(paper_parse_splits(&e, "16", &error));
    g_assert_cmpint(e.queue_s, ==, 16);
    g_assert_cmpint(e.buckets_s, ==, 32);
    g_assert_true(paper_parse_splits(&e, "buckets=28,workqueue=5", &error));
    g_assert_cmpint(e.queue_s, ==, 5);
    g_assert_cmpint(e.buckets_s, ==, 28);
    static const char *const bad[] = {"", "0", "x", "buckets=", "1,2", "other=3", "-4"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(paper_parse_splits(&e, bad[i], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
        g_clear_error(&error);
    }
    paper_experiment_clear(&e);
    g_assert_false(paper_experiment_init(&e, "other", 8, 1, &published, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
}

/* The table that is shown beside ours is the one that the counters are tested against. */
static void test_published_table(void)
{
    guint n = 0;
    for (const PaperPublished *p = paper_published; p->trace != NULL; p++, n++) {
        gboolean published;
        g_autoptr(GError) error = NULL;
        PaperExperiment e;
        PaperCounters c;
        paper_experiment_init(&e, p->trace, p->max_active, p->seed, &published, &error);
        paper_counters(&e, &c, &error);
        g_assert_no_error(error);
        assert_prints_as("pages", (double)c.physical_pages, p->figure[0]);
        assert_prints_as("buckets", c.mean_exact_buckets, p->figure[2]);
        g_assert_true(paper_prints_as(c.kv_mib_per_step, p->figure[3], 3));
        g_assert_false(paper_prints_as(c.kv_mib_per_step + 0.002, p->figure[3], 3));
        const PaperPublishedRoute *queue = paper_published_route(p, "workqueue");
        assert_prints_as("merge MiB", c.route[ATTN_WORKQUEUE].merge_mib,
                         queue->count[PAPER_MERGE_MIB]);
        g_assert_cmpfloat(queue->event_ms, <, queue->wall_ms);
        paper_experiment_clear(&e);
    }
    g_assert_cmpuint(n, ==, 12);
}

/* A row that is as long as it is called, step by step. */
static void test_one_row(void)
{
    g_autoptr(GError) error = NULL;
    PaperExperiment e;
    PaperCounters c;
    paper_experiment_one_row(&e, 16384, 1, 64, 7);
    paper_counters(&e, &c, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(c.steps, ==, 64);
    g_assert_cmpfloat(c.kv_mib_per_step, ==, 64 + 31.5 / 256); /* 4 KiB a token, 31.5 grown */
    paper_experiment_clear(&e);
    paper_experiment_one_row(&e, 8192, 12, 1, 7);
    e.holes = 0.5;
    paper_counters(&e, &c, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(c.steps, ==, 12);
    g_assert_cmpuint(c.physical_pages, ==, 2 * 12 * 513);
    g_assert_cmpfloat(c.mean_active, ==, 1);
    paper_experiment_clear(&e);
}

/* Stand-ins for what a build with the peers has. */
static const PeerOps *no_peer(const char *name)
{
    return NULL;
}
static const PeerOps *one_built(const char *name)
{
    static const PeerOps built = {.name = "flashinfer", .built = 1};
    static const PeerOps twin = {.name = "vllm-pa2", .why_not = "tools/get-peers"};
    return strcmp(name, built.name) == 0 ? &built : strcmp(name, twin.name) == 0 ? &twin : NULL;
}

static void test_peers(void)
{
    g_autoptr(GPtrArray) none = paper_peer_routes(no_peer);
    g_assert_cmpuint(none->len, ==, 0);
    g_autoptr(GPtrArray) names = paper_peer_routes(one_built); /* the twin is not taken */
    g_assert_cmpuint(names->len, ==, 1);
    g_assert_cmpstr(names->pdata[0], ==, "flashinfer");

    /* And with it among the routes the published gates name it, and nothing stands in. */
    static const char *const lanes[] = {"buckets", "workqueue", "workqueue-fused", "flashinfer"};
    Route route[4];
    Candidate candidate[4];
    for (guint i = 0; i < 4; i++) {
        route[i] = (Route){.ops = route_find(lanes[i]), .label = (char *)lanes[i]};
        candidate[i] = (Candidate){.route = &route[i], .measured_us = (double)NAN};
    }
    g_autoptr(DeviceProfile) profile = device_profile_guess();
    PluginChoice choice = test_choice("policy", policies, "paper-v2");
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = policy_new(&choice, profile, &error);
    g_assert_true(policy->ops->begin(policy, candidate, 4, &error));
    g_assert_null(policy->ops->note(policy));
    StepFeatures step = {.shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND}, .rows = 1};
    step.max_length = 8192;
    g_assert_cmpuint(policy->ops->choose(policy, &step, candidate, 4), ==, 3);
    step.max_length = 16384;
    g_assert_cmpuint(policy->ops->choose(policy, &step, candidate, 4), ==, 0);
    plugin_choice_clear(&choice);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/paper/published", test_published);
    g_test_add_func("/paper/calibration", test_calibration);
    g_test_add_func("/paper/steps-file", test_steps_file);
    g_test_add_func("/paper/splits", test_splits);
    g_test_add_func("/paper/published-table", test_published_table);
    g_test_add_func("/paper/one-row", test_one_row);
    g_test_add_func("/paper/peers", test_peers);
    return g_test_run();
}
