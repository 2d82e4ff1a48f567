#include "workloads/sessions.h"

#include "workloads/sessions/talk.h"

const PluginInfo *const session_models[] = {
    &sessions_chat.info,
    &sessions_agent.info,
    NULL,
};

void session_model_free(SessionModel *self)
{
    if (self != NULL)
        self->ops->free(self);
}
