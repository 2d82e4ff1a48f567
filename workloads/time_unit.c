#include "workloads/time_unit.h"

#define ENOUGH 8 /* rows from which a rate says anything */

static const kv_ns units[] = {KV_SECOND, KV_MS, KV_US, 1};

const char *time_unit_name(kv_ns unit)
{
    return unit == KV_SECOND ? "seconds"
           : unit == KV_MS   ? "milliseconds"
           : unit == KV_US   ? "microseconds"
                             : "nanoseconds";
}

static kv_ns unix_unit(double t)
{
    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        double seconds = t * ((double)units[i] / 1e9);
        if (seconds >= 4.8e8 && seconds < 5e9)
            return units[i];
    }
    return 0;
}

kv_ns time_unit_choose(const double *times, guint n, kv_ns prescribed, char **ret_reason)
{
    double lo = n > 0 ? times[0] : 0, hi = lo;
    for (guint i = 1; i < n; i++) {
        lo = MIN(lo, times[i]);
        hi = MAX(hi, times[i]);
    }
    kv_ns unit = n > 0 ? unix_unit(lo) : 0;
    if (unit != 0 && unix_unit(hi) == unit) {
        *ret_reason = g_strdup_printf("times read as UNIX %s: only so they are dates of our time",
                                      time_unit_name(unit));
        return unit;
    }
    GString *readings = g_string_new(NULL);
    kv_ns found = 0;
    guint plausible = 0;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        double span = (hi - lo) * ((double)units[i] / 1e9), rate = span > 0 ? (n - 1) / span : 0;
        gboolean asked = units[i] == prescribed;
        if (rate < (asked ? 1e-6 : 0.01) || rate > 1000)
            continue;
        g_string_append_printf(readings, "%s%s give %.3g requests/s", plausible > 0 ? ", " : "",
                               time_unit_name(units[i]), rate);
        plausible++;
        if (found == 0 || found != prescribed)
            found = units[i];
    }
    gboolean few = n < ENOUGH || !(hi > lo);
    kv_ns chosen = prescribed != 0 && (few || plausible == 0 || found == prescribed) ? prescribed
                   : plausible == 1 && !few                                          ? found
                                                                                     : 0;
    *ret_reason = g_string_free(readings, FALSE);
    return chosen;
}
