/* Replay options that are set and have no effect on the backend that will run. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/scenario_keys.h"

enum { CUDA = 1, CPU = 2, COUNTERS = 4 };

static const struct {
    const char *key;
    guint heeded_by;
} options[] = {
    {"graphs", CUDA},        {"verify-launches", CUDA},
    {"device", CUDA},        {"sms", CUDA | COUNTERS},
    {"threads", CUDA | CPU}, {"layers", CUDA | CPU},
    {"repeats", CUDA | CPU}, {"check-every", CUDA | CPU},
    {"execute", CUDA | CPU}, {"chosen-only", CUDA | CPU},
};

static gboolean is_set(const Scenario *scenario, const char *key)
{
    for (const ScenarioKey *k = scenario_keys; k->key != NULL; k++)
        if (strcmp(k->key, key) == 0)
            return k->type == KEY_FLAG ? scenario_get_flag(scenario, key)
                                       : g_strcmp0(scenario_get(scenario, key), k->def) != 0;
    return FALSE;
}

gboolean stage_remarks(const Scenario *scenario, GError **error)
{
    ReplayConfig config;
    g_autofree char *reason = NULL;
    const BackendOps *ops = NULL;
    if (scenario_replay_config(scenario, &config, error))
        ops = backend_choose(config.backend.info, &config.config, &reason);
    replay_config_clear(&config);
    if (ops == NULL)
        return FALSE;
    const guint runs = ops == &backend_cuda ? CUDA : ops == &backend_cpu ? CPU : COUNTERS;
    g_autoptr(GString) idle = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
        if ((options[i].heeded_by & runs) == 0 && is_set(scenario, options[i].key))
            g_string_append_printf(idle, "%s--%s", idle->len > 0 ? ", " : "", options[i].key);
    if (idle->len > 0)
        fprintf(stderr, "remark: no effect on backend %s: %s\n", ops->info.name, idle->str);
    return TRUE;
}
