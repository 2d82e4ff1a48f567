#include "replay/cuda_try.h"

gboolean cuda_ok_at(cudaError_t e, const char *where, const char *what, GError **error)
{
    if (e == cudaSuccess)
        return TRUE;
    cudaGetLastError();
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "%s: %s: %s", where, what,
                cudaGetErrorString(e));
    return FALSE;
}
