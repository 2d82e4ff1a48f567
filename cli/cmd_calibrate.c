/* kvreplay calibrate: what this device costs, as a device profile; measured now, or fitted to
 * tables of earlier measurements. */
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/version.h"
#include "replay/calibrate.h"
#include "replay/fit.h"
#include "replay/profile.h"
#include "replay/regions.h"

static const char examples[] =
    "Without --fit the device is measured: bandwidths, launch and plan costs, and every route over "
    "a\n"
    "grid of rows, lengths and raggedness. Tables for --fit and --judge come from\n"
    "`kvreplay replay STEPS --calibration TABLE.csv` or from --table.\n"
    "\nExamples:\n"
    "  kvreplay calibrate --quick\n"
    "  kvreplay calibrate --with azure-steps.csv --judge other-steps.csv\n"
    "  kvreplay calibrate --device 1 -o profile-rtx3060.json\n"
    "  kvreplay run LOG.csv --profile profile-rtx3060.json --policy learned\n"
    "  kvreplay simulate LOG.csv --clock profile:file=profile-rtx3060.json,gpu=rtx3060\n"
    "  kvreplay calibrate --fit train.csv --judge held-out.csv --device 'RTX 3060' -o "
    "profile.json\n";

typedef struct Options {
    char **fit, **held_out, **with;
    char *out, *device, *backend, *cells, *table, *seconds, *regions, *rates;
    gboolean quick, quiet;
    gint threads, sms;
} Options;

static void options_clear(Options *o)
{
    g_strfreev(o->fit);
    g_strfreev(o->held_out);
    g_strfreev(o->with);
    g_free(o->out);
    g_free(o->device);
    g_free(o->backend);
    g_free(o->cells);
    g_free(o->table);
    g_free(o->seconds);
    g_free(o->regions);
    g_free(o->rates);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static gboolean read_tables(CalibrationTable *table, char **paths, GError **error)
{
    for (char **p = paths; p != NULL && *p != NULL; p++)
        if (!calibration_table_read(table, *p, error))
            return FALSE;
    return TRUE;
}

static void print_judgement(const char *model, const FitJudgement *j)
{
    g_print("%-8s %8" G_GUINT64_FORMAT
            " %8.2f %% [%.2f, %.2f] %10.2f %% %10.2f %% %9.1f %% %9.1f %% %9.1f %%\n",
            model, j->steps, 100 * j->regret_mean, 100 * j->regret_low95, 100 * j->regret_high95,
            100 * j->regret_p99, 100 * j->regret_worst, 100 * j->best_share, 100 * j->error_p50,
            100 * j->error_p95);
}

static void judge(const DeviceProfile *profile, const CalibrationTable *table, const char *what)
{
    if (table->groups == 0)
        return;
    g_print("%s\n%-8s %8s %28s %12s %12s %11s %11s %11s\n", what, "model", "steps",
            "mean regret [95 %]", "p99", "worst", "best taken", "error p50", "error p95");
    FitJudgement cost = fit_judge(profile, table, FIT_COST);
    FitJudgement learned = fit_judge(profile, table, FIT_LEARNED);
    print_judgement("cost", &cost);
    print_judgement("learned", &learned);
}

/* Each held-out table, and all of them. */
static gboolean judge_each(const DeviceProfile *profile, char **paths, GError **error)
{
    g_autoptr(CalibrationTable) all = calibration_table_new();
    if (!read_tables(all, paths, error))
        return FALSE;
    for (char **p = paths; p != NULL && *p != NULL; p++) {
        g_autoptr(CalibrationTable) one = calibration_table_new();
        g_autofree char *base = g_path_get_basename(*p);
        g_autofree char *name = g_strdup_printf("on held-out tables: %s", base);
        if (!calibration_table_read(one, *p, error))
            return FALSE;
        judge(profile, one, name);
        g_autoptr(GString) text = g_string_new(NULL);
        fit_judge_routes(profile, one, FIT_LEARNED, text);
        g_print("%s", text->str);
    }
    if (paths != NULL && g_strv_length(paths) > 1)
        judge(profile, all, "on all held-out tables");
    return TRUE;
}

static gboolean write_regions(const DeviceProfile *profile, const char *path, GError **error)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    if (path == NULL)
        return TRUE;
    g_autoptr(OutFile) out = out_file_new(path, error);
    return out != NULL && regions_write(profile, &shape, out, error) && out_file_commit(out, error);
}

/* Read for their faults alone, before what takes long. */
static gboolean tables_are_good(char **paths, GError **error)
{
    g_autoptr(CalibrationTable) table = calibration_table_new();
    return read_tables(table, paths, error);
}

/* --- fitting what was measured before --- */

/* An earlier profile's device and measured rates, for a new fit to its samples; the read rate
 * bounds it. */
static DeviceProfile *read_rates(const char *path, double *ret_most, GError **error)
{
    g_autoptr(DeviceProfile) earlier = device_profile_read(path, error);
    if (earlier == NULL)
        return NULL;
    JsonObject *measured =
        earlier->measured != NULL ? json_node_get_object(earlier->measured) : NULL;
    *ret_most = 1e3 * json_member_real(measured, "read_gbps", 0);
    if (*ret_most > 1 && *ret_most < 1e9) /* bytes a microsecond */
        return g_steal_pointer(&earlier);
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: expected a profile made by a measuring calibrate: no measured.read_gbps",
                path);
    return NULL;
}

static gboolean fit_tables(const Options *o, const char *command, GError **error)
{
    g_autoptr(CalibrationTable) table = calibration_table_new();
    g_autoptr(DeviceProfile) earlier = NULL;
    double most = 0;
    if (!read_tables(table, o->fit, error) || !tables_are_good(o->held_out, error) ||
        (o->rates != NULL && (earlier = read_rates(o->rates, &most, error)) == NULL))
        return FALSE;
    const char *device = o->device != NULL ? o->device
                         : earlier != NULL ? earlier->device
                                           : "unnamed device";
    g_autoptr(DeviceProfile) profile = fit_profile(table, device, most, error);
    if (profile == NULL)
        return FALSE;
    if (earlier != NULL) {
        JsonObject *measured = json_node_get_object(earlier->measured);
        json_object_set_string_member(measured, "fitted_again_by", command);
        json_object_set_string_member(measured, "fitted_again_commit", KVREPLAY_COMMIT);
        profile->measured = json_node_copy(earlier->measured);
    }
    if (!device_profile_write(profile, o->out != NULL ? o->out : "profile.json", error))
        return FALSE;
    judge(profile, table, "on the tables it was fitted to");
    return judge_each(profile, o->held_out, error) && write_regions(profile, o->regions, error);
}

/* --- measuring --- */

static gboolean number_of(const char *option, const char *text, gint64 most, gint *ret,
                          GError **error)
{
    gint64 value = 0;
    if (text != NULL && (!kv_parse_count(text, &value) || value < 0 || value > most)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--%s '%s': expected a number, 0 or more",
                    option, text);
        return FALSE;
    }
    *ret = (gint)value;
    return TRUE;
}

static gboolean configure(const Options *o, CalibrateConfig *ret, GError **error)
{
    gint seconds;
    *ret = (CalibrateConfig){
        .config = {.layers = 1, .tp = 1, .seed = 1, .threads = o->threads, .sms = o->sms},
        .quick = o->quick,
        .cells = o->cells,
        .with = o->with,
        .commit = KVREPLAY_COMMIT,
    };
    if (o->threads < 0 || o->sms < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--threads, --sms: expected 0 or more");
        return FALSE;
    }
    if (!number_of("device", o->device, 1023, &ret->config.device, error) ||
        !number_of("seconds", o->seconds, G_MAXINT, &seconds, error))
        return FALSE;
    ret->seconds = seconds;
    return o->backend == NULL || strcmp(o->backend, "auto") == 0 ||
           plugin_choice_parse(&ret->backend, "backend", backends, o->backend, error);
}

static void print_rate(const char *name, double value, const char *unit)
{
    if (value >= 0)
        g_print("  %-34s %10.2f %s\n", name, value, unit);
}

static const char *text_of(JsonObject *o, const char *key)
{
    return json_object_get_string_member_with_default(o, key, "-");
}

static void print_measured(const Calibrated *c)
{
    const DeviceRates *r = &c->rates;
    JsonObject *m = json_node_get_object(c->profile->measured);
    JsonObject *on = json_object_get_object_member(m, "on");
    g_print("%s, driver %s, toolkit %s, commit %s, %s: %s\n", c->device, text_of(on, "driver"),
            text_of(on, "toolkit"), text_of(m, "commit"), text_of(m, "date"),
            text_of(m, "command"));
    g_print("%s: %u cells measured, %u left out\n", c->device, c->cells, c->left_out);
    print_rate("read", r->read < 0 ? -1 : 1e-3 * r->read, "GB/s");
    print_rate("copy (bytes copied)", r->copy < 0 ? -1 : 1e-3 * r->copy, "GB/s");
    print_rate("one empty launch, by events", r->event_us, "us");
    print_rate("a launch among many", r->launch_us, "us");
    print_rate("its cost to the host", r->launch_host_us, "us");
    print_rate("a kernel in a graph", r->graph_kernel_us, "us");
    print_rate("launching a graph, host", r->graph_host_us, "us");
    print_rate("a 4 KiB upload, waited for", r->upload_us, "us");
    g_print("  %-34s", "plan on the host, us, by rows");
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        g_print(" %9d", calibrate_plan_rows[i]);
    g_print("\n");
    for (int route = 0; route < ATTN_ROUTE_MAX; route++) {
        g_print("    %-32s", attn_route_name((AttnRoute)route));
        for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
            g_print(" %9.2f", c->plan_us[route][i]);
        g_print("\n");
    }
    if (c->tiny_us[0] < 0)
        return;
    g_print("    %-32s", "planned on the device: all of it");
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        g_print(" %9.2f", c->tiny_us[i]);
    g_print("\n");
}

static gboolean measure(const Options *o, const char *command, Progress *progress, GError **error)
{
    CalibrateConfig config;
    g_autoptr(OutFile) table = NULL;
    g_autoptr(Calibrated) done = NULL;
    if (!tables_are_good(o->held_out, error) || !tables_are_good(o->with, error) ||
        (o->table != NULL && (table = out_file_new(o->table, error)) == NULL))
        return FALSE;
    if (configure(o, &config, error)) {
        config.command = command;
        done = calibrate_run(&config, table, progress, error);
    }
    plugin_choice_clear(&config.backend);
    if (done == NULL) {
        if (table != NULL)
            out_file_keep(table); /* cells measured so far */
        return FALSE;
    }
    if (table != NULL && !out_file_commit(table, error))
        return FALSE;
    g_autofree char *slug = calibrate_slug(done->device);
    g_autofree char *path =
        o->out != NULL ? g_strdup(o->out) : g_strdup_printf("profile-%s.json", slug);
    if (!device_profile_write(done->profile, path, error))
        return FALSE;
    print_measured(done);
    judge(done->profile, done->fitted, "on the cells it was fitted to");
    judge(done->profile, done->held_out, "on held-out cells");
    if (!judge_each(done->profile, o->held_out, error) ||
        !write_regions(done->profile, o->regions, error))
        return FALSE;
    g_print("%s\n", path);
    return TRUE;
}

static gboolean run(const Options *o, const char *command, Progress *progress, GError **error)
{
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in_all(files, "--fit", o->fit);
    file_uses_in_all(files, "--with", o->with);
    file_uses_in_all(files, "--judge", o->held_out);
    file_uses_in(files, "--rates", o->rates);
    file_uses_out(files, "--out", o->out == NULL && o->fit != NULL ? "profile.json" : o->out);
    file_uses_out(files, "--table", o->table);
    file_uses_out(files, "--regions", o->regions);
    if (!file_uses_check(files, error))
        return FALSE;
    if (o->fit == NULL && o->rates != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--rates goes with --fit");
        return FALSE;
    }
    if (o->fit == NULL)
        return measure(o, command, progress, error);
    if (o->backend != NULL || o->cells != NULL || o->table != NULL || o->seconds != NULL ||
        o->quick || o->with != NULL || o->threads != 0 || o->sms != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--fit measures nothing: not with --backend, --cells, --table, --seconds, "
                    "--quick, --with, --threads or --sms");
        return FALSE;
    }
    return fit_tables(o, command, error);
}

gboolean cmd_calibrate(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(Options) o = {0};
    const GOptionEntry entries[] = {
        {"backend", 0, 0, G_OPTION_ARG_STRING, &o.backend,
         "cuda or cpu; auto takes the first that can run here", "NAME"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &o.device,
         "CUDA device; with --fit, the name of the device that the tables are of", "N"},
        {"quick", 0, 0, G_OPTION_ARG_NONE, &o.quick, "a smaller grid, within 12 GB", NULL},
        {"cells", 0, 0, G_OPTION_ARG_STRING, &o.cells, "another grid, as of bench --cells",
         "CELLS"},
        {"seconds", 0, 0, G_OPTION_ARG_STRING, &o.seconds, "end the grid after so long", "S"},
        {"table", 0, 0, G_OPTION_ARG_FILENAME, &o.table,
         "write what was measured as a calibration table", "FILE"},
        {"with", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o.with,
         "calibration table to add to what is measured; may be repeated", "FILE"},
        {"threads", 0, 0, G_OPTION_ARG_INT, &o.threads, "CPU engine threads; 0 = all cores", "N"},
        {"sms", 0, 0, G_OPTION_ARG_INT, &o.sms, "limit the grid to N SMs; 0 = all", "N"},
        {"fit", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o.fit,
         "calibration table to fit instead of measuring; may be repeated", "FILE"},
        {"rates", 0, 0, G_OPTION_ARG_FILENAME, &o.rates,
         "with --fit: an earlier profile of the device, whose measured rates bound the fit",
         "FILE"},
        {"judge", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o.held_out,
         "held-out table to judge the fit on; may be repeated", "FILE"},
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &o.out,
         "profile to write (default profile-DEVICE.json, with --fit profile.json)", "FILE"},
        {"regions", 0, 0, G_OPTION_ARG_FILENAME, &o.regions,
         "write which route the learned model takes over rows, lengths and skew (kvreplay plot)",
         "FILE"},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autofree char *line = g_strjoinv(" ", argv);
    g_autofree char *command = g_strconcat("kvreplay ", line, NULL);
    g_autoptr(GOptionContext) context = command_context(inv, "", examples, entries);
    ParseOutcome outcome = command_parse(context, 0, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    g_autoptr(Progress) progress = progress_new(o.quiet, inv->interrupted);
    return run(&o, command, progress, error);
}
