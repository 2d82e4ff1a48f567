/* The frame that makes a PeerOps of a C++ type.
 *
 * The type P of a shim is constructed from a PeerConfig and has
 *   PeerConfig config, Tables tables  set by the constructor
 *   void plan(cudaStream_t)           the package's planner, uploads queued
 *   void run(const Call &)            the package's launches, of one layer
 *   int32_t launches() const          of the last plan
 *   int64_t plan_bytes() const        that it copied
 * any of which may throw; peer_ops<P>() does the rest.
 */
#ifndef KV_KERNELS_PEERS_PEER_FRAME_CUH
#define KV_KERNELS_PEERS_PEER_FRAME_CUH

#include <type_traits>

#include "kernels/peers/peer_common.cuh"

namespace kvpeers
{

/* Calls `body` with the head dimension as a compile-time constant. */
template <typename Body> void with_dim(int32_t d, Body &&body)
{
    if (d == 64)
        body(std::integral_constant<uint32_t, 64>{});
    else
        body(std::integral_constant<uint32_t, 128>{});
}

struct Call { /* of run(): one layer */
    const AttnPool &pool;
    const void *q;
    void *out;
    float scale;
    cudaStream_t stream;
};

template <typename P> struct Frame {
    static P &of(Peer *self)
    {
        return *reinterpret_cast<P *>(self);
    }
    static const P &of(const Peer *self)
    {
        return *reinterpret_cast<const P *>(self);
    }
    static AttnStatus create(Peer **ret, const PeerConfig *config, PeerError *error)
    {
        return guarded(error, [&] { *ret = reinterpret_cast<Peer *>(new P(*config)); });
    }
    static AttnStatus tables(Peer *self, int32_t rows, const int32_t *lens, const int32_t *table,
                             const int32_t *offset, void *stream, PeerError *error)
    {
        return guarded(error, [&] {
            of(self).tables.set(rows, lens, table, offset, static_cast<cudaStream_t>(stream));
        });
    }
    static AttnStatus plan(Peer *self, void *stream, PeerError *error)
    {
        return guarded(error, [&] { of(self).plan(static_cast<cudaStream_t>(stream)); });
    }
    static AttnStatus run(Peer *self, const AttnPool *pool, const void *q, void *out, float scale,
                          void *stream, PeerError *error)
    {
        return guarded(error, [&] {
            P &peer = of(self);
            peer.run({pool ? *pool : peer.config.pool, q, out, scale,
                      static_cast<cudaStream_t>(stream)});
        });
    }
    static int32_t launches(const Peer *self)
    {
        return of(self).launches();
    }
    static int64_t plan_bytes(const Peer *self)
    {
        return of(self).plan_bytes();
    }
    static void destroy(Peer *self)
    {
        delete &of(self);
    }
};

struct PeerText {
    const char *name, *package, *kernel, *built_for;
};

template <typename P>
constexpr PeerOps peer_ops(PeerText text,
                           AttnStatus (*supports)(const PeerConfig *, int, int64_t, PeerError *),
                           int64_t (*workspace)(const PeerConfig *), bool own_layout = false)
{
    using F = Frame<P>;
    return {text.name,  text.package, text.kernel,   text.built_for, 1,         nullptr,
            own_layout, supports,     workspace,     F::create,      F::tables, F::plan,
            F::run,     F::launches,  F::plan_bytes, F::destroy};
}

} // namespace kvpeers

#endif
