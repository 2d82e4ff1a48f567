/* The twin of backend_cuda.c in builds without CUDA. */
#include "base/error.h"
#include "replay/backend.h"

static const char why[] =
    "this kvreplay was built without CUDA (nvcc was not found, or -Dcuda=disabled)";

static Backend *fallback_create(const BackendConfig *config, GError **error)
{
    g_set_error_literal(error, KV_ERROR, KV_ERROR_UNSUPPORTED, why);
    return NULL;
}

static gboolean fallback_available(const BackendConfig *config, char **ret_why)
{
    *ret_why = g_strdup(why);
    return FALSE;
}

const BackendOps backend_cuda = {
    .info = {"cuda", "runs on an NVIDIA GPU (not in this build)", NULL, 0},
    .executes = TRUE,
    .create = fallback_create,
    .available = fallback_available,
};
