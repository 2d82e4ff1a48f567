/* Runs at the edges: nothing in them, one step, one request, everything equal; and damaged ones.
 *
 * Whatever a run holds, a picture is drawn, or not drawn for a stated reason, or the input is
 * refused with a line number: gnuplot never fails, and nothing crashes.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "base/error.h"
#include "plots/plots.h"

#define REPLAY                                                                                     \
    "step,start_ns,duration_ns,rows,prefill_tokens,max_len,sum_len,waiting,pages_used,route,"      \
    "chosen,launches,merge_launches,copies,memsets,tasks,nonempty_fraction,kv_bytes,"              \
    "kv_bytes_touched,merge_state_bytes,merge_traffic_bytes,plan_us,upload_bytes,kernel_us,"       \
    "wall_us,repeats,max_abs_err,mean_abs_err\n"
#define REQUESTS                                                                                   \
    "request_id,session_id,turn,class,replica,arrival_ns,sent_ns,first_scheduled_ns,"              \
    "first_token_ns,finish_ns,prompt_tokens,output_tokens,cached_tokens,recomputed_tokens,"        \
    "preemptions,status,reason\n"

static const struct {
    const char *what, *replay, *requests;
} runs[] = {
    {"headers alone", REPLAY, REQUESTS},
    {"a step of prefill alone", REPLAY "0,0,5,0,9,0,0,0,1,single,0,0,0,0,0,0,,0,0,0,0,,,,,,,\n",
     NULL},
    {"one step, not executed",
     REPLAY "0,0,16000000,1,0,5,5,0,1,single,1,1,0,0,0,8,1,81920,81920,0,0,,,,,,,\n", NULL},
    {"one step of no length",
     REPLAY "0,0,0,1,0,1,1,0,1,single,1,1,0,0,0,8,1,4096,4096,0,0,0,0,0,0,1,0,0\n", NULL},
    {"one step, two routes executed",
     REPLAY "7,10,1,1,0,1,1,0,1,single,0,1,0,1,0,8,1,4096,65536,0,0,1.5,64,3.25,9,1,,\n"
            "7,10,1,1,0,1,1,0,1,workqueue,1,2,1,1,0,8,1,4096,65536,5280,10560,1.5,64,3.5,9,1,,\n",
     NULL},
    {"no route chosen, later than 290 years",
     REPLAY "0,9000000000000000000,9,2,0,4,8,0,1,single,0,1,0,0,0,8,1,4096,4096,0,0,,,,,,,\n",
     NULL},
    {"a request refused", NULL, REQUESTS "0,,0,0,0,0,0,,,,90000,5,0,0,0,refused,pool\n"},
    {"one request of one token", NULL, REQUESTS "0,,0,0,0,0,0,0,5,5,1,1,0,0,0,finished,\n"},
    {"two equal requests", NULL,
     REQUESTS "0,4,0,0,0,5,5,5,100000005,200000005,10,2,0,0,0,finished,\n"
              "1,4,1,0,0,5,5,5,100000005,200000005,10,2,0,0,0,finished,\n"},
};

static void put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    if (text == NULL)
        g_unlink(path);
    else
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void empty_folder(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
}

static gboolean draw(const char *run, gboolean scripts_only, GError **error)
{
    const char *folders[] = {run, NULL};
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
    PlotRequest request = {.runs = folders, .out = run, .scripts_only = scripts_only};
    return plots_draw(&request, made, NULL, error);
}

static void test_edges(void)
{
    g_autofree char *gnuplot = plots_gnuplot_version(NULL);
    g_autofree char *folder = g_dir_make_tmp("kvedges-XXXXXX", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autoptr(GError) error = NULL;
        put(folder, "replay.csv", runs[i].replay);
        put(folder, "requests.csv", runs[i].requests);
        if (!draw(folder, gnuplot == NULL, &error))
            g_error("%s: %s", runs[i].what, error->message);
        g_autofree char *page = g_build_filename(folder, "report.html", NULL);
        if (!report_write(folder, page, &error))
            g_error("%s: %s", runs[i].what, error->message);
        empty_folder(folder);
    }
    g_rmdir(folder);
}

/* One to three characters of a good file changed, inserted or cut: it is read or refused by line.
 */
static char *damaged(const char *text)
{
    static const char characters[] = "0123456789,,,\n\n\"-.eEx \t;#\xff";
    GString *copy = g_string_new(text);
    for (int n = g_test_rand_int_range(1, 4); n > 0; n--) {
        gsize at = (gsize)g_test_rand_int_range(0, (gint32)copy->len);
        char c = characters[g_test_rand_int_range(0, sizeof characters - 1)];
        switch (g_test_rand_int_range(0, 4)) {
        case 0:
            copy->str[at] = c;
            break;
        case 1:
            g_string_insert_c(copy, (gssize)at, c);
            break;
        case 2:
            g_string_erase(copy, (gssize)at, MIN(5, (gssize)(copy->len - at)));
            break;
        default:
            g_string_truncate(copy, MAX(at, 1));
        }
    }
    return g_string_free(copy, FALSE);
}

static void test_damage(void)
{
    static const char *const names[] = {"replay.csv", "requests.csv"};
    g_autofree char *folder = g_dir_make_tmp("kvedges-XXXXXX", NULL);
    g_autofree char *page = g_build_filename(folder, "report.html", NULL);
    guint refused = 0;
    for (guint round = 0; round < 300; round++) {
        const char *name = names[round % 2];
        g_autofree char *source = g_test_build_filename(G_TEST_DIST, "data/run", name, NULL);
        g_autofree char *good = NULL;
        g_assert_true(g_file_get_contents(source, &good, NULL, NULL));
        if (round % 2 == 0)
            good[MIN(strlen(good), 4000)] = '\0'; /* enough, and quick */
        g_autofree char *bad = damaged(good);
        g_autoptr(GError) error = NULL;
        put(folder, name, bad);
        gboolean drawn = draw(folder, TRUE, &error) && report_write(folder, page, &error);
        if (!drawn) {
            g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
            g_assert_nonnull(strstr(error->message, ".csv:"));
            g_assert_null(strchr(error->message, '\n'));
            refused++;
        }
        empty_folder(folder);
    }
    g_assert_cmpuint(refused, >, 50);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/edges/runs", test_edges);
    g_test_add_func("/edges/damage", test_damage);
    return g_test_run();
}
