#include "replay/cublas.h"

#include <dlfcn.h>

#include "base/error.h"

/* Values of cuBLAS's and CUDA's enums (public headers of CUDA 12 and 13). */
enum { OP_N = 0, OP_T = 1, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, GEMM_DEFAULT = -1 };

typedef struct Functions {
    int (*create)(gpointer *handle);
    int (*destroy)(gpointer handle);
    int (*version)(gpointer handle, int *version);
    int (*set_stream)(gpointer handle, gpointer stream);
    int (*set_workspace)(gpointer handle, gpointer workspace, size_t bytes);
    int (*gemm)(gpointer handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
} Functions;

struct Cublas {
    Functions call;
    gpointer handle;
    char version[32];
};

static gpointer open_library(GError **error)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    const char *named = g_getenv("KVREPLAY_CUBLAS");
    gpointer library = NULL;
    if (named != NULL && named[0] != '\0') {
        library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "KVREPLAY_CUBLAS: %s", dlerror());
        return library;
    }
    for (guint i = 0; library == NULL && i < G_N_ELEMENTS(names); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        g_set_error_literal(
            error, KV_ERROR, KV_ERROR_UNSUPPORTED,
            "cuBLAS was not found (libcublas.so.13, .12): install the CUDA toolkit's libcublas "
            "package, or name the file by KVREPLAY_CUBLAS or its folder by LD_LIBRARY_PATH");
    return library;
}

static gboolean load(Functions *ret, GError **error)
{
    gpointer library = open_library(error);
    if (library == NULL)
        return FALSE;
    const struct {
        const char *name;
        gpointer *to;
    } all[] = {
        {"cublasCreate_v2", (gpointer *)&ret->create},
        {"cublasDestroy_v2", (gpointer *)&ret->destroy},
        {"cublasGetVersion_v2", (gpointer *)&ret->version},
        {"cublasSetStream_v2", (gpointer *)&ret->set_stream},
        {"cublasSetWorkspace_v2", (gpointer *)&ret->set_workspace},
        {"cublasGemmEx", (gpointer *)&ret->gemm},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        *all[i].to = dlsym(library, all[i].name);
        if (*all[i].to == NULL) {
            g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "cuBLAS: no function %s: %s",
                        all[i].name, dlerror());
            return FALSE;
        }
    }
    return TRUE;
}

gboolean cublas_find(GError **error)
{
    Functions call;
    return load(&call, error);
}

static gboolean done(int status, const char *what, GError **error)
{
    if (status == 0)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "cuBLAS: %s: status %d", what, status);
    return FALSE;
}

Cublas *cublas_new(gpointer stream, gpointer workspace, gsize bytes, GError **error)
{
    g_autoptr(Cublas) self = g_new0(Cublas, 1);
    int version = 0;
    if (!load(&self->call, error) ||
        !done(self->call.create(&self->handle), "creating a handle", error) ||
        /* in this order: setting the stream takes the work space away */
        !done(self->call.set_stream(self->handle, stream), "stream", error) ||
        !done(self->call.set_workspace(self->handle, workspace, bytes), "work space", error) ||
        !done(self->call.version(self->handle, &version), "version", error))
        return NULL;
    g_snprintf(self->version, sizeof self->version, "%d.%d.%d", version / 10000,
               version / 100 % 100, version % 100);
    return g_steal_pointer(&self);
}

void cublas_free(Cublas *self)
{
    if (self == NULL)
        return;
    if (self->handle != NULL)
        self->call.destroy(self->handle);
    g_free(self);
}

const char *cublas_version(const Cublas *self)
{
    return self->version;
}

gboolean cublas_linear(Cublas *self, gboolean bf16, gint m, gint n, gint k, gconstpointer w,
                       gconstpointer x, gpointer y, GError **error)
{
    /* Column-major there: w is (k x m) to be transposed, x (k x n), y (m x n). */
    const float one = 1, zero = 0;
    const int type = bf16 ? R_16BF : R_16F;
    return done(self->call.gemm(self->handle, OP_T, OP_N, m, n, k, &one, w, type, k, x, type, k,
                                &zero, y, type, m, COMPUTE_32F, GEMM_DEFAULT),
                "matrix product", error);
}
