#include "replay/paper.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "sim/sim.h"
#include "workloads/workload.h"

const PaperPreset paper_presets[] = {
    {"bucketed", 1, 16, 64, 32, 24, "one row at a time; prompts of 8, 16, 32 and 64 Ki"},
    {"homogeneous", 4, 16, 48, 32, 20, "four rows of 32 Ki"},
    {"bimodal", 4, 16, 48, 32, 20, "a quarter of the requests 24 to 64 Ki, the rest 2 to 12 Ki"},
    {"bimodal", 8, 24, 48, 32, 20, "the same, eight rows"},
    {"uniform", 8, 24, 48, 32, 24, "4 to 32 Ki"},
    {"zipf", 8, 24, 48, 32, 28, "2 Ki + 64 Ki / sqrt(rank)"},
    {NULL},
};

static const PaperPreset *find_preset(const char *trace, gint64 max_active)
{
    const PaperPreset *same_trace = NULL;
    for (const PaperPreset *p = paper_presets; p->trace != NULL; p++) {
        if (strcmp(p->trace, trace) != 0)
            continue;
        if (p->max_active == max_active)
            return p;
        same_trace = p;
    }
    return same_trace;
}

gboolean paper_experiment_init(PaperExperiment *ret, const char *trace, gint64 max_active,
                               gint64 seed, gboolean *ret_published, GError **error)
{
    const PaperPreset *preset = find_preset(trace, max_active);
    if (preset == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--trace '%s': expected bucketed, homogeneous, bimodal, uniform or zipf",
                    trace);
        return FALSE;
    }
    if (max_active < 1 || max_active > 65536 || seed < 0 || seed > G_MAXUINT32) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--max-active %" G_GINT64_FORMAT " --seed %" G_GINT64_FORMAT
                    ": expected 1 to 65536 row slots and a 32-bit seed",
                    max_active, seed);
        return FALSE;
    }
    *ret = (PaperExperiment){
        .trace = g_strdup(trace),
        .max_active = max_active,
        .seed = seed,
        .requests = preset->requests,
        .steps = preset->steps,
        .buckets_s = preset->buckets_s,
        .queue_s = preset->queue_s,
        .q_heads = 32,
    };
    *ret_published = preset->max_active == max_active;
    return TRUE;
}

void paper_experiment_one_row(PaperExperiment *ret, gint64 context, gint64 requests, gint64 decode,
                              gint64 seed)
{
    *ret = (PaperExperiment){
        .trace = g_strdup("one-row"),
        .max_active = 1,
        .seed = seed,
        .requests = requests,
        .steps = requests * decode,
        .buckets_s = paper_presets[0].buckets_s,
        .queue_s = paper_presets[0].queue_s,
        .q_heads = 32,
        .context = context,
        .decode = decode,
    };
}

static gboolean parse_one_split(PaperExperiment *self, const char *text, gint64 *named)
{
    gint64 n;
    if (!kv_parse_count(text, &n) || n < 1 || n > 1 << 20)
        return FALSE;
    *(named != NULL ? named : self->max_active == 1 ? &self->buckets_s : &self->queue_s) = n;
    return TRUE;
}

gboolean paper_parse_splits(PaperExperiment *self, const char *text, GError **error)
{
    g_auto(GStrv) part = g_strsplit(text, ",", -1);
    gboolean ok = part[0] != NULL;
    for (guint i = 0; ok && part[i] != NULL; i++) {
        const gboolean buckets = g_str_has_prefix(part[i], "buckets=");
        const gboolean queue = g_str_has_prefix(part[i], "workqueue=");
        const char *number = buckets || queue ? strchr(part[i], '=') + 1 : part[i];
        gint64 *named = buckets ? &self->buckets_s : queue ? &self->queue_s : NULL;
        ok = (named != NULL || part[1] == NULL) && parse_one_split(self, number, named);
    }
    if (!ok)
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--splits '%s': expected a number, or buckets=N,workqueue=N", text);
    return ok;
}

void paper_experiment_clear(PaperExperiment *self)
{
    g_clear_pointer(&self->trace, g_free);
}

static gboolean run_sim(const PaperExperiment *self, const WorkloadConfig *workload_config,
                        const SimConfig *config, StepSink *sink, GError **error)
{
    PluginChoice choice = {0};
    g_autoptr(Workload) workload = workload_open(workload_config, error);
    if (workload == NULL || !plugin_choice_parse(&choice, "clock", step_clocks, "fixed", error))
        return FALSE;
    g_autoptr(StepClock) clock = step_clock_new(&choice, error);
    plugin_choice_clear(&choice);
    SimResult result;
    return clock != NULL &&
           sim_run(config, workload_source(workload), clock, sink, NULL, NULL, &result, error);
}

static void configure_workload(const PaperExperiment *self, WorkloadConfig *ret)
{
    workload_config_init(ret);
    if (self->context > 0) {
        g_free(ret->arrivals);
        g_free(ret->lengths);
        ret->requests = self->requests;
        ret->arrivals = g_strdup("constant:rate=1"); /* 10^9 steps apart: one after another */
        ret->lengths = g_strdup_printf("fixed:prompt=%" G_GINT64_FORMAT ",output=%" G_GINT64_FORMAT,
                                       self->context, self->decode);
        return;
    }
    g_free(ret->workload);
    ret->workload = g_strdup_printf("paper:trace=%s,requests=%" G_GINT64_FORMAT
                                    ",max_active=%" G_GINT64_FORMAT ",seed=%" G_GINT64_FORMAT,
                                    self->trace, self->requests, self->max_active, self->seed);
}

gboolean paper_run_steps(const PaperExperiment *self, StepSink *sink, GError **error)
{
    WorkloadConfig workload;
    SimConfig config;
    configure_workload(self, &workload);
    sim_config_init(&config);
    g_autofree char *holes = kv_format_real(self->holes);
    g_autofree char *text =
        g_strdup_printf("paper:max_active=%" G_GINT64_FORMAT ",steps=%" G_GINT64_FORMAT
                        ",seed=%" G_GINT64_FORMAT ",holes=%s",
                        self->max_active, self->steps, self->seed, holes);
    plugin_choice_clear(&config.scheduler);
    config.pool_pages = G_MAXINT32; /* the scheduler makes as many as the requests need */
    const gboolean ok =
        plugin_choice_parse(&config.scheduler, "scheduler", schedulers, text, error) &&
        run_sim(self, &workload, &config, sink, error);
    workload_config_clear(&workload);
    sim_config_clear(&config);
    return ok;
}

/* Learns the number of pages that the header must name, before the file is begun. */
typedef struct PageCount {
    StepSink sink;
    guint64 pages;
} PageCount;

static gboolean note_pages(StepSink *sink, guint64 pool_pages, GError **error)
{
    ((PageCount *)sink)->pages = pool_pages;
    return TRUE;
}

static gboolean skip_step(StepSink *sink, const Step *step, GError **error)
{
    return TRUE;
}

static StepsHeader published_header(char *name, gint q_heads, guint64 pages, guint64 seed)
{
    return (StepsHeader){
        .workload = name,
        .scenario = (char *)"",
        .model = (char *)"PersistentKV layer",
        .layers = 1,
        .q_heads = (guint32)q_heads,
        .kv_heads = 8,
        .head_dim = 128,
        .dtype = (char *)"fp16",
        .page_size = 16,
        .pool_pages = pages,
        .seed = seed,
    };
}

gboolean paper_write_steps(const PaperExperiment *self, const char *path, GError **error)
{
    PageCount count = {.sink = {.begin = note_pages, .step = skip_step}};
    if (!paper_run_steps(self, &count.sink, error))
        return FALSE;
    g_autofree char *name =
        g_strdup_printf("paper:trace=%s,max_active=%" G_GINT64_FORMAT ",seed=%" G_GINT64_FORMAT,
                        self->trace, self->max_active, self->seed);
    const StepsHeader header =
        published_header(name, self->q_heads, count.pages, (guint64)self->seed);
    g_autoptr(StepsWriter) writer = steps_writer_new(path, &header, error);
    return writer != NULL && paper_run_steps(self, steps_writer_sink(writer), error) &&
           steps_writer_commit(writer, error);
}

static gboolean add_route(ReplayConfig *config, const char *text, GError **error)
{
    PluginChoice *choice = g_new0(PluginChoice, 1);
    if (!plugin_choice_parse(choice, "route", routes, text, error)) {
        g_free(choice);
        return FALSE;
    }
    g_ptr_array_add(config->routes, choice);
    return TRUE;
}

gboolean paper_replay_config(const PaperExperiment *self, const char *policy, ReplayConfig *ret,
                             GError **error)
{
    replay_config_init(ret);
    plugin_choice_clear(&ret->policy);
    ret->config.seed = (guint64)self->seed;
    static const char *const split[] = {"masked", "workqueue", "workqueue-fused"};
    gboolean ok = plugin_choice_parse(&ret->policy, "policy", policies, policy, error) &&
                  add_route(ret, "single", error);
    g_autofree char *buckets = g_strdup_printf("buckets:s=%" G_GINT64_FORMAT, self->buckets_s);
    ok = ok && add_route(ret, buckets, error);
    for (guint i = 0; i < G_N_ELEMENTS(split); i++) {
        g_autofree char *text = g_strdup_printf("%s:s=%" G_GINT64_FORMAT, split[i], self->queue_s);
        ok = ok && add_route(ret, text, error);
    }
    ok = ok && add_route(ret, "persistent", error);
    if (!ok)
        replay_config_clear(ret);
    return ok;
}

GPtrArray *paper_peer_routes(const PeerOps *(*find)(const char *name))
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; routes[i] != NULL; i++) {
        const PeerOps *peer =
            ((const RouteOps *)routes[i])->kind == ROUTE_PEER ? find(routes[i]->name) : NULL;
        if (peer != NULL && peer->built)
            g_ptr_array_add(names, (gpointer)routes[i]->name);
    }
    return names;
}
