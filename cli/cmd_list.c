/* kvreplay list: what is built in, from the same tables that parse it. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/parse.h"
#include "cli/registries.h"

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
    for (const ModelShape *m = model_shapes; m->name != NULL; m++) {
        if (names)
            g_print("%s\n", m->name);
        else
            g_print("%-18s %3u layers, %3u query heads, %2u KV heads, head dimension %u\n", m->name,
                    m->layers, m->q_heads, m->kv_heads, m->head_dim);
    }
}

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
        g_print(names ? "%s\n" : "%-18s %s\n", "models", "model shapes for --model");
        return TRUE;
    }
    if (strcmp(argv[1], "models") == 0) {
        print_models(names);
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
