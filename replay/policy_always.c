/* Policy `always`: one route for every step. */
#include <stddef.h>

#include "base/error.h"
#include "replay/policy.h"

typedef struct AlwaysConfig {
    char *route;
} AlwaysConfig;

typedef struct Always {
    Policy base;
    char *route;
    guint index;
} Always;

static Policy *always_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    const AlwaysConfig *c = config;
    Always *self = g_new0(Always, 1);
    self->base.ops = &policy_always;
    self->route = g_strdup(c->route);
    return &self->base;
}

static gboolean always_begin(Policy *base, const Candidate *candidates, guint n, GError **error)
{
    Always *self = (Always *)base;
    const gint at = policy_find(candidates, n, self->route);
    if (at < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "policy always:route=%s: no such route among those compared (see --routes and "
                    "`kvreplay list routes`)",
                    self->route);
        return FALSE;
    }
    self->index = (guint)at;
    return TRUE;
}

static guint always_choose(Policy *base, const StepFeatures *step, const Candidate *candidates,
                           guint n)
{
    return ((Always *)base)->index;
}

static void always_free(Policy *base)
{
    g_free(((Always *)base)->route);
    g_free(base);
}

static const SpecOption options[] = {
    {"route", SPEC_STRING, offsetof(AlwaysConfig, route), NULL, 0, 0, NULL, "the route to take"},
    {0},
};
const PolicyOps policy_always = {
    .info = {"always", "one route for every step", options, sizeof(AlwaysConfig)},
    .create = always_create,
    .begin = always_begin,
    .choose = always_choose,
    .free = always_free,
};
