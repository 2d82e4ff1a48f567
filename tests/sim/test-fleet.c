/* A fleet of one is a single engine, byte for byte; of several, every request is served once,
 * wherever the router sends it, and the whole is the sum of the parts. Open and closed loop. */
#include "sim/fleet.h"
#include "tests/sim/support.h"

#include <string.h>

/* Users who ask again after each answer: a source of the closed kind. */
typedef struct Users {
    RequestSource base;
    guint users, first, given, limit;
} Users;

static int users_next(RequestSource *self, Request *ret, GError **error)
{
    Users *u = (Users *)self;
    if (u->first == u->users)
        return 0;
    *ret = (Request){.id = u->given++,
                     .arrival = 5 * KV_MS * u->first,
                     .sent = 5 * KV_MS * u->first,
                     .prompt = 20,
                     .output = 9,
                     .deadline = KV_NS_NONE,
                     .session = u->first};
    u->first++;
    return 1;
}

static int users_turn(RequestSource *self, const Request *done, kv_ns now, Request *ret,
                      GError **error)
{
    Users *u = (Users *)self;
    if (u->given == u->limit)
        return 0;
    *ret = *done;
    ret->id = u->given++;
    ret->arrival = ret->sent = now + 3 * KV_MS;
    ret->turn++;
    ret->prompt = 10 + (gint32)(ret->id % 7) * 9;
    return 1;
}

static const RequestSourceOps users_ops = {"users", users_next, users_turn, NULL};

typedef struct Seen {
    RequestSink sink;
    GString *text; /* a line a request, by the time of its end */
    guint64 ended;
    guint replica_of_session[16];
    gboolean sticky;
} Seen;

static gboolean see(RequestSink *sink, const RequestRecord *r, GError **error)
{
    Seen *s = (Seen *)sink;
    s->ended++;
    g_string_append_printf(s->text,
                           "%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %u\n",
                           r->request.id, r->first_token, r->finish, r->preemptions);
    if (r->request.session >= 0 && r->request.session < 16) {
        guint *home = &s->replica_of_session[r->request.session];
        s->sticky = s->sticky && (r->request.turn == 0 || *home == r->replica);
        *home = r->replica;
    }
    return TRUE;
}

static StepClock *linear_clock(void)
{
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks,
                        "linear:base=4ms,prefill_token=25us,decode_row=60us,kv_token=200ns", NULL);
    StepClock *clock = step_clock_new(&choice, NULL);
    plugin_choice_clear(&choice);
    return clock;
}

static Seen run(const SimConfig *config, RequestSource *source, guint n, const char *router,
                SimResult *total, SimResult *each)
{
    g_autoptr(GError) error = NULL;
    Seen seen = {.sink = {see}, .text = g_string_new(NULL), .sticky = TRUE};
    StepClock *clocks[4];
    for (guint i = 0; i < 4; i++)
        clocks[i] = linear_clock();
    if (router == NULL) {
        sim_run(config, source, clocks[0], NULL, &seen.sink, NULL, total, &error);
    } else {
        FleetConfig fleet = {.replicas = n};
        plugin_choice_parse(&fleet.router, "router", routers, router, &error);
        g_assert_no_error(error);
        sim_fleet_run(config, &fleet, source, clocks, NULL, &seen.sink, NULL, total, each, &error);
        plugin_choice_clear(&fleet.router);
    }
    g_assert_no_error(error);
    for (guint i = 0; i < 4; i++)
        step_clock_free(clocks[i]);
    return seen;
}

static const char *const router_texts[] = {
    "round-robin",   "random", "least-outstanding", "least-kv", "prefix-affinity:blocks=1,slack=2",
    "session-sticky"};

static void test_one(void)
{
    for (guint i = 0; i < 20; i++) {
        GRand *rand = g_rand_new_with_seed((guint32)g_test_rand_int());
        Log log;
        log_init(&log);
        log_random(&log, rand, 60, 4, 60, i & 1);
        SimConfig config;
        config_for(&config, "vllm-v1:budget=64,seqs=8", 32);
        config.page_size = 4;
        SimResult a = {0}, b = {0};
        Seen alone = run(&config, log_source(&log), 1, NULL, &a, NULL);
        Seen fleet = run(&config, log_source(&log), 1, "round-robin", &b, NULL);
        g_assert_cmpstr(alone.text->str, ==, fleet.text->str);
        g_assert_cmpuint(a.steps, ==, b.steps);
        g_assert_cmpint(a.duration, ==, b.duration);
        g_assert_cmpfloat(a.itl.p99, ==, b.itl.p99);
        g_assert_cmpfloat(a.server_ttft.p90, ==, b.server_ttft.p90);
        g_string_free(alone.text, TRUE);
        g_string_free(fleet.text, TRUE);
        sim_config_clear(&config);
        log_clear(&log);
        g_rand_free(rand);
    }
}

static void test_several(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(router_texts); i++) {
        GRand *rand = g_rand_new_with_seed(99);
        Log log;
        log_init(&log);
        log_random(&log, rand, 200, 4, 60, TRUE);
        SimConfig config;
        config_for(&config, "vllm-v1:budget=64,seqs=8", 40);
        config.page_size = 4;
        SimResult total, each[3];
        Seen seen = run(&config, log_source(&log), 3, router_texts[i], &total, each);
        g_assert_cmpuint(seen.ended, ==, 200);
        g_assert_cmpuint(total.requests, ==, 200);
        g_assert_cmpuint(total.finished, ==,
                         each[0].finished + each[1].finished + each[2].finished);
        g_assert_cmpuint(total.itl.n, ==, each[0].itl.n + each[1].itl.n + each[2].itl.n);
        g_assert_cmpuint(total.pages_end, ==, 0);
        if (i < 4)
            for (guint k = 0; k < 3; k++)
                g_assert_cmpuint(each[k].requests, >, 30);
        g_string_free(seen.text, TRUE);
        sim_config_clear(&config);
        log_clear(&log);
        g_rand_free(rand);
    }
}

static void test_closed(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(router_texts); i++) {
        SimConfig config;
        config_for(&config, "vllm-v1:budget=64,seqs=4", 100);
        SimResult total, alone;
        Users users = {.base = {&users_ops}, .users = 12, .limit = 300};
        Seen seen = run(&config, &users.base, 3, router_texts[i], &total, NULL);
        g_assert_cmpuint(seen.ended, ==, 300);
        if (g_str_has_prefix(router_texts[i], "session"))
            g_assert_true(seen.sticky);
        g_string_free(seen.text, TRUE);
        Users one = {.base = {&users_ops}, .users = 12, .limit = 300},
              same = {.base = {&users_ops}, .users = 12, .limit = 300};
        Seen a = run(&config, &one.base, 1, NULL, &alone, NULL);
        Seen b = run(&config, &same.base, 1, router_texts[i], &total, NULL);
        g_assert_cmpstr(a.text->str, ==, b.text->str);
        g_string_free(a.text, TRUE);
        g_string_free(b.text, TRUE);
        sim_config_clear(&config);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fleet/one", test_one);
    g_test_add_func("/fleet/several", test_several);
    g_test_add_func("/fleet/closed", test_closed);
    return g_test_run();
}
