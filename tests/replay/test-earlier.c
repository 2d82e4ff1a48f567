/* replay.csv read back for --resume: every figure of an execution returns, so a second writing has
 * the same bytes; what is damaged or another step's is not taken. */
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "replay/earlier.h"
#include "replay/replay_csv.h"
#include "replay/route.h"

enum { LINES = 3 };
static const char *const labels[LINES] = {"single", "flashinfer", "workqueue:s=4"};

/* No figure is zero or its neighbour's. */
static Execution execution(guint i)
{
    Execution e = {.repeats = 3 + (gint)i,
                   .kernel_us = 12.345 + i,
                   .wall_us = 45.678 + i,
                   .plan_us = 3.25 + i,
                   .tables_us = 1.125 + i,
                   .upload_bytes = 4096 + i,
                   .copies = 2 + (gint)i,
                   .memsets = 1 + (gint)i,
                   .launches_seen = 7 + i,
                   .checked = i != 2,
                   .max_abs_err = i == 1 ? (double)NAN : 1.25e-4,
                   .mean_abs_err = i == 1 ? (double)NAN : 2.5e-5,
                   .ranks = i == 0 ? 2 : 0,
                   .rank_us = {12.345, 11.222},
                   .rank_skew_us = 1.123};
    return e;
}

static Step step_of(guint64 index)
{
    return (Step){.index = index, .rows = 5, .max_length = 900, .sum_length = 2100};
}

static char *write_all(const char *path, const Execution *e)
{
    const AttnCounts counts = {.launches = 7, .merge_launches = 1, .tasks = 40, .kv_bytes = 1234};
    g_autoptr(GError) error = NULL;
    g_autoptr(OutFile) out = out_file_new(path, &error);
    g_assert_no_error(error);
    ReplayCsv *csv = replay_csv_new(out);
    for (guint64 s = 0; s < 2; s++) {
        const Step step = step_of(s);
        replay_csv_step(csv, &step, 0);
        for (guint i = 0; i < LINES; i++) {
            const Route route = {.label = (char *)labels[i]};
            const ReplayLine line = {.route = &route,
                                     .counts = &counts,
                                     .counted = i != 1,
                                     .execution = &e[i],
                                     .device = "0;1"};
            replay_csv_line(csv, &line);
        }
    }
    g_assert_true(replay_csv_flush(csv, &error));
    replay_csv_free(csv);
    g_assert_true(out_file_commit(out, &error));
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static char *path_of(void)
{
    return g_strdup_printf("%s/kvreplay-earlier-%d.csv", g_get_tmp_dir(), g_random_int());
}

static void test_round_trip(void)
{
    g_autofree char *path = path_of();
    const Execution e[LINES] = {execution(0), execution(1), execution(2)};
    g_autofree char *first = write_all(path, e);
    g_autoptr(GError) error = NULL;
    Execution found[LINES];
    Earlier *earlier = earlier_open(path, &error);
    g_assert_no_error(error);
    const Step step = step_of(0);
    g_assert_true(earlier_find(earlier, &step, labels, LINES, found));
    earlier_free(earlier);
    g_assert_true(isnan(found[1].max_abs_err)); /* wrong stays wrong */
    g_autofree char *second = write_all(path, found);
    g_assert_cmpstr(first, ==, second);
    g_unlink(path);
}

static void test_another_step(void)
{
    g_autofree char *path = path_of();
    const Execution e[LINES] = {execution(0), execution(1), execution(2)};
    g_autofree char *text = write_all(path, e);
    Execution found[LINES];
    for (guint i = 0; i < 3; i++) {
        g_autoptr(Earlier) earlier = earlier_open(path, NULL);
        Step step = step_of(0);
        step.rows += i == 0;
        step.max_length += i == 1;
        step.sum_length += i == 2;
        g_assert_false(earlier_find(earlier, &step, labels, LINES, found));
        step = step_of(1); /* the next one may be the same still */
        g_assert_true(earlier_find(earlier, &step, labels, LINES, found));
    }
    g_unlink(path);
}

/* A field that is no number ends what is known; one that is not read changes nothing. */
static void test_damage(void)
{
    g_autofree char *path = path_of();
    const Execution e[LINES] = {execution(0), execution(1), execution(2)};
    g_autofree char *whole = write_all(path, e);
    g_auto(GStrv) line = g_strsplit(whole, "\n", -1);
    g_auto(GStrv) head = g_strsplit(line[0], ",", -1);
    guint ended = 0;
    for (guint c = 0; head[c] != NULL; c++) {
        g_auto(GStrv) field = g_strsplit(line[1], ",", -1);
        g_free(field[c]);
        field[c] = g_strdup("x;y");
        g_autofree char *bad = g_strjoinv(",", field);
        g_autofree char *text = g_strdup_printf("%s\n%s\n%s\n%s\n", line[0], bad, line[2], line[3]);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
        Execution found[LINES];
        const Step step = step_of(0);
        g_autoptr(Earlier) earlier = earlier_open(path, NULL);
        if (!earlier_find(earlier, &step, labels, LINES, found)) {
            ended++;
            continue;
        }
        g_autofree char *again = write_all(path, found);
        g_assert_cmpstr(again, ==, whole);
    }
    g_assert_cmpuint(ended, ==, 18); /* the columns that are read */
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/earlier/round-trip", test_round_trip);
    g_test_add_func("/earlier/another-step", test_another_step);
    g_test_add_func("/earlier/damage", test_damage);
    return g_test_run();
}
