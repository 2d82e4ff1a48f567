#include "workloads/field.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* Up to 18 digits cannot overflow; longer ones take the checked way. */
static gboolean digits_i64(const char *text, gsize len, gboolean negative, gint64 *ret)
{
    if (len == 0)
        return FALSE;
    guint64 v = 0;
    for (gsize i = 0; i < len; i++) {
        guint d = (guint)(text[i] - '0');
        if (d > 9)
            return FALSE;
        if (i >= 18 && v > (G_MAXUINT64 - d) / 10)
            return FALSE;
        v = v * 10 + d;
    }
    if (v > (guint64)G_MAXINT64 + (negative ? 1 : 0))
        return FALSE;
    *ret = negative ? (gint64)(0 - v) : (gint64)v;
    return TRUE;
}

gboolean field_i64(const char *text, gsize len, gint64 *ret)
{
    gboolean negative = len > 0 && text[0] == '-';
    gsize skip = len > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    if (digits_i64(text + skip, len - skip, negative, ret))
        return TRUE;
    /* 374.0 or 3e2: exact in units of 1e-9, if it is whole. */
    if (memchr(text, '.', len) == NULL && memchr(text, 'e', len) == NULL &&
        memchr(text, 'E', len) == NULL)
        return FALSE;
    kv_ns nano;
    if (!kv_ns_parse_decimal(text, len, KV_SECOND, &nano) || nano % KV_SECOND != 0)
        return FALSE;
    *ret = nano / KV_SECOND;
    return TRUE;
}

gboolean field_time(const char *text, gsize len, kv_ns unit, kv_ns *ret)
{
    kv_ns t;
    if (!kv_ns_parse_decimal(text, len, unit, &t) || t > LOG_TIME_MAX || t < -LOG_TIME_MAX)
        return FALSE;
    *ret = t;
    return TRUE;
}

gboolean field_bits64(const char *text, gsize len, guint64 *ret)
{
    gint64 v;
    if (digits_i64(text + (len > 0 && text[0] == '-'), len - (len > 0 && text[0] == '-'),
                   len > 0 && text[0] == '-', &v)) {
        *ret = (guint64)v;
        return TRUE;
    }
    guint64 u = 0;
    if (len == 0 || len > 20)
        return FALSE;
    for (gsize i = 0; i < len; i++) {
        guint d = (guint)(text[i] - '0');
        if (d > 9 || u > (G_MAXUINT64 - d) / 10)
            return FALSE;
        u = u * 10 + d;
    }
    *ret = u;
    return TRUE;
}

gboolean field_real(const char *text, gsize len, double *ret)
{
    char buffer[64];
    if (len == 0 || len >= sizeof buffer || g_ascii_isspace(text[0]))
        return FALSE;
    for (gsize i = 0; i < len; i++)
        if (!g_ascii_isdigit(text[i]) && strchr("+-.eE", text[i]) == NULL)
            return FALSE; /* also keeps NaN, Inf and hexadecimal out */
    memcpy(buffer, text, len);
    buffer[len] = '\0';
    char *end;
    double v = g_ascii_strtod(buffer, &end);
    if (end != buffer + len || !isfinite(v))
        return FALSE;
    *ret = v;
    return TRUE;
}

gint64 days_from_civil(int year, int month, int day)
{
    /* Years counted from March, so that the leap day is the last; 400-year eras of 146,097 days. */
    gint64 y = month <= 2 ? year - 1 : year;
    gint64 era = (y >= 0 ? y : y - 399) / 400;
    gint64 yoe = y - era * 400;
    gint64 doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    gint64 doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static int days_in_month(int year, int month)
{
    static const guint8 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    gboolean leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static int two(const char *p)
{
    guint a = (guint)(p[0] - '0'), b = (guint)(p[1] - '0');
    return a > 9 || b > 9 ? -1 : (int)(a * 10 + b);
}

/* ".123456789..." at *p: nanoseconds, rounded; moves *p on. */
static gboolean fraction(const char **p, const char *end, gint64 *ret)
{
    static const gint32 scale[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                   10000,      1000,      100,      10,      1};
    const char *q = *p + 1, *start = q;
    gint64 v = 0;
    guint d;
    for (; q < end && q - start < 9 && (d = (guint)(*q - '0')) <= 9; q++)
        v = v * 10 + d;
    if (q == start)
        return FALSE;
    v *= scale[q - start];
    if (q < end && q - start == 9 && g_ascii_isdigit(*q)) {
        v += *q >= '5';
        while (q < end && g_ascii_isdigit(*q))
            q++;
    }
    *p = q;
    *ret = v;
    return TRUE;
}

/* Zone at p, to the end: seconds east. */
static gboolean zone(const char *p, const char *end, int *ret)
{
    if (p < end && *p == ' ')
        p++;
    gsize len = (gsize)(end - p);
    *ret = 0;
    if (len == 0 || (len == 1 && (*p == 'Z' || *p == 'z')) ||
        (len == 3 && memcmp(p, "UTC", 3) == 0))
        return TRUE;
    if ((*p != '+' && *p != '-') || !(len == 3 || len == 5 || (len == 6 && p[3] == ':')))
        return FALSE;
    int h = two(p + 1), m = len == 3 ? 0 : two(end - 2);
    if (h < 0 || h > 18 || m < 0 || m > 59)
        return FALSE;
    *ret = (h * 60 + m) * 60 * (*p == '-' ? -1 : 1);
    return TRUE;
}

gboolean field_calendar(const char *text, gsize len, kv_ns *ret)
{
    if (len < 16 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':')
        return FALSE;
    int y1 = two(text), y2 = two(text + 2), month = two(text + 5), day = two(text + 8);
    int h = two(text + 11), m = two(text + 14), s = 0;
    if (y1 < 0 || y2 < 0)
        return FALSE;
    int year = y1 * 100 + y2;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || h < 0 || h > 23 ||
        m < 0 || m > 59 || year < 1850 || year > 2090)
        return FALSE;
    const char *p = text + 16, *end = text + len;
    gint64 nano = 0;
    int east;
    if (p < end && *p == ':') {
        if (end - p < 3 || (s = two(p + 1)) < 0 || s > 60)
            return FALSE;
        p += 3;
        if (p < end && (*p == '.' || *p == ',') && !fraction(&p, end, &nano))
            return FALSE;
    }
    if (!zone(p, end, &east))
        return FALSE;
    gint64 seconds = days_from_civil(year, month, day) * 86400 + h * 3600 + m * 60 + s - east;
    *ret = seconds * KV_SECOND + nano;
    return TRUE;
}

gboolean field_error(const Input *input, guint64 line, GError **error, const char *what,
                     const char *text, gsize len, const char *expected)
{
    g_autofree char *shown = NULL;
    if (text != NULL) {
        g_autofree char *cut = g_strndup(text, MIN(len, 60));
        for (gsize i = 0; i < MIN(len, 60); i++) /* a NUL would hide what follows it */
            if (cut[i] == '\0')
                cut[i] = '\x01';
        shown = g_strescape(cut, NULL);
    }
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s:%" G_GUINT64_FORMAT ": %s%s%s%s%s: expected %s", input_name(input), line, what,
                text != NULL ? ": '" : "", text != NULL ? shown : "", text != NULL ? "'" : "",
                text != NULL && len > 60 ? "..." : "", expected);
    return FALSE;
}
