/* The typed side of a scenario: text values into the modules' configs. */
#include "cli/scenario.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/clock_measured.h"
#include "cli/scenario_keys.h"
#include "sim/model_info.h"
#include "sim/pool_size.h"

/* A billion tokens in pages of 16; a page takes some tens of bytes of the simulator's memory. */
#define MOST_PAGES ((gint64)1 << 26)

static gboolean usage(GError **error, const char *key, const char *value, const char *expected)
{
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: '%s', expected %s", key,
                value != NULL ? value : "", expected);
    return FALSE;
}

/* -1 + error when `value` is none of the '|'-separated words. */
static int get_choice(const Scenario *self, const char *key, const char *choices, GError **error)
{
    const char *value = scenario_get(self, key);
    g_auto(GStrv) words = g_strsplit(choices, "|", -1);
    for (int i = 0; words[i] != NULL; i++)
        if (value != NULL && g_ascii_strcasecmp(value, words[i]) == 0)
            return i;
    usage(error, key, value, choices);
    return -1;
}

static gboolean get_plugin(const Scenario *self, const char *key, PluginChoice *ret, GError **error)
{
    for (const ScenarioKey *k = scenario_keys; k->key != NULL; k++) {
        if (strcmp(k->key, key) != 0)
            continue;
        const char *text = scenario_get(self, key);
        return plugin_choice_parse(ret, k->kind, k->registry, text != NULL ? text : "", error);
    }
    g_assert_not_reached();
}

gboolean scenario_workload_config(const Scenario *self, WorkloadConfig *ret, GError **error)
{
    workload_config_init(ret);
    gint64 requests, seed, replication;
    int zero = get_choice(self, "zero-output", "drop|keep", error);
    if (zero < 0 || !scenario_get_int(self, "requests", 0, G_MAXINT64, &requests, error) ||
        !scenario_get_int(self, "seed", 0, G_MAXINT64, &seed, error) ||
        !scenario_get_int(self, "replication", 0, (1 << 24) - 1, &replication, error))
        return FALSE;
    if (scenario_get(self, "workload") == NULL && scenario_get(self, "arrivals") == NULL) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_USAGE,
            "no workload: name a log (--workload FILE) or make one (--arrivals poisson:rate=5 "
            "--lengths fixed:prompt=1000,output=100 --requests 500)");
        return FALSE;
    }
    static const struct {
        const char *key;
        gsize offset;
    } texts[] = {
        {"workload", offsetof(WorkloadConfig, workload)},
        {"format", offsetof(WorkloadConfig, format)},
        {"map", offsetof(WorkloadConfig, map)},
        {"arrivals", offsetof(WorkloadConfig, arrivals)},
        {"lengths", offsetof(WorkloadConfig, lengths)},
        {"sessions", offsetof(WorkloadConfig, sessions)},
        {"transform", offsetof(WorkloadConfig, transforms)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        char **field = (char **)(gpointer)((char *)ret + texts[i].offset);
        g_free(*field);
        *field = g_strdup(scenario_get(self, texts[i].key));
    }
    ret->requests = requests;
    ret->seed = (guint64)seed;
    ret->replication = (guint32)replication;
    ret->zero_output = zero == 0 ? ZERO_OUTPUT_DROP : ZERO_OUTPUT_KEEP;
    ret->strict = scenario_get_flag(self, "strict");
    return TRUE;
}

Workload *scenario_open_workload(const Scenario *self, gboolean hash, GError **error)
{
    WorkloadConfig config;
    Workload *workload = NULL;
    if (scenario_workload_config(self, &config, error)) {
        config.hash = hash ? 1 : config.hash;
        workload = workload_open(&config, error);
    }
    workload_config_clear(&config);
    return workload;
}

gboolean scenario_model(const Scenario *self, ModelInfo *ret, GError **error)
{
    const char *name = scenario_get(self, "model");
    gint64 layers, q, kv, d;
    gboolean file = name != NULL && g_str_has_suffix(name, ".json");
    if (!(file ? model_info_read(name, ret, error)
               : model_info_find(name != NULL ? name : "", ret, error)) ||
        !scenario_get_int(self, "model-layers", 0, 10000, &layers, error) ||
        !scenario_get_int(self, "q-heads", 0, 1024, &q, error) ||
        !scenario_get_int(self, "kv-heads", 0, 1024, &kv, error) ||
        !scenario_get_int(self, "head-dim", 0, 1024, &d, error))
        return FALSE;
    ret->layers = layers != 0 ? (guint)layers : ret->layers;
    ret->q_heads = q != 0 ? (guint)q : ret->q_heads;
    ret->kv_heads = kv != 0 ? (guint)kv : ret->kv_heads;
    ret->head_dim = d != 0 ? (guint)d : ret->head_dim;
    if (ret->kv_heads == 0 || ret->q_heads % ret->kv_heads != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "%u query heads do not divide into groups of %u KV heads", ret->q_heads,
                    ret->kv_heads);
        return FALSE;
    }
    if (ret->head_dim % 8 != 0)
        return usage(error, "head-dim", scenario_get(self, "head-dim"), "a multiple of 8");
    return TRUE;
}

gboolean scenario_pool_size(const Scenario *self, PoolSizeConfig *ret, ModelInfo *ret_model,
                            GError **error)
{
    const char *name = scenario_get(self, "gpu");
    if (name == NULL)
        return usage(error, "pool-pages", "auto",
                     "a GPU to size it for: --gpu rtx3060 (kvreplay list gpus)");
    const GpuInfo *gpu = gpu_info_find(name, error);
    gint64 tp, page, reserve;
    int weights = get_choice(self, "weights", NUMBER_CHOICES, error);
    if (gpu == NULL || weights < 0 || !scenario_model(self, ret_model, error) ||
        !scenario_get_int(self, "tp", 1, 1024, &tp, error) ||
        !scenario_get_int(self, "page-size", 1, 128, &page, error))
        return FALSE;
    pool_size_config_init(ret, gpu->memory_gib);
    const char *text = scenario_get(self, "gpu-memory-utilization");
    if (text == NULL || !kv_parse_real(text, &ret->utilization) || !(ret->utilization > 0) ||
        ret->utilization > 1)
        return usage(error, "gpu-memory-utilization", text, "a share above 0, up to 1");
    text = scenario_get(self, "activation-reserve");
    if (text != NULL) {
        if (!kv_parse_bytes(text, &reserve) || reserve < 0)
            return usage(error, "activation-reserve", text, "bytes such as 1.5GiB");
        ret->reserve_gib = (double)reserve / (double)(1 << 30);
    }
    ret->weights = (NumberType)weights;
    ret->tp = (guint)tp;
    ret->page_size = (guint)page;
    return TRUE;
}

gboolean scenario_pool_pages(const Scenario *self, guint64 *ret, GError **error)
{
    gint64 pages;
    if (g_strcmp0(scenario_get(self, "pool-pages"), "auto") != 0) {
        if (!scenario_get_int(self, "pool-pages", 1, MOST_PAGES, &pages, error))
            return FALSE;
        *ret = (guint64)pages;
        return TRUE;
    }
    PoolSizeConfig config;
    ModelInfo model;
    if (!scenario_pool_size(self, &config, &model, error))
        return FALSE;
    *ret = pool_size(&config, &model).pages;
    if (*ret == 0) {
        g_autofree char *text = pool_size_text(&config, &model);
        g_auto(GStrv) lines = g_strsplit(g_strstrip(text), "\n", -1);
        g_autofree char *line = g_strjoinv("; ", lines);
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "no room for a KV pool: %s", line);
        return FALSE;
    }
    return TRUE;
}

gboolean scenario_sim_config(const Scenario *self, SimConfig *ret, GError **error)
{
    sim_config_init(ret);
    plugin_choice_clear(&ret->scheduler);
    gint64 page_size, seed;
    int cache = get_choice(self, "prefix-cache", "auto|off|on", error);
    if (cache < 0 || !get_plugin(self, "scheduler", &ret->scheduler, error) ||
        !scenario_get_int(self, "page-size", 1, 128, &page_size, error) ||
        !scenario_pool_pages(self, &ret->pool_pages, error) ||
        !scenario_get_int(self, "context-limit", 0, G_MAXINT32, &ret->context_limit, error) ||
        !scenario_get_int(self, "max-model-len", 0, G_MAXINT32, &ret->max_model_len, error) ||
        !scenario_get_int(self, "seed", 0, G_MAXINT64, &seed, error))
        return FALSE;
    if ((page_size & (page_size - 1)) != 0)
        return usage(error, "page-size", scenario_get(self, "page-size"),
                     "a power of two from 1 to 128");
    const char *warmup = scenario_get(self, "warmup");
    if (warmup == NULL || !kv_parse_time(warmup, &ret->warmup) || ret->warmup < 0)
        return usage(error, "warmup", warmup, "a time such as 30s");
    ret->page_size = (guint32)page_size;
    ret->clip = scenario_get_flag(self, "clip");
    ret->prefix_cache = cache - 1;
    ret->fast_forward = scenario_get_flag(self, "fast-forward");
    g_free(ret->pool_layout);
    ret->pool_layout = g_strdup(scenario_get(self, "pool-layout"));
    ret->seed = (guint64)seed;
    return TRUE;
}

gboolean scenario_fleet(const Scenario *self, FleetConfig *ret, GError **error)
{
    gint64 n;
    memset(ret, 0, sizeof *ret);
    if (!scenario_get_int(self, "replicas", 1, 4096, &n, error) ||
        !get_plugin(self, "router", &ret->router, error))
        return FALSE;
    ret->replicas = (guint)n;
    return TRUE;
}

gboolean scenario_clock(const Scenario *self, guint replica, StepClock **ret, GError **error)
{
    PluginChoice choice = {0};
    if (!get_plugin(self, "clock", &choice, error))
        return FALSE;
    if (choice.info == &clock_measured.info) {
        StepsHeader header = {0};
        *ret = NULL;
        if (scenario_steps_header(self, &header, error)) {
            header.replica = replica;
            *ret = measured_clock_new(&choice, &header, header.seed, error);
        }
        steps_header_clear(&header);
    } else {
        *ret = step_clock_new(&choice, error);
    }
    plugin_choice_clear(&choice);
    return *ret != NULL;
}

gboolean scenario_parse_routes(const char *text, GPtrArray *out, GError **error)
{
    g_autoptr(GString) current = g_string_new(NULL);
    g_auto(GStrv) pieces = g_strsplit(text, ",", -1);
    for (char **p = pieces; *p != NULL; p++) {
        const char *equals = strchr(*p, '='), *colon = strchr(*p, ':');
        gboolean more = equals != NULL && (colon == NULL || colon > equals);
        if (more && current->len > 0)
            g_string_append_printf(current, ",%s", *p);
        else
            g_string_assign(current, *p);
        const char *next = p[1];
        const char *next_equals = next != NULL ? strchr(next, '=') : NULL;
        const char *next_colon = next != NULL ? strchr(next, ':') : NULL;
        if (next_equals != NULL && (next_colon == NULL || next_colon > next_equals))
            continue;
        g_autofree PluginChoice *choice = g_new0(PluginChoice, 1);
        if (!plugin_choice_parse(choice, "route", routes, current->str, error))
            return FALSE;
        g_ptr_array_add(out, g_steal_pointer(&choice));
    }
    return TRUE;
}

static gboolean replay_backend(const Scenario *self, ReplayConfig *ret, GError **error)
{
    const char *backend = scenario_get(self, "backend");
    if (backend == NULL || strcmp(backend, "auto") == 0)
        return TRUE;
    return plugin_choice_parse(&ret->backend, "backend", backends, backend, error);
}

static gboolean replay_numbers(const Scenario *self, ReplayConfig *ret, GError **error)
{
    static const struct {
        const char *key;
        gint64 min, max;
        gsize offset;
    } ints[] = {
        {"repeats", 0, 1000000, offsetof(ReplayConfig, repeats)},
        {"check-every", 0, G_MAXINT32, offsetof(ReplayConfig, check_every)},
        {"workers", 0, 1000000, offsetof(ReplayConfig, workers)},
        {"threads", 0, 4096, offsetof(ReplayConfig, config.threads)},
        {"layers", 1, 1024, offsetof(ReplayConfig, config.layers)},
        {"device", 0, 1023, offsetof(ReplayConfig, config.device)},
        {"sms", 0, 65535, offsetof(ReplayConfig, config.sms)},
        {"tp", 1, 1024, offsetof(ReplayConfig, config.tp)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++) {
        gint64 n;
        if (!scenario_get_int(self, ints[i].key, ints[i].min, ints[i].max, &n, error))
            return FALSE;
        *(gint *)(gpointer)((char *)ret + ints[i].offset) = (gint)n;
    }
    gint64 from, to, seed;
    if (!scenario_get_int(self, "from", 0, G_MAXINT64, &from, error) ||
        !scenario_get_int(self, "to", 0, G_MAXINT64, &to, error) ||
        !scenario_get_int(self, "seed", 0, G_MAXINT64, &seed, error))
        return FALSE;
    if (to != 0 && to <= from)
        return usage(error, "to", scenario_get(self, "to"), "a step after --from");
    ret->from = (guint64)from;
    ret->to = (guint64)to;
    ret->config.seed = (guint64)seed;
    return TRUE;
}

gboolean scenario_replay_config(const Scenario *self, ReplayConfig *ret, GError **error)
{
    replay_config_init(ret);
    plugin_choice_clear(&ret->policy);
    plugin_choice_clear(&ret->splits);
    g_ptr_array_set_size(ret->routes, 0);
    const char *routes_text = scenario_get(self, "routes");
    int layout = get_choice(self, "kv-layout", "hnd|nhd", error);
    if (layout < 0 || !replay_backend(self, ret, error) ||
        !get_plugin(self, "policy", &ret->policy, error) ||
        !get_plugin(self, "splits", &ret->splits, error) ||
        !scenario_parse_routes(routes_text != NULL ? routes_text : "", ret->routes, error) ||
        !replay_numbers(self, ret, error))
        return FALSE;
    const char *execute = scenario_get(self, "execute");
    if (execute != NULL && strcmp(execute, "auto") != 0 &&
        !replay_parse_execute(ret, execute, error))
        return FALSE;
    ret->config.shape.layout = layout == 0 ? ATTN_HND : ATTN_NHD;
    ret->config.graphs = scenario_get_flag(self, "graphs");
    ret->config.verify_launches = scenario_get_flag(self, "verify-launches");
    ret->chosen_only = scenario_get_flag(self, "chosen-only");
    g_free(ret->devices);
    ret->devices = g_strdup(scenario_get(self, "devices"));
    g_free(ret->profile);
    ret->profile = g_strdup(scenario_get(self, "profile"));
    return TRUE;
}

gboolean scenario_steps_header(const Scenario *self, StepsHeader *ret, GError **error)
{
    ModelInfo m;
    gint64 page, seed;
    guint64 pool;
    if (!scenario_model(self, &m, error) ||
        !scenario_get_int(self, "page-size", 1, 128, &page, error) ||
        !scenario_pool_pages(self, &pool, error) ||
        !scenario_get_int(self, "seed", 0, G_MAXINT64, &seed, error) ||
        get_choice(self, "dtype", "fp16|bf16", error) < 0)
        return FALSE;
    memset(ret, 0, sizeof *ret);
    ret->model = g_strdup(scenario_get(self, "model"));
    ret->layers = m.layers;
    ret->q_heads = m.q_heads;
    ret->kv_heads = m.kv_heads;
    ret->head_dim = m.head_dim;
    ret->dtype = g_ascii_strdown(scenario_get(self, "dtype"), -1);
    ret->page_size = (guint32)page;
    ret->pool_pages = pool;
    ret->seed = (guint64)seed;
    ret->scenario = scenario_to_ini(self, SCENARIO_WORKLOAD | SCENARIO_MODEL | SCENARIO_ENGINE);
    return TRUE;
}
