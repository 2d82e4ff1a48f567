/* kvreplay doctor: what this machine can do, and the fix for what is missing. */
#include <string.h>
#include <unistd.h>

#include <sys/statvfs.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/scenario.h"
#include "cli/version.h"
#include "plots/plots.h"
#include "replay/backend.h"
#include "replay/layer.h"
#include "replay/peers_text.h"

static const char examples[] = "Examples:\n  kvreplay doctor\n  kvreplay doctor --gpu h200 --model "
                               "llama-3.1-70b --weights fp8\n";

static void check(gboolean ok, const char *what, const char *text)
{
    g_print("%-9s %-12s %s\n", ok ? "ok" : "missing", what, text);
}

static void check_backends(void)
{
    BackendConfig config = {.layers = 1, .tp = 1};
    for (const PluginInfo *const *p = backends; *p != NULL; p++) {
        const BackendOps *ops = (const BackendOps *)(gconstpointer)*p;
        g_autofree char *why = NULL;
        gboolean ok = ops->available(&config, &why);
        check(ok, ops->info.name, why != NULL ? why : "");
        const gint devices = ops->devices != NULL ? ops->devices() : 1;
        for (gint d = 1; d < devices; d++) { /* of a fleet, or for --tp */
            BackendConfig other = {.layers = 1, .tp = 1, .device = d};
            g_autofree char *what = g_strdup_printf("%s %d", ops->info.name, d);
            g_autofree char *text = NULL;
            ok = ops->available(&other, &text);
            check(ok, what, text != NULL ? text : "");
        }
    }
}

static void check_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    g_autofree char *memory =
        g_strdup_printf("%ld cores, %.1f GiB memory", sysconf(_SC_NPROCESSORS_ONLN),
                        (double)pages * (double)page / (1024.0 * 1024.0 * 1024.0));
    check(TRUE, "machine", memory);
    struct statvfs fs;
    if (statvfs(".", &fs) == 0) {
        double free_gib = (double)fs.f_bavail * (double)fs.f_frsize / (1024.0 * 1024.0 * 1024.0);
        g_autofree char *disk = g_strdup_printf("%.1f GiB free in the working folder", free_gib);
        check(free_gib > 0.5, "disk", disk);
    }
}

static void check_peers(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean all = peers_text(text);
    check(all, "peers", all ? "all built" : peers_fix());
    g_print("%s", text->str);
}

/* Whole decode steps: cuBLAS and a GPU. */
static void check_layer(void)
{
    g_autoptr(GError) why = NULL;
    const gboolean ok = layer_available(0, &why);
    check(ok, "layer",
          ok ? "whole decode steps (paper --runtime layer): cuBLAS found" : why->message);
}

/* The pool's size as arithmetic: for --gpu, else for the card that the defaults stand for. */
static gboolean print_pool(Scenario *scenario, GError **error)
{
    PoolSizeConfig config;
    ModelInfo model;
    if (scenario_get(scenario, "gpu") == NULL) {
        scenario_set(scenario, "gpu", "rtx3060");
        scenario_set(scenario, "weights", "int4");
    }
    if (!scenario_pool_size(scenario, &config, &model, error))
        return FALSE;
    g_autofree char *text = pool_size_text(&config, &model);
    g_print("\nroom for a KV pool on %s with %s (--gpu, --model, --weights; --pool-pages auto "
            "takes it):\n%s",
            scenario_get(scenario, "gpu"), scenario_get(scenario, "model"), text);
    return TRUE;
}

gboolean cmd_doctor(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(GOptionContext) context = command_context(inv, "", examples, NULL);
    scenario_add_options(scenario, context, SCENARIO_MODEL | SCENARIO_ENGINE);
    ParseOutcome outcome = command_parse(context, 0, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    g_print("kvreplay %s, commit %s\n", KVREPLAY_VERSION, KVREPLAY_COMMIT);
    check_machine();
    check_backends();
    g_autofree char *why = NULL;
    g_autofree char *gnuplot = plots_gnuplot_version(&why);
    check(gnuplot != NULL, "gnuplot", gnuplot != NULL ? gnuplot : why);
    check_layer();
    check_peers();
    return print_pool(scenario, error);
}
