/* CUDA's statuses as errors, for the files that are built with CUDA.
 *
 * cuda_ok() clears the sticky error, so that a later call does not report it again. The TRY_ macros
 * are for functions that return gboolean and have a `GError **error`; TRY_ATTN's call is given
 * `&attn_error` to fill in.
 */
#ifndef KV_REPLAY_CUDA_TRY_H
#define KV_REPLAY_CUDA_TRY_H

#include <cuda_runtime_api.h>
#include <glib.h>

#include "base/error.h"
#include "kernels/attn_cuda.h"

/* `where` begins the message ("GPU"); `what` was being done. KV_ERROR_MACHINE. */
gboolean cuda_ok_at(cudaError_t e, const char *where, const char *what, GError **error);
static inline gboolean cuda_ok(cudaError_t e, const char *what, GError **error)
{
    return cuda_ok_at(e, "GPU", what, error);
}

#define TRY_CUDA(call, what)                                                                       \
    do {                                                                                           \
        if (!cuda_ok((call), (what), error))                                                       \
            return FALSE;                                                                          \
    } while (0)
#define TRY_ATTN(call)                                                                             \
    do {                                                                                           \
        AttnCudaError attn_error = {""};                                                           \
        if ((call) != ATTN_OK) {                                                                   \
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "GPU: %s", attn_error.text);            \
            return FALSE;                                                                          \
        }                                                                                          \
    } while (0)

#endif
