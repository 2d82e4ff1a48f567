/* kvreplay replay: steps file -> measurements on a backend. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "cli/tables.h"
#include "plots/perfetto.h"

static const char examples[] =
    "Examples:\n"
    "  kvreplay replay run.kvsteps --backend counters --csv replay.csv\n"
    "  kvreplay replay run.kvsteps run-1.kvsteps --devices all --csv replay.csv    (a fleet)\n"
    "  kvreplay replay run.kvsteps --execute 0:2000 --routes single,workqueue --csv -\n"
    "  kvreplay replay run.kvsteps --policy always:route=workqueue --splits fixed:s=20 --json\n";

/* Measured kernels are in the trace where they were written to a file. requests.csv beside the
 * steps file, as `run` leaves it, gives the waiting. */
static gboolean write_perfetto(const Scenario *scenario, const char *steps, const char *csv,
                               const char *out, Progress *progress, GError **error)
{
    gint64 from, to;
    if (!scenario_get_int(scenario, "from", 0, G_MAXINT64, &from, error) ||
        !scenario_get_int(scenario, "to", 0, G_MAXINT64, &to, error))
        return FALSE;
    g_autofree char *folder = g_path_get_dirname(steps);
    g_autofree char *requests = g_build_filename(folder, "requests.csv", NULL);
    PerfettoRequest request = {
        .steps = steps,
        .requests = g_file_test(requests, G_FILE_TEST_IS_REGULAR) ? requests : NULL,
        .replay = csv != NULL && strcmp(csv, "-") != 0 ? csv : NULL,
        .from = (guint64)from,
        .to = (guint64)to,
        .out = out,
    };
    return perfetto_write(&request, progress, error);
}

gboolean cmd_replay(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *csv = NULL, *perfetto = NULL, *calibration = NULL;
    gboolean json = FALSE, quiet = FALSE, resume = FALSE;
    const GOptionEntry entries[] = {
        {"csv", 0, 0, G_OPTION_ARG_FILENAME, &csv, "write replay.csv here, '-' for standard output",
         "FILE"},
        {"perfetto", 0, 0, G_OPTION_ARG_FILENAME, &perfetto, "write a Perfetto / Chrome trace",
         "FILE"},
        {"resume", 0, 0, G_OPTION_ARG_NONE, &resume,
         "go on from what an interrupted replay left as CSV.part", NULL},
        {"calibration", 0, 0, G_OPTION_ARG_FILENAME, &calibration,
         "write a table of the executed steps for calibrate --fit", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context =
        command_context(inv, "FILE.kvsteps [FILE-1.kvsteps ...]", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_REPLAY);
    ParseOutcome outcome = command_parse(context, 4096, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "name a steps file (made by simulate --steps or run)");
        return FALSE;
    }
    g_autoptr(FileUses) files = file_uses_new();
    for (int i = 1; i < argc; i++)
        file_uses_in(files, NULL, argv[i]);
    file_uses_in(files, "--profile", scenario_get(scenario, "profile"));
    file_uses_out(files, "--csv", csv);
    file_uses_out(files, "--calibration", calibration);
    file_uses_out(files, "--perfetto", perfetto);
    if (json && csv != NULL && g_strcmp0(csv, "-") == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--json and --csv - both want standard output");
        return FALSE;
    }
    if (!file_uses_check(files, error))
        return FALSE;
    const ReplayStage stage = {(const char *const *)argv + 1, csv, calibration, resume};
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    if (!stage_announce_backend(scenario, json || csv != NULL ? stderr : stdout, error) ||
        !stage_remarks(scenario, error) ||
        !stage_replay(scenario, &stage, progress, builder, error))
        return FALSE;
    if (perfetto != NULL && !write_perfetto(scenario, argv[1], csv, perfetto, progress, error))
        return FALSE;
    json_add_program(builder);
    json_builder_end_object(builder);
    if (json)
        return json_print(builder, error);
    if (csv == NULL || g_strcmp0(csv, "-") != 0)
        print_replay_table(stdout, builder);
    return TRUE;
}
