/* Setting a replay up: shape, backend, routes, policy, range. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/backend_ranks.h"
#include "replay/replay_private.h"

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
    shape->q_heads /= tp; /* one share of the heads is planned and counted, all are executed */
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

/* One backend, or one for each share of the heads where shares are executed. */
static gboolean make_backend(Replay *self, GError **error)
{
    const ReplayConfig *c = self->config;
    BackendConfig *config = &self->backend_config;
    Devices on;
    self->kind = backend_choose(c->backend.info, config, &self->result->reason);
    if (c->on != NULL)
        on = *c->on;
    else if (!devices_resolve(&on, c->devices, self->kind, config->device, 1, config->tp, error))
        return FALSE;
    on = devices_group(&on, config->tp, 0);
    config->device = on.ordinal[0];
    self->backend = config->tp > 1 && self->kind->executes
                        ? backend_ranks_new(self->kind, config, &on, error)
                        : self->kind->create(config, error);
    if (self->backend == NULL)
        return FALSE;
    self->ops = self->backend->ops;
    self->device = devices_text(&on);
    self->result->devices = g_strdup(self->device);
    return TRUE;
}

static gboolean open_backend(Replay *self, GError **error)
{
    ReplayResult *r = self->result;
    if (!make_backend(self, error))
        return FALSE;
    r->backend = self->kind->info.name;
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
    lane->own_workers = self->ops->fit_plan != NULL && self->config->workers <= 0 &&
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
    const ReplayConfig *c = self->config;
    if (c->execute == EXECUTE_RANGE && (c->execute_a >= self->end || c->execute_b <= self->first)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--execute %" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT
                    ": none of these steps is looked at: those are %" G_GUINT64_FORMAT
                    " to %" G_GUINT64_FORMAT,
                    c->execute_a, c->execute_b, self->first, self->end - 1);
        return FALSE;
    }
    return self->first == 0 || steps_reader_seek(self->steps, self->first, error);
}

gboolean replay_open(Replay *self, GError **error)
{
    ReplayResult *r = self->result;
    if (!set_shape(self, error) || !open_backend(self, error) || !open_routes(self, error) ||
        !open_policy(self, error) || !set_range(self, error))
        return FALSE;
    const gint asked = self->config->check_every;
    self->check_every = asked > 0 ? asked : self->kind == &backend_cpu ? 25 : 10;
    r->layers = MAX((gint)self->header->layers, 1);
    r->executed_layers = MAX(self->backend_config.layers, 1);
    r->tp = MAX(self->backend_config.tp, 1);
    r->type = self->backend_config.shape.dtype;
    r->dtype = g_strdup(self->header->dtype);
    r->replica = self->header->replica;
    r->model = g_strdup(self->header->model);
    return TRUE;
}
