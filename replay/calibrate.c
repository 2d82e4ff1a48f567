#include "replay/calibrate.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/stats.h"

const gint32 calibrate_plan_rows[CALIBRATE_PLAN_SIZES] = {1, 16, 64, 256};

#define TINY "len=1;rows=1,16,64,256"
static const char *const gpu_quick[] = {
    TINY, "len=256,1k,4k,16k,ragged:1k,ragged:8k,spike:4k,spike:32k;rows=1,4,16,64",
    "len=256,ragged:512;rows=256", NULL};
static const char *const gpu_full[] = {
    TINY,
    "len=64,256,512,1k,2k,4k,8k,16k,32k;rows=1,2,4,8,16,32,64",
    "len=ragged:256,ragged:1k,ragged:4k,ragged:16k,ragged:32k,spike:1k,spike:4k,spike:16k,"
    "spike:64k;rows=2,4,8,16,32,64",
    "len=333,1111,2777,8199,21111;rows=1,2,4,8,16", /* lengths as logs have them: no round number */
    "len=64,256,1k,4k,ragged:512,ragged:2k,ragged:8k,spike:8k;rows=128,256",
    NULL};
static const char *const cpu_quick[] = {TINY, "len=128,1k,ragged:1k,spike:2k;rows=1,4,16", NULL};
static const char *const cpu_full[] = {
    TINY, "len=64,256,1k,4k,ragged:256,ragged:1k,ragged:4k,spike:1k,spike:8k;rows=1,2,4,8,16,32",
    NULL};

typedef struct Run {
    const CalibrateConfig *config;
    const BackendOps *ops;
    BenchResult *bench;
    Calibrated *result;
    guint64 groups; /* cells with samples, so far */
    gint workers;
} Run;

void calibrated_free(Calibrated *self)
{
    if (self == NULL)
        return;
    g_free(self->device);
    device_profile_free(self->profile);
    calibration_table_free(self->fitted);
    calibration_table_free(self->held_out);
    g_free(self);
}

char *calibrate_slug(const char *device)
{
    g_autoptr(GString) slug = g_string_new(NULL);
    for (const char *c = device; *c != '\0'; c++)
        if (g_ascii_isalnum(*c))
            g_string_append_c(slug, g_ascii_tolower(*c));
        else if (slug->len > 0 && slug->str[slug->len - 1] != '-')
            g_string_append_c(slug, '-');
    while (slug->len > 0 && slug->str[slug->len - 1] == '-')
        g_string_truncate(slug, slug->len - 1);
    return g_string_free(g_steal_pointer(&slug), FALSE);
}

/* --- the host's plans --- */

static gboolean plan_cost(AttnRoute route, gint32 rows, gint workers, guint64 seed, double *ret,
                          GError **error)
{
    const AttnShape shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND};
    g_autofree gint32 *lens = g_new(gint32, rows);
    double us[15];
    AttnPlanConfig config;
    AttnPlan plan;
    RngStream rng;
    rng_init(&rng, seed, RNG_LENGTHS, 0, (guint32)rows);
    for (gint32 r = 0; r < rows; r++)
        lens[r] = 1 + (gint32)rng_below(&rng, 8192);
    attn_plan_init(&plan);
    attn_plan_config_init(&config, route, workers);
    AttnStatus status = ATTN_OK;
    for (guint i = 0; i < G_N_ELEMENTS(us) && status == ATTN_OK; i++) {
        const double from = clock_us();
        status = attn_plan_build(&plan, &config, &shape, rows, lens);
        us[i] = clock_us() - from;
    }
    attn_plan_free(&plan);
    if (status != ATTN_OK) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(status));
        return FALSE;
    }
    sort_doubles(us, G_N_ELEMENTS(us));
    *ret = quantile_linear(us, G_N_ELEMENTS(us), 0.5);
    return TRUE;
}

static gboolean plan_costs(Run *self, GError **error)
{
    for (int route = 0; route < ATTN_ROUTE_MAX; route++)
        for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
            if (!plan_cost((AttnRoute)route, calibrate_plan_rows[i], self->workers,
                           self->config->config.seed, &self->result->plan_us[route][i], error))
                return FALSE;
    return TRUE;
}

/* --- the grid --- */

static gboolean add_cells(const Run *self, BenchConfig *bench, GError **error)
{
    const CalibrateConfig *c = self->config;
    const gboolean cpu = self->ops == &backend_cpu;
    if (c->cells != NULL)
        return bench_add_cells(bench, c->cells, error);
    const char *const *cells = cpu        ? c->quick ? cpu_quick : cpu_full
                               : c->quick ? gpu_quick
                                          : gpu_full;
    for (; *cells != NULL; cells++)
        if (!bench_add_cells(bench, *cells, error))
            return FALSE;
    return TRUE;
}

static gboolean add_routes(BenchConfig *bench, PluginChoice choice[ATTN_ROUTE_MAX], GError **error)
{
    for (int i = 0; i < ATTN_ROUTE_MAX; i++) {
        if (!plugin_choice_parse(&choice[i], "route", routes, attn_route_name(i), error))
            return FALSE;
        g_ptr_array_add(bench->routes, &choice[i]);
    }
    return TRUE;
}

static gboolean run_grid(Run *self, OutFile *table, Progress *progress, GError **error)
{
    BenchConfig bench;
    PluginChoice choice[ATTN_ROUTE_MAX] = {0};
    bench_config_init(&bench);
    bench.backend.info = &self->ops->info;
    bench.config = self->config->config;
    bench.config.check_bytes = (gint64)8 << 20;
    bench.seconds = self->config->seconds;
    bench.rounds = self->ops == &backend_cpu ? 3 : self->config->quick ? 5 : 11;
    bench.max_bytes = self->config->quick ? (gint64)3 << 30 : 0;
    bench.commit = self->config->commit;
    bench.calibration = table;
    bench.kernel_only = TRUE;
    bench.emptied = TRUE;
    if (add_cells(self, &bench, error) && add_routes(&bench, choice, error))
        self->bench = bench_run(&bench, NULL, progress, error);
    bench.backend.info = NULL;
    bench_config_clear(&bench);
    for (int i = 0; i < ATTN_ROUTE_MAX; i++)
        plugin_choice_clear(&choice[i]);
    if (self->bench == NULL)
        return FALSE;
    if (!self->bench->wrong)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "a route's output differs from the fp64 reference by more than the tolerance: "
                "nothing is fitted (kvreplay bench shows which)");
    return FALSE;
}

static void take_tiny(Run *self, const BenchCellResult *cell, const BenchLine *line)
{
    if (!self->ops->plans_persistent || cell->max_len != 1 ||
        strcmp(line->label, attn_route_name(ATTN_PERSISTENT)) != 0)
        return;
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        if (calibrate_plan_rows[i] == cell->cell.rows)
            self->result->tiny_us[i] = line->kernel_us;
}

/* One cell's lines are one group of samples. */
static void take_cell(Run *self, const BenchCellResult *cell)
{
    const gboolean held = self->groups % 5 == 4;
    CalibrationTable *to = held ? self->result->held_out : self->result->fitted;
    gboolean any = FALSE;
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        if (line->note != NULL || !(line->kernel_us > 0))
            continue;
        take_tiny(self, cell, line);
        const CalibrationRow row = {
            .rows = (guint32)cell->cell.rows,
            .shape = cell->cell.shape,
            .workers = self->workers,
            .counts = line->counts,
            .kernel_us = line->kernel_us,
            .wall_us = bench_line_wall(line),
        };
        calibration_table_add(to, &row, line->label, !any);
        any = TRUE;
    }
    self->groups += any;
    self->result->cells += any;
    self->result->left_out += !any;
}

/* --- the record of it --- */

static void put_text(JsonBuilder *b, const char *name, const char *value)
{
    json_builder_set_member_name(b, name);
    if (value != NULL)
        json_builder_add_string_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void put_row(JsonBuilder *b, const char *name, const double *us)
{
    json_builder_set_member_name(b, name);
    json_builder_begin_array(b);
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        json_builder_add_double_value(b, us[i]);
    json_builder_end_array(b);
}

static void put_plans(const Run *self, JsonBuilder *b)
{
    json_builder_set_member_name(b, "plan");
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "rows");
    json_builder_begin_array(b);
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        json_builder_add_int_value(b, calibrate_plan_rows[i]);
    json_builder_end_array(b);
    json_builder_set_member_name(b, "host_us");
    json_builder_begin_object(b);
    for (int i = 0; i < ATTN_ROUTE_MAX; i++)
        put_row(b, attn_route_name(i), self->result->plan_us[i]);
    json_builder_end_object(b);
    if (self->result->tiny_us[0] >= 0 && self->result->tiny_us[CALIBRATE_PLAN_SIZES - 1] >= 0)
        put_row(b, "device_one_entry_rows_us", self->result->tiny_us);
    json_builder_end_object(b);
}

static void put_judgement(JsonBuilder *b, const char *name, FitJudgement j)
{
    json_builder_set_member_name(b, name);
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "cells");
    json_builder_add_int_value(b, (gint64)j.steps);
    const struct {
        const char *name;
        double value;
    } members[] = {{"regret_mean", j.regret_mean},
                   {"regret_worst", j.regret_worst},
                   {"best_taken", j.best_share},
                   {"error_p50", j.error_p50},
                   {"error_p95", j.error_p95}};
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        json_builder_set_member_name(b, members[i].name);
        json_builder_add_double_value(b, members[i].value);
    }
    json_builder_end_object(b);
}

static JsonNode *describe(const Run *self)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    time_t now = time(NULL);
    struct tm utc;
    char date[16];
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%d", &utc);
    json_builder_begin_object(b);
    put_text(b, "backend", self->ops->info.name);
    json_builder_set_member_name(b, "on");
    json_builder_add_value(b, json_node_copy(self->bench->about));
    put_text(b, "commit", self->config->commit);
    put_text(b, "date", date);
    put_text(b, "command", self->config->command);
    json_builder_set_member_name(b, "cells");
    json_builder_add_int_value(b, self->result->cells);
    json_builder_set_member_name(b, "cells_left_out");
    json_builder_add_int_value(b, self->result->left_out);
    device_rates_to_json(&self->result->rates, b);
    put_plans(self, b);
    if (self->result->held_out->groups > 0) {
        put_judgement(b, "held_out_cost",
                      fit_judge(self->result->profile, self->result->held_out, FIT_COST));
        put_judgement(b, "held_out_learned",
                      fit_judge(self->result->profile, self->result->held_out, FIT_LEARNED));
    }
    json_builder_end_object(b);
    return json_builder_get_root(b);
}

static const BackendOps *choose_backend(const CalibrateConfig *config, GError **error)
{
    g_autofree char *reason = NULL;
    const BackendOps *ops = backend_choose(config->backend.info, &config->config, &reason);
    if (ops->executes && ops->rates != NULL)
        return ops;
    g_autofree char *why = NULL;
    ops->available(&config->config, &why);
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                "calibrate: backend %s measures nothing here: %s", ops->info.name, why);
    return NULL;
}

static gboolean measure(Run *self, OutFile *table, Progress *progress, GError **error)
{
    Calibrated *r = self->result;
    if (!self->ops->rates(&self->config->config, &r->rates, error) ||
        !run_grid(self, table, progress, error))
        return FALSE;
    r->device = g_strdup(self->bench->device);
    self->workers = self->bench->workers;
    if (!plan_costs(self, error))
        return FALSE;
    for (guint i = 0; i < self->bench->cells->len; i++)
        take_cell(self, self->bench->cells->pdata[i]);
    for (char **path = self->config->with; path != NULL && *path != NULL; path++)
        if (!calibration_table_read(r->fitted, *path, error))
            return FALSE;
    r->profile = fit_profile(r->fitted, r->device, r->rates.read, error);
    if (r->profile == NULL)
        return FALSE;
    r->profile->measured = describe(self);
    return TRUE;
}

Calibrated *calibrate_run(const CalibrateConfig *config, OutFile *table, Progress *progress,
                          GError **error)
{
    Run self = {.config = config, .ops = choose_backend(config, error)};
    if (self.ops == NULL)
        return NULL;
    g_autoptr(Calibrated) result = g_new0(Calibrated, 1);
    result->fitted = calibration_table_new();
    result->held_out = calibration_table_new();
    for (guint i = 0; i < CALIBRATE_PLAN_SIZES; i++)
        result->tiny_us[i] = -1;
    device_rates_init(&result->rates);
    self.result = result;
    const gboolean ok = measure(&self, table, progress, error);
    bench_result_free(self.bench);
    return ok ? g_steal_pointer(&result) : NULL;
}
