/* Judging a bench from its CSV, on cells and a profile made up here; and peers counted from
 * outside.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/bench_judge.h"
#include "replay/calibration.h"
#include "replay/peer_counts.h"
#include "replay/regions.h"

static const char head[] =
    "gpu,driver,toolkit,commit,date,seed,cell,family,route,rows,context,q_heads,kv_heads,head_dim,"
    "page_size,dtype,layout,kv_bytes,floor_us,kernel_us,graph_us,wall_us,graph_wall_us,workers,"
    "empty_us,note\n";

/* A small equal cell, a ragged one, and one that was not run. */
static const char cells[] =
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,single,1,2048,32,8,128,16,fp16,HND,8388608,7,24,,36,,"
    "264,6,\n"
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,persistent,1,2048,32,8,128,16,fp16,HND,8388608,7,12,11,"
    "20,16,264,6,\n"
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,workqueue-fused,1,2048,32,8,128,16,fp16,HND,8388608,7,"
    "10,,24,,264,6,\n"
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,flashinfer-tc,1,2048,32,8,128,16,fp16,HND,8388608,7,13,"
    ",28,,,6,\n"
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,flashinfer-tc:split=2048,1,2048,32,8,128,16,fp16,HND,"
    "8388608,7,9,,40,,,6,\n"
    "Card,1,2,abc,2026-01-01,1,2K_B1,equal,trtllm-xqa,1,2048,32,8,128,16,fp16,HND,8388608,7,14,13."
    "5,22,18,,6,\n"
    "Card,1,2,abc,2026-01-01,1,zipf_B64,zipf,single,64,67500,32,8,128,16,fp16,HND,5784000000,1256,"
    "2000,,2010,,264,6,\n"
    "Card,1,2,abc,2026-01-01,1,zipf_B64,zipf,persistent,64,67500,32,8,128,16,fp16,HND,5784000000,"
    "1256,1270,1272,1280,1275,264,6,\n"
    "Card,1,2,abc,2026-01-01,1,zipf_B64,zipf,flashinfer-tc,64,67500,32,8,128,16,fp16,HND,"
    "5784000000,1256,1905,,1920,,,6,\n"
    "Card,1,2,abc,2026-01-01,1,zipf_B64,zipf,flashinfer-batch,64,67500,32,8,128,16,fp16,HND,"
    "5784000000,1256,1524,,2000,,,6,\n"
    "Card,1,2,abc,2026-01-01,1,zipf_B64,zipf,vllm-pa1,64,67500,32,8,128,16,fp16,HND,5784000000,"
    "1256,,,,,,6,\"keeps all scores, every one\"\n"
    "Card,1,2,abc,2026-01-01,1,128K_B64,equal,,64,131072,32,8,128,16,fp16,HND,34359738368,,,,,,,,"
    "\"n/a: no room\"\n";

static BenchJudge *judge_of(const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-judge-test.csv", NULL);
    g_autofree char *all = g_strconcat(head, text, NULL);
    g_assert_true(g_file_set_contents(path, all, -1, NULL));
    BenchJudge *judge = bench_judge_read(path, error);
    g_unlink(path);
    return judge;
}

static const char *route_at(const JudgeCell *cell, gint i)
{
    return i >= 0 ? g_array_index(cell->lines, JudgeLine, i).route.label : NULL;
}

static void test_read(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BenchJudge) judge = judge_of(cells, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(judge->cells->len, ==, 3);
    g_assert_cmpint(judge->workers, ==, 264);
    const JudgeCell *small = judge->cells->pdata[0], *ragged = judge->cells->pdata[1],
                    *absent = judge->cells->pdata[2];
    g_assert_cmpstr(route_at(small, small->pick[JUDGE_BEST]), ==, "workqueue-fused");
    g_assert_cmpstr(route_at(small, small->pick_wall[JUDGE_BEST]), ==, "persistent");
    g_assert_cmpstr(route_at(small, small->best_peer), ==, "flashinfer-tc:split=2048");
    g_assert_cmpstr(route_at(small, small->best_default), ==, "flashinfer-tc");
    g_assert_cmpstr(route_at(small, small->best_wall_peer), ==, "trtllm-xqa");
    g_assert_cmpstr(route_at(small, small->pick_with_peers[JUDGE_BEST]), ==,
                    "flashinfer-tc:split=2048");
    const JudgeLine *graph = &g_array_index(small->lines, JudgeLine, 1);
    g_assert_cmpfloat(graph->kernel_us, ==, 11); /* the shorter of the two */
    g_assert_cmpfloat(graph->wall_us, ==, 16);
    g_assert_cmpstr(route_at(ragged, ragged->best_default), ==, "flashinfer-batch");
    g_assert_cmpstr(g_array_index(ragged->lines, JudgeLine, 4).note, ==,
                    "keeps all scores, every one");
    g_assert_cmpstr(absent->note, ==, "n/a: no room");
    g_assert_cmpint(absent->best_peer, ==, -1);
}

/* Streams at 4500 GB/s; `single` alone is slow on long rows, `persistent` is quick to launch. */
static DeviceProfile *profile_new(void)
{
    DeviceProfile *p = device_profile_guess();
    p->workers = 264;
    p->bandwidth = 4500e3;
    p->worker_bandwidth = 80e3;
    p->has_learned = TRUE;
    const LearnedRoute learned[] = {
        {.route = g_strdup("single"), .fixed_us = 5, .stream = 1, .tail = 1, .host_us = 11},
        {.route = g_strdup("persistent"), .fixed_us = 9, .stream = 1, .host_us = 4},
        {.route = g_strdup("workqueue-fused"), .fixed_us = 7, .stream = 1, .host_us = 13},
        {.route = g_strdup("flashinfer-tc"), .fixed_us = 8, .stream = 1, .host_us = 14},
    };
    g_array_append_vals(p->learned, learned, G_N_ELEMENTS(learned));
    return p;
}

static void test_decide(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BenchJudge) judge = judge_of(cells, &error);
    g_autoptr(DeviceProfile) profile = profile_new();
    g_assert_true(bench_judge_decide(judge, profile, &error));
    const JudgeCell *small = judge->cells->pdata[0], *ragged = judge->cells->pdata[1];
    g_assert_cmpstr(route_at(small, small->pick[JUDGE_LEARNED]), ==, "workqueue-fused");
    g_assert_cmpstr(route_at(small, small->pick_wall[JUDGE_LEARNED]), ==, "persistent");
    g_assert_cmpstr(route_at(small, small->pick_with_peers[JUDGE_LEARNED]), ==, "workqueue-fused");
    g_assert_cmpstr(route_at(ragged, ragged->pick[JUDGE_LEARNED]), ==, "persistent");
    /* No term for a peer: the cost model does not take it. */
    g_assert_cmpint(small->pick_with_peers[JUDGE_COST], ==, small->pick[JUDGE_COST]);

    g_autoptr(GString) text = g_string_new(NULL);
    bench_judge_asked(judge, text);
    /* 9 / 10 and 1524 / 1270, and their geometric mean; the floor allows 9 / 7 and 1524 / 1256. */
    g_assert_nonnull(strstr(text->str, "| 2 | never below 0.98 | 1.039, 0.900 (2K_B1) |"));
    g_assert_nonnull(strstr(text->str, "1.249, 1.213 (zipf_B64) |"));
    /* Walls: 18 / 16, and what an empty launch leaves: 18 / (7 + 6). */
    g_assert_nonnull(strstr(text->str, "| 1 | >= 1.25 | 1.125, 1.125 (2K_B1) |"));
    g_assert_nonnull(strstr(text->str, "1.385, 1.385 (2K_B1) |"));
    bench_judge_cells(judge, text);
    g_assert_nonnull(strstr(text->str, "| 128K_B64 | 34360 | n/a: no room |"));
    bench_judge_peers(judge, JUDGE_LEARNED, text);
    g_assert_nonnull(strstr(text->str, "vllm-pa1                   n/a: keeps all scores"));
}

static void test_calibration(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-judge-table.csv", NULL);
    g_autoptr(BenchJudge) judge = judge_of(cells, &error);
    g_autoptr(OutFile) out = out_file_new(path, &error);
    g_assert_true(bench_judge_calibration(judge, out, &error));
    g_assert_true(out_file_commit(out, &error));
    g_autoptr(CalibrationTable) table = calibration_table_new();
    g_assert_true(calibration_table_read(table, path, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(table->groups, ==, 2);
    g_assert_cmpuint(table->rows->len, ==, 6 + 4);
    const CalibrationRow *row = &g_array_index(table->rows, CalibrationRow, 1);
    g_assert_cmpfloat(row->kernel_us, ==, 11);
    g_assert_cmpfloat(row->wall_us, ==, 16);
    g_assert_cmpint(row->counts.launches, ==, 1);
    g_unlink(path);
}

/* 64 x 8 K rows need no split at this d: masked and workqueue run one plan, 3 % apart; what is
 * taken is 4 % off the peer. */
static void test_noise(void)
{
    static const char even[] =
        "Card,1,2,abc,2026-01-01,1,8K_B64,equal,masked,64,8192,32,8,128,16,fp16,HND,2147483648,467,"
        "515,,530,,264,6,\n"
        "Card,1,2,abc,2026-01-01,1,8K_B64,equal,workqueue,64,8192,32,8,128,16,fp16,HND,2147483648,"
        "467,500,,520,,264,6,\n"
        "Card,1,2,abc,2026-01-01,1,8K_B64,equal,persistent,64,8192,32,8,128,16,fp16,HND,2147483648,"
        "467,510,,520,,264,6,\n"
        "Card,1,2,abc,2026-01-01,1,8K_B64,equal,flashinfer-tc,64,8192,32,8,128,16,fp16,HND,"
        "2147483648,467,490,,520,,,6,\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(BenchJudge) judge = judge_of(even, &error);
    g_autoptr(DeviceProfile) profile =
        profile_new(); /* of these it knows two; persistent it is not */
    g_assert_no_error(error);
    g_assert_true(bench_judge_decide(judge, profile, &error));
    const JudgeCell *cell = judge->cells->pdata[0];
    g_assert_cmpstr(route_at(cell, cell->pick_with_peers[JUDGE_LEARNED]), ==, "flashinfer-tc");
    g_autoptr(GString) text = g_string_new(NULL);
    bench_judge_noise(judge, text);
    g_assert_nonnull(strstr(text->str, "| from 500 us | 1 | 3.0 % | 3.0 % | 3.0 % |"));
    g_assert_nonnull(strstr(text->str, "\n0 of 1 cells;"));
    LearnedRoute own = {.route = g_strdup("masked"), .fixed_us = 1, .stream = 1};
    g_array_append_val(profile->learned, own);
    g_assert_true(bench_judge_decide(judge, profile, &error));
    g_string_truncate(text, 0);
    bench_judge_noise(judge, text);
    g_assert_nonnull(
        strstr(text->str, "| 8K_B64 | 0.951 | 515.0 masked | 490.0 flashinfer-tc |  |"));
    /* Without the peer the best ran the plan that was taken. */
    g_array_set_size(cell->lines, 3);
    ((JudgeCell *)cell)->pick_with_peers[JUDGE_BEST] = 1;
    g_string_truncate(text, 0);
    bench_judge_noise(judge, text);
    g_assert_nonnull(strstr(text->str, "500.0 workqueue | the same plan |"));
    g_assert_nonnull(strstr(text->str, "\n1 of 1 cells; in 1 of them"));
}

static void test_bad(void)
{
    static const char *const bad[][2] = {
        {"Card,1,2,abc,d,1,c,normal,single,1,9,32,8,128,16,fp16,HND,9,7,24,,36,,264,6,\n",
         "normal"},
        {"Card,1,2,abc,d,1,c,equal,single,x,9,32,8,128,16,fp16,HND,9,7,24,,36,,264,6,\n",
         "rows 'x'"},
        {"Card,1,2,abc,d,1,c,equal,fastest,1,9,32,8,128,16,fp16,HND,9,7,24,,36,,264,6,\n",
         "fastest"},
        {"Card,1\n", "2 columns"},
        {"", "no cells"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(judge_of(bad[i][0], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        if (strstr(error->message, bad[i][1]) == NULL)
            g_error("%s", error->message);
    }
}

/* All that is made of a judgement, for its crashes. */
static void use(BenchJudge *judge)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DeviceProfile) profile = profile_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-judge-use.csv", NULL);
    g_assert_true(bench_judge_decide(judge, profile, &error));
    bench_judge_asked(judge, text);
    bench_judge_noise(judge, text);
    bench_judge_cells(judge, text);
    bench_judge_peers(judge, JUDGE_BEST, text);
    bench_judge_peers(judge, JUDGE_LEARNED, text);
    for (guint i = 0; i < 2; i++) {
        g_autoptr(OutFile) out = out_file_new(path, &error);
        g_assert_true(i == 0 ? bench_judge_csv(judge, out, &error)
                             : bench_judge_calibration(judge, out, &error));
    }
}

/* Any field of a line as anything: one line that names the place, or a judgement that holds. */
static void test_damage(void)
{
    static const char *const junk[] = {"",
                                       "0",
                                       "-1",
                                       "abc",
                                       "nan",
                                       "1e300",
                                       "0.5",
                                       "2147483648",
                                       "99999",
                                       "5,5",
                                       "99999999999999999999"};
    static const char line[] = "Card,1,2,abc,2026-01-01,1,2K_B2,ragged,persistent,2,2048,32,8,128,"
                               "16,fp16,HND,8388608,7,12,"
                               "11,20,16,264,6,";
    g_auto(GStrv) field = g_strsplit(line, ",", -1);
    for (guint c = 0; field[c] != NULL; c++)
        for (guint j = 0; j < G_N_ELEMENTS(junk); j++) {
            g_auto(GStrv) bad = g_strdupv(field);
            g_autoptr(GError) error = NULL;
            g_free(bad[c]);
            bad[c] = g_strdup(junk[j]);
            g_autofree char *joined = g_strjoinv(",", bad);
            g_autofree char *text = g_strconcat(joined, "\n", NULL);
            g_autoptr(BenchJudge) judge = judge_of(text, &error);
            if (judge != NULL && judge->workers > 0)
                use(judge);
            else if (judge != NULL) { /* nothing was timed */
                g_autoptr(DeviceProfile) profile = profile_new();
                g_assert_false(bench_judge_decide(judge, profile, &error));
                g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
            } else
                g_assert_true(error->domain == KV_ERROR && error->code == KV_ERROR_INPUT &&
                              strstr(error->message, ".csv:2: ") != NULL);
        }
}

/* A bench --kernel-only has no wall times; and a route twice is no second setting. */
static void test_no_walls(void)
{
    g_autoptr(GError) error = NULL;
#define START "Card,1,2,abc,2026-01-01,1,2K_B1,equal,"
#define END ",1,2048,32,8,128,16,fp16,HND,8388608,7,24,,,,264,6,\n"
    g_autoptr(BenchJudge) judge =
        judge_of(START "single" END START "persistent" END START "flashinfer-tc" END, &error);
    g_assert_no_error(error);
    use(judge);
    g_autoptr(GString) text = g_string_new(NULL);
    bench_judge_peers(judge, JUDGE_BEST, text);
    g_assert_null(strstr(text->str, "wall -"));
    g_assert_null(judge_of(START "single" END START "single" END, &error));
    g_assert_nonnull(strstr(error->message, ":3: route 'single' stands twice"));
#undef START
#undef END
}

/* --- peers counted from outside --- */

static AttnCounts counts_of(const char *name, gint64 split, gint64 factor, gint32 rows,
                            const gint32 *lens)
{
    static const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    const Route route = {.ops = route_find(name), .config = {.split = split, .factor = factor}};
    AttnCounts counts;
    peer_counts(&counts, &route, &shape, 264, rows, lens);
    return counts;
}

static void test_peer_counts(void)
{
    gint32 lens[64] = {4096, 1024};
    /* 33 chunks a KV head: 4096 / 160 + 1024 / 160 = 26 + 7. */
    AttnCounts c = counts_of("flashinfer-tc", 0, 0, 2, lens);
    g_assert_cmpint(c.longest_tokens, ==, 160);
    g_assert_cmpint(c.tasks, ==, 33 * 8);
    g_assert_cmpint(c.launches, ==, 2);
    g_assert_cmpint(c.kv_bytes, ==, 4LL * 5120 * 8 * 128);
    c = counts_of("flashinfer-tc", 2048, 0, 2, lens);
    g_assert_cmpint(c.longest_tokens, ==, 2048);
    g_assert_cmpint(c.tasks, ==, 3 * 8);
    c = counts_of("trtllm-xqa", 0, 1, 2, lens); /* 132 / 16 = 8 parts a row */
    g_assert_cmpint(c.longest_tokens, ==, 512);
    g_assert_cmpint(c.launches, ==, 1);
    c = counts_of("trtllm-xqa", 0, 8, 2, lens);
    g_assert_cmpint(c.longest_tokens, ==, (4096 + 65) / 66);
    c = counts_of("vllm-pa1", 0, 0, 2, lens);
    g_assert_cmpint(c.tasks, ==, 2 * 32);
    g_assert_cmpint(c.longest_tokens, ==, 4096);
    g_assert_cmpint(c.launches, ==, 1);
    c = counts_of("vllm-pa2", 0, 0, 2, lens);
    g_assert_cmpint(c.tasks, ==, (8 + 2) * 32);
    c = counts_of("flashinfer-batch", 0, 0, 2, lens);
    g_assert_cmpint(c.launches, ==, 1);
    g_assert_cmpint(c.longest_tokens, <, 512);
    /* As many rows as chunks fit: nothing is split, the longest row is one task. */
    for (gint r = 0; r < 64; r++)
        lens[r] = r == 5 ? 65536 : 2048;
    c = counts_of("flashinfer-tc", 0, 0, 64, lens);
    g_assert_cmpint(c.longest_tokens, ==, 65536);
    g_assert_cmpint(c.launches, ==, 1);
    g_assert_cmpint(c.merge_state_bytes, ==, 0);
    g_assert_cmpint(counts_of("flashinfer", 0, 0, 0, lens).tasks, ==, 0);
}

static void test_regions(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kvreplay-regions.csv", NULL),
                    *text = NULL;
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    g_autoptr(DeviceProfile) profile = profile_new(), guess = device_profile_guess();
    g_autoptr(OutFile) out = out_file_new(path, &error);
    g_assert_true(regions_write(profile, &shape, out, &error));
    g_assert_true(out_file_commit(out, &error));
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 1 + 3 * 14 * 21 + 1); /* ends with a newline */
    g_assert_true(g_str_has_prefix(lines[1], "1,128,equal,single,"));
    g_assert_nonnull(strstr(text, "\n1,131072,equal,workqueue-fused,")); /* one row must be cut */
    g_assert_nonnull(strstr(text, "\n128,131072,one-long,"));
    g_autoptr(OutFile) none = out_file_new(path, &error);
    g_assert_false(regions_write(guess, &shape, none, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/judge/read", test_read);
    g_test_add_func("/judge/decide", test_decide);
    g_test_add_func("/judge/calibration", test_calibration);
    g_test_add_func("/judge/noise", test_noise);
    g_test_add_func("/judge/bad", test_bad);
    g_test_add_func("/judge/damage", test_damage);
    g_test_add_func("/judge/no-walls", test_no_walls);
    g_test_add_func("/judge/peer-counts", test_peer_counts);
    g_test_add_func("/judge/regions", test_regions);
    return g_test_run();
}
