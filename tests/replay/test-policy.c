/* Policies, the two models, device profiles and regret, on made-up candidates. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/model.h"
#include "replay/regret.h"
#include "support.h"

enum { SINGLE, BUCKETS, WORKQUEUE, FUSED, N };

typedef struct Fixture {
    Route route[N];
    Candidate candidate[N];
    StepFeatures step;
    DeviceProfile *profile;
} Fixture;

static void fixture_init(Fixture *f)
{
    static const char *const names[] = {"single", "buckets", "workqueue", "workqueue-fused"};
    memset(f, 0, sizeof *f);
    for (guint i = 0; i < N; i++) {
        f->route[i] = (Route){.ops = route_find(names[i]), .label = (char *)names[i]};
        f->candidate[i] = (Candidate){.route = &f->route[i], .measured_us = (double)NAN};
    }
    f->step.shape = (AttnShape){32, 8, 128, 16, ATTN_F16, ATTN_HND};
    f->step.workers = 28;
    f->profile = device_profile_guess();
}

static Policy *policy_of(Fixture *f, const char *text)
{
    PluginChoice choice = test_choice("policy", policies, text);
    g_autoptr(GError) error = NULL;
    Policy *policy = policy_new(&choice, f->profile, &error);
    g_assert_no_error(error);
    if (policy->ops->begin != NULL)
        g_assert_true(policy->ops->begin(policy, f->candidate, N, &error));
    plugin_choice_clear(&choice);
    return policy;
}

static guint choose(Policy *policy, Fixture *f)
{
    return policy->ops->choose(policy, &f->step, f->candidate, N);
}

static void test_paper(void)
{
    Fixture f;
    fixture_init(&f);
    static const struct {
        guint32 rows, max_length;
        gint32 q_heads;
        guint v1, v2;
    } cases[] = {
        {1, 8192, 32, BUCKETS, FUSED},        {1, 16384, 32, BUCKETS, BUCKETS},
        {8, 50000, 32, WORKQUEUE, WORKQUEUE}, {8, 16383, 32, WORKQUEUE, FUSED},
        {4, 50000, 32, FUSED, FUSED},         {64, 16384, 32, WORKQUEUE, WORKQUEUE},
        {8, 50000, 8, FUSED, FUSED},          {1, 50000, 64, FUSED, FUSED},
    };
    g_autoptr(Policy) v1 = policy_of(&f, "paper-v1"), v2 = policy_of(&f, "paper-v2");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        f.step.rows = cases[i].rows;
        f.step.max_length = cases[i].max_length;
        f.step.shape.q_heads = cases[i].q_heads;
        g_assert_cmpuint(choose(v1, &f), ==, cases[i].v1);
        g_assert_cmpuint(choose(v2, &f), ==, cases[i].v2);
    }
    g_assert_nonnull(strstr(v1->ops->note(v1), "workqueue-fused"));
    device_profile_free(f.profile);
}

/* Times follow the profile's rates; close costs do not make the choice flap. */
static void test_cost(void)
{
    Fixture f;
    fixture_init(&f);
    f.step.rows = 1;
    const gint64 kv = 302000 * 100; /* 100 us at 302 GB/s */
    for (guint i = 0; i < N; i++) {
        f.candidate[i].counts = (AttnCounts){
            .launches = i == SINGLE || i == FUSED ? 1 : 2,
            .tasks = 28,
            .kv_bytes = kv,
            .kv_bytes_touched = kv,
            .longest_tokens = kv / 512 / 28,
        };
    }
    f.candidate[SINGLE].counts.longest_tokens *= 4; /* one long row: 7 tasks' worth at once */
    g_assert_cmpfloat(fabs(model_cost(f.profile, &f.step.shape, &f.candidate[FUSED].counts) - 104),
                      <, 0.3);
    g_assert_cmpfloat(fabs(model_cost(f.profile, &f.step.shape, &f.candidate[SINGLE].counts) - 404),
                      <, 0.3);
    g_assert_cmpfloat(
        fabs(model_cost(f.profile, &f.step.shape, &f.candidate[BUCKETS].counts) - 108), <, 0.3);
    g_autoptr(Policy) steady = policy_of(&f, "cost:hysteresis=0.05");
    g_autoptr(Policy) nervous = policy_of(&f, "cost:hysteresis=0");
    g_assert_cmpuint(choose(steady, &f), ==, FUSED);
    g_assert_cmpuint(choose(nervous, &f), ==, FUSED);
    f.candidate[FUSED].counts.launches = 3; /* 112 against 108: within 5 % */
    g_assert_cmpuint(choose(steady, &f), ==, FUSED);
    g_assert_cmpuint(choose(nervous, &f), ==, BUCKETS);
    f.candidate[FUSED].counts.launches = 9;
    g_assert_cmpuint(choose(steady, &f), ==, BUCKETS);
    g_assert_nonnull(strstr(steady->ops->note(steady), "guess"));
    device_profile_free(f.profile);
}

static void test_oracle(void)
{
    Fixture f;
    fixture_init(&f);
    f.step.rows = 1;
    g_autoptr(Policy) oracle = policy_of(&f, "oracle");
    f.candidate[SINGLE].measured_us = 5;
    f.candidate[BUCKETS].measured_us = 3;
    f.candidate[WORKQUEUE].measured_us = 4;
    g_assert_cmpuint(choose(oracle, &f), ==, BUCKETS);
    device_profile_free(f.profile);
}

static const char profile_text[] =
    "{\"kvreplay_profile\": 1, \"device\": \"Card\", \"workers\": 132,\n"
    " \"cost\": {\"bandwidth_gbps\": 4545, \"launch_us\": 1.4, \"cmin\": 132,\n"
    "          \"routes\": {\"workqueue\": 0.5, \"single\": -1}},\n"
    " \"learned\": {\"worker_gbps\": 100, \"routes\": {\"workqueue-fused\":\n"
    "   {\"fixed_us\": 5, \"launch_us\": 0, \"stream\": 1.01, \"merge\": 2, \"wave_us\": "
    "0.25}}}}\n";

static DeviceProfile *profile_from(const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-profile-test.json", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    DeviceProfile *profile = device_profile_read(path, error);
    g_unlink(path);
    return profile;
}

static void test_profile(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DeviceProfile) p = profile_from(profile_text, &error);
    g_assert_no_error(error);
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-profile-copy.json", NULL);
    g_assert_true(device_profile_write(p, path, &error));
    g_autoptr(DeviceProfile) q = device_profile_read(path, &error);
    g_unlink(path);
    g_assert_no_error(error);
    g_assert_cmpstr(q->device, ==, "Card");
    g_assert_cmpint(q->workers, ==, 132);
    g_assert_false(q->guess);
    g_assert_cmpfloat(q->bandwidth, ==, 4545e3);
    g_assert_cmpfloat(device_profile_term(q, "single"), ==, -1);
    g_assert_cmpfloat(device_profile_term(q, "masked"), ==, 0);
    const LearnedRoute *r = device_profile_learned(q, "workqueue-fused");
    g_assert_nonnull(r);
    g_assert_cmpfloat(r->stream, ==, 1.01);
    g_assert_null(device_profile_learned(q, "single"));

    /* 4545 MB at beta are 1000 us; a longest task of 2^20 entries of 512 bytes at 100 GB/s 5369. */
    Fixture f;
    fixture_init(&f);
    double terms[MODEL_TERMS];
    AttnCounts c = {.launches = 1,
                    .grid_tasks = 264,
                    .kv_bytes_touched = 4545000000,
                    .longest_tokens = 1000,
                    .merge_state_bytes = 4545000};
    model_terms(terms, q, &f.step.shape, 132, &c);
    g_assert_cmpfloat(model_learned(r, q, &f.step.shape, 132, &c), ==, model_linear(r, terms));
    g_assert_cmpfloat(fabs(model_linear(r, terms) - (5 + 1010 + 2 * 2 + 0.25 * 2)), <, 1e-6);
    c.longest_tokens = 1 << 20;
    model_terms(terms, q, &f.step.shape, 132, &c);
    g_assert_cmpfloat(fabs(terms[MODEL_STREAM] - (1 << 20) * 512.0 / 100e3), <, 1e-6);
    device_profile_free(f.profile);

    /* Known routes only are taken. */
    fixture_init(&f);
    device_profile_free(f.profile);
    f.profile = q;
    f.step.rows = 1;
    g_autoptr(Policy) learned = policy_of(&f, "learned");
    g_assert_cmpuint(choose(learned, &f), ==, FUSED);
    g_assert_nonnull(strstr(learned->ops->note(learned), "3 of 4"));
}

static void test_bad_profiles(void)
{
    static const char *const bad[][2] = {
        {"", "profile"},
        {"[]", ":1: no object"},
        {"{\n\"a\": }", ":2: not JSON"},
        {"{}", "kvreplay_profile"},
        {"{\"kvreplay_profile\": 2, \"workers\": 1}", "version 1"},
        {"{\"kvreplay_profile\": 1}", "workers"},
        {"{\"kvreplay_profile\": 1, \"workers\": \"x\"}", "workers"},
        {"{\"kvreplay_profile\": 1, \"workers\": 4, \"cost\": 3}", "cost"},
        {"{\"kvreplay_profile\": 1, \"workers\": 4, \"cost\": {\"bandwidth_gbps\": 0}}",
         "bandwidth"},
        {"{\"kvreplay_profile\": 1, \"workers\": 4, \"learned\": {\"worker_gbps\": 1}}", "routes"},
        {"{\"kvreplay_profile\": 1, \"workers\": 4, \"learned\": {\"worker_gbps\": 1, \"routes\": "
         "{\"single\": {\"fixed_us\": -1}}}}",
         "fixed_us"},
        {"{\"kvreplay_profile\": 1, \"work", "JSON"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(profile_from(bad[i][0], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        if (strstr(error->message, bad[i][1]) == NULL)
            g_error("%s: %s", bad[i][0], error->message);
    }
}

static void test_regret(void)
{
    g_autoptr(RegretLog) log = regret_log_new(2, 1);
    const double us[][2] = {{10, 20}, {30, 20}, {10, 10}, {10, 40}};
    for (guint i = 0; i < 4; i++)
        regret_log_add(log, us[i], 0);
    const Regret r = regret_log_summary(log);
    g_assert_cmpuint(r.steps, ==, 4);
    g_assert_cmpfloat(fabs(r.mean.value - 0.125), <, 1e-12); /* 0, 0.5, 0, 0 */
    g_assert_cmpfloat(r.worst, ==, 0.5);
    g_assert_cmpfloat(fabs(r.to_oracle.value - 60.0 / 50), <, 1e-12);
    g_assert_cmpfloat(fabs(regret_log_ratio(log, 1).value - 90.0 / 60), <, 1e-12);
    g_assert_cmpfloat(regret_log_ratio(log, 0).low, ==, 1);
    g_assert_cmpfloat(r.mean.low, <=, r.mean.value);
    g_assert_cmpfloat(r.mean.high, >=, r.mean.value);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/policy/paper", test_paper);
    g_test_add_func("/policy/cost", test_cost);
    g_test_add_func("/policy/oracle", test_oracle);
    g_test_add_func("/policy/profile", test_profile);
    g_test_add_func("/policy/bad-profiles", test_bad_profiles);
    g_test_add_func("/policy/regret", test_regret);
    return g_test_run();
}
