/* kvreplay capacity: the highest load that keeps given latency targets. */
#include <math.h>
#include <string.h>

#include <json-glib/json-glib.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/grid.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "sim/capacity.h"

static const char examples[] =
    "The load is --vary's key: rate (requests/s) for generated arrivals, users for a closed loop, "
    "scale (times\n"
    "as fast) for a recorded log. Each replication has random numbers of its own.\n"
    "\nExamples:\n"
    "  kvreplay capacity --targets 'ttft.p99<=2s,itl.p99<=80ms' --arrivals poisson \\\n"
    "      --lengths empirical:file=LOG.csv --requests 5000 --replications 8\n"
    "  kvreplay capacity --targets 'ttft.p99<=2s' --workload LOG.csv --replications 1\n"
    "  kvreplay capacity --targets 'e2e.p90<=30s' --arrivals closed:think=10s --lengths lognormal "
    "--requests 3000\n";

typedef struct CapacityJob {
    const Scenario *scenario;
    const char *vary;
} CapacityJob;

static gboolean run_trial(gpointer data, double load, guint32 replication, SimResult *ret,
                          GError **error)
{
    const CapacityJob *job = data;
    g_autoptr(Scenario) scenario = scenario_copy(job->scenario);
    g_autofree char *value =
        strcmp(job->vary, "users") == 0
            ? g_strdup_printf("%" G_GINT64_FORMAT, (gint64)MAX(1.0, round(load)))
            : kv_format_real(load);
    g_autofree char *number = g_strdup_printf("%u", replication);
    scenario_set(scenario, "replication", number);
    return grid_set(scenario, job->vary, value, error) && grid_simulate(scenario, ret, error);
}

static const char *default_vary(const Scenario *scenario)
{
    const char *arrivals = scenario_get(scenario, "arrivals");
    if (arrivals == NULL)
        return "scale";
    return g_str_has_prefix(arrivals, "closed") ? "users" : "rate";
}

static void add_double(JsonBuilder *b, const char *name, double value)
{
    json_builder_set_member_name(b, name);
    if (isnan(value))
        json_builder_add_null_value(b);
    else
        json_builder_add_double_value(b, value);
}

static gboolean print_result(const CapacityResult *r, const char *vary, const char *targets,
                             gboolean json, GError **error)
{
    if (!json) {
        g_autofree char *interval =
            isnan(r->low) ? g_strdup("no interval from one replication")
                          : g_strdup_printf("95 %% interval %.4g to %.4g", r->low, r->high);
        g_print("%s%s %.5g keeps %s: %s, %u replications, %u simulations\n",
                r->unbounded ? "at least " : "", vary, r->load, targets, interval, r->replications,
                r->trials);
        if (r->load <= 0)
            g_print("the targets break at every load tried\n");
        return TRUE;
    }
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "vary");
    json_builder_add_string_value(b, vary);
    json_builder_set_member_name(b, "targets");
    json_builder_add_string_value(b, targets);
    add_double(b, "load", r->load);
    add_double(b, "low", r->low);
    add_double(b, "high", r->high);
    json_builder_set_member_name(b, "unbounded");
    json_builder_add_boolean_value(b, r->unbounded);
    json_builder_set_member_name(b, "simulations");
    json_builder_add_int_value(b, r->trials);
    json_builder_set_member_name(b, "each");
    json_builder_begin_array(b);
    for (guint i = 0; i < r->replications; i++)
        json_builder_add_double_value(b, r->each[i]);
    json_builder_end_array(b);
    json_builder_end_object(b);
    return json_print(b, error);
}

typedef struct CapacityOptions {
    char *targets, *vary;
    double start, largest, precision;
    gint replications, jobs;
    gboolean json, quiet;
} CapacityOptions;

static void capacity_options_clear(CapacityOptions *o)
{
    g_free(o->targets);
    g_free(o->vary);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CapacityOptions, capacity_options_clear)

static gboolean find(const Scenario *scenario, const CapacityOptions *o, const Progress *progress,
                     GError **error)
{
    CapacityConfig config;
    capacity_config_init(&config);
    if (o->targets == NULL || !(o->start > 0) || o->largest < 0 || o->replications < 1 ||
        o->replications > 64 || o->jobs < 0 || !(o->precision > 0)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    o->targets == NULL
                        ? "name the targets: --targets 'ttft.p99<=2s'"
                        : "--start, --precision above 0; --replications 1 to 64; --jobs 0 or more");
        return FALSE;
    }
    if (!capacity_targets_parse(&config.targets, o->targets, error))
        return FALSE;
    config.start = o->start;
    config.largest = o->largest;
    config.precision = o->precision;
    config.replications = (guint)o->replications;
    config.threads = (guint)o->jobs;
    const char *vary = o->vary != NULL ? o->vary : default_vary(scenario);
    CapacityJob job = {scenario, vary};
    CapacityResult result;
    return capacity_find(&config, run_trial, &job, progress, &result, error) &&
           print_result(&result, vary, o->targets, o->json, error);
}

gboolean cmd_capacity(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(CapacityOptions) o = {.start = 1.0, .precision = 0.01, .replications = 5};
    const GOptionEntry entries[] = {
        {"targets", 0, 0, G_OPTION_ARG_STRING, &o.targets,
         "METRIC.FIGURE<=TIME,...: ttft.p99<=2s,itl.p99<=80ms,finished>=0.99", "LIST"},
        {"vary", 0, 0, G_OPTION_ARG_STRING, &o.vary,
         "what the load is: rate, users, scale, or any numeric key", "KEY"},
        {"start", 0, 0, G_OPTION_ARG_DOUBLE, &o.start, "first load tried (default 1)", "LOAD"},
        {"largest", 0, 0, G_OPTION_ARG_DOUBLE, &o.largest, "never tried above; 0 = start x 2^20",
         "LOAD"},
        {"precision", 0, 0, G_OPTION_ARG_DOUBLE, &o.precision,
         "relative width of the last bracket (default 0.01)", "SHARE"},
        {"replications", 0, 0, G_OPTION_ARG_INT, &o.replications,
         "independent searches (default 5)", "N"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &o.jobs, "threads; 0 = one a processor", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "print one JSON object", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "no progress", NULL},
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
    g_autoptr(Progress) progress = progress_new(o.quiet, inv->interrupted);
    return find(scenario, &o, progress, error);
}
