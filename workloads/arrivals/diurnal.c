/* Diurnal: Poisson with rate(t) = rate (1 + amplitude sin(2 pi (t/period + phase))), as a polygon
 * of 96 sides a period (a quarter of an hour of a day; the sinusoid's mean is kept to 0.1 %). */
#include <math.h>

#include "workloads/arrivals/arrivals.h"
#include "workloads/rate_curve.h"

#define SIDES 96

typedef struct DiurnalConfig {
    double rate, amplitude, phase, cv;
    kv_ns period;
} DiurnalConfig;

static ArrivalProcess *diurnal_open(gconstpointer config, guint64 seed, guint32 replication,
                                    GError **error)
{
    const DiurnalConfig *c = config;
    double period = kv_ns_to_seconds(c->period);
    GArray *points = g_array_new(FALSE, FALSE, sizeof(RatePoint));
    for (guint i = 0; i <= SIDES; i++) {
        double turn = (double)i / SIDES;
        RatePoint p = {turn * period,
                       c->rate * (1 + c->amplitude * sin(2 * G_PI * (turn + c->phase)))};
        p.rate = MAX(p.rate, 0.0);
        g_array_append_val(points, p);
    }
    return rate_curve_new(&arrivals_diurnal, points, period, c->cv, "arrivals diurnal", seed,
                          replication, error);
}

static const SpecOption diurnal_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(DiurnalConfig, rate), "1", 1e-9, 1e9, NULL,
     "mean requests a second"},
    {"amplitude", SPEC_REAL, G_STRUCT_OFFSET(DiurnalConfig, amplitude), "0.5", 0, 1, NULL,
     "of the swing, as a part of the mean"},
    {"period", SPEC_TIME, G_STRUCT_OFFSET(DiurnalConfig, period), "24h", 1e-3, 1e9, NULL,
     "of the swing"},
    {"phase", SPEC_REAL, G_STRUCT_OFFSET(DiurnalConfig, phase), "-0.25", -1, 1, NULL,
     "in periods; -0.25 begins at the trough"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(DiurnalConfig, cv), "1", 0, 100, NULL,
     "of the gaps at constant rate; 1 = Poisson"},
    {NULL},
};

const ArrivalOps arrivals_diurnal = {
    .info = {"diurnal", "a rate that swings like a sine over a period", diurnal_options,
             sizeof(DiurnalConfig)},
    .open = diurnal_open,
    .next = rate_curve_next,
    .free = rate_curve_free,
};
