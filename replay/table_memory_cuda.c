#include "replay/table_memory.h"

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "kernels/attn_device.h"
#include "replay/cuda_try.h"

static gboolean table_ok(cudaError_t e, const char *what, GError **error)
{
    return cuda_ok_at(e, "block tables", what, error);
}

static gboolean get(void **ret, gsize bytes, GError **error)
{
    return table_ok(cudaMalloc(ret, bytes), "device memory", error);
}

static void put(void *memory)
{
    cudaFree(memory);
}

static gboolean get_pinned(void **ret, gsize bytes, GError **error)
{
    return table_ok(cudaMallocHost(ret, bytes), "pinned memory", error);
}

static void put_pinned(void *memory)
{
    cudaFreeHost(memory);
}

static gboolean copy(void *to, const void *from, gsize bytes, void *stream, GError **error)
{
    return table_ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copy",
                    error);
}

static gboolean scatter(gint32 *table, const gint32 *where, const gint32 *what, gint32 n,
                        void *stream, GError **error)
{
    AttnCudaError e = {""};
    if (attn_device_scatter(table, where, what, n, stream, &e) == ATTN_OK)
        return TRUE;
    g_set_error_literal(error, KV_ERROR, KV_ERROR_MACHINE, e.text);
    return FALSE;
}

static gboolean wait(void *stream, GError **error)
{
    return table_ok(cudaStreamSynchronize(stream), "waiting", error);
}

const TableMemory table_memory_cuda = {
    .get = get,
    .put = put,
    .get_pinned = get_pinned,
    .put_pinned = put_pinned,
    .copy = copy,
    .scatter = scatter,
    .wait = wait,
};
