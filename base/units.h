/* Numbers with units, as users type them.
 *
 *   time    "4ms" "1.5s" "640us" "436ns" "2m" "1h"; a bare number is seconds
 *   bytes   "5GiB" "64MiB" "1.5GB" "4096"; KiB = 2^10, kB = 10^3
 *   count   "1000000" "1M" "2.5k"; k = 10^3, M = 10^6, G = 10^9
 * All are exact (decimal arithmetic on integers), locale independent, and refuse trailing text.
 */
#ifndef KV_BASE_UNITS_H
#define KV_BASE_UNITS_H

#include "ns.h"

gboolean kv_parse_time(const char *text, kv_ns *ret);
gboolean kv_parse_bytes(const char *text, gint64 *ret);
gboolean kv_parse_count(const char *text, gint64 *ret);
gboolean kv_parse_real(const char *text, double *ret); /* finite only */

/* Shortest text that the parser above reads back to the same value ("4ms", "640us"). Free it. */
char *kv_format_time(kv_ns t);
char *kv_format_bytes(gint64 bytes);
/* Shortest decimal text that reads back to the same double, never in a locale's way. Free it. */
char *kv_format_real(double value);

#endif
