#include <string.h>

#include "replay/policy.h"

const PluginInfo *const policies[] = {
    &policy_cost.info,
    &policy_learned.info,
    &policy_always.info,
    &policy_paper_v1.info,
    &policy_paper_v2.info,
    &policy_oracle.info,
    NULL,
};

Policy *policy_new(const PluginChoice *choice, const DeviceProfile *profile, GError **error)
{
    const PolicyOps *ops = (const PolicyOps *)choice->info;
    return ops->create(choice->config, profile, error);
}

void policy_free(Policy *self)
{
    if (self != NULL)
        self->ops->free(self);
}

gint policy_find(const Candidate *candidates, guint n, const char *name)
{
    for (guint i = 0; i < n; i++)
        if (strcmp(candidates[i].route->label, name) == 0)
            return (gint)i;
    for (guint i = 0; i < n; i++)
        if (strcmp(candidates[i].route->ops->info.name, name) == 0)
            return (gint)i;
    return -1;
}
