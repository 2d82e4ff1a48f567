/* kvreplay calibrate: what this device's routes cost, fitted into a device profile. */
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "replay/fit.h"
#include "replay/profile.h"

static const char examples[] =
    "Tables come from `kvreplay replay STEPS --calibration TABLE.csv --execute ...` on the "
    "device.\n"
    "\nExamples:\n"
    "  kvreplay calibrate --fit table.csv --device 'RTX 3060' -o profile-rtx3060.json\n"
    "  kvreplay calibrate --fit train.csv --judge held-out.csv -o profile.json\n"
    "  kvreplay run LOG.csv --profile profile.json --policy learned\n";

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
    g_print("%s\n%-8s %8s %28s %12s %12s %11s %11s %11s\n", what, "model", "steps",
            "mean regret [95 %]", "p99", "worst", "best taken", "error p50", "error p95");
    FitJudgement cost = fit_judge(profile, table, FIT_COST);
    FitJudgement learned = fit_judge(profile, table, FIT_LEARNED);
    print_judgement("cost", &cost);
    print_judgement("learned", &learned);
}

gboolean cmd_calibrate(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(GStrv) fit = NULL, held_out = NULL;
    g_autofree char *out = NULL, *device = NULL;
    const GOptionEntry entries[] = {
        {"fit", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &fit,
         "calibration table to fit; may be repeated", "FILE"},
        {"judge", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &held_out,
         "held-out table to judge the fit on; may be repeated", "FILE"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &device, "name of the device the tables are of",
         "NAME"},
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, "profile to write (default profile.json)",
         "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "", examples, entries);
    ParseOutcome outcome = command_parse(context, 0, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (fit == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name a calibration table: --fit FILE");
        return FALSE;
    }
    g_autoptr(CalibrationTable) table = calibration_table_new();
    g_autoptr(CalibrationTable) test = calibration_table_new();
    if (!read_tables(table, fit, error) || !read_tables(test, held_out, error))
        return FALSE;
    g_autoptr(DeviceProfile) profile =
        fit_profile(table, device != NULL ? device : "unnamed device", error);
    if (profile == NULL ||
        !device_profile_write(profile, out != NULL ? out : "profile.json", error))
        return FALSE;
    judge(profile, table, "on the tables it was fitted to");
    if (held_out != NULL)
        judge(profile, test, "on held-out tables");
    return TRUE;
}
