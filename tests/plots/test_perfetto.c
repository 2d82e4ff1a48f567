/* The Perfetto trace: valid JSON, every step and stretch where it belongs. */
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "base/error.h"
#include "plots/perfetto.h"
#include "steps_fixture.h"

typedef struct Fixture {
    char *folder, *steps, *requests, *replay, *out;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->folder = g_dir_make_tmp("kvtrace-XXXXXX", NULL);
    f->steps = g_build_filename(f->folder, "steps.kvsteps", NULL);
    f->requests = g_build_filename(f->folder, "requests.csv", NULL);
    f->replay = g_build_filename(f->folder, "replay.csv", NULL);
    f->out = g_build_filename(f->folder, "trace.json", NULL);
    steps_fixture_write(f->steps);
    g_file_set_contents(f->requests,
                        "request_id,arrival_ns,first_scheduled_ns,finish_ns,prompt_tokens,"
                        "output_tokens,status,reason\n"
                        "0,0,0,80000000,20,4,finished,\n"
                        "1,10000001,30000000,135000000,40,9,finished,\n"
                        "2,60000000,80000000,135000000,5,9,finished,\n"
                        "3,61000000,,,90000,1,refused,\"po\"\"ol\"\n",
                        -1, NULL);
    g_file_set_contents(f->replay,
                        "step,start_ns,route,chosen,launches,tasks,plan_us,kernel_us,wall_us\n"
                        "3,70000000,workqueue,1,2,4,1.5,12.25,20\n"
                        "3,70000000,\"a\\b\"\"\",0,2,4,1.5,13.5,20\n"
                        "4,80000000,workqueue,1,2,4,,,\n",
                        -1, NULL);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    char *files[] = {f->steps, f->requests, f->replay, f->out};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_unlink(files[i]);
        g_free(files[i]);
    }
    g_rmdir(f->folder);
    g_free(f->folder);
}

static JsonArray *events_of(JsonParser *parser, const char *path)
{
    g_autoptr(GError) error = NULL;
    json_parser_load_from_file(parser, path, &error);
    g_assert_no_error(error);
    return json_object_get_array_member(json_node_get_object(json_parser_get_root(parser)),
                                        "traceEvents");
}

/* Number of slices of a track whose name begins so, and the sum of their lengths in us. */
static guint slices(JsonArray *events, int pid, int tid, const char *name, double *ret_us)
{
    guint n = 0;
    *ret_us = 0;
    for (guint i = 0; i < json_array_get_length(events); i++) {
        JsonObject *e = json_array_get_object_element(events, i);
        if (strcmp(json_object_get_string_member(e, "ph"), "X") != 0 ||
            json_object_get_int_member(e, "pid") != pid ||
            json_object_get_int_member(e, "tid") != tid ||
            !g_str_has_prefix(json_object_get_string_member(e, "name"), name))
            continue;
        n++;
        *ret_us += json_object_get_double_member(e, "dur");
    }
    return n;
}

static void test_tracks(Fixture *f, gconstpointer data)
{
    static const struct {
        int pid, tid;
        const char *name;
        guint n;
        double us;
    } want[] = {
        {1, 1, "decode", 7, 135000},    {1, 1, "decode 1 + prefill 24", 1, 20000},
        {2, 1, "decode", 1, 50000},     {2, 2, "decode", 1, 60000},
        {2, 3, "decode", 1, 35000},     {2, 2, "prefill", 2, 40000},
        {2, 2, "queued", 1, 19999.999}, {3, 1, "workqueue", 1, 12.25},
        {3, 2, "a\\b\"", 1, 13.5},
    };
    PerfettoRequest request = {
        .steps = f->steps, .requests = f->requests, .replay = f->replay, .out = f->out};
    g_autoptr(GError) error = NULL;
    perfetto_write(&request, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonArray *events = events_of(parser, f->out);
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        double us;
        guint n = slices(events, want[i].pid, want[i].tid, want[i].name, &us);
        if (n != want[i].n || ABS(us - want[i].us) > 1e-6)
            g_error("track %d/%d %s: %u slices, %g us; expected %u, %g", want[i].pid, want[i].tid,
                    want[i].name, n, us, want[i].n, want[i].us);
    }
}

static void test_range(Fixture *f, gconstpointer data)
{
    PerfettoRequest request = {.steps = f->steps, .from = 3, .to = 5, .out = f->out};
    g_autoptr(GError) error = NULL;
    perfetto_write(&request, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonArray *events = events_of(parser, f->out);
    double us;
    g_assert_cmpuint(slices(events, 1, 1, "decode", &us), ==, 2);
    g_assert_cmpfloat_with_epsilon(us, 30000, 1e-6);
    g_assert_cmpuint(slices(events, 2, 1, "decode", &us), ==, 1); /* request 0: step 3 alone */
    g_assert_cmpfloat_with_epsilon(us, 10000, 1e-6);
    g_assert_cmpuint(slices(events, 2, 2, "decode", &us), ==, 1);
    g_assert_cmpfloat_with_epsilon(us, 30000, 1e-6);
}

static void test_missing(Fixture *f, gconstpointer data)
{
    PerfettoRequest request = {.steps = "no-such.kvsteps", .out = f->out};
    g_autoptr(GError) error = NULL;
    g_assert_false(perfetto_write(&request, NULL, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_assert_false(g_file_test(f->out, G_FILE_TEST_EXISTS));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/perfetto/tracks", Fixture, NULL, set_up, test_tracks, tear_down);
    g_test_add("/perfetto/range", Fixture, NULL, set_up, test_range, tear_down);
    g_test_add("/perfetto/missing", Fixture, NULL, set_up, test_missing, tear_down);
    return g_test_run();
}
