/* kvreplay paper: the published PersistentKV experiments (arXiv 2606.26666). */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "replay/paper.h"

static const char examples[] =
    "Counters follow from the published traces seed for seed and need no GPU.\n"
    "\nExamples:\n"
    "  kvreplay paper --counters --trace bimodal --max-active 8 --seed 20260623 --json\n"
    "  kvreplay paper --counters                      (every published experiment)\n"
    "  kvreplay paper --counters --trace zipf --max-active 8 --splits buckets=32,workqueue=28\n";

typedef struct PaperOptions {
    char *trace, *splits, *steps_file;
    gint64 max_active, seed, requests, steps;
    gboolean counters, json;
} PaperOptions;

static void paper_options_clear(PaperOptions *o)
{
    g_free(o->trace);
    g_free(o->splits);
    g_free(o->steps_file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PaperOptions, paper_options_clear)

static gboolean experiment(const PaperOptions *o, const char *trace, gint64 max_active,
                           PaperExperiment *ret, GError **error)
{
    gboolean published;
    if (!paper_experiment_init(ret, trace, max_active, o->seed, &published, error))
        return FALSE;
    if (!published)
        g_printerr("note: no published run of %s with %" G_GINT64_FORMAT
                   " row slots; requests, steps and splits are those of the nearest one\n",
                   trace, max_active);
    if (o->requests > 0)
        ret->requests = o->requests;
    if (o->steps >= 0)
        ret->steps = o->steps;
    return o->splits == NULL || paper_parse_splits(ret, o->splits, error);
}

static void print_table(const PaperExperiment *e, const PaperCounters *c)
{
    g_print("%s B%" G_GINT64_FORMAT " seed %" G_GINT64_FORMAT ": %" G_GUINT64_FORMAT
            " pages, %" G_GUINT64_FORMAT
            " steps, %.3f active rows, %.3f exact buckets, %.3f KV MiB a step\n",
            e->trace, e->max_active, e->seed, c->physical_pages, c->steps, c->mean_active,
            c->mean_exact_buckets, c->kv_mib_per_step);
    g_print("  %-18s %4s %14s %14s %12s %16s\n", "route", "S", "launches/step", "merges/step",
            "tasks/step", "merge MiB/step");
    for (guint i = 0; i < PAPER_ROUTES; i++) {
        const PaperRouteCounts *r = &c->route[i];
        if (r->route != NULL)
            g_print("  %-18s %4d %14.2f %14.2f %12.1f %16.2f\n", r->route, r->s, r->launches,
                    r->merge_launches, r->tasks, r->merge_mib);
    }
}

static gboolean one_experiment(const PaperOptions *o, const char *trace, gint64 max_active,
                               GError **error)
{
    PaperExperiment e = {0};
    PaperCounters c = {0};
    gboolean ok = experiment(o, trace, max_active, &e, error) &&
                  (o->steps_file == NULL || paper_write_steps(&e, o->steps_file, error)) &&
                  paper_counters(&e, &c, error);
    if (ok && o->json) {
        g_autoptr(JsonBuilder) b = json_builder_new();
        json_builder_begin_object(b);
        paper_counters_to_json(&e, &c, b);
        json_builder_end_object(b);
        ok = json_print(b, error);
    } else if (ok) {
        print_table(&e, &c);
    }
    paper_experiment_clear(&e);
    return ok;
}

gboolean cmd_paper(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(PaperOptions) o = {.max_active = 8, .seed = 20260623, .steps = -1};
    const GOptionEntry entries[] = {
        {"counters", 0, 0, G_OPTION_ARG_NONE, &o.counters,
         "scheduler-derived figures, exact, without a GPU", NULL},
        {"trace", 0, 0, G_OPTION_ARG_STRING, &o.trace,
         "bucketed, homogeneous, bimodal, uniform or zipf (default all published)", "NAME"},
        {"max-active", 0, 0, G_OPTION_ARG_INT64, &o.max_active, "row slots (default 8)", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT64, &o.seed, "seed of the trace (default 20260623)", "N"},
        {"requests", 0, 0, G_OPTION_ARG_INT64, &o.requests,
         "requests instead of the published number", "N"},
        {"steps", 0, 0, G_OPTION_ARG_INT64, &o.steps,
         "steps instead of the published number; 0 = all", "N"},
        {"splits", 0, 0, G_OPTION_ARG_STRING, &o.splits,
         "splits a row: N, or buckets=N,workqueue=N", "S"},
        {"steps-file", 0, 0, G_OPTION_ARG_FILENAME, &o.steps_file,
         "write the steps here, for replay (with --trace)", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "print one JSON object (with --trace)", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "", examples, entries);
    ParseOutcome outcome = command_parse(context, 0, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (!o.counters) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name what to do: --counters (see --help)");
        return FALSE;
    }
    if (o.trace != NULL)
        return one_experiment(&o, o.trace, o.max_active, error);
    if (o.json || o.steps_file != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--json and --steps-file want one experiment: --trace NAME");
        return FALSE;
    }
    for (const PaperPreset *p = paper_presets; p->trace != NULL; p++)
        if (!one_experiment(&o, p->trace, p->max_active, error))
            return FALSE;
    return TRUE;
}
