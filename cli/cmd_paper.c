/* kvreplay paper: the published PersistentKV experiments (arXiv 2606.26666). */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/paper_run.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "replay/paper.h"

static const char examples[] =
    "Counters follow from the published traces seed for seed and need no GPU. --out makes a folder "
    "with\nevery published table and figure for this machine, the corrected protocol beside them; "
    "--runtime "
    "layer\nruns whole decode steps (GEMMs, attention, sampling) and says what attention's share "
    "is.\n"
    "\nExamples:\n"
    "  kvreplay paper --out paper --quick\n"
    "  kvreplay paper --out paper --runtime layer --model llama-3.1-8b --model llama-3.2-1b\n"
    "  kvreplay paper --counters --trace bimodal --max-active 8 --seed 20260623 --json\n"
    "  kvreplay paper --counters                      (every published experiment)\n"
    "  kvreplay paper --counters --trace zipf --max-active 8 --splits buckets=32,workqueue=28\n";

enum { NOT_GIVEN = G_MININT };

typedef struct PaperOptions {
    char *trace, *splits, *steps_file, *out, *backend, *runtime, *profile;
    char *cells, *routes, *gpu, *sampling;
    char **models;
    gint64 max_active, seed, requests, steps; /* NOT_GIVEN */
    gint layers, device, tp;                  /* NOT_GIVEN */
    gboolean counters, json, quick, quiet, redraw, scripts;
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
    g_free(o->cells);
    g_free(o->routes);
    g_free(o->gpu);
    g_free(o->sampling);
    g_strfreev(o->models);
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

/* What is to be run, as bits. */
enum { COUNTERS = 1, ONE_TRACE = 2, ATTENTION = 4, LAYER = 8, REDRAW = 16 };

static gboolean parse_runtime(const char *runtime, guint *ret, GError **error)
{
    static const struct {
        const char *name;
        guint runs;
    } all[] = {{"attention", ATTENTION}, {"layer", LAYER}, {"all", ATTENTION | LAYER}};
    *ret = ATTENTION;
    if (runtime == NULL)
        return TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (strcmp(runtime, all[i].name) == 0) {
            *ret = all[i].runs;
            return TRUE;
        }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--runtime '%s': expected attention, layer or all",
                runtime);
    return FALSE;
}

/* An option that the chosen way of running has no use for is refused, never ignored. */
static gboolean check_given(const PaperOptions *o, guint runs, GError **error)
{
    const struct {
        const char *name;
        gboolean given;
        guint with;
    } all[] = {
        {"--trace", o->trace != NULL, COUNTERS},
        {"--max-active", o->max_active != NOT_GIVEN, ONE_TRACE},
        {"--seed", o->seed != NOT_GIVEN, COUNTERS | LAYER},
        {"--requests", o->requests != NOT_GIVEN, COUNTERS},
        {"--steps", o->steps != NOT_GIVEN, COUNTERS},
        {"--splits", o->splits != NULL, COUNTERS},
        {"--steps-file", o->steps_file != NULL, ONE_TRACE},
        {"--json", o->json, ONE_TRACE},
        {"--redraw", o->redraw, REDRAW},
        {"--scripts", o->scripts, ATTENTION | LAYER | REDRAW},
        {"--quick", o->quick, ATTENTION | LAYER},
        {"--backend", o->backend != NULL, ATTENTION | LAYER},
        {"--runtime", o->runtime != NULL, ATTENTION | LAYER},
        {"--profile", o->profile != NULL, ATTENTION | LAYER},
        {"--layers", o->layers != NOT_GIVEN, ATTENTION | LAYER},
        {"--device", o->device != NOT_GIVEN, ATTENTION | LAYER},
        {"--model", o->models != NULL, LAYER},
        {"--tp", o->tp != NOT_GIVEN, LAYER},
        {"--cells", o->cells != NULL, LAYER},
        {"--routes", o->routes != NULL, LAYER},
        {"--gpu", o->gpu != NULL, LAYER},
        {"--sampling", o->sampling != NULL, LAYER},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        const guint with = all[i].with;
        if (!all[i].given || (with & runs) != 0)
            continue;
        if (runs == REDRAW) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                        "%s: --redraw runs nothing, it only draws what lies in DIR", all[i].name);
            return FALSE;
        }
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s goes with %s", all[i].name,
                    with == LAYER                ? "--out DIR --runtime layer"
                    : with == (COUNTERS | LAYER) ? "--counters, or --out DIR --runtime layer: the "
                                                   "published experiments have their own"
                    : with == COUNTERS  ? "--counters: --out runs every published experiment at "
                                          "its own settings"
                    : with == ONE_TRACE ? "one experiment: --counters --trace NAME"
                                        : "--out DIR");
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
    if (o->tp != NOT_GIVEN && (o->tp < 1 || o->tp > 1024))
        return usage(error, "--tp: expected 1 to 1024");
    if (o->seed != NOT_GIVEN && o->out != NULL && (o->seed < 0 || o->seed > G_MAXUINT32))
        return usage(error, "--seed: expected 0 to 4294967295");
    if (o->sampling != NULL && strcmp(o->sampling, "gumbel") != 0 &&
        strcmp(o->sampling, "argmax") != 0)
        return usage(error, "--sampling: expected gumbel or argmax");
    return TRUE;
}

static gboolean whole_folder(const Invocation *inv, const PaperOptions *o, guint runs,
                             GError **error)
{
    static char *const default_models[] = {(char *)"llama-3.1-8b", NULL};
    g_autoptr(Progress) progress = progress_new(o->quiet, inv->interrupted);
    PaperRun run = {
        .out = o->out,
        .backend = g_strcmp0(o->backend, "auto") == 0 ? NULL : o->backend,
        .profile = o->profile,
        .quick = o->quick,
        .scripts = o->scripts,
        .layers = (gint)given_or(o->layers, 32),
        .device = (gint)given_or(o->device, 0),
        .progress = progress,
    };
    const PaperLayer layer = {
        .models = o->models != NULL ? o->models : (char **)default_models,
        .tp = (gint)given_or(o->tp, 1),
        .layers = (gint)given_or(o->layers, 0),
        .cells = o->cells,
        .routes = o->routes,
        .gpu = o->gpu != NULL ? o->gpu : "h200",
        .seed = (guint64)given_or(o->seed, PAPER_FIRST_HELD_OUT),
        .greedy = g_strcmp0(o->sampling, "argmax") == 0,
    };
    return paper_write_all(&run, (runs & ATTENTION) != 0, (runs & LAYER) != 0 ? &layer : NULL,
                           error);
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
        .tp = NOT_GIVEN,
    };
    guint runs;
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &o.out,
         "every table, picture and the report into this folder", "DIR"},
        {"quick", 0, 0, G_OPTION_ARG_NONE, &o.quick, "few executed steps; all are counted", NULL},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &o.backend,
         "auto, cuda, cpu or counters (default auto)", "NAME"},
        {"runtime", 0, 0, G_OPTION_ARG_STRING, &o.runtime,
         "attention, layer (the step's GEMMs and sampling too) or all (default attention)", "NAME"},
        {"profile", 0, 0, G_OPTION_ARG_FILENAME, &o.profile,
         "device profile (calibrate --fit) of the policies cost and learned", "FILE"},
        {"layers", 0, 0, G_OPTION_ARG_INT, &o.layers,
         "layers that share a plan in the second reading (default 32); of the layer runtime "
         "(default the model's)",
         "L"},
        {"model", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.models,
         "layer runtime: a model's name or config.json; may be repeated (default llama-3.1-8b)",
         "NAME"},
        {"tp", 0, 0, G_OPTION_ARG_INT, &o.tp,
         "layer runtime: one GPU's share of so many (default 1)", "N"},
        {"cells", 0, 0, G_OPTION_ARG_STRING, &o.cells,
         "layer runtime: batches, as for bench (default len=2k,8k,32k,bimodal;rows=1,2,4,...,64)",
         "CELLS"},
        {"routes", 0, 0, G_OPTION_ARG_STRING, &o.routes,
         "layer runtime: own routes (default persistent,workqueue-fused,workqueue,buckets)",
         "LIST"},
        {"sampling", 0, 0, G_OPTION_ARG_STRING, &o.sampling,
         "layer runtime: gumbel or argmax (default gumbel)", "NAME"},
        {"gpu", 0, 0, G_OPTION_ARG_STRING, &o.gpu,
         "layer runtime without a GPU: whose rates the estimates use (default h200)", "NAME"},
        {"device", 0, 0, G_OPTION_ARG_INT, &o.device, "CUDA device (default 0)", "N"},
        {"redraw", 0, 0, G_OPTION_ARG_NONE, &o.redraw,
         "run nothing: pictures and report again from the tables in DIR", NULL},
        {"scripts", 0, 0, G_OPTION_ARG_NONE, &o.scripts,
         "of the pictures data and scripts alone: do not call gnuplot", NULL},
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
    if (!parse_runtime(o.runtime, &runs, error))
        return FALSE;
    if (o.counters && o.out != NULL)
        return usage(error, "--counters prints and writes no folder: not with --out");
    if (!o.counters && o.out == NULL)
        return usage(error, "name what to do: --counters or --out DIR (see --help)");
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in(files, "--profile", o.profile);
    file_uses_out(files, "--steps-file", o.steps_file);
    file_uses_folder(files, "--out", o.out);
    if (!file_uses_check(files, error))
        return FALSE;
    if (o.counters)
        runs = o.trace != NULL ? COUNTERS | ONE_TRACE : COUNTERS;
    else if (o.redraw)
        runs = REDRAW;
    if (!check_given(&o, runs, error) || !check_values(&o, error))
        return FALSE;
    if (o.redraw)
        return paper_draw(o.out, o.scripts, error);
    if (o.out != NULL)
        return whole_folder(inv, &o, runs, error);
    if (o.trace != NULL)
        return one_experiment(&o, o.trace, given_or(o.max_active, 8), error);
    for (const PaperPreset *p = paper_presets; p->trace != NULL; p++)
        if (!one_experiment(&o, p->trace, p->max_active, error))
            return FALSE;
    return TRUE;
}
