/* kvreplay paper: the published PersistentKV experiments (arXiv 2606.26666). */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/paper_run.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "replay/paper.h"

static const char examples[] =
    "Counters follow from the published traces seed for seed and need no GPU. --out makes a folder "
    "with\nevery published table and figure for this machine, the corrected protocol beside them.\n"
    "\nExamples:\n"
    "  kvreplay paper --out paper --quick\n"
    "  kvreplay paper --counters --trace bimodal --max-active 8 --seed 20260623 --json\n"
    "  kvreplay paper --counters                      (every published experiment)\n"
    "  kvreplay paper --counters --trace zipf --max-active 8 --splits buckets=32,workqueue=28\n";

enum { NOT_GIVEN = G_MININT };

typedef struct PaperOptions {
    char *trace, *splits, *steps_file, *out, *backend, *runtime, *profile;
    gint64 max_active, seed, requests, steps; /* NOT_GIVEN */
    gint layers, device;                      /* NOT_GIVEN */
    gboolean counters, json, quick, quiet;
} PaperOptions;

static void paper_options_clear(PaperOptions *o)
{
    g_free(o->trace);
    g_free(o->splits);
    g_free(o->steps_file);
    g_free(o->out);
    g_free(o->backend);
    g_free(o->runtime);
    g_free(o->profile);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PaperOptions, paper_options_clear)

static gint64 given_or(gint64 value, gint64 otherwise)
{
    return value == NOT_GIVEN ? otherwise : value;
}

static gboolean experiment(const PaperOptions *o, const char *trace, gint64 max_active,
                           PaperExperiment *ret, GError **error)
{
    gboolean published;
    if (!paper_experiment_init(ret, trace, max_active, given_or(o->seed, PAPER_FIRST_HELD_OUT),
                               &published, error))
        return FALSE;
    if (!published)
        g_printerr("note: no published run of %s with %" G_GINT64_FORMAT
                   " row slots; requests, steps and splits are those of the nearest one\n",
                   trace, max_active);
    ret->requests = given_or(o->requests, ret->requests);
    ret->steps = given_or(o->steps, ret->steps);
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

static gboolean usage(GError **error, const char *text)
{
    g_set_error_literal(error, KV_ERROR, KV_ERROR_USAGE, text);
    return FALSE;
}

/* An option that the chosen way of running has no use for is refused, never ignored. */
static gboolean check_given(const PaperOptions *o, GError **error)
{
    enum { WITH_COUNTERS = 1, WITH_OUT = 2, WITH_TRACE = 4 };
    const struct {
        const char *name;
        gboolean given;
        guint with;
    } all[] = {
        {"--trace", o->trace != NULL, WITH_COUNTERS},
        {"--max-active", o->max_active != NOT_GIVEN, WITH_TRACE},
        {"--seed", o->seed != NOT_GIVEN, WITH_COUNTERS},
        {"--requests", o->requests != NOT_GIVEN, WITH_COUNTERS},
        {"--steps", o->steps != NOT_GIVEN, WITH_COUNTERS},
        {"--splits", o->splits != NULL, WITH_COUNTERS},
        {"--steps-file", o->steps_file != NULL, WITH_TRACE},
        {"--json", o->json, WITH_TRACE},
        {"--quick", o->quick, WITH_OUT},
        {"--backend", o->backend != NULL, WITH_OUT},
        {"--runtime", o->runtime != NULL, WITH_OUT},
        {"--profile", o->profile != NULL, WITH_OUT},
        {"--layers", o->layers != NOT_GIVEN, WITH_OUT},
        {"--device", o->device != NOT_GIVEN, WITH_OUT},
    };
    const guint mode = o->out != NULL     ? WITH_OUT
                       : o->trace != NULL ? WITH_COUNTERS | WITH_TRACE
                                          : WITH_COUNTERS;
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        if (!all[i].given || (all[i].with & mode) != 0)
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s goes with %s", all[i].name,
                    all[i].with == WITH_OUT        ? "--out DIR"
                    : all[i].with == WITH_COUNTERS ? "--counters: --out runs every published "
                                                     "experiment at its own settings"
                                                   : "one experiment: --counters --trace NAME");
        return FALSE;
    }
    return TRUE;
}

static gboolean check_values(const PaperOptions *o, GError **error)
{
    if (o->requests != NOT_GIVEN && o->requests < 1)
        return usage(error, "--requests: expected 1 or more");
    if (o->steps != NOT_GIVEN && o->steps < 0)
        return usage(error, "--steps: expected 0 (all) or more");
    if ((o->layers != NOT_GIVEN && (o->layers < 1 || o->layers > 1024)) ||
        (o->device != NOT_GIVEN && o->device < 0))
        return usage(error,
                     "--layers and --device: expected 1 to 1024 layers and an ordinal from 0");
    return TRUE;
}

static gboolean whole_folder(const Invocation *inv, const PaperOptions *o, GError **error)
{
    g_autoptr(Progress) progress = progress_new(o->quiet, inv->interrupted);
    PaperRun run = {
        .out = o->out,
        .backend = g_strcmp0(o->backend, "auto") == 0 ? NULL : o->backend,
        .profile = o->profile,
        .quick = o->quick,
        .layers = (gint)given_or(o->layers, 32),
        .device = (gint)given_or(o->device, 0),
        .progress = progress,
    };
    return paper_write_all(&run, error);
}

static gboolean check_runtime(const char *runtime, GError **error)
{
    if (runtime == NULL || strcmp(runtime, "attention") == 0)
        return TRUE;
    if (strcmp(runtime, "layer") == 0)
        g_set_error_literal(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                            "--runtime layer: this build has no GEMMs (cuBLAS) to run beside the "
                            "attention; --runtime attention measures attention alone");
    else
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--runtime '%s': expected attention or layer",
                    runtime);
    return FALSE;
}

gboolean cmd_paper(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(PaperOptions) o = {
        .max_active = NOT_GIVEN,
        .seed = NOT_GIVEN,
        .requests = NOT_GIVEN,
        .steps = NOT_GIVEN,
        .layers = NOT_GIVEN,
        .device = NOT_GIVEN,
    };
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &o.out,
         "every table, picture and the report into this folder", "DIR"},
        {"quick", 0, 0, G_OPTION_ARG_NONE, &o.quick, "few executed steps; all are counted", NULL},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &o.backend,
         "auto, cuda, cpu or counters (default auto)", "NAME"},
        {"runtime", 0, 0, G_OPTION_ARG_STRING, &o.runtime,
         "attention, or layer: with the step's GEMMs (default attention)", "NAME"},
        {"profile", 0, 0, G_OPTION_ARG_FILENAME, &o.profile,
         "device profile (calibrate --fit) of the policies cost and learned", "FILE"},
        {"layers", 0, 0, G_OPTION_ARG_INT, &o.layers,
         "layers that share a plan in the second reading (default 32)", "L"},
        {"device", 0, 0, G_OPTION_ARG_INT, &o.device, "CUDA device (default 0)", "N"},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "no progress", NULL},
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
    if (!check_runtime(o.runtime, error))
        return FALSE;
    if (o.counters == (o.out != NULL))
        return usage(error, "name what to do: --counters or --out DIR (see --help)");
    if (!check_given(&o, error) || !check_values(&o, error))
        return FALSE;
    if (o.out != NULL)
        return whole_folder(inv, &o, error);
    if (o.trace != NULL)
        return one_experiment(&o, o.trace, given_or(o.max_active, 8), error);
    for (const PaperPreset *p = paper_presets; p->trace != NULL; p++)
        if (!one_experiment(&o, p->trace, p->max_active, error))
            return FALSE;
    return TRUE;
}
