/* kvreplay list: what is built in, from the same tables that parse it. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/registries.h"
#include "sim/gpus.h"
#include "sim/model_info.h"

static const char examples[] = "Examples:\n"
                               "  kvreplay list                  (the kinds)\n"
                               "  kvreplay list schedulers       (names, keys, defaults, units)\n"
                               "  kvreplay list formats --names\n";

static void print_plugin(const PluginInfo *info, gboolean names)
{
    if (names) {
        g_print("%s\n", info->name);
        return;
    }
    g_print("%-18s %s\n", info->name, info->summary);
    if (info->options != NULL && info->options[0].key != NULL) {
        g_autoptr(GString) text = g_string_new(NULL);
        spec_describe(info->options, text);
        g_print("%s", text->str);
    }
}

static void print_models(gboolean names)
{
    for (const ModelInfo *m = model_infos; m->name != NULL; m++) {
        if (names)
            g_print("%s\n", m->name);
        else
            g_print("%-18s %3u layers, %3u query heads, %2u KV heads, head dimension %3u, %.1f B "
                    "parameters\n",
                    m->name, m->layers, m->q_heads, m->kv_heads, m->head_dim,
                    model_info_parameters(m) / 1e9);
    }
}

static void print_gpus(gboolean names)
{
    for (const GpuInfo *g = gpu_infos; g->name != NULL; g++) {
        if (names)
            g_print("%s\n", g->name);
        else
            g_print("%-10s %7.0f TFLOP/s, %6.0f GB/s, %5.0f GiB, %3u SMs; reached %.0f %% and %.0f "
                    "%% (%s); peaks: %s\n",
                    g->name, g->tflops, g->gbps, g->memory_gib, g->sms, 100 * g->flop_share,
                    100 * g->memory_share, g->reach, g->source);
    }
}

/* Tables that are no plug-ins. */
static const struct {
    const char *kind, *summary;
    void (*print)(gboolean names);
} tables[] = {
    {"models", "model shapes (--model)", print_models},
    {"gpus", "GPUs with their published rates (clock roofline, --gpu)", print_gpus},
};

gboolean cmd_list(const Invocation *inv, int argc, char **argv, GError **error)
{
    gboolean names = FALSE;
    const GOptionEntry entries[] = {
        {"names", 0, 0, G_OPTION_ARG_NONE, &names, "bare names, one a line", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "[KIND]", examples, entries);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        for (const Registry *r = registries; r->kind != NULL; r++)
            g_print(names ? "%s\n" : "%-18s %s\n", r->kind, r->summary);
        for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
            g_print(names ? "%s\n" : "%-18s %s\n", tables[i].kind, tables[i].summary);
        return TRUE;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
        if (strcmp(tables[i].kind, argv[1]) == 0) {
            tables[i].print(names);
            return TRUE;
        }
    for (const Registry *r = registries; r->kind != NULL; r++) {
        if (strcmp(r->kind, argv[1]) != 0)
            continue;
        for (const PluginInfo *const *p = r->plugins; *p != NULL; p++)
            print_plugin(*p, names);
        return TRUE;
    }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "no kind '%s' (kvreplay list names them)",
                argv[1]);
    return FALSE;
}
