/* kvreplay run: the main job, from the first log row to the last picture, into one folder. */
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "cli/tables.h"
#include "plots/plots.h"

static const char examples[] =
    "Leaves in the output folder: scenario.ini (resolved: run it again for the same bytes),\n"
    "requests.csv, steps.kvsteps, replay.csv, summary.json, plots/, report.html.\n"
    "\nExamples:\n"
    "  kvreplay run examples/azure-conv-slice.csv\n"
    "  kvreplay run LOG.csv --pool-pages 8000 --backend counters --out my-run\n"
    "  kvreplay run --arrivals poisson:rate=3 --lengths lognormal:prompt=1000,output=200 "
    "--requests 2000\n"
    "  kvreplay run my-run/scenario.ini --out again\n"
    "  kvreplay run --resume --out my-run        (after an interruption; nothing is measured "
    "twice)\n";

typedef struct RunOptions {
    char *out;
    gboolean json, quiet, dry_run, resume;
} RunOptions;

typedef struct RunPaths {
    char *steps, *requests, *replay, *scenario, *summary, *plots, *report;
} RunPaths;

static void run_paths_init(RunPaths *p, const char *out)
{
    p->steps = g_build_filename(out, "steps.kvsteps", NULL);
    p->requests = g_build_filename(out, "requests.csv", NULL);
    p->replay = g_build_filename(out, "replay.csv", NULL);
    p->scenario = g_build_filename(out, "scenario.ini", NULL);
    p->summary = g_build_filename(out, "summary.json", NULL);
    p->plots = g_build_filename(out, "plots", NULL);
    p->report = g_build_filename(out, "report.html", NULL);
}

static void run_paths_clear(RunPaths *p)
{
    g_free(p->steps);
    g_free(p->requests);
    g_free(p->replay);
    g_free(p->scenario);
    g_free(p->summary);
    g_free(p->plots);
    g_free(p->report);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RunPaths, run_paths_clear)

/* All replicas' steps files, as the simulation named them; NULL-ended. */
static char **steps_paths(const Scenario *scenario, const RunPaths *paths, GError **error)
{
    gint64 replicas;
    if (!scenario_get_int(scenario, "replicas", 1, 4096, &replicas, error))
        return NULL;
    char **ret = g_new0(char *, replicas + 1);
    for (guint k = 0; k < (guint)replicas; k++)
        ret[k] = replica_path(paths->steps, k);
    return ret;
}

/* Simulation and replay, and the JSON object that describes both; summary.json is the same object.
 */
static gboolean run_stages(Scenario *scenario, const RunPaths *paths, gboolean resume,
                           Progress *progress, SimResult *result, JsonBuilder *json, GError **error)
{
    SimulateStage stage = {.steps_path = paths->steps, .requests_path = paths->requests};
    g_auto(GStrv) steps = steps_paths(scenario, paths, error);
    if (steps == NULL)
        return FALSE;
    const ReplayStage replay = {
        .steps = (const char *const *)steps, .csv = paths->replay, .resume = resume};
    json_builder_begin_object(json);
    json_add_program(json);
    if (!stage_simulate(scenario, &stage, progress, result, json, TRUE, error) ||
        !stage_replay(scenario, &replay, progress, json, error))
        return FALSE;
    json_builder_end_object(json);
    g_autofree char *text = json_builder_text(json);
    return write_text(paths->summary, text, error);
}

static gboolean run_pictures(const Scenario *scenario, const char *out, const RunPaths *paths,
                             Progress *progress, FILE *say, GError **error)
{
    if (scenario_get_flag(scenario, "plots")) {
        const char *runs[] = {out, NULL};
        PlotRequest request = {.runs = runs, .out = paths->plots};
        g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GError) local = NULL;
        if (!plots_draw(&request, made, progress,
                        &local)) { /* the page is still made, without them */
            if (scenario_get_flag(scenario, "report"))
                report_write(out, paths->report, NULL);
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
        fprintf(say, "pictures: %u in %s\n", made->len, paths->plots);
    }
    if (scenario_get_flag(scenario, "report")) {
        if (!report_write(out, paths->report, error))
            return FALSE;
        fprintf(say, "report: %s\n", paths->report);
    }
    return TRUE;
}

static char *default_out(const Scenario *scenario)
{
    const char *workload = scenario_get(scenario, "workload");
    if (workload == NULL || strcmp(workload, "-") == 0)
        return g_strdup("kvreplay-run");
    g_autofree char *base = g_path_get_basename(workload);
    base[strcspn(base, ".:")] = '\0';
    return g_strdup_printf("kvreplay-run-%s", base);
}

static gboolean run_scenario(const Invocation *inv, Scenario *scenario, const RunOptions *options,
                             GError **error)
{
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_folder(files, "--out", options->out);
    if (!file_uses_check(files, error))
        return FALSE;
    FILE *say = options->json ? stderr : stdout;
    g_autofree char *out = options->out != NULL ? g_strdup(options->out) : default_out(scenario);
    g_auto(RunPaths) paths = {0};
    run_paths_init(&paths, out);
    g_autofree char *ini = scenario_to_ini(scenario, SCENARIO_ALL);
    if (!options->quiet)
        fprintf(say, "%s\n", ini);
    if (options->dry_run)
        return TRUE;
    if (!out_folder_make(out, error))
        return FALSE;
    g_autoptr(Progress) progress = progress_new(options->quiet, inv->interrupted);
    g_autoptr(JsonBuilder) json = json_builder_new();
    SimResult result = {0};
    if (!write_text(paths.scenario, ini, error) ||
        !run_stages(scenario, &paths, options->resume, progress, &result, json, error))
        return FALSE;
    if (!options->json) {
        print_sim_result(say, &result);
        print_replay_table(say, json);
    }
    if (!run_pictures(scenario, out, &paths, progress, say, error))
        return FALSE;
    return !options->json || json_print(json, error);
}

static gboolean resume_scenario(Scenario *scenario, const char *out, GError **error)
{
    if (out == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--resume: name the interrupted run's folder with --out");
        return FALSE;
    }
    g_autofree char *path = g_build_filename(out, "scenario.ini", NULL);
    return scenario_load(scenario, path, error);
}

gboolean cmd_run(const Invocation *inv, int argc, char **argv, GError **error)
{
    RunOptions options = {0};
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &options.out,
         "output folder (default kvreplay-run-NAME)", "DIR"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &options.quiet, "no progress, no scenario", NULL},
        {"resume", 0, 0, G_OPTION_ARG_NONE, &options.resume,
         "go on with an interrupted run: its scenario, its folder, its measured steps", NULL},
        {"dry-run", 0, 0, G_OPTION_ARG_NONE, &options.dry_run,
         "print the resolved scenario and stop", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context =
        command_context(inv, "[LOG | SCENARIO.ini]", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_ALL);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    gboolean ok = outcome == PARSE_DONE;
    if (outcome == PARSE_GO)
        ok = (!options.resume || resume_scenario(scenario, options.out, error)) &&
             (argc < 2 || scenario_take_positional(scenario, argv[1], error)) &&
             stage_announce_backend(scenario, options.json ? stderr : stdout, error) &&
             stage_remarks(scenario, error) && run_scenario(inv, scenario, &options, error);
    g_free(options.out);
    return ok;
}
