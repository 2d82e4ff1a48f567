/* Time: signed 64-bit nanoseconds, everywhere.
 *
 * Integers make ties exact and files portable. Range: 292 years either way. Zero is the start of
 * the workload (the first arrival) unless a comment says otherwise. Seconds as doubles exist only
 * at the edges: in text and in pictures.
 */
#ifndef KV_BASE_NS_H
#define KV_BASE_NS_H

#include <glib.h>

typedef gint64 kv_ns;

#define KV_NS_NONE G_MININT64 /* no time: not recorded, not yet happened */
#define KV_NS_MAX G_MAXINT64
#define KV_US ((kv_ns)1000)
#define KV_MS ((kv_ns)1000000)
#define KV_SECOND ((kv_ns)1000000000)

/* Nearest nanosecond to `seconds` (half away from zero). Asserts that the value is in range. */
kv_ns kv_ns_from_seconds(double seconds);
static inline double kv_ns_to_seconds(kv_ns t)
{
    return (double)t / 1e9;
}

/* Text "12.345678901" (seconds, exactly nine decimals) in a caller's buffer; returns `buffer`. */
#define KV_NS_TEXT_SIZE 32
char *kv_ns_text(kv_ns t, char buffer[KV_NS_TEXT_SIZE]);

/* Exact decimal to nanoseconds: an optional sign, digits, an optional fraction and exponent, times
 * `unit` ns. Digits past the nanosecond are rounded half away from zero; no double is involved.
 * FALSE on anything else, on overflow, and when [text, text+len) is not used up. */
gboolean kv_ns_parse_decimal(const char *text, gsize len, kv_ns unit, kv_ns *ret);

#endif
