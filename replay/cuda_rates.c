#include "replay/cuda_rates.h"

#include <cuda_runtime_api.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "kernels/attn_device.h"

enum { REPEATS = 9, LAUNCHES = 256, UPLOAD = 4096 };

typedef struct Rig { /* a stream, two events, two buffers */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    char *from, *to, *pinned;
    gint64 bytes; /* of each buffer */
    gint sms;
} Rig;

static void rig_close(Rig *rig)
{
    cudaFree(rig->from);
    cudaFree(rig->to);
    cudaFreeHost(rig->pinned);
    if (rig->begin != NULL)
        cudaEventDestroy(rig->begin);
    if (rig->end != NULL)
        cudaEventDestroy(rig->end);
    if (rig->stream != NULL)
        cudaStreamDestroy(rig->stream);
    cudaGetLastError();
}

static cudaError_t rig_open(Rig *rig, gint device)
{
    size_t left = 0, all = 0;
    cudaError_t e = cudaSetDevice(device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&rig->sms, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&left, &all);
    rig->bytes = MIN((gint64)left / 4, (gint64)2 << 30) / (1 << 20) * (1 << 20);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaEventCreate(&rig->begin);
    if (e == cudaSuccess)
        e = cudaEventCreate(&rig->end);
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&rig->from, (size_t)rig->bytes);
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&rig->to, (size_t)rig->bytes);
    if (e == cudaSuccess)
        e = cudaMallocHost((void **)&rig->pinned, UPLOAD);
    if (e == cudaSuccess)
        e = cudaMemset(rig->from, 0x5a, (size_t)rig->bytes);
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

/* What is timed; `n` is its size. */
typedef cudaError_t (*Work)(Rig *rig, gint64 n, gpointer data);

static cudaError_t of(AttnStatus status)
{
    return status == ATTN_OK ? cudaSuccess : cudaErrorLaunchFailure;
}

static cudaError_t work_read(Rig *rig, gint64 n, gpointer data)
{
    return of(attn_device_read(rig->from, n, rig->to, rig->sms, rig->stream, NULL));
}

static cudaError_t work_copy(Rig *rig, gint64 n, gpointer data)
{
    return cudaMemcpyAsync(rig->to, rig->from, (size_t)n, cudaMemcpyDeviceToDevice, rig->stream);
}

static cudaError_t work_launch(Rig *rig, gint64 n, gpointer data)
{
    cudaError_t e = cudaSuccess;
    for (gint64 i = 0; i < n && e == cudaSuccess; i++)
        e = of(attn_device_empty(rig->stream, NULL));
    return e;
}

static cudaError_t work_graph(Rig *rig, gint64 n, gpointer data)
{
    return cudaGraphLaunch(data, rig->stream);
}

/* Median device time between events around the work, the host ahead behind a spinning kernel; and
 * the host's own time to queue it. FALSE: *ret_error. */
static gboolean timed(Rig *rig, Work work, gint64 n, gpointer data, double *ret_us,
                      double *ret_host_us, cudaError_t *ret_error)
{
    double us[REPEATS], host[REPEATS];
    cudaError_t e = cudaSuccess;
    for (guint i = 0; i < REPEATS && e == cudaSuccess; i++) {
        float ms = 0;
        e = of(attn_device_spin(work == work_launch ? 20000 + 6000 * n : 60000, rig->stream, NULL));
        if (work == work_read && e == cudaSuccess) /* nothing of it is in a cache */
            e = of(attn_device_displace(rig->to, rig->bytes / 8, rig->from, rig->sms, rig->stream,
                                        NULL));
        if (e == cudaSuccess)
            e = cudaEventRecord(rig->begin, rig->stream);
        const double from = clock_us();
        if (e == cudaSuccess)
            e = work(rig, n, data);
        host[i] = clock_us() - from;
        if (e == cudaSuccess)
            e = cudaEventRecord(rig->end, rig->stream);
        if (e == cudaSuccess)
            e = cudaStreamSynchronize(rig->stream);
        if (e == cudaSuccess)
            e = cudaEventElapsedTime(&ms, rig->begin, rig->end);
        us[i] = 1e3 * (double)ms;
    }
    *ret_error = e;
    *ret_us = median_of(us, REPEATS);
    *ret_host_us = median_of(host, REPEATS);
    return e == cudaSuccess;
}

static gboolean measure_bandwidth(Rig *rig, DeviceRates *ret, cudaError_t *e)
{
    double small, large, copy, host;
    if (!timed(rig, work_read, rig->bytes / 4, NULL, &small, &host, e) ||
        !timed(rig, work_read, rig->bytes, NULL, &large, &host, e) ||
        !timed(rig, work_copy, rig->bytes, NULL, &copy, &host, e))
        return FALSE;
    /* As the floor of the kernel tables: the large one less 5 us; the slope says what is fixed. */
    ret->read = (double)rig->bytes / MAX(large - 5, 1e-3);
    ret->read_fixed_us = MAX(small - (large - small) / 3, 0);
    ret->copy = (double)rig->bytes / MAX(copy, 1e-3);
    return TRUE;
}

static gboolean make_graph(Rig *rig, gint64 kernels, cudaGraphExec_t *ret, cudaError_t *e)
{
    cudaGraph_t graph = NULL;
    *e = cudaStreamBeginCapture(rig->stream, cudaStreamCaptureModeThreadLocal);
    if (*e != cudaSuccess)
        return FALSE;
    const cudaError_t queued = work_launch(rig, kernels, NULL);
    *e = cudaStreamEndCapture(rig->stream, &graph);
    if (*e == cudaSuccess)
        *e = queued;
    if (*e == cudaSuccess)
        *e = cudaGraphInstantiate(ret, graph, 0);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    return *e == cudaSuccess;
}

static gboolean measure_launches(Rig *rig, DeviceRates *ret, cudaError_t *e)
{
    cudaGraphExec_t one = NULL, many = NULL;
    double us = 0, host = 0;
    gboolean ok = timed(rig, work_launch, 1, NULL, &ret->event_us, &host, e) &&
                  timed(rig, work_launch, LAUNCHES, NULL, &us, &host, e);
    ret->launch_us = (us - ret->event_us) / (LAUNCHES - 1);
    ret->launch_host_us = host / LAUNCHES;
    ok = ok && make_graph(rig, 1, &one, e) && make_graph(rig, LAUNCHES, &many, e) &&
         timed(rig, work_graph, 0, many, &us, &host, e);
    ret->graph_kernel_us = us / LAUNCHES;
    ok = ok && timed(rig, work_graph, 0, one, &us, &ret->graph_host_us, e);
    if (one != NULL)
        cudaGraphExecDestroy(one);
    if (many != NULL)
        cudaGraphExecDestroy(many);
    return ok;
}

static gboolean measure_upload(Rig *rig, DeviceRates *ret, cudaError_t *e)
{
    double us[REPEATS];
    *e = cudaSuccess;
    for (guint i = 0; i < REPEATS && *e == cudaSuccess; i++) {
        const double from = clock_us();
        *e = cudaMemcpyAsync(rig->to, rig->pinned, UPLOAD, cudaMemcpyHostToDevice, rig->stream);
        if (*e == cudaSuccess)
            *e = cudaStreamSynchronize(rig->stream);
        us[i] = clock_us() - from;
    }
    ret->upload_us = median_of(us, REPEATS);
    return *e == cudaSuccess;
}

gboolean cuda_rates(const BackendConfig *config, DeviceRates *ret, GError **error)
{
    Rig rig = {0};
    device_rates_init(ret);
    cudaError_t e = rig_open(&rig, config->device);
    const gboolean ok = e == cudaSuccess && measure_bandwidth(&rig, ret, &e) &&
                        measure_launches(&rig, ret, &e) && measure_upload(&rig, ret, &e);
    rig_close(&rig);
    if (!ok)
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "GPU %d: measuring its rates: %s",
                    config->device, cudaGetErrorString(e));
    return ok;
}
