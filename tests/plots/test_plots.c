/* Pictures from a small run: scripts and data against golden texts, gnuplot's part by its results.
 *
 * KV_UPDATE_GOLDEN=1 in the environment rewrites the golden texts in the source folder.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "base/error.h"
#include "plots/plots.h"
#include "steps_fixture.h"

typedef struct Fixture {
    char *out;
    GPtrArray *made, *notes;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->out = g_dir_make_tmp("kvplots-XXXXXX", NULL);
    f->made = g_ptr_array_new_with_free_func(g_free);
    f->notes = g_ptr_array_new_with_free_func(g_free);
}

static void remove_folder(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_unlink(file);
    }
    g_rmdir(path);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    remove_folder(f->out);
    g_free(f->out);
    g_ptr_array_unref(f->made);
    g_ptr_array_unref(f->notes);
}

static gboolean draw(Fixture *f, const char *run, const char *only, gboolean scripts_only,
                     GError **error)
{
    const char *runs[] = {run, NULL};
    PlotRequest request = {
        .runs = runs, .out = f->out, .only = only, .scripts_only = scripts_only, .notes = f->notes};
    return plots_draw(&request, f->made, NULL, error);
}

static char *source(const char *path)
{
    return g_test_build_filename(G_TEST_DIST, path, NULL);
}

static char *in(const char *folder, const char *name, const char *ending)
{
    g_autofree char *file = g_strconcat(name, ending, NULL);
    return g_build_filename(folder, file, NULL);
}

static void compare_golden(const char *folder, const char *name, const char *ending)
{
    g_autofree char *path = in(folder, name, ending), *got = NULL, *want = NULL;
    g_autofree char *golden_folder = source("golden");
    g_autofree char *golden = in(golden_folder, name, ending);
    g_assert_true(g_file_get_contents(path, &got, NULL, NULL));
    if (g_getenv("KV_UPDATE_GOLDEN") != NULL)
        g_assert_true(g_file_set_contents(golden, got, -1, NULL));
    if (!g_file_get_contents(golden, &want, NULL, NULL))
        g_error("no golden text %s (KV_UPDATE_GOLDEN=1 makes it)", golden);
    g_auto(GStrv) a = g_strsplit(got, "\n", -1), b = g_strsplit(want, "\n", -1);
    for (guint i = 0; a[i] != NULL || b[i] != NULL; i++)
        if (g_strcmp0(a[i], b[i]) != 0) {
            g_test_message("%s%s:%u: got \"%s\", golden \"%s\"", name, ending, i + 1, a[i], b[i]);
            g_test_fail();
            return;
        }
}

static void test_golden(Fixture *f, gconstpointer data)
{
    g_autofree char *run = source("data/run");
    g_autoptr(GError) error = NULL;
    gboolean good = draw(f, run, NULL, TRUE, &error);
    g_assert_no_error(error);
    g_assert_true(good);
    g_assert_cmpuint(f->made->len, >=, 5);
    for (guint i = 0; i < f->made->len; i++) {
        compare_golden(f->out, g_ptr_array_index(f->made, i), ".gp");
        compare_golden(f->out, g_ptr_array_index(f->made, i), ".dat");
    }
}

/* The maps, from a steps file of seven steps. */
static void test_golden_maps(Fixture *f, gconstpointer data)
{
    g_autofree char *steps = in(f->out, "steps", ".kvsteps");
    steps_fixture_write(steps);
    g_autoptr(GError) error = NULL;
    draw(f, f->out, NULL, TRUE, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(f->made->len, ==, 2);
    for (guint i = 0; i < f->made->len; i++) {
        compare_golden(f->out, g_ptr_array_index(f->made, i), ".gp");
        if (strcmp(g_ptr_array_index(f->made, i), "composition") == 0) /* the pool's is large */
            compare_golden(f->out, g_ptr_array_index(f->made, i), ".dat");
    }
    /* What was not drawn is said, with the reason. */
    g_assert_cmpuint(f->notes->len, >=, 10);
    g_assert_cmpstr(g_ptr_array_index(f->notes, 0), ==,
                    "launches: not drawn: no replay.csv with steps");
}

/* What needs other inputs than one run: a sweep, a bench, several runs. */
static void test_golden_others(Fixture *f, gconstpointer data)
{
    g_autofree char *sweep = source("data/sweep"), *bench = source("data/bench/bench.csv");
    g_autofree char *run = source("data/run");
    const char *const inputs[][3] = {{sweep, NULL}, {bench, NULL}, {run, run, NULL}};
    for (guint i = 0; i < G_N_ELEMENTS(inputs); i++) {
        PlotRequest request = {.runs = inputs[i],
                               .out = f->out,
                               .only = i == 2 ? "compare" : NULL,
                               .scripts_only = TRUE};
        g_autoptr(GError) error = NULL;
        plots_draw(&request, f->made, NULL, &error);
        g_assert_no_error(error);
    }
    g_assert_cmpuint(f->made->len, ==, 4);
    for (guint i = 0; i < f->made->len; i++) {
        compare_golden(f->out, g_ptr_array_index(f->made, i), ".gp");
        compare_golden(f->out, g_ptr_array_index(f->made, i), ".dat");
    }
}

static gboolean have_gnuplot(void)
{
    g_autofree char *version = plots_gnuplot_version(NULL);
    if (version == NULL)
        g_test_skip("gnuplot is not installed");
    return version != NULL;
}

static void test_pictures(Fixture *f, gconstpointer data)
{
    static const struct {
        const char *ending, *begins;
    } files[] = {{".png", "\x89PNG"}, {".svg", "<?xml"}, {".pdf", "%PDF"}, {".axes", "1 "}};
    if (!have_gnuplot())
        return;
    g_autofree char *run = source("data/run");
    g_autoptr(GError) error = NULL;
    gboolean good = draw(f, run, NULL, FALSE, &error);
    g_assert_no_error(error);
    g_assert_true(good);
    for (guint i = 0; i < f->made->len; i++)
        for (guint k = 0; k < G_N_ELEMENTS(files); k++) {
            g_autofree char *path = in(f->out, g_ptr_array_index(f->made, i), files[k].ending);
            g_autofree char *part = g_strconcat(path, ".part", NULL), *content = NULL;
            gsize size = 0;
            g_assert_true(g_file_get_contents(path, &content, &size, NULL));
            g_assert_cmpuint(size, >, 20);
            g_assert_true(g_str_has_prefix(content, files[k].begins));
            g_assert_false(g_file_test(part, G_FILE_TEST_EXISTS));
        }
}

/* gnuplot takes every script of those, and of the maps; the pictures come out. */
static void test_other_pictures(Fixture *f, gconstpointer data)
{
    if (!have_gnuplot())
        return;
    g_autofree char *sweep = source("data/sweep"), *bench = source("data/bench/bench.csv");
    g_autofree char *run = source("data/run"), *steps = in(f->out, "steps", ".kvsteps");
    steps_fixture_write(steps);
    const char *const inputs[][3] = {{sweep, NULL}, {bench, NULL}, {run, run, NULL}, {f->out}};
    for (guint i = 0; i < G_N_ELEMENTS(inputs); i++) {
        PlotRequest request = {.runs = inputs[i], .out = f->out, .only = i == 2 ? "compare" : NULL};
        g_autoptr(GError) error = NULL;
        plots_draw(&request, f->made, NULL, &error);
        g_assert_no_error(error);
    }
    g_assert_cmpuint(f->made->len, ==, 6);
    for (guint i = 0; i < f->made->len; i++) {
        g_autofree char *path = in(f->out, g_ptr_array_index(f->made, i), ".svg");
        g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    }
}

/* Without gnuplot: an error that names the package, and all data and scripts are there. */
static void test_no_gnuplot(Fixture *f, gconstpointer data)
{
    g_autofree char *run = source("data/run");
    g_autofree char *before = g_strdup(g_getenv("PATH"));
    g_autoptr(GError) error = NULL;
    g_setenv("PATH", "/nonexistent", TRUE);
    gboolean good = draw(f, run, NULL, FALSE, &error);
    g_setenv("PATH", before, TRUE);
    g_assert_false(good);
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_nonnull(strstr(error->message, "gnuplot-nox"));
    g_autofree char *last = in(f->out, "share", ".gp");
    g_assert_true(g_file_test(last, G_FILE_TEST_EXISTS));
}

static void test_failing_gnuplot(Fixture *f, gconstpointer data)
{
    g_autofree char *run = source("data/run"), *before = g_strdup(g_getenv("PATH"));
    g_autofree char *bin = g_dir_make_tmp("kvplots-XXXXXX", NULL);
    g_autofree char *fake = g_build_filename(bin, "gnuplot", NULL);
    g_autofree char *path = g_strconcat(bin, ":", before, NULL);
    g_assert_true(g_file_set_contents(fake, "#!/bin/sh\necho 'line 3: out of paint' >&2\nexit 3\n",
                                      -1, NULL));
    g_assert_cmpint(g_chmod(fake, 0755), ==, 0);
    g_autoptr(GError) error = NULL;
    g_setenv("PATH", path, TRUE);
    gboolean good = draw(f, run, "merge", FALSE, &error);
    g_setenv("PATH", before, TRUE);
    g_assert_false(good);
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_nonnull(strstr(error->message, "merge.gp (exit status 3): line 3: out of paint"));
    remove_folder(bin);
}

/* A log's names never become script: they stay inside a literal. */
static void test_hostile_names(Fixture *f, gconstpointer data)
{
    if (!have_gnuplot())
        return;
    g_autofree char *replay = in(f->out, "replay", ".csv"), *run = source("data/run"), *text = NULL;
    g_autofree char *original = in(run, "replay", ".csv");
    g_assert_true(g_file_get_contents(original, &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, ",workqueue-fused,", -1);
    g_autofree char *hostile =
        g_strjoinv(",\"'.system('touch pwned').' `touch pwned` \\n@x\",", parts);
    g_assert_true(g_file_set_contents(replay, hostile, -1, NULL));
    g_autoptr(GError) error = NULL;
    static const char *const with_names[] = {"launches", "share", "breakdown"};
    for (guint i = 0; i < G_N_ELEMENTS(with_names); i++) {
        draw(f, f->out, with_names[i], FALSE, &error);
        g_assert_no_error(error);
    }
    g_autofree char *pwned = in(f->out, "pwned", "");
    g_assert_false(g_file_test(pwned, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test("pwned", G_FILE_TEST_EXISTS));
}

static void test_damaged_replay(Fixture *f, gconstpointer data)
{
    static const char *const tails[] = {
        "0,0,16", "x,0,16000000,1,0,5,5,0,1,single,1,1,0,0,0,8,1,81920,81920,0,0,,,,,,,",
        "0,-5,16000000,1,0,5,5,0,1,single,1,1,0,0,0,8,1,81920,81920,0,0,,,,,,,"};
    g_autofree char *run = source("data/run"), *replay = in(f->out, "replay", ".csv");
    g_autofree char *original = in(run, "replay", ".csv"), *text = NULL;
    g_assert_true(g_file_get_contents(original, &text, NULL, NULL));
    *strchr(text, '\n') = '\0';
    for (guint i = 0; i < G_N_ELEMENTS(tails); i++) {
        g_autofree char *damaged = g_strdup_printf("%s\n%s\n", text, tails[i]);
        g_assert_true(g_file_set_contents(replay, damaged, -1, NULL));
        g_autoptr(GError) error = NULL;
        g_assert_false(draw(f, f->out, NULL, TRUE, &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, "replay.csv:2: "));
    }
}

static void test_wrong_requests(Fixture *f, gconstpointer data)
{
    g_autofree char *run = source("data/run");
    g_autoptr(GError) error = NULL;
    g_assert_false(draw(f, run, "no-such-plot", TRUE, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_false(draw(f, "no-such-folder", NULL, TRUE, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_clear_error(&error);
    g_assert_false(draw(f, f->out, NULL, TRUE, &error)); /* an empty folder is no run */
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) g_test_add(path, Fixture, NULL, set_up, test, tear_down)
    ADD("/plots/golden", test_golden);
    ADD("/plots/golden-maps", test_golden_maps);
    ADD("/plots/golden-others", test_golden_others);
    ADD("/plots/other-pictures", test_other_pictures);
    ADD("/plots/pictures", test_pictures);
    ADD("/plots/no-gnuplot", test_no_gnuplot);
    ADD("/plots/failing-gnuplot", test_failing_gnuplot);
    ADD("/plots/hostile-names", test_hostile_names);
    ADD("/plots/damaged-replay", test_damaged_replay);
    ADD("/plots/wrong-requests", test_wrong_requests);
    return g_test_run();
}
