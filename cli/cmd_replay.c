/* kvreplay replay: steps file -> measurements on a backend. */
#include "base/error.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "cli/tables.h"

static const char examples[] =
    "Examples:\n"
    "  kvreplay replay run.kvsteps --backend counters --csv replay.csv\n"
    "  kvreplay replay run.kvsteps --execute 0:2000 --routes single,workqueue --csv -\n"
    "  kvreplay replay run.kvsteps --policy always:route=workqueue --splits fixed:s=20 --json\n";

gboolean cmd_replay(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *csv = NULL, *perfetto = NULL;
    gboolean json = FALSE, quiet = FALSE;
    const GOptionEntry entries[] = {
        {"csv", 0, 0, G_OPTION_ARG_FILENAME, &csv, "write replay.csv here, '-' for standard output", "FILE"},
        {"perfetto", 0, 0, G_OPTION_ARG_FILENAME, &perfetto, "write a Perfetto / Chrome trace", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context = command_context(inv, "FILE.kvsteps", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_REPLAY);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name a steps file (made by simulate --steps or run)");
        return FALSE;
    }
    if (json && csv != NULL && g_strcmp0(csv, "-") == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--json and --csv - both want standard output");
        return FALSE;
    }
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    if (!stage_announce_backend(scenario, json || csv != NULL ? stderr : stdout, error) ||
        !stage_replay(scenario, argv[1], csv, perfetto, progress, builder, error))
        return FALSE;
    json_add_program(builder);
    json_builder_end_object(builder);
    if (json)
        return json_print(builder, error);
    if (csv == NULL || g_strcmp0(csv, "-") != 0)
        print_replay_table(stdout, builder);
    return TRUE;
}
