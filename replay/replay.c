#include "replay/replay.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/stats.h"
#include "replay/calibration.h"
#include "replay/earlier.h"
#include "replay/replay_csv.h"
#include "replay/result.h"

enum { MAX_ROUTES = 64 }; /* what policies look at */

typedef struct Lane { /* one candidate route through the run */
    Route route;
    AttnPlanConfig plan_config;
    AttnPlan plan;
    RouteTotals *totals;
    Execution execution;
    gboolean own_workers; /* the backend says how many, step by step */
    gboolean executed;    /* in the step in hand */
} Lane;

typedef struct Replay {
    const ReplayConfig *config;
    StepsReader *steps;
    const StepsHeader *header;
    BackendConfig backend_config;
    const BackendOps *ops;
    Backend *backend;
    DeviceProfile *profile;
    Policy *policy;
    ReplayCsv *csv;
    Progress *progress; /* NULL = none; asked between repeats */
    Earlier *earlier;   /* what an interrupted run measured; NULL */
    ReplayResult *result;
    Lane *lane;
    Candidate *candidate;
    guint n; /* lanes that run; result->route has the refused ones too */
    gint repeats, check_every;
    guint64 first, end; /* steps [first, end) */
    GArray *lens;       /* gint32, of the step in hand */
    StepFeatures features;
    gint last_chosen;
    gboolean warm;
} Replay;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void replay_clear(Replay *self)
{
    for (guint i = 0; i < self->n; i++) {
        attn_plan_free(&self->lane[i].plan);
        g_free(self->lane[i].route.label);
    }
    g_free(self->lane);
    g_free(self->candidate);
    policy_free(self->policy);
    backend_free(self->backend);
    device_profile_free(self->profile);
    replay_csv_free(self->csv);
    earlier_free(self->earlier);
    replay_result_free(self->result);
    g_clear_pointer(&self->lens, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Replay, replay_clear)

/* --- setting up --- */

static gboolean set_shape(Replay *self, GError **error)
{
    const StepsHeader *h = self->header;
    AttnShape *shape = &self->backend_config.shape;
    shape->q_heads = (int32_t)h->q_heads;
    shape->kv_heads = (int32_t)h->kv_heads;
    const int32_t tp = MAX(self->backend_config.tp, 1);
    if (shape->kv_heads % tp != 0 || shape->q_heads % tp != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--tp %d: %d KV heads do not divide into %d equal shares", tp, shape->kv_heads,
                    tp);
        return FALSE;
    }
    shape->q_heads /= tp; /* one GPU's share of the heads is planned, executed and counted */
    shape->kv_heads /= tp;
    shape->head_dim = (int32_t)h->head_dim;
    shape->page_size = (int32_t)h->page_size;
    shape->dtype = g_strcmp0(h->dtype, "bf16") == 0 ? ATTN_BF16 : ATTN_F16;
    if (attn_shape_check(shape) != ATTN_OK) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_UNSUPPORTED,
            "shape of the steps file (%d q heads, %d kv heads, head size %d, page size %d): %s",
            shape->q_heads, shape->kv_heads, shape->head_dim, shape->page_size,
            attn_strerror(ATTN_UNSUPPORTED_SHAPE));
        return FALSE;
    }
    self->backend_config.pool_pages = (gint64)h->pool_pages;
    return TRUE;
}

static gboolean open_backend(Replay *self, GError **error)
{
    ReplayResult *r = self->result;
    self->ops = backend_choose(self->config->backend.info, &self->backend_config, &r->reason);
    self->backend = self->ops->create(&self->backend_config, error);
    if (self->backend == NULL)
        return FALSE;
    r->backend = self->ops->info.name;
    g_autoptr(JsonBuilder) device = json_builder_new();
    json_builder_begin_object(device);
    self->ops->describe(self->backend, device);
    const double rate = self->ops->executes && self->ops->read_rate != NULL
                            ? self->ops->read_rate(self->backend) /* bytes a microsecond */
                            : 0;
    if (rate > 0) { /* the roof that GB/s are seen against */
        json_builder_set_member_name(device, "read_rate_gbps");
        json_builder_add_double_value(device, 1e-3 * rate);
    }
    json_builder_end_object(device);
    r->device = json_builder_get_root(device);

    const gint workers = self->ops->workers(self->backend);
    self->profile = self->config->profile != NULL && self->config->profile[0] != '\0'
                        ? device_profile_read(self->config->profile, error)
                        : device_profile_guess();
    if (self->profile == NULL)
        return FALSE;
    r->workers = self->config->workers > 0 ? self->config->workers
                 : workers > 0             ? workers
                                           : self->profile->workers;
    r->profile = g_strdup(self->profile->device);
    r->profile_guess = self->profile->guess;
    self->repeats =
        self->config->repeats > 0 ? self->config->repeats : MAX(self->ops->default_repeats, 1);
    r->repeats = self->ops->executes ? self->repeats : 0;
    return TRUE;
}

/* The plain name, or with its distinguishing number where another route has the same name. */
static char *label_of(const PluginChoice *choice, const GPtrArray *all)
{
    const RouteConfig *c = choice->config;
    guint same = 0;
    for (guint i = 0; i < all->len; i++)
        same += ((const PluginChoice *)all->pdata[i])->info == choice->info;
    if (same > 1 && c->graph)
        return g_strdup_printf("%s-graph", choice->info->name);
    const gint64 numbers[] = {c->width, c->s, c->split, c->factor > 1 ? c->factor : 0, c->c0};
    gint64 number = 0;
    for (guint i = 0; i < G_N_ELEMENTS(numbers) && number == 0; i++)
        number = numbers[i];
    if (same < 2 || number == 0)
        return g_strdup(choice->info->name);
    return g_strdup_printf("%s-%" G_GINT64_FORMAT, choice->info->name, number);
}

static gboolean add_lane(Replay *self, const PluginChoice *choice, const GPtrArray *all,
                         GError **error)
{
    ReplayResult *r = self->result;
    Lane *lane = &self->lane[self->n];
    RouteTotals *totals = &r->route[r->n_routes];
    lane->route = (Route){.ops = (const RouteOps *)choice->info,
                          .config = *(const RouteConfig *)choice->config,
                          .label = label_of(choice, all)};
    for (guint i = 0; i < r->n_routes; i++)
        if (strcmp(r->route[i].label, lane->route.label) == 0) {
            g_set_error(
                error, KV_ERROR, KV_ERROR_USAGE,
                "route %s is named twice (with options that would not tell its lines apart)",
                lane->route.label);
            g_free(lane->route.label);
            return FALSE;
        }
    r->n_routes++;
    totals->label = g_strdup(lane->route.label);
    totals->counted = lane->route.ops->kind == ROUTE_BUILTIN;
    totals->kernel_us = g_array_new(FALSE, FALSE, sizeof(double));
    const char *refused = self->ops->refuses(self->backend, &lane->route);
    if (refused != NULL) {
        totals->refused = g_strdup(refused);
        g_free(lane->route.label);
        return TRUE;
    }
    lane->totals = totals;
    lane->own_workers = self->ops->route_workers != NULL && self->config->workers <= 0 &&
                        lane->route.ops->kind == ROUTE_BUILTIN;
    route_plan_config(&lane->plan_config, &lane->route, &self->config->splits,
                      &self->backend_config.shape, r->workers);
    attn_plan_init(&lane->plan);
    self->candidate[self->n] = (Candidate){.route = &lane->route, .measured_us = (double)NAN};
    self->n++;
    return TRUE;
}

static gboolean add_all_builtin(Replay *self, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    gboolean ok = TRUE;
    PluginChoice choice[ATTN_ROUTE_MAX];
    for (int i = 0; i < ATTN_ROUTE_MAX && ok; i++) {
        choice[i] = (PluginChoice){0};
        ok = plugin_choice_parse(&choice[i], "route", routes, attn_route_name(i), error);
        g_ptr_array_add(all, &choice[i]);
    }
    for (guint i = 0; i < all->len; i++) {
        ok = ok && add_lane(self, all->pdata[i], all, error);
        plugin_choice_clear(all->pdata[i]);
    }
    return ok;
}

static gboolean open_routes(Replay *self, GError **error)
{
    const GPtrArray *named = self->config->routes;
    const guint n = named->len > 0 ? named->len : ATTN_ROUTE_MAX;
    if (n > MAX_ROUTES) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%u routes: at most %d", n, MAX_ROUTES);
        return FALSE;
    }
    self->lane = g_new0(Lane, n);
    self->candidate = g_new0(Candidate, n);
    self->result->route = g_new0(RouteTotals, n);
    if (named->len == 0 && !add_all_builtin(self, error))
        return FALSE;
    for (guint i = 0; i < named->len; i++)
        if (!add_lane(self, named->pdata[i], named, error))
            return FALSE;
    if (self->n == 0) {
        const RouteTotals *t = &self->result->route[0];
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                    "no route can be run by backend %s; %s: %s", self->result->backend, t->label,
                    t->refused);
        return FALSE;
    }
    return TRUE;
}

static gboolean open_policy(Replay *self, GError **error)
{
    ReplayResult *r = self->result;
    self->policy = policy_new(&self->config->policy, self->profile, error);
    if (self->policy == NULL)
        return FALSE;
    const PolicyOps *ops = self->policy->ops;
    if (ops->needs_measured && self->config->chosen_only) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "policy %s needs every route's time: not with --chosen-only", ops->info.name);
        return FALSE;
    }
    if (ops->begin != NULL && !ops->begin(self->policy, self->candidate, self->n, error))
        return FALSE;
    r->policy = plugin_choice_format(&self->config->policy);
    r->policy_note = g_strdup(ops->note != NULL ? ops->note(self->policy) : NULL);
    r->splits = plugin_choice_format(&self->config->splits);
    r->regret = regret_log_new(self->n, self->config->config.seed);
    return TRUE;
}

static gboolean set_range(Replay *self, GError **error)
{
    const gint64 count = steps_reader_count(self->steps);
    self->first = self->config->from;
    self->end = self->config->to > 0 ? self->config->to : count >= 0 ? (guint64)count : G_MAXUINT64;
    if (count >= 0 && self->first > 0 && self->first >= (guint64)count) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--from %" G_GUINT64_FORMAT ": the steps file has %" G_GINT64_FORMAT " steps",
                    self->first, count);
        return FALSE;
    }
    if (count >= 0)
        self->end = MIN(self->end, (guint64)count);
    return self->first == 0 || steps_reader_seek(self->steps, self->first, error);
}

/* --- one step --- */

/* Is this one of the steps to execute? A sample of N is spread evenly over the range. */
static gboolean wants_execution(const Replay *self, guint64 step)
{
    const ReplayConfig *c = self->config;
    if (!self->ops->executes)
        return FALSE;
    switch (c->execute) {
    case EXECUTE_ALL:
        return TRUE;
    case EXECUTE_RANGE:
        return step >= c->execute_a && step < c->execute_b;
    case EXECUTE_EVERY:
        return (step - self->first) % c->execute_a == 0;
    case EXECUTE_SAMPLE:
        break;
    }
    if (self->end == G_MAXUINT64) /* length unknown: a file without its index */
        return c->execute_a > 0 && (step - self->first) % 256 == 0;
    const guint64 all = self->end - self->first, i = step - self->first;
    if (c->execute_a >= all)
        return TRUE;
    /* In 128 bits: both factors may be large. */
    const unsigned __int128 n = c->execute_a;
    return (guint64)(n * (i + 1) / all) > (guint64)(n * i / all);
}

static void gather(Replay *self, const Step *step, const StepRow *rows, guint32 n_rows)
{
    g_array_set_size(self->lens, 0);
    gint32 least = G_MAXINT32;
    for (guint32 i = 0; i < n_rows; i++) {
        if (rows[i].paused)
            continue;
        const gint32 len = (gint32)rows[i].length;
        least = MIN(least, len);
        g_array_append_val(self->lens, len);
    }
    self->features = (StepFeatures){
        .shape = self->backend_config.shape,
        .workers = self->result->workers,
        .rows = self->lens->len,
        .max_length = step->max_length,
        .min_length = self->lens->len > 0 ? (guint32)least : 0,
        .sum_length = step->sum_length,
        .lens = (const gint32 *)(void *)self->lens->data,
    };
}

static gboolean no_memory(GError **error)
{
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(ATTN_NO_MEMORY));
    return FALSE;
}

static gboolean count_lane(Replay *self, guint i, GError **error)
{
    Lane *lane = &self->lane[i];
    AttnCounts *counts = &self->candidate[i].counts;
    self->candidate[i].measured_us = (double)NAN;
    lane->executed = FALSE;
    if (lane->own_workers)
        lane->plan_config.workers = self->ops->route_workers(
            self->backend, &lane->route, MAX((gint64)self->features.sum_length, 1));
    if (attn_plan_count(counts, &lane->plan_config, &self->backend_config.shape,
                        (int32_t)self->features.rows, self->features.lens) != ATTN_OK)
        return no_memory(error);
    if (!lane->totals->counted)
        *counts = (AttnCounts){.kv_bytes = counts->kv_bytes,
                               .kv_bytes_touched = counts->kv_bytes_touched};
    RouteTotals *t = lane->totals;
    t->launches += counts->launches;
    t->merge_launches += counts->merge_launches;
    t->tasks += counts->tasks;
    t->kv_bytes += counts->kv_bytes;
    t->kv_bytes_touched += counts->kv_bytes_touched;
    t->merge_state_bytes += counts->merge_state_bytes;
    t->nonempty += counts->nonempty_fraction;
    return TRUE;
}

static guint choose(Replay *self, gboolean timed)
{
    ReplayResult *r = self->result;
    const double from = timed ? now_us() : 0;
    const guint chosen =
        self->policy->ops->choose(self->policy, &self->features, self->candidate, self->n);
    if (timed) {
        r->policy_us += now_us() - from;
        r->policy_timed++;
    }
    const AttnCounts *counts = &self->candidate[chosen].counts;
    self->lane[chosen].totals->chosen++;
    r->switches += self->last_chosen >= 0 && (guint)self->last_chosen != chosen;
    self->last_chosen = (gint)chosen;
    r->chosen_launches += counts->launches;
    r->chosen_tasks += counts->tasks;
    r->chosen_merge_bytes += counts->merge_state_bytes;
    return chosen;
}

/* --- executing --- */

static double median_of(double *values, gint n)
{
    sort_doubles(values, (gsize)n);
    return quantile_linear(values, (gsize)n, 0.5);
}

/* The host's part of planning, timed; peers plan for themselves. */
static gboolean build_plan(Replay *self, Lane *lane, double *ret_us, GError **error)
{
    *ret_us = 0;
    if (lane->route.ops->kind != ROUTE_BUILTIN)
        return TRUE;
    if (lane->route.ops->builtin == ATTN_PERSISTENT && self->ops->plans_persistent) {
        lane->plan.config = lane->plan_config;
        lane->plan.counts = self->candidate[lane - self->lane].counts;
        return TRUE;
    }
    const double from = now_us();
    const AttnStatus status =
        attn_plan_build(&lane->plan, &lane->plan_config, &self->backend_config.shape,
                        (int32_t)self->features.rows, self->features.lens);
    *ret_us = now_us() - from;
    return status == ATTN_OK || no_memory(error);
}

static gboolean check_launches(const Replay *self, const Lane *lane, const AttnCounts *counts,
                               guint64 step, GError **error)
{
    const gint64 seen = lane->execution.launches_seen;
    if (!self->config->config.verify_launches || seen < 0 || !lane->totals->counted ||
        seen == counts->launches)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "step %" G_GUINT64_FORMAT ", route %s: %d launches recorded, %" G_GINT64_FORMAT
                " seen",
                step, lane->route.label, counts->launches, seen);
    return FALSE;
}

typedef struct Samples { /* of one lane, by round */
    double *kernel, *wall, *plan;
} Samples;

/* Rounds A B C, B C A ...: every route once a round, another one first each time. */
static gboolean run_rounds(Replay *self, const guint *lanes, guint n, gboolean check,
                           Samples *samples, GError **error)
{
    for (gint round = 0; round < self->repeats; round++) {
        if (!progress_check(self->progress, error))
            return FALSE;
        for (guint k = 0; k < n; k++) {
            const guint at = (k + (guint)round) % n;
            Lane *lane = &self->lane[lanes[at]];
            const gboolean peer = lane->route.ops->kind != ROUTE_BUILTIN;
            double host_us;
            Execution e;
            if (!build_plan(self, lane, &host_us, error) ||
                !self->ops->execute(self->backend, &lane->route, peer ? NULL : &lane->plan, 1,
                                    check && round == self->repeats - 1, &e, error))
                return FALSE;
            samples[at].kernel[round] = e.kernel_us;
            samples[at].wall[round] = e.wall_us + host_us;
            samples[at].plan[round] = MAX(e.plan_us, 0) + host_us;
            lane->execution = e;
        }
    }
    return TRUE;
}

/* One route's execution of a step into the totals, the candidates and the calibration table. */
static gboolean take_execution(Replay *self, const Step *step, guint lane_index,
                               const Execution *execution, GError **error)
{
    ReplayResult *r = self->result;
    Lane *lane = &self->lane[lane_index];
    Candidate *candidate = &self->candidate[lane_index];
    lane->executed = TRUE;
    lane->execution = *execution;
    candidate->measured_us = execution->kernel_us;
    if (self->config->calibration != NULL && lane->totals->counted)
        calibration_write_row(self->config->calibration, step->index, &self->features, candidate,
                              execution->kernel_us / r->executed_layers);
    route_totals_add_execution(lane->totals, r, execution, candidate->counts.kv_bytes);
    return check_launches(self, lane, &candidate->counts, step->index, error);
}

/* Steps that an interrupted run has measured: 1 = taken from it, 0 = not there, -1 = error. */
static int take_earlier(Replay *self, const Step *step, const guint *lanes, guint n, GError **error)
{
    const char *labels[MAX_ROUTES] = {NULL};
    Execution found[MAX_ROUTES];
    if (self->earlier == NULL)
        return 0;
    for (guint i = 0; i < n; i++)
        labels[i] = self->lane[lanes[i]].route.label;
    if (!earlier_find(self->earlier, step->index, labels, n, found))
        return 0;
    for (guint i = 0; i < n; i++)
        if (!take_execution(self, step, lanes[i], &found[i], error))
            return -1;
    self->result->executed_steps++;
    self->result->checked_steps += found[0].checked;
    self->result->resumed_steps++;
    return 1;
}

static gboolean execute(Replay *self, const Step *step, const guint *lanes, guint n, GError **error)
{
    ReplayResult *r = self->result;
    const gint repeats = self->repeats;
    const int earlier = take_earlier(self, step, lanes, n, error);
    if (earlier != 0)
        return earlier > 0;
    const gboolean check =
        self->check_every > 0 && r->executed_steps % (guint)self->check_every == 0;
    g_autofree double *values = g_new(double, (gsize)(3 * repeats) * n);
    g_autofree Samples *samples = g_new(Samples, n);
    for (guint i = 0; i < n; i++) {
        samples[i].kernel = values + (gsize)(3 * repeats) * i;
        samples[i].wall = samples[i].kernel + repeats;
        samples[i].plan = samples[i].wall + repeats;
    }
    /* A round that is not recorded, where a repeat is worth one. */
    if (!self->warm && repeats > 1 && !run_rounds(self, lanes, n, FALSE, samples, error))
        return FALSE;
    self->warm = TRUE;
    if (!run_rounds(self, lanes, n, check, samples, error))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        Execution execution =
            self->lane[lanes[i]].execution; /* uploads, errors: the last round's */
        execution.repeats = repeats;
        execution.kernel_us = median_of(samples[i].kernel, repeats);
        execution.wall_us = median_of(samples[i].wall, repeats);
        execution.plan_us = median_of(samples[i].plan, repeats);
        if (!take_execution(self, step, lanes[i], &execution, error))
            return FALSE;
    }
    r->executed_steps++;
    r->checked_steps += check;
    return TRUE;
}

static void note_regret(Replay *self, guint chosen)
{
    double us[MAX_ROUTES];
    for (guint i = 0; i < self->n; i++) {
        if (!self->lane[i].executed)
            return;
        us[i] = self->lane[i].execution.kernel_us;
    }
    self->result->chosen_kernel_us += us[chosen];
    regret_log_add(self->result->regret, us, chosen);
}

static void write_lines(Replay *self, const Step *step, gint chosen, guint64 prefill_tokens)
{
    if (self->csv == NULL)
        return;
    replay_csv_step(self->csv, step, prefill_tokens);
    for (guint i = 0; i < self->n; i++) {
        const Lane *lane = &self->lane[i];
        const ReplayLine line = {
            .route = &lane->route,
            .chosen = (gint)i == chosen,
            .counts = &self->candidate[i].counts,
            .counted = lane->totals->counted || step->rows == 0,
            .execution = lane->executed ? &lane->execution : NULL,
        };
        replay_csv_line(self->csv, &line);
    }
}

static gboolean replay_step(Replay *self, const Step *step, GError **error)
{
    ReplayResult *r = self->result;
    guint32 n_rows;
    const StepRow *rows = steps_reader_rows(self->steps, &n_rows);
    guint64 prefill = 0;
    for (guint32 i = 0; i < step->n_prefill; i++)
        prefill += step->prefill[i].tokens;
    r->steps++;
    r->prefill_tokens += prefill;
    gather(self, step, rows, n_rows);
    if (!self->ops->begin_step(self->backend, step, rows, n_rows, error))
        return FALSE;
    for (guint i = 0; i < self->n; i++)
        if (!count_lane(self, i, error))
            return FALSE;
    gint chosen = -1;
    if (self->features.rows > 0) {
        const gboolean run = wants_execution(self, step->index);
        guint lanes[MAX_ROUTES];
        for (guint i = 0; i < self->n; i++)
            lanes[i] = i;
        r->decode_steps++;
        r->row_steps += self->features.rows;
        if (run && !self->config->chosen_only && !execute(self, step, lanes, self->n, error))
            return FALSE;
        lanes[0] = choose(self, run);
        chosen = (gint)lanes[0];
        if (run && self->config->chosen_only && !execute(self, step, lanes, 1, error))
            return FALSE;
        if (run)
            note_regret(self, lanes[0]);
    }
    write_lines(self, step, chosen, prefill);
    return TRUE;
}

static gboolean replay_loop(Replay *self, Progress *progress, GError **error)
{
    const Step *step;
    int got;
    const guint64 total = self->end == G_MAXUINT64 ? 0 : self->end - self->first;
    progress_begin(progress, "replay", total);
    guint64 done = 0;
    while (self->first + done < self->end &&
           (got = steps_reader_next(self->steps, &step, error)) != 0) {
        if (got < 0 || !replay_step(self, step, error))
            return FALSE;
        progress_tick(progress, ++done);
        if (!progress_check(progress, error))
            return FALSE;
        if (done % 4096 == 0 && self->csv != NULL && !replay_csv_flush(self->csv, error))
            return FALSE;
    }
    progress_end(progress);
    return TRUE;
}

static gboolean replay_open(Replay *self, GError **error)
{
    ReplayResult *r = self->result;
    if (!set_shape(self, error) || !open_backend(self, error) || !open_routes(self, error) ||
        !open_policy(self, error) || !set_range(self, error))
        return FALSE;
    const gint asked = self->config->check_every;
    self->check_every = asked > 0 ? asked : self->ops == &backend_cpu ? 25 : 10;
    r->layers = MAX((gint)self->header->layers, 1);
    r->executed_layers = MAX(self->backend_config.layers, 1);
    r->tp = MAX(self->backend_config.tp, 1);
    r->type = self->backend_config.shape.dtype;
    r->dtype = g_strdup(self->header->dtype);
    r->model = g_strdup(self->header->model);
    return TRUE;
}

ReplayResult *replay_run(const ReplayConfig *config, StepsReader *steps, OutFile *csv,
                         Progress *progress, GError **error)
{
    const double from = now_us();
    g_auto(Replay) self = {
        .config = config,
        .steps = steps,
        .header = steps_reader_header(steps),
        .backend_config = config->config,
        .result = g_new0(ReplayResult, 1),
        .lens = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .last_chosen = -1,
        .progress = progress,
    };
    if ((config->resume != NULL && (self.earlier = earlier_open(config->resume, error)) == NULL) ||
        !replay_open(&self, error))
        return NULL;
    self.csv = replay_csv_new(csv);
    if (config->calibration != NULL)
        calibration_write_header(config->calibration);
    g_autoptr(GError) local = NULL;
    const gboolean done = replay_loop(&self, progress, &local);
    if (!replay_csv_flush(self.csv, done ? &local : NULL) || !done) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    self.result->wall_seconds = 1e-6 * (now_us() - from);
    return g_steal_pointer(&self.result);
}
