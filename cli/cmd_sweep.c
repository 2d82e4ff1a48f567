/* kvreplay sweep: a grid of what-ifs into one CSV. */
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/grid.h"
#include "cli/parse.h"
#include "sim/sweep.h"

static const char examples[] =
    "KEY=VALUES: a|b|c, 1..5 (whole numbers) or 1..8:0.5 (with a step). KEY: a scenario key, "
    "KEY.OPTION of a\n"
    "plug-in (scheduler.budget, arrivals.cv), or rate, cv, users, budget, seqs, scale.\n"
    "\nExamples:\n"
    "  kvreplay sweep rate=1..8 seed=1..5 --arrivals poisson --lengths empirical:file=LOG.csv \\\n"
    "      --requests 5000 --out sweep.csv\n"
    "  kvreplay sweep scale='0.5|1|2|4' pool-pages='2560|8192' --workload LOG.csv --out sweep.csv\n"
    "  mpirun -n 16 kvreplay sweep ... --out sweep.csv --resume\n"
    "  kvreplay plot sweep.csv --out pictures\n";

typedef struct SweepJob {
    const Scenario *scenario;
    const SweepGrid *grid;
    gboolean replay;
} SweepJob;

static char *run_cell(gpointer data, guint64 cell, const char *const *values, GError **error)
{
    const SweepJob *job = data;
    (void)cell;
    g_autoptr(Scenario) scenario = scenario_copy(job->scenario);
    for (guint a = 0; a < job->grid->axes->len; a++)
        if (!grid_set(scenario, g_array_index(job->grid->axes, SweepAxis, a).key, values[a], error))
            return NULL;
    return grid_cell_line(scenario, job->replay, error);
}

static gboolean is_twice(const SweepGrid *grid)
{
    const char *last = g_array_index(grid->axes, SweepAxis, grid->axes->len - 1).key;
    for (guint a = 0; a + 1 < grid->axes->len; a++)
        if (strcmp(g_array_index(grid->axes, SweepAxis, a).key, last) == 0)
            return TRUE;
    return FALSE;
}

static gboolean add_axes(SweepGrid *grid, Scenario *scenario, int n, char **words, GError **error)
{
    for (int i = 0; i < n; i++) {
        if (strchr(words[i], '=') == NULL) {
            if (!scenario_take_positional(scenario, words[i], error))
                return FALSE;
        } else if (!sweep_grid_add(grid, words[i], error)) {
            return FALSE;
        } else if (is_twice(grid)) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "'%s': this key is varied twice",
                        words[i]);
            return FALSE;
        }
    }
    if (grid->axes->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "name what to vary: KEY=VALUES, such as rate=1..8");
        return FALSE;
    }
    return TRUE;
}

/* The first cell's keys are checked before any work is begun. */
static gboolean check_axes(const SweepGrid *grid, const Scenario *scenario, GError **error)
{
    g_autoptr(Scenario) copy = scenario_copy(scenario);
    g_autofree const char **values = g_new0(const char *, grid->axes->len);
    sweep_grid_cell(grid, 0, values);
    for (guint a = 0; a < grid->axes->len; a++)
        if (!grid_set(copy, g_array_index(grid->axes, SweepAxis, a).key, values[a], error))
            return FALSE;
    WorkloadConfig workload;
    SimConfig sim;
    gboolean ok = scenario_workload_config(copy, &workload, error);
    workload_config_clear(&workload);
    ok = ok && scenario_sim_config(copy, &sim, error);
    if (ok)
        sim_config_clear(&sim);
    return ok;
}

/* What --resume would replace must be a sweep over these keys, if it is there at all. */
static gboolean check_own(const char *path, const SweepGrid *grid, GError **error)
{
    g_autoptr(GString) head = g_string_new(NULL);
    for (guint a = 0; a < grid->axes->len; a++)
        g_string_append_printf(head, "%s,", g_array_index(grid->axes, SweepAxis, a).key);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return TRUE;
    g_autoptr(Input) input = input_open(path, error);
    char *line = NULL;
    gsize len = 0;
    if (input == NULL || input_line(input, &line, &len, error) < 0)
        return FALSE;
    if (line != NULL && g_str_has_prefix(line, head->str))
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--resume: %s is no CSV of this sweep", path);
    return FALSE;
}

static gboolean sweep(Scenario *scenario, SweepGrid *grid, SweepConfig *config, gboolean replay,
                      Progress *progress, GError **error)
{
    if (!scenario_is_given(scenario, "backend"))
        scenario_set(scenario, "backend", "counters");
    g_autofree char *ini = scenario_to_ini(scenario, SCENARIO_ALL);
    SweepJob job = {scenario, grid, replay};
    config->grid = grid;
    config->figures = grid_figures(replay);
    config->scenario = ini;
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in(files, "--workload", scenario_get(scenario, "workload"));
    file_uses_out(files, "--out", config->path);
    if (!file_uses_check(files, error) || (config->resume && !check_own(config->path, grid, error)))
        return FALSE;
    if (!check_axes(grid, scenario, error) || !sweep_run(config, run_cell, &job, progress, error))
        return FALSE;
    if (sweep_is_first_rank() && strcmp(config->path, "-") != 0)
        g_print("%" G_GUINT64_FORMAT " cells in %s\n", sweep_grid_cells(grid), config->path);
    return TRUE;
}

gboolean cmd_sweep(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *out = NULL;
    gint jobs = 0;
    gboolean resume = FALSE, replay = FALSE, quiet = FALSE;
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, "CSV to write (default sweep.csv)", "FILE"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &jobs, "threads; 0 = one a processor", "N"},
        {"resume", 0, 0, G_OPTION_ARG_NONE, &resume, "go on from the cells that are finished",
         NULL},
        {"replay", 0, 0, G_OPTION_ARG_NONE, &replay,
         "plan and count every step too: launches, tasks, merge MiB", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context =
        command_context(inv, "[LOG | SCENARIO.ini] KEY=VALUES...", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_ALL & ~SCENARIO_OUTPUT);
    ParseOutcome outcome = command_parse(context, 32, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (jobs < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--jobs: expected 0 or more");
        return FALSE;
    }
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    SweepConfig config = {
        .path = out != NULL ? out : "sweep.csv", .threads = (guint)jobs, .resume = resume};
    SweepGrid grid;
    sweep_grid_init(&grid);
    gboolean ok = add_axes(&grid, scenario, argc - 1, argv + 1, error) &&
                  sweep(scenario, &grid, &config, replay, progress, error);
    sweep_grid_clear(&grid);
    return ok;
}
