#include "cli/commands.h"

#include <string.h>

#include "base/error.h"

const Command commands[] = {
    {"run", cmd_run, "the main job: workload, simulation, replay, pictures and report"},
    {"workload", cmd_workload, "make, convert, describe and mix request streams"},
    {"simulate", cmd_simulate, "workload to steps file and request metrics"},
    {"steps", cmd_steps, "print, check, compare and export steps files"},
    {"replay", cmd_replay, "steps file to measurements on a backend"},
    {"sweep", cmd_sweep, "a grid of what-ifs into one CSV, on threads or under mpirun"},
    {"capacity", cmd_capacity, "the highest load that keeps given latency targets"},
    {"calibrate", cmd_calibrate, "what this device's routes cost, fitted into a profile"},
    {"bench", cmd_bench, "kernels and peers cell by cell, correctness first"},
    {"paper", cmd_paper, "the published PersistentKV experiments"},
    {"compare", cmd_compare, "two runs: paired differences by step and request, with intervals"},
    {"plot", cmd_plot, "pictures from recorded runs"},
    {"report", cmd_report, "one self-contained page from a recorded run"},
    {"list", cmd_list, "what is built in: formats, schedulers, routes, policies ..."},
    {"doctor", cmd_doctor, "what this machine can do, and the fix for what is missing"},
    {NULL, NULL, NULL},
};

gboolean scenario_take_positional(Scenario *scenario, const char *word, GError **error)
{
    if (g_str_has_suffix(word, ".ini"))
        return scenario_load(scenario, word, error);
    scenario_set(scenario, "workload", word);
    return TRUE;
}

gboolean stage_announce_backend(Scenario *scenario, FILE *out, GError **error)
{
    ReplayConfig config;
    g_autofree char *line = NULL;
    if (scenario_replay_config(scenario, &config, error))
        line = replay_backend_line(&config, error);
    replay_config_clear(&config);
    if (line == NULL)
        return FALSE;
    fprintf(out, "%s\n", line);
    return TRUE;
}
