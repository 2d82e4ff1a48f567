/* cuBLAS, opened when it is first needed: no header of it is used and nothing is linked to it.
 *
 * Looked for under the names libcublas.so.13, .12 and libcublas.so by the loader's usual rules, or
 * where KVREPLAY_CUBLAS says (a file). The functions used have kept their signatures through both
 * major versions. The library stays open for the life of the process.
 *
 * Errors: UNSUPPORTED when it cannot be found (saying what to install), MACHINE from its calls. Not
 * for several threads at once.
 */
#ifndef KV_REPLAY_CUBLAS_H
#define KV_REPLAY_CUBLAS_H

#include <glib.h>

typedef struct Cublas Cublas;

/* FALSE + error when the library or one of its functions is not there. Needs no GPU. */
gboolean cublas_find(GError **error);
/* A handle on the current device whose work goes to `stream` (a cudaStream_t), with `bytes` of work
 * space on the device, so that its calls can be captured. */
Cublas *cublas_new(gpointer stream, gpointer workspace, gsize bytes, GError **error);
void cublas_free(Cublas *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Cublas, cublas_free)
/* "13.0.2" */
const char *cublas_version(const Cublas *self);

/* y[n][m] = x[n][k] w[m][k]^T, all row after row, halves (`bf16`, else fp16), summed in fp32: a
 * linear layer of k inputs and m outputs on n rows. */
gboolean cublas_linear(Cublas *self, gboolean bf16, gint m, gint n, gint k, gconstpointer w,
                       gconstpointer x, gpointer y, GError **error);

#endif
