/* Steps, ramps, spikes and tables: Poisson arrivals under rates that the user draws.
 *
 *   steps   levels="5 10 20", each for `hold`; the last one holds
 *   ramp    from one rate to another over a time, then the last rate
 *   spike   a base rate with a peak of a width, once at `at` or every `every`
 *   table   "t rate" lines of a file (seconds or 90s/5m/1h), linear between them or steps
 */
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "base/units.h"
#include "workloads/arrivals/arrivals.h"
#include "workloads/rate_curve.h"

static GArray *new_points(void)
{
    return g_array_new(FALSE, FALSE, sizeof(RatePoint));
}

static void add(GArray *points, double t, double rate)
{
    RatePoint p = {t, rate};
    g_array_append_val(points, p);
}

/* --- steps --- */

typedef struct StepsConfig {
    char *levels;
    kv_ns hold;
    double cv;
} StepsConfig;

static ArrivalProcess *steps_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    const StepsConfig *c = config;
    double hold = kv_ns_to_seconds(c->hold);
    GArray *points = new_points();
    g_auto(GStrv) levels = g_strsplit_set(c->levels, " /", -1);
    guint n = 0;
    for (guint i = 0; levels[i] != NULL; i++) {
        double rate;
        if (levels[i][0] == '\0')
            continue;
        if (!kv_parse_real(levels[i], &rate)) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                        "arrivals steps: levels: '%s': expected rates separated by spaces",
                        levels[i]);
            g_array_unref(points);
            return NULL;
        }
        add(points, hold * n, rate);
        add(points, hold * (n + 1), rate);
        n++;
    }
    return rate_curve_new(&arrivals_steps, points, 0, c->cv, "arrivals steps", seed, replication,
                          error);
}

static const SpecOption steps_options[] = {
    {"levels", SPEC_STRING, G_STRUCT_OFFSET(StepsConfig, levels), "1 2 4 8", 0, 0, NULL,
     "requests a second, one after the other"},
    {"hold", SPEC_TIME, G_STRUCT_OFFSET(StepsConfig, hold), "60s", 1e-6, 1e9, NULL,
     "time at each level; the last one stays"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(StepsConfig, cv), "1", 0, 100, NULL,
     "of the gaps at constant rate; 1 = Poisson"},
    {NULL},
};

const ArrivalOps arrivals_steps = {
    .info = {"steps", "constant rates one after the other", steps_options, sizeof(StepsConfig)},
    .open = steps_open,
    .next = rate_curve_next,
    .free = rate_curve_free,
};

/* --- ramp --- */

typedef struct RampConfig {
    double from, to, cv;
    kv_ns over;
} RampConfig;

static ArrivalProcess *ramp_open(gconstpointer config, guint64 seed, guint32 replication,
                                 GError **error)
{
    const RampConfig *c = config;
    GArray *points = new_points();
    add(points, 0, c->from);
    add(points, kv_ns_to_seconds(c->over), c->to);
    return rate_curve_new(&arrivals_ramp, points, 0, c->cv, "arrivals ramp", seed, replication,
                          error);
}

static const SpecOption ramp_options[] = {
    {"from", SPEC_REAL, G_STRUCT_OFFSET(RampConfig, from), "0", 0, 1e9, NULL,
     "requests a second at the start"},
    {"to", SPEC_REAL, G_STRUCT_OFFSET(RampConfig, to), "10", 0, 1e9, NULL,
     "... at the end of the ramp and after it"},
    {"over", SPEC_TIME, G_STRUCT_OFFSET(RampConfig, over), "60s", 1e-6, 1e9, NULL,
     "length of the ramp"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(RampConfig, cv), "1", 0, 100, NULL,
     "of the gaps at constant rate; 1 = Poisson"},
    {NULL},
};

const ArrivalOps arrivals_ramp = {
    .info = {"ramp", "a rate that grows or falls linearly, then stays", ramp_options,
             sizeof(RampConfig)},
    .open = ramp_open,
    .next = rate_curve_next,
    .free = rate_curve_free,
};

/* --- spike --- */

typedef struct SpikeConfig {
    double rate, peak, cv;
    kv_ns at, width, every;
} SpikeConfig;

static ArrivalProcess *spike_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    const SpikeConfig *c = config;
    double at = kv_ns_to_seconds(c->at), width = kv_ns_to_seconds(c->width);
    if (c->every > 0 && c->every < c->at + c->width) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "arrivals spike: expected every >= at + width");
        return NULL;
    }
    GArray *points = new_points();
    add(points, 0, c->rate);
    add(points, at, c->rate);
    add(points, at, c->peak);
    add(points, at + width, c->peak);
    add(points, at + width, c->rate);
    return rate_curve_new(&arrivals_spike, points, kv_ns_to_seconds(c->every), c->cv,
                          "arrivals spike", seed, replication, error);
}

static const SpecOption spike_options[] = {
    {"rate", SPEC_REAL, G_STRUCT_OFFSET(SpikeConfig, rate), "1", 0, 1e9, NULL,
     "requests a second between spikes"},
    {"peak", SPEC_REAL, G_STRUCT_OFFSET(SpikeConfig, peak), "20", 0, 1e9, NULL, "... in a spike"},
    {"at", SPEC_TIME, G_STRUCT_OFFSET(SpikeConfig, at), "60s", 0, 1e9, NULL, "when it begins"},
    {"width", SPEC_TIME, G_STRUCT_OFFSET(SpikeConfig, width), "10s", 1e-6, 1e9, NULL,
     "how long it lasts"},
    {"every", SPEC_TIME, G_STRUCT_OFFSET(SpikeConfig, every), "0s", 0, 1e9, NULL,
     "period; 0s = one spike only"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(SpikeConfig, cv), "1", 0, 100, NULL,
     "of the gaps at constant rate; 1 = Poisson"},
    {NULL},
};

const ArrivalOps arrivals_spike = {
    .info = {"spike", "a base rate with one or periodic spikes", spike_options,
             sizeof(SpikeConfig)},
    .open = spike_open,
    .next = rate_curve_next,
    .free = rate_curve_free,
};

/* --- table --- */

typedef struct TableConfig {
    char *file;
    int between;
    kv_ns period;
    double cv;
} TableConfig;

/* "TIME RATE" or "TIME,RATE"; blank lines, '#' lines and a line of names are passed over. */
static gboolean read_point(const Input *input, char *text, gboolean steps, GArray *points,
                           GError **error)
{
    g_strdelimit(g_strstrip(text), ",\t;", ' ');
    if (text[0] == '\0' || text[0] == '#' || (points->len == 0 && g_ascii_isalpha(text[0])))
        return TRUE;
    char *gap = strchr(text, ' ');
    kv_ns t;
    double rate;
    if (gap != NULL)
        *gap = '\0';
    if (gap == NULL || !kv_parse_time(text, &t) || !kv_parse_real(g_strstrip(gap + 1), &rate))
        return input_error(input, error, "'%s': expected a time and a rate", text);
    if (steps && points->len > 0)
        add(points, kv_ns_to_seconds(t), g_array_index(points, RatePoint, points->len - 1).rate);
    add(points, kv_ns_to_seconds(t), rate);
    return TRUE;
}

static ArrivalProcess *table_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    const TableConfig *c = config;
    g_autoptr(Input) input = input_open(c->file, error);
    if (input == NULL)
        return NULL;
    GArray *points = new_points();
    char *line;
    gsize len;
    int got;
    while ((got = input_line(input, &line, &len, error)) == 1)
        if (!read_point(input, line, c->between == 1, points, error)) {
            got = -1;
            break;
        }
    if (got < 0) {
        g_array_unref(points);
        return NULL;
    }
    return rate_curve_new(&arrivals_table, points, kv_ns_to_seconds(c->period), c->cv, c->file,
                          seed, replication, error);
}

static const SpecOption table_options[] = {
    {"file", SPEC_STRING, G_STRUCT_OFFSET(TableConfig, file), NULL, 0, 0, NULL,
     "lines 'TIME RATE'"},
    {"between", SPEC_CHOICE, G_STRUCT_OFFSET(TableConfig, between), "linear", 0, 0, "linear|steps",
     "the points"},
    {"period", SPEC_TIME, G_STRUCT_OFFSET(TableConfig, period), "0s", 0, 1e9, NULL,
     "the table starts anew after it; 0s = its last rate stays"},
    {"cv", SPEC_REAL, G_STRUCT_OFFSET(TableConfig, cv), "1", 0, 100, NULL,
     "of the gaps at constant rate; 1 = Poisson"},
    {NULL},
};

const ArrivalOps arrivals_table = {
    .info = {"table", "a rate over time from a file", table_options, sizeof(TableConfig)},
    .open = table_open,
    .next = rate_curve_next,
    .free = rate_curve_free,
};
