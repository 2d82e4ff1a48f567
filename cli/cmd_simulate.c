/* kvreplay simulate: workload -> steps file and request metrics. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"

static const char examples[] =
    "Examples:\n"
    "  kvreplay simulate LOG.csv --steps run.kvsteps --requests-csv requests.csv\n"
    "  kvreplay simulate --arrivals poisson:rate=5.5 --lengths empirical:file=LOG.csv \\\n"
    "      --requests 100000 --pool-pages 20000 --json\n"
    "  kvreplay simulate LOG.csv --max-num-seqs 64 --clock fixed:step=20ms\n";

gboolean cmd_simulate(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *steps = NULL, *requests = NULL, *ledger = NULL;
    gboolean json = FALSE, quiet = FALSE;
    const GOptionEntry entries[] = {
        {"steps", 0, 0, G_OPTION_ARG_FILENAME, &steps, "write the steps file here", "FILE"},
        {"requests-csv", 0, 0, G_OPTION_ARG_FILENAME, &requests, "write one line per request",
         "FILE"},
        {"ledger", 0, 0, G_OPTION_ARG_FILENAME, &ledger,
         "write every scheduling decision in vLLM's terms, and nothing else", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context =
        command_context(inv, "[LOG | SCENARIO.ini]", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_WORKLOAD | SCENARIO_MODEL | SCENARIO_ENGINE);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc > 1 && !scenario_take_positional(scenario, argv[1], error))
        return FALSE;
    const char *log = scenario_get(scenario, "workload");
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in(files, "--workload", log);
    file_uses_out(files, "--steps", steps);
    file_uses_out(files, "--requests-csv", requests);
    file_uses_out(files, "--ledger", ledger);
    if (!file_uses_check(files, error))
        return FALSE;
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    if (ledger != NULL) {
        SimResult ignored;
        return stage_ledger(scenario, ledger, progress, &ignored, error);
    }
    SimulateStage stage = {.steps_path = steps, .requests_path = requests};
    SimResult result = {0};
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    if (!stage_simulate(scenario, &stage, progress, &result, builder, TRUE, error))
        return FALSE;
    json_add_program(builder);
    json_builder_end_object(builder);
    if (json)
        return json_print(builder, error);
    print_sim_result(stdout, &result);
    return TRUE;
}
