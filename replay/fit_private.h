/* What fitting the two models shares. Private to replay/fit*.c. */
#ifndef KV_REPLAY_FIT_PRIVATE_H
#define KV_REPLAY_FIT_PRIVATE_H

#include "replay/fit.h"
#include "replay/nnls.h"

static inline const CalibrationRow *fit_row(const CalibrationTable *table, guint i)
{
    return &g_array_index(table->rows, CalibrationRow, i);
}

/* Adds a sample on its relative error, times best/T and its weight; `given` of its time is
 * explained already. */
void fit_add_sample(Nnls *nnls, double *terms, int n, const CalibrationRow *r, double best,
                    double given, double weight);

/* `best`: least time by group; `own`: by route, whether it shapes what all routes share; `most`: as
 * of fit_profile. Fills worker_bandwidth and learned; bandwidth and workers are set. */
void fit_learned(const CalibrationTable *table, const double *best, const guint8 *own, double most,
                 DeviceProfile *profile);

#endif
