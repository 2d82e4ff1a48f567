#include "base/units.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"

typedef struct Unit {
    const char *suffix;
    guint64 factor;
    guint decimals; /* factor = 10^decimals; 0: whole multiples only when printed */
} Unit;

/* In the order of preference when printing. The first has no need of its suffix when read. */
static const Unit time_units[] = {
    {"s", 1000000000, 9},   {"ms", 1000000, 6},       {"us", 1000, 3}, {"ns", 1, 0},
    {"m", 60000000000u, 0}, {"h", 3600000000000u, 0}, {NULL, 0, 0},
};
static const Unit byte_units[] = {
    {"", 1, 0},
    {"KiB", G_GUINT64_CONSTANT(1) << 10, 0},
    {"MiB", G_GUINT64_CONSTANT(1) << 20, 0},
    {"GiB", G_GUINT64_CONSTANT(1) << 30, 0},
    {"TiB", G_GUINT64_CONSTANT(1) << 40, 0},
    {"kB", 1000, 3},
    {"MB", 1000000, 6},
    {"GB", 1000000000, 9},
    {"TB", 1000000000000, 12},
    {"B", 1, 0},
    {NULL, 0, 0},
};
static const Unit count_units[] = {
    {"", 1, 0},        {"k", 1000, 3},       {"K", 1000, 3},
    {"M", 1000000, 6}, {"G", 1000000000, 9}, {NULL, 0, 0},
};

static gboolean parse(const char *text, const Unit *units, gboolean whole, gint64 *ret)
{
    gsize len = strlen(text), suffix_len = 0;
    /* the suffix: letters at the end, which no number ends with */
    while (suffix_len < len && g_ascii_isalpha(text[len - suffix_len - 1]))
        suffix_len++;
    const char *suffix = text + len - suffix_len;
    const Unit *unit = units;
    if (suffix_len > 0)
        while (unit->suffix != NULL && strcmp(unit->suffix, suffix) != 0)
            unit++;
    gint64 value;
    gboolean exact;
    if (unit->suffix == NULL ||
        !decimal_parse(text, len - suffix_len, unit->factor, &value, &exact) || (whole && !exact))
        return FALSE;
    *ret = value;
    return TRUE;
}

gboolean kv_parse_time(const char *text, kv_ns *ret)
{
    return parse(text, time_units, FALSE, ret);
}

gboolean kv_parse_bytes(const char *text, gint64 *ret)
{
    gint64 value;
    if (!parse(text, byte_units, TRUE, &value) || value < 0)
        return FALSE;
    *ret = value;
    return TRUE;
}

gboolean kv_parse_count(const char *text, gint64 *ret)
{
    return parse(text, count_units, TRUE, ret);
}

gboolean kv_parse_real(const char *text, double *ret)
{
    char *end;
    /* g_ascii_strtod also takes blanks, hexadecimal, "inf" and "nan" */
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0')
        return FALSE;
    double value = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return FALSE;
    *ret = value;
    return TRUE;
}

/* value / factor as text, exact; NULL where it has no short decimal form in this unit. */
static char *in_unit(gint64 value, const Unit *unit)
{
    guint64 magnitude = value < 0 ? -(guint64)value : (guint64)value;
    guint64 fraction = magnitude % unit->factor;
    if (fraction != 0 && unit->decimals == 0)
        return NULL;
    GString *text = g_string_new(value < 0 ? "-" : "");
    g_string_append_printf(text, "%" G_GUINT64_FORMAT, magnitude / unit->factor);
    if (fraction != 0) {
        g_string_append_printf(text, ".%0*" G_GUINT64_FORMAT, (int)unit->decimals, fraction);
        while (text->str[text->len - 1] == '0')
            g_string_truncate(text, text->len - 1);
    }
    g_string_append(text, unit->suffix);
    return g_string_free(text, FALSE);
}

/* The shortest text; of equals one without a fraction, then the earliest unit. */
static char *format(gint64 value, const Unit *units)
{
    char *best = NULL;
    for (const Unit *unit = units; unit->suffix != NULL; unit++) {
        char *text = in_unit(value, unit);
        if (text == NULL)
            continue;
        gsize len = strlen(text), best_len = best ? strlen(best) : G_MAXSIZE;
        if (len < best_len || (len == best_len && strchr(best, '.') && !strchr(text, '.'))) {
            g_free(best);
            best = text;
        } else {
            g_free(text);
        }
    }
    return best;
}

char *kv_format_time(kv_ns t)
{
    return format(t, time_units);
}

char *kv_format_bytes(gint64 bytes)
{
    return format(bytes, byte_units);
}

char *kv_format_real(double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int digits = 1; digits <= 17; digits++) {
        char spec[8];
        g_snprintf(spec, sizeof spec, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, spec, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    return g_strdup(text);
}
