#include "cli/stages.h"

#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/version.h"
#include "sim/fleet.h"

void json_add_program(JsonBuilder *json)
{
    json_builder_set_member_name(json, "kvreplay");
    json_builder_begin_object(json);
    json_builder_set_member_name(json, "version");
    json_builder_add_string_value(json, KVREPLAY_VERSION);
    json_builder_set_member_name(json, "commit");
    json_builder_add_string_value(json, KVREPLAY_COMMIT);
    json_builder_end_object(json);
}

char *json_builder_text(JsonBuilder *json)
{
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    g_autoptr(JsonGenerator) generator = json_generator_new();
    json_generator_set_pretty(generator, TRUE);
    json_generator_set_root(generator, root);
    g_autofree char *text = json_generator_to_data(generator, NULL);
    return g_strconcat(text, "\n", NULL);
}

gboolean json_print(JsonBuilder *json, GError **error)
{
    g_autofree char *text = json_builder_text(json);
    fputs(text, stdout);
    return out_stdout_check(error);
}

gboolean write_text(const char *path, const char *text, GError **error)
{
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    fputs(text, out_file_stream(out));
    return out_file_commit(out, error);
}

static void add_string(JsonBuilder *json, const char *name, const char *value)
{
    json_builder_set_member_name(json, name);
    if (value != NULL)
        json_builder_add_string_value(json, value);
    else
        json_builder_add_null_value(json);
}

static void add_int(JsonBuilder *json, const char *name, guint64 value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_int_value(json, (gint64)value);
}

static void json_add_workload(JsonBuilder *json, const WorkloadInfo *info)
{
    json_builder_set_member_name(json, "workload");
    json_builder_begin_object(json);
    add_string(json, "name", info->name);
    add_string(json, "format", info->format);
    add_string(json, "sha256", info->sha256);
    add_string(json, "first_arrival", info->first_arrival);
    add_int(json, "rows", info->rows);
    add_int(json, "requests", info->requests);
    json_builder_set_member_name(json, "dropped");
    json_builder_begin_object(json);
    if (info->dropped != NULL) {
        g_autoptr(GList) reasons = g_hash_table_get_keys(info->dropped);
        reasons = g_list_sort(reasons, (GCompareFunc)strcmp);
        for (GList *l = reasons; l != NULL; l = l->next)
            add_int(json, l->data, *(guint64 *)g_hash_table_lookup(info->dropped, l->data));
    }
    json_builder_end_object(json);
    json_builder_set_member_name(json, "warnings");
    json_builder_begin_array(json);
    for (guint i = 0; info->warnings != NULL && i < info->warnings->len; i++)
        json_builder_add_string_value(json, g_ptr_array_index(info->warnings, i));
    json_builder_end_array(json);
    json_builder_end_object(json);
}

/* What the simulation writes, and its replicas' clocks; built and committed together. */
typedef struct SimOutputs {
    FleetConfig fleet;
    StepClock **clocks;    /* [replicas] */
    StepsWriter **writers; /* [replicas]; NULL = no steps files */
    StepSink **sinks;      /* [replicas]; NULL likewise */
    SimResult *each;       /* [replicas] */
    OutFile *requests_out;
    RequestSink *requests;
} SimOutputs;

static void sim_outputs_clear(SimOutputs *o)
{
    if (o->requests != NULL)
        request_csv_sink_free(o->requests);
    for (guint k = 0; k < o->fleet.replicas; k++) {
        if (o->writers != NULL)
            steps_writer_free(o->writers[k]);
        if (o->clocks != NULL)
            step_clock_free(o->clocks[k]);
    }
    g_free(o->writers);
    g_free(o->sinks);
    g_free(o->clocks);
    g_free(o->each);
    plugin_choice_clear(&o->fleet.router);
    out_file_free(o->requests_out);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SimOutputs, sim_outputs_clear)

char *replica_path(const char *path, guint replica)
{
    if (replica == 0 || strcmp(path, "-") == 0)
        return g_strdup(path);
    const char *base = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (dot == NULL || (base != NULL && dot < base))
        dot = path + strlen(path);
    return g_strdup_printf("%.*s-%u%s", (int)(dot - path), path, replica, dot);
}

static gboolean open_steps(SimOutputs *o, const Scenario *scenario, const char *path,
                           Workload *workload, GError **error)
{
    o->writers = g_new0(StepsWriter *, o->fleet.replicas);
    o->sinks = g_new0(StepSink *, o->fleet.replicas);
    for (guint k = 0; k < o->fleet.replicas; k++) {
        StepsHeader header = {0};
        if (scenario_steps_header(scenario, &header, error)) {
            g_autofree char *name = replica_path(path, k);
            header.workload = g_strdup(workload_info(workload)->name);
            header.workload_sha256 = g_strdup(workload_info(workload)->sha256);
            header.replica = k;
            o->writers[k] = steps_writer_new(name, &header, error);
        }
        steps_header_clear(&header);
        if (o->writers[k] == NULL)
            return FALSE;
        o->sinks[k] = steps_writer_sink(o->writers[k]);
    }
    return TRUE;
}

static gboolean sim_outputs_open(SimOutputs *o, const Scenario *scenario,
                                 const SimulateStage *stage, Workload *workload, GError **error)
{
    if (!scenario_fleet(scenario, &o->fleet, error))
        return FALSE;
    o->clocks = g_new0(StepClock *, o->fleet.replicas);
    o->each = g_new0(SimResult, o->fleet.replicas);
    for (guint k = 0; k < o->fleet.replicas; k++)
        if (!scenario_clock(scenario, k, &o->clocks[k], error))
            return FALSE;
    if (stage->steps_path != NULL && !open_steps(o, scenario, stage->steps_path, workload, error))
        return FALSE;
    if (stage->requests_path != NULL) {
        o->requests_out = out_file_new(stage->requests_path, error);
        if (o->requests_out == NULL)
            return FALSE;
        o->requests = request_csv_sink_new(o->requests_out);
    }
    return TRUE;
}

static gboolean simulate(const Scenario *scenario, SimOutputs *o, Workload *workload,
                         Progress *progress, SimResult *ret, GError **error)
{
    SimConfig config;
    RequestSource *source = workload_source(workload);
    gboolean ok = scenario_sim_config(scenario, &config, error);
    if (ok && o->fleet.replicas == 1)
        ok = sim_run(&config, source, o->clocks[0], o->sinks != NULL ? o->sinks[0] : NULL,
                     o->requests, progress, ret, error);
    else if (ok)
        ok = sim_fleet_run(&config, &o->fleet, source, o->clocks, o->sinks, o->requests, progress,
                           ret, o->each, error);
    sim_config_clear(&config);
    return ok;
}

static gboolean sim_outputs_commit(SimOutputs *o, GError **error)
{
    for (guint k = 0; o->writers != NULL && k < o->fleet.replicas; k++)
        if (!steps_writer_commit(o->writers[k], error))
            return FALSE;
    return o->requests_out == NULL || out_file_commit(o->requests_out, error);
}

/* An interrupted run leaves what is whole. */
static void sim_outputs_keep(SimOutputs *o)
{
    for (guint k = 0; o->writers != NULL && k < o->fleet.replicas; k++)
        steps_writer_keep(o->writers[k]);
    if (o->requests_out != NULL)
        out_file_keep(o->requests_out);
}

static void json_add_simulation(JsonBuilder *json, const SimOutputs *o, const SimResult *total)
{
    json_builder_set_member_name(json, "simulate");
    json_builder_begin_object(json);
    sim_result_to_json(total, json);
    json_builder_end_object(json);
    if (o->fleet.replicas < 2)
        return;
    json_builder_set_member_name(json, "replicas");
    json_builder_begin_array(json);
    for (guint k = 0; k < o->fleet.replicas; k++) {
        json_builder_begin_object(json);
        sim_result_to_json(&o->each[k], json);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

gboolean stage_simulate(const Scenario *scenario, const SimulateStage *stage, Progress *progress,
                        SimResult *ret, JsonBuilder *json, gboolean flat, GError **error)
{
    /* a steps file's header names the log by its hash */
    g_autoptr(Workload) workload =
        scenario_open_workload(scenario, stage->steps_path != NULL, error);
    if (workload == NULL)
        return FALSE;

    StepsHeader header = {0}; /* model and types are checked, steps file or not */
    gboolean model_ok = scenario_steps_header(scenario, &header, error);
    steps_header_clear(&header);
    if (!model_ok)
        return FALSE;
    g_auto(SimOutputs) outputs = {0};
    if (!sim_outputs_open(&outputs, scenario, stage, workload, error))
        return FALSE;
    g_autoptr(GError) local = NULL;
    if (!simulate(scenario, &outputs, workload, progress, ret, &local)) {
        if (g_error_matches(local, KV_ERROR, KV_ERROR_INTERRUPTED))
            sim_outputs_keep(&outputs);
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (!sim_outputs_commit(&outputs, error))
        return FALSE;
    if (flat)
        sim_result_to_json(ret, json);
    json_add_workload(json, workload_info(workload));
    json_add_simulation(json, &outputs, ret);
    return TRUE;
}

gboolean stage_ledger(const Scenario *scenario, const char *path, Progress *progress,
                      SimResult *ret, GError **error)
{
    g_autoptr(Workload) workload = scenario_open_workload(scenario, FALSE, error);
    g_autoptr(OutFile) out = workload != NULL ? out_file_new(path, error) : NULL;
    if (out == NULL)
        return FALSE;
    SimConfig config;
    g_autoptr(StepClock) clock = NULL;
    gboolean ok = scenario_sim_config(scenario, &config, error) &&
                  scenario_clock(scenario, 0, &clock, error) &&
                  sim_run_ledger(&config, workload_source(workload), clock, out_file_stream(out),
                                 progress, ret, error);
    sim_config_clear(&config);
    return ok && out_file_commit(out, error);
}

static void print_summary_line(FILE *out, const char *name, const Summary *s)
{
    if (s->n == 0) {
        fprintf(out, "  %-14s %10s\n", name, "n/a");
        return;
    }
    fprintf(out, "  %-14s %10.4f %10.4f %10.4f %10.4f %10.4f %10.4f\n", name, s->mean, s->p50,
            s->p90, s->p95, s->p99, s->max);
}

void print_sim_result(FILE *out, const SimResult *r)
{
    fprintf(out,
            "requests %" G_GUINT64_FORMAT ": finished %" G_GUINT64_FORMAT
            ", refused %" G_GUINT64_FORMAT,
            r->requests, r->finished, r->refused);
    for (guint i = 0; i < r->n_refused_by; i++)
        fprintf(out, " (%s %" G_GUINT64_FORMAT ")", r->refused_by[i].reason,
                r->refused_by[i].count);
    if (r->clipped > 0)
        fprintf(out, ", outputs cut %" G_GUINT64_FORMAT, r->clipped);
    fprintf(out,
            "\nsteps %" G_GUINT64_FORMAT ", row-steps %" G_GUINT64_FORMAT ", simulated %.3f s\n"
            "tokens: prompt %" G_GUINT64_FORMAT ", output %" G_GUINT64_FORMAT
            ", recomputed %" G_GUINT64_FORMAT "; preemptions %" G_GUINT64_FORMAT "\n"
            "peaks: pages %" G_GUINT64_FORMAT ", rows %" G_GUINT64_FORMAT
            ", waiting %" G_GUINT64_FORMAT "\n",
            r->steps, r->row_steps, kv_ns_to_seconds(r->duration), r->prompt_tokens,
            r->output_tokens, r->recomputed_tokens, r->preemptions, r->pages_peak, r->rows_peak,
            r->waiting_peak);
    fprintf(out, "  %-14s %10s %10s %10s %10s %10s %10s\n", "seconds", "mean", "p50", "p90", "p95",
            "p99", "max");
    print_summary_line(out, "ttft", &r->ttft);
    print_summary_line(out, "itl (pooled)", &r->itl);
    print_summary_line(out, "tpot", &r->tpot);
    print_summary_line(out, "e2e", &r->e2e);
    print_summary_line(out, "queue delay", &r->queue_delay);
}
