#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "replay/replay.h"

static void choice_free(gpointer data)
{
    plugin_choice_clear(data);
    g_free(data);
}

static void choose(PluginChoice *ret, const char *kind, const PluginInfo *const *registry,
                   const char *text)
{
    g_autoptr(GError) error = NULL;
    if (!plugin_choice_parse(ret, kind, registry, text, &error))
        g_error("built-in default: %s", error->message);
}

void replay_config_init(ReplayConfig *config)
{
    *config = (ReplayConfig){
        .execute = EXECUTE_SAMPLE,
        .execute_a = 500,
        .config = {.layers = 1, .tp = 1, .seed = 1},
    };
    config->routes = g_ptr_array_new_with_free_func(choice_free);
    choose(&config->policy, "policy", policies, "cost");
    choose(&config->splits, "split rule", split_rules, "balanced");
}

void replay_config_clear(ReplayConfig *config)
{
    plugin_choice_clear(&config->backend);
    plugin_choice_clear(&config->policy);
    plugin_choice_clear(&config->splits);
    g_clear_pointer(&config->routes, g_ptr_array_unref);
    g_clear_pointer(&config->profile, g_free);
    g_clear_pointer(&config->devices, g_free);
}

gboolean replay_parse_execute(ReplayConfig *config, const char *text, GError **error)
{
    gint64 a, b;
    if (strcmp(text, "all") == 0) {
        config->execute = EXECUTE_ALL;
        return TRUE;
    }
    if (g_str_has_prefix(text, "every=")) {
        if (kv_parse_count(text + strlen("every="), &a) && a >= 1) {
            config->execute = EXECUTE_EVERY;
            config->execute_a = (guint64)a;
            return TRUE;
        }
    } else if (strchr(text, ':') != NULL) {
        g_auto(GStrv) part = g_strsplit(text, ":", 2);
        if (kv_parse_count(part[0], &a) && kv_parse_count(part[1], &b) && a >= 0 && b > a) {
            config->execute = EXECUTE_RANGE;
            config->execute_a = (guint64)a;
            config->execute_b = (guint64)b;
            return TRUE;
        }
    } else if (kv_parse_count(text, &a) && a >= 0) {
        config->execute = EXECUTE_SAMPLE;
        config->execute_a = (guint64)a;
        return TRUE;
    }
    g_set_error(
        error, KV_ERROR, KV_ERROR_USAGE,
        "--execute '%s': expected all, N (that many steps, spread evenly), A:B (steps A to B-1) "
        "or every=K",
        text);
    return FALSE;
}

char *replay_backend_line(const ReplayConfig *config, GError **error)
{
    g_autofree char *reason = NULL;
    const BackendOps *ops = backend_choose(config->backend.info, &config->config, &reason);
    g_autofree char *why = NULL;
    if (!ops->available(&config->config, &why)) {
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "backend %s: %s", ops->info.name, why);
        return NULL;
    }
    if (config->backend.info != NULL)
        return g_strdup_printf("backend: %s (%s): %s", ops->info.name, reason, why);
    return g_strdup_printf("backend: %s (%s)", ops->info.name, reason);
}
