#include "workloads/transforms/transforms.h"

int wrapped_next_turn(RequestSource *self, const Request *finished, kv_ns now, Request *ret,
                      GError **error)
{
    return request_source_next_turn(((Wrapped *)self)->inner, finished, now, ret, error);
}

void wrapped_free(RequestSource *self)
{
    request_source_free(((Wrapped *)self)->inner);
    g_free(self);
}
