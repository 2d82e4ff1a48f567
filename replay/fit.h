/* Fitting a device profile from calibration tables, and judging one on held-out tables.
 *
 * Both models (replay/model.h) are linear but for one knee each: `cost` in Cmin, `learned` in the
 * rate r of one worker. The knee is searched on a logarithmic grid, the rest is least squares with
 * coefficients >= 0 on relative errors, each sample weighted by (best time of its step / its
 * time)^2: a policy is hurt by errors about routes that are near the best one, not about those far
 * off. For `learned` a sample weighs as much as its time is known besides, and what the linear part
 * leaves of it is kept as a point (replay/fit_learned.c, replay/near.h). Deterministic.
 * Cost O(samples x (grid + points)).
 */
#ifndef KV_REPLAY_FIT_H
#define KV_REPLAY_FIT_H

#include "replay/calibration.h"

typedef enum { FIT_COST, FIT_LEARNED } FitModel;

/* Fits both models; everything but the device's name follows from the table. `most` is the rate
 * that no reading can pass, bytes a microsecond (the measured streaming read; 0 = not known): then
 * a byte costs at least 1 / most by both models, so that batches larger than any in the table are
 * not told too cheap. USAGE error when there are too few samples (fewer than 3 steps),
 * INPUT error when they tell no rate. */
DeviceProfile *fit_profile(const CalibrationTable *table, const char *device, double most,
                           GError **error);

/* Decisions by a model on a table (no hysteresis), against the best measured route of each step. */
typedef struct FitJudgement {
    guint64 steps;
    double regret_mean, regret_low95, regret_high95; /* bootstrap over steps */
    double regret_p99, regret_worst;
    double error_p50, error_p95; /* |predicted / measured - 1| over all samples */
    double best_share;           /* steps in which the best route was taken */
} FitJudgement;
/* "takes": each route's share of the model's decisions, and the time of always taking it over the
 * model's (above 1: the model is faster), a line; routes that are not in every step are left out.
 */
void fit_judge_routes(const DeviceProfile *profile, const CalibrationTable *table, FitModel model,
                      GString *out);
FitJudgement fit_judge(const DeviceProfile *profile, const CalibrationTable *table, FitModel model);

#endif
