#include "cli/grid.h"

#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/scenario_keys.h"
#include "cli/stages.h"

static const struct {
    const char *name, *key, *inside;
} short_names[] = {
    {"rate", "arrivals", "rate"},   {"cv", "arrivals", "cv"},
    {"users", "arrivals", "users"}, {"budget", "scheduler", "budget"},
    {"seqs", "scheduler", "seqs"},
};

static const ScenarioKey *find_key(const char *key)
{
    for (const ScenarioKey *k = scenario_keys; k->key != NULL; k++)
        if (strcmp(k->key, key) == 0)
            return k;
    return NULL;
}

gboolean grid_set(Scenario *scenario, const char *key, const char *value, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(short_names); i++)
        if (strcmp(short_names[i].name, key) == 0)
            return scenario_set_inside(scenario, short_names[i].key, short_names[i].inside, value,
                                       error);
    if (strcmp(key, "scale") == 0) {
        const char *before = scenario_get(scenario, "transform");
        g_autofree char *text = before != NULL ? g_strdup_printf("%s;scale=%s", before, value)
                                               : g_strdup_printf("scale=%s", value);
        scenario_set(scenario, "transform", text);
        return TRUE;
    }
    const char *dot = strchr(key, '.');
    g_autofree char *outer = dot != NULL ? g_strndup(key, (gsize)(dot - key)) : g_strdup(key);
    if (find_key(outer) == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "'%s' is no scenario key (see --help-all), nor KEY.OPTION, rate, cv, users, "
                    "budget, seqs, scale",
                    key);
        return FALSE;
    }
    if (dot != NULL)
        return scenario_set_inside(scenario, outer, dot + 1, value, error);
    scenario_set(scenario, key, value);
    return TRUE;
}

gboolean grid_simulate(const Scenario *scenario, SimResult *ret, GError **error)
{
    g_autoptr(JsonBuilder) ignored = json_builder_new();
    json_builder_begin_object(ignored);
    SimulateStage stage = {0};
    return stage_simulate(scenario, &stage, NULL, ret, ignored, FALSE, error);
}

#define SIM_FIGURES                                                                                \
    "requests,finished,refused,steps,row_steps,prompt_tokens,output_tokens,preemptions,"           \
    "recomputed_tokens,prefix_hit_tokens,duration_s,output_tokens_per_s,rows_mean,waiting_mean,"   \
    "waiting_peak,pages_mean,pages_peak,ttft_mean,ttft_p50,ttft_p99,itl_mean,itl_p50,itl_p99,"     \
    "tpot_mean,tpot_p50,tpot_p99,e2e_mean,e2e_p50,e2e_p99,queue_delay_mean,queue_delay_p99"

const char *grid_figures(gboolean replay)
{
    return replay ? SIM_FIGURES ",launches_per_step,tasks_per_step,merge_mib_per_step"
                  : SIM_FIGURES;
}

static void add_real(GString *out, double value, gboolean known)
{
    g_autofree char *text = known ? kv_format_real(value) : g_strdup("");
    g_string_append_printf(out, ",%s", text);
}

static void add_summary(GString *out, const Summary *s, gboolean p50)
{
    add_real(out, s->mean, s->n > 0);
    if (p50)
        add_real(out, s->p50, s->n > 0);
    add_real(out, s->p99, s->n > 0);
}

static void add_sim(GString *out, const SimResult *r)
{
    double seconds = kv_ns_to_seconds(r->duration);
    g_string_append_printf(
        out,
        "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
        ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
        ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT,
        r->requests, r->finished, r->refused, r->steps, r->row_steps, r->prompt_tokens,
        r->output_tokens, r->preemptions, r->recomputed_tokens, r->prefix_hit_tokens);
    add_real(out, seconds, TRUE);
    add_real(out, (double)r->output_tokens / seconds, seconds > 0);
    add_real(out, r->rows_mean, TRUE);
    add_real(out, r->waiting_mean, TRUE);
    g_string_append_printf(out, ",%" G_GUINT64_FORMAT, r->waiting_peak);
    add_real(out, r->pages_mean, TRUE);
    g_string_append_printf(out, ",%" G_GUINT64_FORMAT, r->pages_peak);
    add_summary(out, &r->ttft, TRUE);
    add_summary(out, &r->itl, TRUE);
    add_summary(out, &r->tpot, TRUE);
    add_summary(out, &r->e2e, TRUE);
    add_summary(out, &r->queue_delay, FALSE);
}

static void add_policy_figures(GString *out, JsonNode *root)
{
    static const char *const names[] = {"launches_per_step", "tasks_per_step",
                                        "merge_mib_per_step"};
    JsonObject *replay = json_object_get_object_member(json_node_get_object(root), "replay");
    JsonObject *policy = json_object_get_object_member(replay, "policy");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        JsonNode *n = json_object_get_member(policy, names[i]);
        gboolean known = n != NULL && JSON_NODE_HOLDS_VALUE(n);
        add_real(out, known ? json_node_get_double(n) : 0.0, known);
    }
}

static gboolean cell_with_replay(const Scenario *scenario, const char *steps, GString *out,
                                 GError **error)
{
    SimResult result;
    const char *const files[] = {steps, NULL}; /* of a fleet, its first replica alone */
    const ReplayStage replay = {.steps = files};
    SimulateStage stage = {.steps_path = steps};
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    if (!stage_simulate(scenario, &stage, NULL, &result, json, FALSE, error) ||
        !stage_replay(scenario, &replay, NULL, json, error))
        return FALSE;
    json_builder_end_object(json);
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    add_sim(out, &result);
    add_policy_figures(out, root);
    return TRUE;
}

char *grid_cell_line(const Scenario *scenario, gboolean replay, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (!replay) {
        SimResult result;
        if (!grid_simulate(scenario, &result, error))
            return NULL;
        add_sim(out, &result);
        return g_string_free(g_steal_pointer(&out), FALSE);
    }
    g_autoptr(GError) local = NULL;
    g_autofree char *folder = g_dir_make_tmp("kvreplay-XXXXXX", &local);
    if (folder == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "no temporary folder: %s", local->message);
        return NULL;
    }
    g_autofree char *steps = g_build_filename(folder, "cell.kvsteps", NULL);
    gboolean ok = cell_with_replay(scenario, steps, out, error);
    g_unlink(steps);
    g_rmdir(folder);
    return ok ? g_string_free(g_steal_pointer(&out), FALSE) : NULL;
}
