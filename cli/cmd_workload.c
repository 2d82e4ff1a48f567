/* kvreplay workload gen | convert | describe | mix: request streams without a simulation. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/describe_pictures.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "plots/plots.h"
#include "workloads/describe.h"
#include "workloads/mix.h"
#include "workloads/write.h"

static const char examples[] =
    "Actions:\n"
    "  describe [LOG]        totals, quantiles, gaps, sessions, prefix sharing\n"
    "  gen                   make a workload from --arrivals, --lengths, --sessions, --requests\n"
    "  convert [LOG]         read any format, transform, write --to kvreplay, mooncake or "
    "vllm-bench\n"
    "  mix LOG[=WEIGHT]...   merge several logs by arrival, each thinned to its weight\n"
    "\nExamples:\n"
    "  kvreplay workload describe LOG.csv --json --plots pictures\n"
    "  kvreplay workload gen --arrivals gamma:rate=5.5,cv=2 --lengths lognormal --requests 1000 -o "
    "w.csv\n"
    "  kvreplay workload convert LOG.csv.gz --transform 'slice=300s..900s;scale=2' -o busy.csv\n"
    "  kvreplay workload convert LOG.csv --to mooncake -o log.jsonl\n"
    "  kvreplay workload mix chat.csv=3 code.csv=1 -o mixed.csv\n";

typedef struct WorkloadOptions {
    char *out, *to, *rate, *scatter, *plots;
    gboolean json, quiet;
} WorkloadOptions;

static void workload_options_clear(WorkloadOptions *o)
{
    g_free(o->out);
    g_free(o->to);
    g_free(o->rate);
    g_free(o->scatter);
    g_free(o->plots);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WorkloadOptions, workload_options_clear)

static gboolean write_table(const char *path, const Description *d,
                            gboolean (*write)(const Description *, OutFile *, GError **),
                            GError **error)
{
    if (path == NULL)
        return TRUE;
    g_autoptr(OutFile) out = out_file_new(path, error);
    return out != NULL && write(d, out, error) && out_file_commit(out, error);
}

static gboolean action_describe(const Scenario *scenario, const WorkloadOptions *o,
                                Progress *progress, GError **error)
{
    g_autoptr(Workload) workload = scenario_open_workload(scenario, FALSE, error);
    if (workload == NULL)
        return FALSE;
    g_autofree Description *d = workload_describe(workload, progress, error);
    if (d == NULL || !write_table(o->rate, d, description_write_rate, error) ||
        !write_table(o->scatter, d, description_write_scatter, error) ||
        (o->plots != NULL && !describe_pictures(d, o->plots, error)))
        return FALSE;
    g_autofree char *text = o->json ? description_json(d) : description_text(d);
    fputs(text, stdout);
    if (!g_str_has_suffix(text, "\n"))
        fputc('\n', stdout);
    return TRUE;
}

static gboolean write_workload(Workload *workload, const WorkloadOptions *o, Progress *progress,
                               GError **error)
{
    g_autoptr(OutFile) out = out_file_new(o->out != NULL ? o->out : "-", error);
    g_autofree char *warning = NULL;
    if (out == NULL ||
        !workload_write(workload, o->to != NULL ? o->to : "kvreplay", out, progress, &warning,
                        error) ||
        !out_file_commit(out, error))
        return FALSE;
    const WorkloadInfo *info = workload_info(workload);
    for (guint i = 0; info->warnings != NULL && i < info->warnings->len; i++)
        g_printerr("warning: %s\n", (const char *)g_ptr_array_index(info->warnings, i));
    if (warning != NULL)
        g_printerr("warning: %s\n", warning);
    return TRUE;
}

static gboolean action_convert(const Scenario *scenario, const WorkloadOptions *o,
                               Progress *progress, GError **error)
{
    g_autoptr(Workload) workload = scenario_open_workload(scenario, FALSE, error);
    return workload != NULL && write_workload(workload, o, progress, error);
}

static gboolean action_gen(const Scenario *scenario, const WorkloadOptions *o, Progress *progress,
                           GError **error)
{
    if (scenario_get(scenario, "arrivals") == NULL && scenario_get(scenario, "workload") == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "gen makes requests: give --arrivals and --lengths (or --workload GENERATOR)");
        return FALSE;
    }
    return action_convert(scenario, o, progress, error);
}

/* "LOG=3": the weight after the last '=' where it is a number; else weight 1. */
static char *split_weight(const char *word, double *ret_weight)
{
    const char *equals = strrchr(word, '=');
    *ret_weight = 1.0;
    double w;
    if (equals != NULL && kv_parse_real(equals + 1, &w)) {
        *ret_weight = w;
        return g_strndup(word, (gsize)(equals - word));
    }
    return g_strdup(word);
}

static gboolean open_parts(Scenario *scenario, char **words, guint n, GPtrArray *parts,
                           GArray *weights, GError **error)
{
    for (guint i = 0; i < n; i++) {
        double weight;
        g_autofree char *path = split_weight(words[i], &weight);
        if (!(weight > 0)) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "'%s': a weight must be above 0",
                        words[i]);
            return FALSE;
        }
        scenario_set(scenario, "workload", path);
        Workload *part = scenario_open_workload(scenario, FALSE, error);
        if (part == NULL)
            return FALSE;
        g_ptr_array_add(parts, part);
        g_array_append_val(weights, weight);
    }
    return TRUE;
}

static gboolean action_mix(Scenario *scenario, char **words, guint n, const WorkloadOptions *o,
                           Progress *progress, GError **error)
{
    gint64 seed;
    if (n < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "mix needs two or more logs: LOG[=WEIGHT] ...");
        return FALSE;
    }
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func((GDestroyNotify)workload_free);
    g_autoptr(GArray) weights = g_array_new(FALSE, FALSE, sizeof(double));
    if (!scenario_get_int(scenario, "seed", 0, G_MAXINT64, &seed, error) ||
        !open_parts(scenario, words, n, parts, weights, error))
        return FALSE;
    g_ptr_array_set_free_func(parts, NULL); /* workload_mix() takes them */
    g_autoptr(Workload) mixed =
        workload_mix((Workload *const *)parts->pdata, (const double *)(gpointer)weights->data, n,
                     (guint64)seed, error);
    return mixed != NULL && write_workload(mixed, o, progress, error);
}

static gboolean run_action(Scenario *scenario, const char *action, char **words, guint n,
                           const WorkloadOptions *o, Progress *progress, GError **error)
{
    g_autoptr(FileUses) files = file_uses_new();
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < n; i++) {
        double weight;
        g_ptr_array_add(paths, split_weight(words[i], &weight));
        file_uses_in(files, NULL, paths->pdata[i]);
    }
    file_uses_in(files, "--workload", scenario_get(scenario, "workload"));
    file_uses_out(files, "--out", o->out);
    file_uses_out(files, "--rate-csv", o->rate);
    file_uses_out(files, "--scatter-csv", o->scatter);
    file_uses_folder(files, "--plots", o->plots);
    if (!file_uses_check(files, error))
        return FALSE;
    if (strcmp(action, "mix") == 0)
        return action_mix(scenario, words, n, o, progress, error);
    if (n > 1) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "'%s' is one argument too many", words[1]);
        return FALSE;
    }
    if (n == 1 && !scenario_take_positional(scenario, words[0], error))
        return FALSE;
    if (strcmp(action, "describe") == 0)
        return action_describe(scenario, o, progress, error);
    if (strcmp(action, "convert") == 0)
        return action_convert(scenario, o, progress, error);
    if (strcmp(action, "gen") == 0)
        return action_gen(scenario, o, progress, error);
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                "no action '%s', expected describe, gen, convert or mix", action);
    return FALSE;
}

gboolean cmd_workload(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(WorkloadOptions) o = {0};
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &o.out, "file to write (default standard output)",
         "FILE"},
        {"to", 0, 0, G_OPTION_ARG_STRING, &o.to, "kvreplay (default), mooncake or vllm-bench",
         "FORMAT"},
        {"rate-csv", 0, 0, G_OPTION_ARG_FILENAME, &o.rate, "describe: arrivals over time", "FILE"},
        {"scatter-csv", 0, 0, G_OPTION_ARG_FILENAME, &o.scatter,
         "describe: prompt and output lengths", "FILE"},
        {"plots", 0, 0, G_OPTION_ARG_FILENAME, &o.plots,
         "describe: pictures of arrivals and lengths", "DIR"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "describe: one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context =
        command_context(inv, "describe|gen|convert|mix [LOG...]", examples, entries);
    scenario_add_options(scenario, context, SCENARIO_WORKLOAD);
    ParseOutcome outcome = command_parse(context, 64, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "name an action: describe, gen, convert or mix");
        return FALSE;
    }
    g_autoptr(Progress) progress = progress_new(o.quiet, inv->interrupted);
    return run_action(scenario, argv[1], argv + 2, (guint)argc - 2, &o, progress, error);
}
