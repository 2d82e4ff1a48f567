/* kvreplay bench: kernels and peers cell by cell, correctness first. */
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "cli/version.h"
#include "replay/bench_judge.h"

static const char examples[] =
    "Cells are named sets (quick, full, published, calibration) or products:\n"
    "  "
    "len=2k,8k,bimodal,uniform,zipf;rows=1,4,32;heads=32:8,8:8;dim=64,128,256;page=16;dtype=fp16\n"
    "\nExamples:\n"
    "  kvreplay bench\n"
    "  kvreplay bench --cells 'len=8k,bimodal;rows=4,8' --routes workqueue,persistent --csv "
    "bench.csv\n"
    "  kvreplay bench --backend cuda --cells full --csv full.csv\n"
    "  kvreplay bench --judge full.csv --profile profile.json --csv judged.csv\n";

static gboolean bench_config(const Scenario *scenario, const char *cells, gint64 seed,
                             BenchConfig *ret, GError **error)
{
    ReplayConfig replay;
    gboolean ok = scenario_replay_config(scenario, &replay, error);
    if (ok) {
        plugin_choice_clear(&ret->backend);
        plugin_choice_clear(&ret->splits);
        ret->backend = replay.backend;
        ret->splits = replay.splits;
        ret->config = replay.config;
        ret->config.seed = (guint64)seed;
        memset(&replay.backend, 0, sizeof replay.backend); /* moved */
        memset(&replay.splits, 0, sizeof replay.splits);
        ret->commit = KVREPLAY_COMMIT;
        if (scenario_is_given(scenario, "routes")) {
            GPtrArray *chosen = replay.routes;
            replay.routes = ret->routes;
            ret->routes = chosen;
        }
        ok = bench_add_cells(ret, cells, error);
    }
    replay_config_clear(&replay);
    return ok;
}

/* --judge: nothing is run. */
static gboolean bench_judge(const Scenario *scenario, const char *path, const char *csv,
                            const char *calibration, GError **error)
{
    ReplayConfig replay;
    g_autoptr(DeviceProfile) profile = NULL;
    g_autoptr(BenchJudge) judge = bench_judge_read(path, error);
    if (judge == NULL || !scenario_replay_config(scenario, &replay, error))
        return FALSE;
    const gboolean given = replay.profile != NULL && replay.profile[0] != '\0';
    profile = given ? device_profile_read(replay.profile, error) : NULL;
    replay_config_clear(&replay);
    if (given && (profile == NULL || !bench_judge_decide(judge, profile, error)))
        return FALSE;
    if (calibration != NULL) {
        g_autoptr(OutFile) table = out_file_new(calibration, error);
        if (table == NULL || !bench_judge_calibration(judge, table, error) ||
            !out_file_commit(table, error))
            return FALSE;
    }
    if (csv != NULL) {
        g_autoptr(OutFile) out = out_file_new(csv, error);
        if (out == NULL || !bench_judge_csv(judge, out, error) || !out_file_commit(out, error))
            return FALSE;
    }
    g_autoptr(GString) text = g_string_new(NULL);
    bench_judge_asked(judge, text);
    g_string_append_c(text, '\n');
    if (given) {
        bench_judge_noise(judge, text);
        g_string_append_c(text, '\n');
    }
    bench_judge_cells(judge, text);
    g_string_append_c(text, '\n');
    bench_judge_peers(judge, given ? JUDGE_LEARNED : JUDGE_BEST, text);
    fputs(text->str, stdout);
    return out_stdout_check(error);
}

static gboolean bench_show(const BenchResult *result, gboolean json, gboolean table, GError **error)
{
    if (json) {
        g_autoptr(JsonBuilder) b = json_builder_new();
        json_builder_begin_object(b);
        json_add_program(b);
        bench_result_to_json(result, b);
        json_builder_end_object(b);
        if (!json_print(b, error))
            return FALSE;
    } else if (table) {
        g_autoptr(GString) text = g_string_new(NULL);
        bench_result_table(result, text);
        fputs(text->str, stdout);
    }
    if (result->wrong) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "a route's output differs from the fp64 reference by more than the tolerance");
        return FALSE;
    }
    return TRUE;
}

gboolean cmd_bench(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *cells = NULL, *csv = NULL, *calibration = NULL, *judge = NULL;
    gint rounds = 0, seconds = 0;
    gint64 seed = 1;
    gboolean json = FALSE, quiet = FALSE, kernel_only = FALSE;
    const GOptionEntry entries[] = {
        {"cells", 0, 0, G_OPTION_ARG_STRING, &cells, "cells to run (default quick)", "CELLS"},
        {"rounds", 0, 0, G_OPTION_ARG_INT, &rounds,
         "rounds a cell; 0 = 11, 5 or 3 by its size, on a CPU 3", "N"},
        {"kernel-only", 0, 0, G_OPTION_ARG_NONE, &kernel_only,
         "leave out plan, wall and graph times", NULL},
        {"seconds", 0, 0, G_OPTION_ARG_INT, &seconds,
         "leave out the cells that are not begun after this long; 0 = run all", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT64, &seed, "seed of lengths, pages and contents (default 1)",
         "N"},
        {"csv", 0, 0, G_OPTION_ARG_FILENAME, &csv,
         "one line per cell and route, '-' for standard output", "FILE"},
        {"calibration", 0, 0, G_OPTION_ARG_FILENAME, &calibration,
         "write a table of the cells for calibrate --fit", "FILE"},
        {"judge", 0, 0, G_OPTION_ARG_FILENAME, &judge,
         "run nothing: what the policies would have taken in the cells of this CSV, by --profile",
         "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context = command_context(inv, "", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_REPLAY);
    ParseOutcome outcome = command_parse(context, 0, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (rounds < 0 || seconds < 0 || seed < 0 || (json && csv != NULL && strcmp(csv, "-") == 0)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    rounds < 0 || seconds < 0 || seed < 0
                        ? "--rounds, --seconds, --seed: expected 0 or more"
                        : "--json and --csv - both want standard output");
        return FALSE;
    }
    if (judge != NULL && (cells != NULL || rounds > 0 || seconds > 0 || kernel_only || json)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--judge runs nothing: not with --cells, --rounds, --seconds, --kernel-only or "
                    "--json");
        return FALSE;
    }
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in(files, "--judge", judge);
    file_uses_in(files, "--profile", scenario_get(scenario, "profile"));
    file_uses_out(files, "--csv", csv);
    file_uses_out(files, "--calibration", calibration);
    if (!file_uses_check(files, error))
        return FALSE;
    if (judge != NULL)
        return bench_judge(scenario, judge, csv, calibration, error);
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    g_autoptr(OutFile) out = NULL, table = NULL;
    if ((csv != NULL && (out = out_file_new(csv, error)) == NULL) ||
        (calibration != NULL && (table = out_file_new(calibration, error)) == NULL))
        return FALSE;
    BenchConfig config;
    bench_config_init(&config);
    config.rounds = rounds;
    config.seconds = seconds;
    config.kernel_only = kernel_only;
    config.calibration = table;
    g_autoptr(BenchResult) result = NULL;
    if (bench_config(scenario, cells != NULL ? cells : "quick", seed, &config, error))
        result = bench_run(&config, out, progress, error);
    bench_config_clear(&config);
    if (result == NULL) {
        if (out != NULL)
            out_file_keep(out); /* cells measured so far */
        if (table != NULL)
            out_file_keep(table);
        return FALSE;
    }
    if ((out != NULL && !out_file_commit(out, error)) ||
        (table != NULL && !out_file_commit(table, error)))
        return FALSE;
    return bench_show(result, json, csv == NULL || strcmp(csv, "-") != 0, error);
}
