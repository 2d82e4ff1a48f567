#include "base/rng.h"

#include <math.h>

#define ROUNDS 10

void philox4x32(const guint32 counter[4], const guint32 key[2], guint32 ret[4])
{
    guint32 c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    guint32 k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        guint64 a = (guint64)0xD2511F53u * c0, b = (guint64)0xCD9E8D57u * c2;
        guint32 n0 = (guint32)(b >> 32) ^ c1 ^ k0, n2 = (guint32)(a >> 32) ^ c3 ^ k1;
        c1 = (guint32)b;
        c3 = (guint32)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u; /* the golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

void rng_init(RngStream *s, guint64 seed, RngPurpose purpose, guint64 entity, guint32 replication)
{
    g_assert((guint)purpose < 256 && replication < (1u << 24));
    *s = (RngStream){
        .key = {(guint32)seed, (guint32)(seed >> 32)},
        .counter = {0, (guint32)entity, (guint32)(entity >> 32),
                    (guint32)purpose << 24 | replication},
    };
}

guint32 rng_u32(RngStream *s)
{
    if (s->left == 0) {
        philox4x32(s->counter, s->key, s->buffer);
        s->counter[0]++;
        g_assert(s->counter[0] != 0); /* the stream is used up */
        s->left = 4;
    }
    return s->buffer[4 - s->left--];
}

guint64 rng_u64(RngStream *s)
{
    guint64 low = rng_u32(s);
    return (guint64)rng_u32(s) << 32 | low;
}

double rng_uniform(RngStream *s)
{
    return (double)(rng_u64(s) >> 11) * 0x1p-53;
}

double rng_uniform_open(RngStream *s)
{
    return (double)((rng_u64(s) >> 11) + 1) * 0x1p-53;
}

/* The high half of a 64 x 64 bit product is uniform once the few low halves that would favour some
 * values are refused (Lemire, "Fast random integer generation in an interval", 2019). */
guint64 rng_below(RngStream *s, guint64 n)
{
    g_assert(n >= 1);
    unsigned __int128 product = (unsigned __int128)rng_u64(s) * n;
    if ((guint64)product < n) {
        guint64 refuse = -n % n; /* 2^64 mod n */
        while ((guint64)product < refuse)
            product = (unsigned __int128)rng_u64(s) * n;
    }
    return (guint64)(product >> 64);
}

double rng_exponential(RngStream *s)
{
    return -log(rng_uniform_open(s));
}

/* Box and Muller 1958, one of the pair: two uniforms a draw, no state kept. */
double rng_normal(RngStream *s)
{
    double radius = sqrt(-2.0 * log(rng_uniform_open(s)));
    return radius * cos(2.0 * G_PI * rng_uniform(s));
}

double rng_gamma(RngStream *s, double shape)
{
    g_assert(shape > 0.0);
    if (shape < 1.0) { /* Gamma(a) = Gamma(a + 1) * U^(1/a) */
        double larger = rng_gamma(s, shape + 1.0);
        return larger * pow(rng_uniform_open(s), 1.0 / shape);
    }
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = rng_normal(s), v = 1.0 + c * x;
        if (v <= 0.0)
            continue;
        v = v * v * v;
        double u = rng_uniform_open(s);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}
