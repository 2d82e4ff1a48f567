/* report.html: what it holds, what it escapes, and how a browser takes it.
 *
 * The browser part runs headless Chromium (Debian package chromium) on a copy of the page with a
 * script at its end that clicks, points and measures; it is skipped where there is no Chromium.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "plots/plots.h"

static char *source(const char *path)
{
    return g_test_build_filename(G_TEST_DIST, path, NULL);
}

static void copy(const char *from, const char *to)
{
    g_autofree char *content = NULL;
    gsize size = 0;
    g_assert_true(g_file_get_contents(from, &content, &size, NULL));
    g_assert_true(g_file_set_contents(to, content, (gssize)size, NULL));
}

static const char *const run_files[] = {"replay.csv", "requests.csv", "summary.json",
                                        "scenario.ini"};

/* A copy of the small run, with its pictures where gnuplot is there. */
static char *make_run(void)
{
    char *folder = g_dir_make_tmp("kvreport-XXXXXX", NULL);
    g_autofree char *from_folder = source("data/run");
    for (guint i = 0; i < G_N_ELEMENTS(run_files); i++) {
        g_autofree char *from = g_build_filename(from_folder, run_files[i], NULL);
        g_autofree char *to = g_build_filename(folder, run_files[i], NULL);
        copy(from, to);
    }
    return folder;
}

static void remove_all(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        if (g_file_test(file, G_FILE_TEST_IS_DIR) && !g_file_test(file, G_FILE_TEST_IS_SYMLINK))
            remove_all(file);
        else
            g_unlink(file);
    }
    g_rmdir(path);
}

static char *write_page(const char *run)
{
    g_autofree char *path = g_build_filename(run, "report.html", NULL);
    char *page = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(report_write(run, path, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(path, &page, NULL, NULL));
    return page;
}

static guint count(const char *text, const char *what)
{
    guint n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void test_contents(void)
{
    g_autofree char *run = make_run();
    g_autofree char *page = write_page(run);
    static const char *const wanted[] = {"id=\"summary\"",  "id=\"pictures\"",
                                         "id=\"scenario\"", "id=\"provenance\"",
                                         "id=\"requests\"", "id=\"steps\"",
                                         "pool-pages=2560", "fixture CPU",
                                         "seed (workload)", "kvreplay run scenario.ini",
                                         "60 of 60 steps",  "No pictures have been drawn"};
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++)
        if (strstr(page, wanted[i]) == NULL)
            g_error("the page lacks %s", wanted[i]);
    /* One file, no network: nothing that fetches. */
    static const char *const banned[] = {"http://", "https://", "src=\"plots", "@import", "url("};
    for (guint i = 0; i < G_N_ELEMENTS(banned); i++)
        g_assert_null(strstr(page, banned[i]));
    /* The workload's name has markup in it: only its escaped form is there. */
    g_assert_null(strstr(page, "fixture <b>"));
    g_assert_cmpuint(count(page, "fixture &lt;b&gt;&amp;amp;&lt;/b&gt;"), >=, 2);
    remove_all(run);
}

static void test_hostile_cells(void)
{
    g_autofree char *run = make_run();
    g_autofree char *path = g_build_filename(run, "requests.csv", NULL), *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, ",chat,", -1);
    g_autofree char *hostile = g_strjoinv(",</td><script>alert(1)</script>,", parts);
    g_assert_true(g_file_set_contents(path, hostile, -1, NULL));
    g_autofree char *page = write_page(run);
    g_assert_null(strstr(page, "<script>alert"));
    g_assert_nonnull(strstr(page, "&lt;script&gt;alert"));
    remove_all(run);
}

/* A long run's tables are an even sample, and say so. */
static void test_sample(void)
{
    g_autofree char *run = make_run();
    g_autofree char *path = g_build_filename(run, "requests.csv", NULL), *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    GString *longer = g_string_new(NULL);
    g_string_append_len(longer, text, strchr(text, '\n') + 1 - text);
    for (guint i = 0; i < 5000; i++)
        g_string_append_printf(longer, "%u,,,,0,%u,%u,%u,%u,%u,100,10,0,0,0,finished,\n", i, i, i,
                               i + 1, i + 2, i + 20);
    g_assert_true(g_file_set_contents(path, longer->str, -1, NULL));
    g_string_free(longer, TRUE);
    g_autofree char *page = write_page(run);
    g_assert_nonnull(strstr(page, "313 of 5,000 requests, an even sample (every 16th)"));
    g_assert_nonnull(strstr(page, "<tr><td>4992<td>"));
    g_assert_null(strstr(page, "<tr><td>4991<td>"));
    remove_all(run);
}

static void test_damage(void)
{
    g_autofree char *run = make_run();
    g_autofree char *path = g_build_filename(run, "summary.json", NULL);
    g_autofree char *report = g_build_filename(run, "report.html", NULL);
    g_assert_true(g_file_set_contents(path, "{\n\"a\": 1,,\n}", -1, NULL));
    g_autoptr(GError) error = NULL;
    g_assert_false(report_write(run, report, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "summary.json:2:"));
    g_assert_false(g_file_test(report, G_FILE_TEST_EXISTS));
    remove_all(run);
}

static const char probe[] =
    "<script>\n"
    "const say = [];\n"
    "const check = (name, good) => say.push(name + '=' + (good ? 'good' : 'BAD'));\n"
    "const images = [...document.images];\n"
    "check('pictures', images.length >= 5 && images.every(i => i.complete && i.naturalWidth > "
    "0));\n"
    "check('width', document.documentElement.scrollWidth <= window.innerWidth);\n"
    "const column = (t, i) => [...t.tBodies[0].rows].map(r => r.cells[i].textContent)\n"
    "  .filter(x => x !== '').map(x => Number(x.replaceAll(',', '')));\n"
    "const sorted = (v, s) => v.length > 10 && v.every((x, i) => i === 0 || s * (x - v[i - 1]) >= "
    "0);\n"
    "for (const [id, i] of [['requests', 7], ['steps', 3]]) {\n"
    "  const table = document.querySelector('#' + id + ' table');\n"
    "  const button = table.tHead.rows[0].cells[i].querySelector('button');\n"
    "  check(id + '-unsorted', !sorted(column(table, i), -1));\n"
    "  button.click(); check(id + '-up', sorted(column(table, i), 1));\n"
    "  button.click(); check(id + '-down', sorted(column(table, i), -1));\n"
    "}\n"
    "const plot = document.querySelector('#plot-batch .plot'), box = "
    "plot.getBoundingClientRect();\n"
    "plot.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width * 0.8,\n"
    "  clientY: box.top + box.height * 0.1}));\n"
    "const tip = plot.querySelector('.tip');\n"
    "check('hover', !tip.hidden && /time s [45]/.test(tip.textContent)\n"
    "  && /decode rows: \\d+/.test(tip.textContent));\n"
    "plot.dispatchEvent(new PointerEvent('pointerleave'));\n"
    "check('hover-ends', tip.hidden);\n"
    "parent.postMessage('pictures ' + say.join(' ') + ' inner=' + window.innerWidth + ' END', "
    "'*');\n"
    "</script>";

/* Chromium's own window is never narrower than 500 pixels, so the page is shown in a frame. */
static void browse(const char *run, guint width)
{
    g_autofree char *page = g_build_filename(run, "frame.html", NULL);
    g_autofree char *frame = g_strdup_printf(
        "<!doctype html><meta charset=utf-8><link rel=icon href=data:,><body>"
        "<script>onmessage = event => { document.body.textContent = event.data; };</script>"
        "<iframe src=probe.html style='width:%upx;height:800px;border:0'></iframe>",
        width);
    g_assert_true(g_file_set_contents(page, frame, -1, NULL));
    g_autofree char *profile = g_dir_make_tmp("kvchromium-XXXXXX", NULL);
    g_autofree char *data = g_strconcat("--user-data-dir=", profile, NULL);
    g_autofree char *url = g_strconcat("file://", page, NULL);
    g_autofree char *out = NULL, *err = NULL;
    char *argv[] = {(char *)"chromium",
                    (char *)"--headless",
                    (char *)"--no-sandbox",
                    (char *)"--disable-gpu",
                    (char *)"--virtual-time-budget=5000",
                    (char *)"--enable-logging=stderr",
                    data,
                    (char *)"--window-size=1400,900",
                    (char *)"--dump-dom",
                    url,
                    NULL};
    int status = 0;
    g_assert_true(
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    const char *said = strstr(out, "pictures pictures=");
    g_autofree char *inner = g_strdup_printf("inner=%u END", width);
    g_test_message("%u: %.400s", width, said != NULL ? said : "the probe did not run");
    g_assert_nonnull(said);
    g_assert_nonnull(strstr(said, inner));
    g_assert_null(strstr(said, "BAD"));
    g_assert_null(strstr(err, "CONSOLE"));
    remove_all(profile);
}

static void test_browser(void)
{
    g_autofree char *chromium = g_find_program_in_path("chromium");
    g_autofree char *gnuplot = plots_gnuplot_version(NULL);
    if (chromium == NULL || gnuplot == NULL) {
        g_test_skip(chromium == NULL ? "chromium is not installed" : "gnuplot is not installed");
        return;
    }
    g_autofree char *run = make_run(), *out = g_build_filename(run, "plots", NULL);
    const char *runs[] = {run, NULL};
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
    PlotRequest request = {.runs = runs, .out = out};
    g_autoptr(GError) error = NULL;
    g_assert_true(plots_draw(&request, made, NULL, &error));
    g_autofree char *page = write_page(run), *path = g_build_filename(run, "probe.html", NULL);
    char *end = strstr(page, "</body>");
    g_assert_nonnull(end);
    *end = '\0';
    g_autofree char *probed = g_strconcat(page, probe, "</body></html>", NULL);
    g_assert_true(g_file_set_contents(path, probed, -1, NULL));
    browse(run, 1280);
    browse(run, 360);
    remove_all(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/contents", test_contents);
    g_test_add_func("/report/hostile-cells", test_hostile_cells);
    g_test_add_func("/report/sample", test_sample);
    g_test_add_func("/report/damage", test_damage);
    g_test_add_func("/report/browser", test_browser);
    return g_test_run();
}
