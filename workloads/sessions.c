#include "workloads/sessions.h"

const PluginInfo *const session_models[] = {
    NULL,
};

void session_model_free(SessionModel *self)
{
    if (self != NULL)
        self->ops->free(self);
}
