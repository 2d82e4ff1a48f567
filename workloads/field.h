/* Numbers and times out of text fields that need not end in '\0'.
 *
 * All are strict (the whole field, no white space), exact, locale independent, and say nothing:
 * the caller words the error with field_error().
 */
#ifndef KV_WORKLOADS_FIELD_H
#define KV_WORKLOADS_FIELD_H

#include "base/input.h"
#include "base/ns.h"

/* Times of a log lie within 126 years of 1970 (or of its own zero): sums and differences of two of
 * them cannot overflow. */
#define LOG_TIME_MAX (G_GINT64_CONSTANT(4000000000) * KV_SECOND)
/* Decimal number of `unit` ns, within LOG_TIME_MAX either way. */
gboolean field_time(const char *text, gsize len, kv_ns unit, kv_ns *ret);

/* Decimal whole number, sign allowed; "374.0" and "3e2" count when whole. FALSE on overflow. */
gboolean field_i64(const char *text, gsize len, gint64 *ret);
/* Any 64-bit pattern: -2^63 .. 2^64-1. */
gboolean field_bits64(const char *text, gsize len, guint64 *ret);
/* Finite real. */
gboolean field_real(const char *text, gsize len, double *ret);

/* Calendar time to UNIX nanoseconds: "YYYY-MM-DD[ T]HH:MM[:SS[.f...]][Z|+HH[:MM]|-HH[:MM]]"; no
 * zone counts as UTC. Digits past the nanosecond are rounded half up. Days exist (no 31 April);
 * second 60 is the next minute's 0. Range 1850..2090. */
gboolean field_calendar(const char *text, gsize len, kv_ns *ret);
/* Days since 1970-01-01 of a date in the Gregorian calendar. */
gint64 days_from_civil(int year, int month, int day);

/* INPUT error "FILE:LINE: WHAT: 'TEXT': expected EXPECTED", text cut and made printable. FALSE. */
gboolean field_error(const Input *input, guint64 line, GError **error, const char *what,
                     const char *text, gsize len, const char *expected);

#endif
