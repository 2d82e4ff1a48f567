/* What every peer's shim shares: errors as exceptions that stop at the C boundary, buffers that
 * free themselves, and a batch's block tables in the two forms that peers read.
 *
 * Everything a shim itself defines lives in an anonymous namespace: the shims are separate
 * translation units with types of the same names.
 */
#ifndef KV_KERNELS_PEERS_PEER_COMMON_CUH
#define KV_KERNELS_PEERS_PEER_COMMON_CUH

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "kernels/peers/peers.h"

namespace kvpeers
{

struct Fault : std::exception {
    AttnStatus status;
    std::string text;
    Fault(AttnStatus s, std::string t) : status(s), text(std::move(t))
    {
    }
    const char *what() const noexcept override
    {
        return text.c_str();
    }
};

inline void check(cudaError_t err, const char *what)
{
    if (err != cudaSuccess)
        throw Fault(err == cudaErrorMemoryAllocation ? ATTN_NO_MEMORY : ATTN_LAUNCH_FAILED,
                    std::string(what) + ": " + cudaGetErrorString(err));
}

inline AttnStatus say(PeerError *error, AttnStatus status, const char *text)
{
    if (error)
        snprintf(error->text, sizeof error->text, "%s", text);
    return status;
}

/* Runs `body`; what it throws becomes a status and a line. The sticky error is cleared. */
template <typename Body> AttnStatus guarded(PeerError *error, Body &&body)
{
    try {
        body();
        return ATTN_OK;
    } catch (const Fault &fault) {
        (void)cudaGetLastError();
        return say(error, fault.status, fault.what());
    } catch (const std::bad_alloc &) {
        return say(error, ATTN_NO_MEMORY, "out of host memory");
    } catch (const std::exception &other) {
        (void)cudaGetLastError();
        std::string line(other.what());
        for (char &c : line)
            c = c == '\n' ? ' ' : c;
        return say(error, ATTN_LAUNCH_FAILED, line.c_str());
    } catch (...) {
        return say(error, ATTN_LAUNCH_FAILED, "unknown exception");
    }
}

class DeviceBuffer
{
  public:
    void *data = nullptr;
    size_t bytes = 0;
    DeviceBuffer() = default;
    DeviceBuffer(const DeviceBuffer &) = delete;
    ~DeviceBuffer()
    {
        if (data)
            (void)cudaFree(data);
    }
    void allocate(size_t n)
    {
        check(cudaMalloc(&data, n), "workspace of the peer");
        bytes = n;
    }
    template <typename T> T *as() const
    {
        return static_cast<T *>(data);
    }
    template <typename T> T *at(int64_t offset) const /* bytes */
    {
        return reinterpret_cast<T *>(as<char>() + offset);
    }
};

class PinnedBuffer
{
  public:
    void *data = nullptr;
    PinnedBuffer() = default;
    PinnedBuffer(const PinnedBuffer &) = delete;
    ~PinnedBuffer()
    {
        if (data)
            (void)cudaFreeHost(data);
    }
    void allocate(size_t n)
    {
        check(cudaMallocHost(&data, n), "pinned memory of the peer");
    }
    template <typename T> T *as() const
    {
        return static_cast<T *>(data);
    }
};

/* Marks the end of an upload, so that its pinned source is not written again before. */
class Fence
{
  public:
    Fence() = default;
    Fence(const Fence &) = delete;
    ~Fence()
    {
        if (event)
            (void)cudaEventDestroy(event);
    }
    void wait()
    {
        if (armed)
            check(cudaEventSynchronize(event), "waiting for an upload");
        armed = false;
    }
    void mark(cudaStream_t stream)
    {
        if (!event)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
        check(cudaEventRecord(event, stream), "event");
        armed = true;
    }

  private:
    cudaEvent_t event = nullptr;
    bool armed = false;
};

/* A batch's tables. CSR: indptr[rows + 1] in pages, last[rows] entries of the last page, qo[rows +
 * 1] (one query a row), lens[rows], ids. Dense: lens[rows], ids[rows][width] padded with page 0.
 * One upload for all. */
class Tables
{
  public:
    int32_t rows = 0, longest = 0, width = 0;
    int64_t pages = 0;
    size_t upload = 0; /* bytes of the last one */

    void create(const PeerConfig &config, bool dense_form)
    {
        dense = dense_form;
        page = config.shape.page_size;
        max_rows = config.max_rows;
        max_width = (config.max_len + page - 1) / page;
        max_ids = dense ? (int64_t)max_rows * max_width : config.max_pages;
        const size_t n = sizeof(int32_t) * (4 * ((size_t)max_rows + 1) + (size_t)max_ids);
        host.allocate(n);
        device.allocate(n);
    }

    void set(int32_t n_rows, const int32_t *lens, const int32_t *table, const int32_t *offset,
             cudaStream_t stream)
    {
        if (n_rows < 1 || n_rows > max_rows)
            throw Fault(ATTN_CAPACITY, "more rows than the peer was set up for");
        fence.wait();
        rows = n_rows;
        longest = 0;
        for (int32_t r = 0; r < rows; r++)
            longest = lens[r] > longest ? lens[r] : longest;
        width = (longest + page - 1) / page;
        if (width > max_width)
            throw Fault(ATTN_CAPACITY, "a longer row than the peer was set up for");
        fill(lens, table, offset);
        upload = sizeof(int32_t) * (size_t)(ids_at() + (dense ? (int64_t)rows * width : pages));
        check(cudaMemcpyAsync(device.data, host.data, upload, cudaMemcpyHostToDevice, stream),
              "upload of the block tables");
        fence.mark(stream);
    }

    int32_t *host_indptr() const
    {
        return host.as<int32_t>();
    }
    int32_t *host_qo() const
    {
        return host.as<int32_t>() + stride();
    }
    int32_t *host_lens() const
    {
        return host.as<int32_t>() + 2 * stride();
    }
    int32_t *indptr() const
    {
        return device.as<int32_t>();
    }
    int32_t *qo() const
    {
        return device.as<int32_t>() + stride();
    }
    int32_t *lens() const
    {
        return device.as<int32_t>() + 2 * stride();
    }
    int32_t *last() const
    {
        return device.as<int32_t>() + 3 * stride();
    }
    int32_t *ids() const
    {
        return device.as<int32_t>() + ids_at();
    }

  private:
    bool dense = false;
    int32_t page = 1, max_rows = 0, max_width = 0;
    int64_t max_ids = 0;
    PinnedBuffer host;
    DeviceBuffer device;
    Fence fence;

    int64_t stride() const
    {
        return (int64_t)max_rows + 1;
    }
    int64_t ids_at() const
    {
        return 4 * stride();
    }

    void fill(const int32_t *lens, const int32_t *table, const int32_t *offset)
    {
        int32_t *const base = host.as<int32_t>(), *const id = base + ids_at();
        pages = 0;
        base[0] = 0;
        for (int32_t r = 0; r < rows; r++) {
            if (lens[r] < 1)
                throw Fault(ATTN_UNSUPPORTED_SHAPE, "peers take no rows of length 0");
            const int32_t n = (lens[r] + page - 1) / page;
            if (!dense && pages + n > max_ids)
                throw Fault(ATTN_CAPACITY, "more pages than the peer was set up for");
            int32_t *const to = id + (dense ? (int64_t)r * width : pages);
            memcpy(to, table + offset[r], sizeof(int32_t) * (size_t)n);
            if (dense)
                memset(to + n, 0, sizeof(int32_t) * (size_t)(width - n));
            pages += n;
            host_indptr()[r + 1] = (int32_t)pages;
            host_qo()[r] = r;
            host_lens()[r] = lens[r];
            base[3 * stride() + r] = lens[r] - (n - 1) * page;
        }
        host_qo()[rows] = rows;
    }
};

inline int32_t sm_count(int32_t device)
{
    int n = 0;
    check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device), "device");
    return n;
}

inline bool wants_pdl(const PeerConfig &config)
{
    int major = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, config.device),
          "device");
    return major >= 9 && !config.settings.no_pdl;
}

inline AttnStatus refuse(PeerError *error, const char *format, long long a = 0, long long b = 0,
                         long long c = 0)
{
    if (error)
        snprintf(error->text, sizeof error->text, format, a, b, c);
    return ATTN_UNSUPPORTED_SHAPE;
}

/* Strides other than those of attn_pool_strides() are refused by all peers. */
inline bool plain_strides(const AttnPool &pool, const AttnShape &shape)
{
    AttnPool plain = pool;
    attn_pool_strides(&plain, &shape);
    return plain.page_stride == pool.page_stride && plain.head_stride == pool.head_stride &&
           plain.token_stride == pool.token_stride;
}

/* The shapes that all peers are compiled for: fp16, d 64 and 128, sm_80 and newer. */
inline AttnStatus plain_shape(const AttnShape &s, int arch, PeerError *error)
{
    if (s.dtype != ATTN_F16)
        return refuse(error, "built for fp16");
    if (s.head_dim != 64 && s.head_dim != 128)
        return refuse(error, "built for head dims 64 and 128, not %lld", s.head_dim);
    if (arch < 80)
        return refuse(error, "needs sm_80 or newer, not sm_%lld", arch);
    return ATTN_OK;
}

} // namespace kvpeers

#endif
