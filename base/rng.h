/* Random numbers: counter-based streams, never one generator.
 *
 * A stream is keyed by (seed, purpose, entity, replication); a draw is a pure function of the key
 * and the draw's index, so adding a draw in one place never shifts another, and results do not
 * depend on the number of threads. Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC'11); checked against the published known answers.
 *
 * Layout: key = seed; counter words = {block index, entity low, entity high,
 * purpose << 24 | replication}. One stream holds 2^34 32-bit draws.
 */
#ifndef KV_BASE_RNG_H
#define KV_BASE_RNG_H

#include <glib.h>

typedef enum {
    RNG_ARRIVALS = 1,
    RNG_LENGTHS,
    RNG_SESSIONS,
    RNG_MIX,
    RNG_THIN,
    RNG_PRIORITY,
    RNG_BLOCK_KEYS,
    RNG_PAGES,
    RNG_ROUTER,
    RNG_QUERIES,
    RNG_KV,
    RNG_SAMPLE,
    RNG_BOOTSTRAP,
    RNG_POLICY,
    RNG_TEST,
} RngPurpose;

typedef struct RngStream {
    guint32 key[2];
    guint32 counter[4];
    guint32 buffer[4];
    guint left; /* unread words of `buffer` */
} RngStream;

/* The bare function: ten rounds of Philox4x32. */
void philox4x32(const guint32 counter[4], const guint32 key[2], guint32 ret[4]);

void rng_init(RngStream *s, guint64 seed, RngPurpose purpose, guint64 entity, guint32 replication);
guint32 rng_u32(RngStream *s);
guint64 rng_u64(RngStream *s);
double rng_uniform(RngStream *s);             /* [0, 1), 53 bits */
double rng_uniform_open(RngStream *s);        /* (0, 1] for logarithms */
guint64 rng_below(RngStream *s, guint64 n);   /* [0, n), unbiased; n >= 1 */
double rng_exponential(RngStream *s);         /* mean 1 */
double rng_normal(RngStream *s);              /* mean 0, variance 1 */
double rng_gamma(RngStream *s, double shape); /* scale 1; Marsaglia and Tsang 2000; any shape > 0 */

#endif
