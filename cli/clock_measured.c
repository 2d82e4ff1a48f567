#include "cli/clock_measured.h"

#include <string.h>

#include "base/error.h"
#include "replay/backend.h"
#include "replay/profile.h"
#include "replay/route.h"
#include "sim/batch.h"
#include "sim/clocks.h"

typedef struct MeasuredConfig {
    kv_ns base, prefill_token;
    char *backend, *route;
    gint64 repeats;
} MeasuredConfig;

static const SpecOption measured_options[] = {
    {"base", SPEC_TIME, offsetof(MeasuredConfig, base), "8ms", 1e-9, 3600, NULL,
     "every step: weights, launches, host; modelled"},
    {"prefill_token", SPEC_TIME, offsetof(MeasuredConfig, prefill_token), "60us", 0, 60, NULL,
     "each token of a prompt chunk; modelled"},
    {"backend", SPEC_STRING, offsetof(MeasuredConfig, backend), "auto", 0, 0, NULL,
     "cuda or cpu; auto takes the first that can run here"},
    {"route", SPEC_STRING, offsetof(MeasuredConfig, route), "workqueue-fused", 0, 0, NULL,
     "route of every step"},
    {"repeats", SPEC_INT, offsetof(MeasuredConfig, repeats), "1", 1, 1000, NULL,
     "executions of a step; their median counts"},
    {NULL},
};

typedef struct MeasuredClock {
    StepClock clock;       /* first: it is one */
    MeasuredConfig config; /* strings not kept */
    guint32 layers;
    Batch batch;
    const BackendOps *ops;
    Backend *backend;
    Route route;
    AttnPlanConfig plan_config;
    AttnPlan plan;
    AttnShape shape;
    GArray *rows; /* StepRow */
    GArray *lens; /* gint32 */
} MeasuredClock;

static void measured_free(StepClock *base)
{
    MeasuredClock *self = (MeasuredClock *)base;
    backend_free(self->backend);
    attn_plan_free(&self->plan);
    batch_clear(&self->batch);
    g_array_unref(self->rows);
    g_array_unref(self->lens);
    g_free(self->route.label);
    g_free(self);
}

static void gather_rows(MeasuredClock *self)
{
    g_array_set_size(self->rows, 0);
    g_array_set_size(self->lens, 0);
    for (guint32 i = 0; i < self->batch.n_rows; i++) {
        guint32 slot = self->batch.order[i];
        const BatchSlot *s = &self->batch.slots[slot];
        StepRow row = {.request = s->request,
                       .slot = slot,
                       .length = batch_length(&self->batch, slot),
                       .n_pages = s->n_pages,
                       .paused = s->paused,
                       .pages = s->pages};
        gint32 len = (gint32)row.length;
        g_array_append_val(self->rows, row);
        if (!s->paused)
            g_array_append_val(self->lens, len);
    }
}

/* Wall time of one layer's attention and the plan, in microseconds. */
static gboolean execute(MeasuredClock *self, const Step *step, double *ret_layer_us,
                        double *ret_plan_us, GError **error)
{
    gint64 begin = g_get_monotonic_time();
    if (attn_plan_build(&self->plan, &self->plan_config, &self->shape, (gint32)self->lens->len,
                        (const gint32 *)(gpointer)self->lens->data) != ATTN_OK) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "no memory for the plan of step %" G_GUINT64_FORMAT, step->index);
        return FALSE;
    }
    *ret_plan_us = (double)(g_get_monotonic_time() - begin);
    Execution e;
    if (!self->ops->execute(self->backend, &self->route, &self->plan, (gint)self->config.repeats,
                            FALSE, &e, error))
        return FALSE;
    *ret_layer_us = e.wall_us;
    return TRUE;
}

static kv_ns measured_length(StepClock *base, const StepLoad *load, GError **error)
{
    MeasuredClock *self = (MeasuredClock *)base;
    const char *wrong = batch_apply(&self->batch, load->step);
    g_assert(wrong == NULL);
    gather_rows(self);
    double layer_us = 0.0, plan_us = 0.0;
    if (!self->ops->begin_step(self->backend, load->step,
                               (const StepRow *)(gpointer)self->rows->data, self->rows->len,
                               error) ||
        (load->rows > 0 && !execute(self, load->step, &layer_us, &plan_us, error)))
        return KV_NS_NONE;
    return self->config.base + self->config.prefill_token * (kv_ns)load->prefill_tokens +
           kv_ns_from_seconds((plan_us + layer_us * self->layers) * 1e-6);
}

static StepClock *measured_create(gconstpointer config, GError **error)
{
    (void)config;
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                "the measured clock needs a model and a pool: not available here");
    return NULL;
}

const StepClockOps clock_measured = {
    .info = {"measured", "closed loop: attention is executed now and its time moves the clock",
             measured_options, sizeof(MeasuredConfig)},
    .create = measured_create,
    .length = measured_length,
    .slope = NULL,
    .wants_step = TRUE,
    .free = measured_free,
};

static gboolean open_engine(MeasuredClock *self, const StepsHeader *header, guint64 seed,
                            const MeasuredConfig *config, GError **error)
{
    BackendConfig bc = {.shape = self->shape,
                        .pool_pages = (gint64)header->pool_pages,
                        .seed = seed,
                        .layers = 1,
                        .tp = 1};
    const PluginInfo *named = NULL;
    if (strcmp(config->backend, "auto") != 0 &&
        (named = plugin_find(backends, config->backend)) == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "clock measured: no backend '%s'",
                    config->backend);
        return FALSE;
    }
    g_autofree char *why = NULL;
    self->ops = backend_choose(named, &bc, &why);
    if (!self->ops->executes) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "clock measured: backend %s executes nothing, expected cuda or cpu",
                    self->ops->info.name);
        return FALSE;
    }
    if (self->ops->devices != NULL) /* the replicas of a fleet take the GPUs in turn */
        bc.device = (gint)(header->replica % (guint)MAX(self->ops->devices(), 1));
    self->backend = self->ops->create(&bc, error);
    if (self->backend == NULL)
        return FALSE;
    const char *refused = self->ops->refuses(self->backend, &self->route);
    if (refused != NULL || self->route.ops->kind != ROUTE_BUILTIN) {
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "clock measured: route %s: %s",
                    config->route, refused != NULL ? refused : "not a built-in one");
        return FALSE;
    }
    g_autoptr(DeviceProfile) profile = device_profile_guess();
    gint workers = self->ops->workers(self->backend);
    PluginChoice splits = {0};
    gboolean ok = plugin_choice_parse(&splits, "split rule", split_rules, "balanced", error);
    if (ok)
        route_plan_config(&self->plan_config, &self->route, &splits, &self->shape,
                          workers > 0 ? workers : profile->workers);
    plugin_choice_clear(&splits);
    return ok;
}

StepClock *measured_clock_new(const PluginChoice *choice, const StepsHeader *header, guint64 seed,
                              GError **error)
{
    const MeasuredConfig *config = choice->config;
    const RouteOps *route = route_find(config->route);
    if (route == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "clock measured: no route '%s' (kvreplay list routes)", config->route);
        return NULL;
    }
    MeasuredClock *self = g_new0(MeasuredClock, 1);
    self->clock.ops = &clock_measured;
    self->config = *config;
    self->layers = header->layers;
    self->route = (Route){.ops = route, .label = g_strdup(route->info.name)};
    self->shape = (AttnShape){(gint32)header->q_heads,
                              (gint32)header->kv_heads,
                              (gint32)header->head_dim,
                              (gint32)header->page_size,
                              strcmp(header->dtype, "bf16") == 0 ? ATTN_BF16 : ATTN_F16,
                              ATTN_HND};
    self->rows = g_array_new(FALSE, FALSE, sizeof(StepRow));
    self->lens = g_array_new(FALSE, FALSE, sizeof(gint32));
    batch_init(&self->batch);
    attn_plan_init(&self->plan);
    if (!open_engine(self, header, seed, config, error)) {
        measured_free(&self->clock);
        return NULL;
    }
    return &self->clock;
}

const PluginInfo *const all_clocks[] = {
    &clock_linear.info,  &clock_fixed.info,    &clock_roofline.info,
    &clock_profile.info, &clock_measured.info, NULL,
};
