/* Policies `cost`, `learned` and `oracle`: the route that a model, or the measurement, says is
 * cheapest.
 *
 * Hysteresis: the route of the step before is kept while it is expected to cost less than 1 + h
 * times the best, so that routes of equal cost do not alternate (each change would cost a captured
 * graph).
 */
#include <math.h>
#include <stddef.h>

#include "base/error.h"
#include "replay/decision.h"
#include "replay/model.h"

typedef struct ModelConfig {
    double hysteresis;
    int objective; /* learned: KERNEL or WALL */
} ModelConfig;
enum { KERNEL, WALL };

typedef struct Model {
    Policy base;
    const DeviceProfile *profile;
    double hysteresis;
    int objective;
    gint last;          /* -1 = none */
    Decision *decision; /* learned */
    double *term;       /* by candidate: the cost model's */
    char *note;
} Model;

static Model *model_new(const PolicyOps *ops, gconstpointer config, const DeviceProfile *profile)
{
    const ModelConfig *c = config;
    Model *self = g_new0(Model, 1);
    self->base.ops = ops;
    self->profile = profile;
    self->hysteresis = c != NULL ? c->hysteresis : 0;
    self->objective = c != NULL ? c->objective : KERNEL;
    self->last = -1;
    if (profile->guess)
        self->note = g_strdup_printf("the cost model is that of %s; a profile made by calibrate "
                                     "replaces it",
                                     profile->device);
    return self;
}

/* The cheapest, or the last one while it is close. Ties go to the first. */
KV_HOT static guint settle(Model *self, const double *cost, guint n)
{
    guint best = 0;
    for (guint i = 1; i < n; i++)
        if (cost[i] < cost[best] || isnan(cost[best]))
            best = i;
    if (self->last >= 0 && cost[self->last] <= (1 + self->hysteresis) * cost[best])
        best = (guint)self->last;
    self->last = (gint)best;
    return best;
}

static Policy *cost_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    return &model_new(&policy_cost, config, profile)->base;
}

static gboolean cost_begin(Policy *base, const Candidate *candidates, guint n, GError **error)
{
    Model *self = (Model *)base;
    self->term = g_new0(double, n);
    for (guint i = 0; i < n; i++) {
        const Route *route = candidates[i].route;
        g_autofree char *setting = route_setting(route);
        self->term[i] = device_profile_term(self->profile, setting);
        /* The formula is of our plans: of a peer it is nothing without a measured term. */
        if (route->ops->kind == ROUTE_PEER && !device_profile_has_term(self->profile, setting))
            self->term[i] = (double)INFINITY;
    }
    return TRUE;
}

KV_HOT static guint cost_choose(Policy *base, const StepFeatures *step, const Candidate *candidates,
                                guint n)
{
    Model *self = (Model *)base;
    double cost[64];
    n = MIN(n, G_N_ELEMENTS(cost));
    for (guint i = 0; i < n; i++)
        cost[i] = model_cost(self->profile, &step->shape, &candidates[i].counts) + self->term[i];
    return settle(self, cost, n);
}

static Policy *learned_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    if (!profile->has_learned) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_USAGE,
            "policy learned: the device profile%s%s has no learned model (kvreplay calibrate "
            "--fit makes one; give it with --profile)",
            profile->guess ? " built in" : " of ", profile->guess ? "" : profile->device);
        return NULL;
    }
    return &model_new(&policy_learned, config, profile)->base;
}

static gboolean learned_begin(Policy *base, const Candidate *candidates, guint n, GError **error)
{
    Model *self = (Model *)base;
    g_autofree const LearnedRoute **known_routes = g_new0(const LearnedRoute *, n);
    guint known = 0;
    for (guint i = 0; i < n; i++) {
        g_autofree char *setting = route_setting(candidates[i].route);
        known_routes[i] = device_profile_learned(self->profile, setting);
        known += known_routes[i] != NULL;
    }
    if (known == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "policy learned: the device profile of %s knows none of the routes compared",
                    self->profile->device);
        return FALSE;
    }
    self->decision =
        decision_new(self->profile, known_routes, MIN(n, DECISION_MOST), self->objective == WALL);
    if (known < n)
        self->note = g_strdup_printf(
            "%u of %u routes are unknown to the learned model and not taken", n - known, n);
    return TRUE;
}

KV_HOT static guint learned_choose(Policy *base, const StepFeatures *step,
                                   const Candidate *candidates, guint n)
{
    Model *self = (Model *)base;
    double cost[DECISION_MOST];
    n = MIN(n, DECISION_MOST);
    decision_costs(self->decision, step, candidates, cost);
    return settle(self, cost, n);
}

static Policy *oracle_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    Model *self = model_new(&policy_oracle, NULL, profile);
    g_free(self->note);
    self->note =
        g_strdup("steps that were not executed by every route are decided by the cost model");
    return &self->base;
}

static guint oracle_choose(Policy *base, const StepFeatures *step, const Candidate *candidates,
                           guint n)
{
    gint best = -1;
    for (guint i = 0; i < n; i++)
        if (!isnan(candidates[i].measured_us) &&
            (best < 0 || candidates[i].measured_us < candidates[best].measured_us))
            best = (gint)i;
    return best >= 0 ? (guint)best : cost_choose(base, step, candidates, n);
}

static const char *model_note(const Policy *base)
{
    return ((const Model *)base)->note;
}

static void model_free(Policy *base)
{
    Model *self = (Model *)base;
    decision_free(self->decision);
    g_free(self->term);
    g_free(self->note);
    g_free(self);
}

static const SpecOption options[] = {
    {"hysteresis", SPEC_REAL, offsetof(ModelConfig, hysteresis), "0.02", 0, 10, NULL,
     "keep the last route while within this part of the best"},
    {0},
};
static const SpecOption learned_options[] = {
    {"hysteresis", SPEC_REAL, offsetof(ModelConfig, hysteresis), "0.02", 0, 10, NULL,
     "keep the last route while within this part of the best"},
    {"objective", SPEC_CHOICE, offsetof(ModelConfig, objective), "kernel", 0, 0, "kernel|wall",
     "which time is to be least: of the kernels, or with plan, launches and wait"},
    {0},
};
const PolicyOps policy_cost = {
    .info = {"cost", "bytes, launches and merge traffic at the device's rates", options,
             sizeof(ModelConfig)},
    .create = cost_create,
    .begin = cost_begin,
    .choose = cost_choose,
    .note = model_note,
    .free = model_free,
};
const PolicyOps policy_learned = {
    .info = {"learned", "a model by route fitted on calibration seeds (calibrate --fit)",
             learned_options, sizeof(ModelConfig)},
    .create = learned_create,
    .begin = learned_begin,
    .choose = learned_choose,
    .note = model_note,
    .free = model_free,
};
const PolicyOps policy_oracle = {
    .info = {"oracle", "the best measured route of each step: the bound", NULL, 0},
    .needs_measured = TRUE,
    .create = oracle_create,
    .begin = cost_begin,
    .choose = oracle_choose,
    .note = model_note,
    .free = model_free,
};
