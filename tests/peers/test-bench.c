/* The bench without a GPU: cells as told, lengths as published, a run on the CPU backend, and a
 * line for whatever cannot be run.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/error.h"
#include "replay/bench_private.h"
#include "replay/peer_route.h"
#include "replay/peers_text.h"

static void add(BenchConfig *config, const char *text)
{
    g_autoptr(GError) error = NULL;
    bench_add_cells(config, text, &error);
    g_assert_no_error(error);
}

static char *name_at(const BenchConfig *config, guint i)
{
    return bench_cell_name(&g_array_index(config->cells, BenchCell, i));
}

static void test_cells(void)
{
    BenchConfig config;
    bench_config_init(&config);
    add(&config, "rows=1,64; len=2k,bimodal,100; heads=32:8,32:4");
    g_assert_cmpuint(config.cells->len, ==, 12);
    static const char *const want[] = {
        "2K_B1",   "2K_B64",   "bimodal_B1", "bimodal_B64",   "100_B1",
        "100_B64", "2K_B1_G8", "2K_B64_G8",  "bimodal_B1_G8", "bimodal_B64_G8"};
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        g_autofree char *name = name_at(&config, i);
        g_assert_cmpstr(name, ==, want[i]);
    }
    g_assert_cmpint(g_array_index(config.cells, BenchCell, 0).context, ==, 2048);
    /* No two cells of a product share a name. */
    g_array_set_size(config.cells, 0);
    add(&config, "len=64,128,bimodal,ragged:64,ragged:128,spike:64;rows=1,2;heads=8:2,16:4,32:8,32:"
                 "4,64:16;dim=64,128;"
                 "page=16,32;dtype=fp16,bf16;layout=hnd,nhd");
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < config.cells->len; i++)
        g_hash_table_add(names, name_at(&config, i));
    g_assert_cmpuint(g_hash_table_size(names), ==, config.cells->len);
    g_array_set_size(config.cells, 12);
    add(&config, "dim=64;page=32;dtype=bf16;layout=nhd");
    g_autofree char *name = name_at(&config, 12);
    g_assert_cmpstr(name, ==, "8K_B8_d64_p32_bf16_nhd");
    g_array_set_size(config.cells, 0);
    add(&config, "quick");
    g_assert_cmpuint(config.cells->len, ==, 12);
    g_array_set_size(config.cells, 0);
    add(&config, "full");
    g_assert_cmpuint(config.cells->len, ==, 4 * 49);
    g_array_set_size(config.cells, 0);
    add(&config, "published");
    g_assert_cmpuint(config.cells->len, ==, 5 + 2 + 3);
    bench_config_clear(&config);
}

/* Cells to fit to: none twice, none of those that are judged, and every judged shape among the
 * first half, so that a run that ends early has seen it. */
static void test_calibration_cells(void)
{
    BenchConfig judged, fitted;
    bench_config_init(&judged);
    bench_config_init(&fitted);
    add(&judged, "full");
    add(&fitted, "calibration");
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < judged.cells->len; i++)
        g_hash_table_add(names, name_at(&judged, i));
    for (guint i = 0; i < fitted.cells->len; i++)
        g_assert_true(g_hash_table_add(names, name_at(&fitted, i)));
    for (guint k = 0; k < judged.cells->len; k += 49) {
        const AttnShape *shape = &g_array_index(judged.cells, BenchCell, k).shape;
        guint i = 0;
        while (memcmp(&g_array_index(fitted.cells, BenchCell, i).shape, shape, sizeof *shape) != 0)
            g_assert_cmpuint(++i, <, fitted.cells->len / 2);
    }
    bench_config_clear(&judged);
    bench_config_clear(&fitted);
}

/* Each lane once a round; among six and more none that always comes right after the same one. */
static void test_lane_order(void)
{
    for (guint n = 1; n <= 20; n++) {
        guint64 after[20] = {0};
        for (guint round = 0; round < 11; round++) {
            guint64 seen = 0;
            for (guint k = 0; k < n; k++) {
                const guint at = bench_lane_at(round, k, n);
                g_assert_cmpuint(at, <, n);
                seen |= (guint64)1 << at;
                if (k > 0)
                    after[at] |= (guint64)1 << bench_lane_at(round, k - 1, n);
            }
            g_assert_cmpuint(seen, ==, ((guint64)1 << n) - 1);
        }
        for (guint i = 0; i < n && n >= 5; i++)
            g_assert_cmpuint(after[i] & (after[i] - 1), !=, 0); /* two or more */
    }
}

static void test_bad_cells(void)
{
    static const char *const bad[][2] = {
        {"len=", "tokens"},
        {"len=0", "tokens"},
        {"len=gaussian", "bimodal"},
        {"rows=0", "1 to 4096"},
        {"rows=1,,2", "1 to 4096"},
        {"heads=32", "KV heads"},
        {"heads=30:8", "KV heads"},
        {"dtype=fp8", "bf16"},
        {"width=3", "unknown key"},
        {"", "empty"},
        {" ; ", "empty"},
        {"rows=4,8,4", "once"},
        {"fast", "key=value"},
        {"dim=96", "dims 64"},
        {"page=24", "powers of two"},
    };
    BenchConfig config;
    bench_config_init(&config);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(bench_add_cells(&config, bad[i][0], &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
        g_assert_nonnull(strstr(error->message, bad[i][1]));
        g_assert_null(strchr(error->message, '\n'));
    }
    bench_config_clear(&config);
}

/* The published ranges, and the same lengths for the same seed. */
static void test_lens(void)
{
    enum { N = 256 };
    gint32 a[N], b[N];
    BenchCell cell = {.family = BENCH_BIMODAL, .rows = N};
    bench_cell_lens(&cell, 7, a);
    bench_cell_lens(&cell, 7, b);
    g_assert_cmpmem(a, sizeof a, b, sizeof b);
    bench_cell_lens(&cell, 8, b);
    g_assert_cmpint(memcmp(a, b, sizeof a), !=, 0);
    for (int i = 0; i < N; i++) {
        g_assert_cmpint(a[i], >=, i % 4 == 0 ? 24576 : 2048);
        g_assert_cmpint(a[i], <=, i % 4 == 0 ? 65536 : 12288);
    }
    cell.family = BENCH_UNIFORM;
    bench_cell_lens(&cell, 7, a);
    for (int i = 0; i < N; i++)
        g_assert_true(a[i] >= 4096 && a[i] <= 32768);
    cell.family = BENCH_ZIPF;
    bench_cell_lens(&cell, 7, a);
    for (int i = 0; i < N; i++) /* rank 1 and 32: 67584 and 13633, 512 either way */
        g_assert_true(a[i] >= 13120 && a[i] <= 68097);
    cell.family = BENCH_EQUAL;
    cell.context = 99;
    bench_cell_lens(&cell, 7, a);
    g_assert_true(a[0] == 99 && a[N - 1] == 99);
}

static guint lines_of(const char *path)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    return g_strv_length(lines) - 1; /* ends with a newline */
}

static BenchResult *run_cpu(BenchConfig *config, OutFile *csv)
{
    g_autoptr(GError) error = NULL;
    config->rounds = 1;
    config->config.threads = 1;
    plugin_choice_parse(&config->backend, "backend", backends, "cpu", &error);
    g_assert_no_error(error);
    BenchResult *result = bench_run(config, csv, NULL, &error);
    g_assert_no_error(error);
    return result;
}

static void test_run(void)
{
    g_autofree char *folder = g_dir_make_tmp("kvreplay-bench-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "bench.csv", NULL);
    g_autoptr(GError) error = NULL;
    BenchConfig config;
    bench_config_init(&config);
    add(&config, "len=33,200;rows=1,5;heads=4:1;dim=64");
    add(&config, "len=100;rows=3;heads=2:2;page=32;dtype=bf16;layout=nhd");
    g_autoptr(OutFile) csv = out_file_new(path, &error);
    g_assert_no_error(error);
    g_autoptr(BenchResult) result = run_cpu(&config, csv);
    g_assert_true(out_file_commit(csv, &error));
    g_assert_false(result->wrong);
    g_assert_cmpuint(result->cells->len, ==, 5);
    g_assert_cmpfloat(result->read_rate, >, 0);
    for (guint i = 0; i < result->cells->len; i++) {
        const BenchCellResult *cell = result->cells->pdata[i];
        g_assert_null(cell->note);
        g_assert_cmpuint(cell->lines->len, ==, ATTN_ROUTE_MAX);
        for (guint k = 0; k < cell->lines->len; k++) {
            const BenchLine *line = &g_array_index(cell->lines, BenchLine, k);
            g_assert_null(line->note);
            g_assert_cmpfloat(line->kernel_us, >, 0);
            g_assert_cmpfloat(line->wall_us, >=, line->kernel_us);
            g_assert_cmpint(line->checked_rows, ==, cell->cell.rows);
            g_assert_cmpfloat(line->max_abs_err, >, 0); /* halves are never exact here */
            g_assert_cmpfloat(line->rows_diff, >=, 0);
            g_assert_cmpfloat(line->rows_diff, <, 2e-3 * 8);
            g_assert_cmpfloat(line->graph_us, <, 0); /* the CPU has none */
            g_assert_cmpfloat(bench_line_kernel(line), ==, line->kernel_us);
        }
    }
    g_assert_cmpint(((BenchCellResult *)result->cells->pdata[3])->kv_bytes, ==, 5 * 200 * 64 * 4);
    g_assert_cmpuint(lines_of(path), ==, 1 + 5 * ATTN_ROUTE_MAX);
    g_autoptr(GString) table = g_string_new(NULL);
    bench_result_table(result, table);
    g_assert_nonnull(strstr(table->str, "200_B5"));
    g_unlink(path);
    g_rmdir(folder);
    bench_config_clear(&config);
}

/* The longest and the shortest row always, others in order while they fit; 0 bytes: all. */
/* --- caches, on a backend that is not the CPU's by name alone --- */

static GArray *asked; /* guint: what execute() was asked for, with LANE_SHIFT route */
enum { LANE_SHIFT = 16 };

static gboolean execute_noted(Backend *self, const Route *route, const AttnPlan *plan, gint repeats,
                              guint what, Execution *ret, GError **error)
{
    const guint run = what | ((guint)route->ops->builtin + 1) << LANE_SHIFT;
    g_array_append_val(asked, run);
    return backend_cpu.execute(self, route, plan, repeats, what, ret, error);
}

/* In every route's turn caches are emptied before the first run, which is not timed, and stay as
 * they are from there on; all turns are alike. */
static void check_turns(guint runs)
{
    guint i = 0, turns = 0;
    while (i < asked->len && (g_array_index(asked, guint, i) & RUN_CHECK) != 0)
        i++;
    for (; i < asked->len; turns++) {
        const guint first = g_array_index(asked, guint, i);
        g_assert_cmpuint(first & (RUN_COLD | RUN_NO_KERNEL), ==, 0);
        for (guint k = 1; k < runs; k++) {
            const guint what = g_array_index(asked, guint, i + k);
            g_assert_cmpuint(what >> LANE_SHIFT, ==, first >> LANE_SHIFT);
            g_assert_cmpuint(what & RUN_COLD, !=, 0);
        }
        i += runs;
    }
    g_assert_cmpuint(i, ==, asked->len);
    g_assert_cmpuint(turns, >=, 2 * ATTN_ROUTE_MAX);
}

static void test_emptied_between_routes(void)
{
    BackendOps ops = backend_cpu;
    ops.execute = execute_noted;
    for (int kernel_only = 0; kernel_only < 2; kernel_only++) {
        g_autoptr(GError) error = NULL;
        BenchConfig config;
        asked = g_array_new(FALSE, FALSE, sizeof(guint));
        bench_config_init(&config);
        config.backend.info = &ops.info;
        config.config.threads = 1;
        config.rounds = 2;
        config.kernel_only = kernel_only != 0;
        add(&config, "len=64;rows=2;heads=4:2");
        g_autoptr(BenchResult) result = bench_run(&config, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_false(result->wrong);
        check_turns(kernel_only ? 2 : 3); /* to warm, kernel; wall */
        bench_config_clear(&config);
        g_array_unref(asked);
    }
}

static void test_rows_to_check(void)
{
    const AttnShape shape = {4, 1, 64, 16, ATTN_F16, ATTN_HND}; /* 256 bytes an entry */
    const gint32 lens[] = {10, 400, 20, 5, 30};
    static const struct {
        gint64 bytes;
        guint n;
        gint32 rows[5];
    } cases[] = {{0, 5, {0, 1, 2, 3, 4}},      {1, 2, {1, 3}},
                 {405 * 256, 2, {1, 3}},       {415 * 256, 3, {0, 1, 3}},
                 {435 * 256, 4, {0, 1, 2, 3}}, {1 << 20, 5, {0, 1, 2, 3, 4}}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GArray) rows = backend_rows_to_check(&shape, lens, 5, cases[i].bytes);
        g_assert_cmpmem(rows->data, rows->len * sizeof(gint32), cases[i].rows,
                        cases[i].n * sizeof(gint32));
    }
}

/* What is not begun in time says so; neighbours of one shape come back, the wide ones last. */
static void test_no_time(void)
{
    BenchConfig config;
    bench_config_init(&config);
    config.seconds = 1e-15; /* lost in the clock: over at once */
    add(&config, "len=64,128k;rows=1,64");
    g_autoptr(BenchResult) result = run_cpu(&config, NULL);
    g_assert_cmpuint(result->cells->len, ==, 4);
    for (guint i = 0; i < 4; i++)
        g_assert_nonnull(strstr(((BenchCellResult *)result->cells->pdata[i])->note, "no time"));
    const BenchCellResult *last = result->cells->pdata[3];
    g_assert_cmpint(last->cell.rows, ==, 64);
    g_assert_true(bench_is_wide(&last->cell, 64 * 8192));
    g_assert_false(bench_is_wide(&last->cell, 32 * 8192 - 1));
    bench_config_clear(&config);
}

/* A cell too large for the limit, and a peer on the CPU: lines with the reason. */
static void test_left_out(void)
{
    g_autoptr(GError) error = NULL;
    PluginChoice single = {0}, peer = {0};
    BenchConfig config;
    bench_config_init(&config);
    config.max_bytes = 1 << 20;
    add(&config, "len=64,16k;rows=1;heads=4:1;dim=64");
    plugin_choice_parse(&single, "route", routes, "single", &error);
    plugin_choice_parse(&peer, "route", routes, "flashinfer-tc:split=2048", &error);
    g_assert_no_error(error);
    g_ptr_array_add(config.routes, &single);
    g_ptr_array_add(config.routes, &peer);
    g_autoptr(BenchResult) result = run_cpu(&config, NULL);
    const BenchCellResult *fits = result->cells->pdata[0], *large = result->cells->pdata[1];
    const BenchLine *line = &g_array_index(fits->lines, BenchLine, 1);
    g_assert_cmpstr(line->label, ==, "flashinfer-tc:split=2048");
    g_assert_nonnull(line->note);
    g_assert_cmpint(line->checked_rows, ==, 0);
    g_assert_cmpfloat(line->max_abs_err, <, 0);
    g_assert_nonnull(large->note);
    g_assert_nonnull(strstr(large->note, "1024 pages"));
    g_assert_cmpuint(large->lines->len, ==, 0);
    g_assert_cmpfloat(bench_best_peer(fits), ==, 0);
    plugin_choice_clear(&single);
    plugin_choice_clear(&peer);
    bench_config_clear(&config);
}

static void test_doctor(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const gboolean all = peers_text(text);
    g_assert_nonnull(strstr(text->str, "trtllm-xqa"));
    if (all)
        g_assert_null(peers_fix());
    else
        g_assert_nonnull(strstr(peers_fix(), "tools/get-peers"));
}

/* Without peers, or without a device, a peer's route is refused in words, and asking again or going
 * on all the same changes nothing. */
static void test_peer_route(void)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    AttnPool pool = {.pages = 64};
    attn_pool_strides(&pool, &shape);
    g_autoptr(PeerRoutes) peer_routes = peer_routes_new(&shape, &pool, 1, 0, FALSE);
    const gint32 lens[] = {100}, table[] = {0, 1, 2, 3, 4, 5, 6}, offset[] = {0};
    const Route route = {.ops = route_find("flashinfer")};
    const char *why = peer_routes_refuses(peer_routes, &route);
    if (why == NULL) {
        g_test_skip("peers are built and there is a device");
        return;
    }
    g_assert_true(peer_routes_refuses(peer_routes, &route) == why);
    g_autoptr(GError) error = NULL;
    g_assert_false(peer_routes_tables(peer_routes, &route, 1, lens, table, offset, NULL, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, why));
    g_assert_cmpint(peer_routes_launches(peer_routes, &route), ==, -1);
    for (guint i = 0; routes[i] != NULL; i++)
        if (((const RouteOps *)routes[i])->kind == ROUTE_PEER)
            g_assert_nonnull(peer_find(routes[i]->name));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bench/cells", test_cells);
    g_test_add_func("/bench/calibration-cells", test_calibration_cells);
    g_test_add_func("/bench/lane-order", test_lane_order);
    g_test_add_func("/bench/bad-cells", test_bad_cells);
    g_test_add_func("/bench/lens", test_lens);
    g_test_add_func("/bench/run", test_run);
    g_test_add_func("/bench/emptied-between-routes", test_emptied_between_routes);
    g_test_add_func("/bench/rows-to-check", test_rows_to_check);
    g_test_add_func("/bench/no-time", test_no_time);
    g_test_add_func("/bench/left-out", test_left_out);
    g_test_add_func("/bench/doctor", test_doctor);
    g_test_add_func("/bench/peer-route", test_peer_route);
    return g_test_run();
}
