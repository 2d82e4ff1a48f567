/* Variable-length integers: seven bits a byte, least significant first, the top bit set on all
 * bytes but the last (LEB128). Signed values are folded first (0, -1, 1, -2 ...: zigzag), so that
 * small differences of either sign take one byte. Decoding never reads past the end and never fails
 * loudly: it sets `bad`, gives 0 from then on, and the caller looks once at the end.
 */
#ifndef KV_SIM_VARINT_H
#define KV_SIM_VARINT_H

#include <glib.h>

#define VARINT_MAX 10 /* bytes of the longest one */

static inline guint64 zigzag_fold(gint64 v)
{
    return ((guint64)v << 1) ^ (guint64)(v >> 63);
}

static inline gint64 zigzag_unfold(guint64 v)
{
    return (gint64)(v >> 1) ^ -(gint64)(v & 1);
}

/* Writes at `p`, which has VARINT_MAX bytes of room; returns the byte after. */
static inline guint8 *varint_put(guint8 *p, guint64 v)
{
    while (v >= 0x80) {
        *p++ = (guint8)(v | 0x80);
        v >>= 7;
    }
    *p++ = (guint8)v;
    return p;
}

typedef struct VarintReader {
    const guint8 *p, *end;
    gboolean bad;
} VarintReader;

static inline guint64 varint_get(VarintReader *r)
{
    guint64 v = 0;
    for (guint shift = 0; shift < 64 && r->p < r->end; shift += 7) {
        guint8 b = *r->p++;
        v |= (guint64)(b & 0x7f) << shift;
        if (b < 0x80)
            return v;
    }
    r->bad = TRUE;
    r->p = r->end;
    return 0;
}

#endif
