/* Calibration: what this device costs, measured now, and the profile that follows.
 *
 * Measured: bandwidths and launch costs (device_rates.h); the host's cost of a plan by route at 1,
 * 16, 64 and 256 rows; every built-in route over a grid of rows, lengths and raggedness (cells of
 * bench.h: equal rows, ragged ones, one long row among short ones; each route checked against the
 * fp64 reference before it is timed; caches emptied before each run, as in a replay); and, as part
 * of the grid, batches of one-entry rows, whose time is all but launch and, where plans are made on
 * the device, that plan. The grid's kernel times, with the counters of the plans that were run, are
 * the samples of both models (replay/fit.h); every fifth cell is held out and the fit judged on it.
 * A byte never costs less than by the measured read rate, so that the models stay sane beyond the
 * grid.
 *
 * A grid is general; the steps of one's own workload, in a table that a replay wrote, added to it
 * (`with`) make the profile sharper there and no worse elsewhere.
 *
 * Time: --quick well under a minute on a GPU; otherwise a few minutes; `seconds` ends the grid
 * early (the cells left out are counted). Memory: the largest cell, twice or more.
 * Errors: USAGE for cells that make no sense, MACHINE from the backend; a route that is wrong is an
 * error, not a sample.
 */
#ifndef KV_REPLAY_CALIBRATE_H
#define KV_REPLAY_CALIBRATE_H

#include "base/progress.h"
#include "replay/bench.h"
#include "replay/fit.h"

enum { CALIBRATE_PLAN_SIZES = 4 };
extern const gint32 calibrate_plan_rows[CALIBRATE_PLAN_SIZES];

typedef struct CalibrateConfig {
    PluginChoice backend; /* borrowed; info NULL = auto */
    BackendConfig config; /* device, threads, sms, seed */
    gboolean quick;
    const char *cells; /* bench's grammar, instead of the built-in grid; NULL */
    double seconds;    /* for the grid; 0 = no limit */
    char **with;       /* calibration tables of other steps, added to the samples; NULL = none */
    const char *commit, *command;
} CalibrateConfig;

typedef struct Calibrated {
    char *device; /* name */
    DeviceProfile *profile;
    DeviceRates rates;
    double plan_us[ATTN_ROUTE_MAX][CALIBRATE_PLAN_SIZES];
    double tiny_us[CALIBRATE_PLAN_SIZES]; /* `persistent` on one-entry rows; negative = not run */
    CalibrationTable *fitted, *held_out;  /* fitted: with the tables added */
    guint cells, left_out;
} Calibrated;

/* `table` (NULL = none) gets the samples as a calibration table. */
Calibrated *calibrate_run(const CalibrateConfig *config, OutFile *table, Progress *progress,
                          GError **error);
void calibrated_free(Calibrated *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Calibrated, calibrated_free)
/* "NVIDIA H200" -> "nvidia-h200": for a file's name. Free it. */
char *calibrate_slug(const char *device);

#endif
