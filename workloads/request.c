#include "workloads/request.h"

void request_source_free(RequestSource *self)
{
    if (self != NULL)
        self->ops->free(self);
}
