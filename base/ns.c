#include "base/ns.h"

#include <math.h>

#include "base/decimal.h"

kv_ns kv_ns_from_seconds(double seconds)
{
    g_assert(isfinite(seconds) && fabs(seconds) < 9.2e9);
    /* seconds = mantissa * 2^exponent exactly, so the product below is exact too (53 + 30 bits) */
    int exponent;
    gint64 mantissa = (gint64)ldexp(frexp(fabs(seconds), &exponent), 53);
    unsigned __int128 product = (unsigned __int128)mantissa * (guint64)KV_SECOND;
    exponent -= 53;
    if (exponent < -100)
        return 0;
    if (exponent < 0)
        product = (product + ((unsigned __int128)1 << (-exponent - 1))) >> -exponent;
    else
        product <<= exponent;
    return seconds < 0 ? -(kv_ns)product : (kv_ns)product;
}

char *kv_ns_text(kv_ns t, char buffer[KV_NS_TEXT_SIZE])
{
    guint64 magnitude = t < 0 ? -(guint64)t : (guint64)t;
    g_snprintf(buffer, KV_NS_TEXT_SIZE, "%s%" G_GUINT64_FORMAT ".%09" G_GUINT64_FORMAT,
               t < 0 ? "-" : "", magnitude / (guint64)KV_SECOND, magnitude % (guint64)KV_SECOND);
    return buffer;
}

gboolean kv_ns_parse_decimal(const char *text, gsize len, kv_ns unit, kv_ns *ret)
{
    return decimal_parse(text, len, (guint64)unit, ret, NULL);
}
