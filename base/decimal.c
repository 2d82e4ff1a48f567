#include "base/decimal.h"

#include <string.h>

typedef unsigned __int128 u128;

#define FAST_DIGITS 19 /* any 19 digits fit 64 bits, and times any unit 128 */
#define EXPONENT_MAX 100000000

/* The text taken apart: `n_digits` significant digits from `digits` on (a point may sit among
 * them), worth digits * 10^exponent. */
typedef struct Parts {
    gboolean negative;
    const char *digits, *digits_end;
    gsize n_digits;
    gint64 exponent;
    guint64 value; /* of the digits, where n_digits <= FAST_DIGITS */
} Parts;

static gboolean split_exponent(const char *p, const char *end, gint64 *ret)
{
    gboolean negative = FALSE;
    gint64 e = 0;
    if (p < end && (*p == '+' || *p == '-'))
        negative = *p++ == '-';
    if (p == end)
        return FALSE;
    for (; p < end; p++) {
        if (!g_ascii_isdigit(*p))
            return FALSE;
        e = MIN(e * 10 + (*p - '0'), EXPONENT_MAX);
    }
    *ret = negative ? -e : e;
    return TRUE;
}

static gboolean split(const char *text, gsize len, Parts *parts)
{
    const char *p = text, *end = text + len;
    gboolean point = FALSE;
    gsize seen = 0;
    *parts = (Parts){0};
    if (p < end && (*p == '+' || *p == '-'))
        parts->negative = *p++ == '-';
    for (; p < end; p++) {
        guint digit = (guint)(guchar)*p - '0';
        if (digit > 9) {
            if (*p != '.' || point)
                break;
            point = TRUE;
            continue;
        }
        seen++;
        parts->exponent -= point;
        if (parts->n_digits == 0) {
            if (digit == 0)
                continue; /* leading zeros are worth nothing */
            parts->digits = p;
        }
        if (parts->n_digits++ < FAST_DIGITS)
            parts->value = parts->value * 10 + digit;
    }
    parts->digits_end = p;
    if (seen == 0)
        return FALSE;
    if (p == end)
        return TRUE;
    gint64 exponent;
    if ((*p != 'e' && *p != 'E') || !split_exponent(p + 1, end, &exponent))
        return FALSE;
    parts->exponent += exponent;
    return TRUE;
}

static const guint64 powers[] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

/* digits * unit * 10^exponent, rounded half up; FALSE when it is over G_MAXINT64. */
static gboolean scale(guint64 digits, guint64 unit, gint64 exponent, guint64 *ret,
                      gboolean *ret_exact)
{
    *ret_exact = TRUE;
    /* the common case: no more fraction digits than the unit has zeros */
    if (exponent < 0 && -exponent < (gint64)G_N_ELEMENTS(powers) && unit % powers[-exponent] == 0) {
        unit /= powers[-exponent];
        exponent = 0;
    }
    u128 value = (u128)digits * unit;
    for (; exponent > 0 && value != 0; exponent--) {
        if (value > G_MAXINT64)
            return FALSE;
        value *= 10;
    }
    if (exponent < -39) { /* 2^128 < 10^39: less than half a unit */
        *ret_exact = value == 0;
        value = 0;
    } else if (exponent < 0) {
        /* all digits below the one that decides only matter for exactness */
        for (; exponent < -1; exponent++) {
            *ret_exact &= value % 10 == 0;
            value /= 10;
        }
        guint digit = (guint)(value % 10);
        *ret_exact &= digit == 0;
        value = value / 10 + (digit >= 5);
    }
    if (value > G_MAXINT64)
        return FALSE;
    *ret = (guint64)value;
    return TRUE;
}

/* More digits than fit: multiplies the digit string by the unit from its last digit upwards, so
 * that the product's digits come out one by one, and folds those at and above the units into `ret`.
 */
static gboolean scale_long(const Parts *parts, guint64 unit, guint64 *ret, gboolean *ret_exact)
{
    u128 carry = 0, whole = 0, place = 1;
    gint64 exponent = parts->exponent; /* of the product digit that comes next */
    guint half = 0;                    /* the digit at 10^-1 */
    const char *p = parts->digits_end;
    *ret_exact = TRUE;
    if (exponent > 0)
        return FALSE; /* 20 digits or more, and all of them whole */
    for (gsize left = parts->n_digits; left > 0 || carry > 0; exponent++) {
        if (left > 0) {
            do
                p--;
            while (*p == '.');
            carry += (u128)unit * (guint)(*p - '0');
            left--;
        }
        guint digit = (guint)(carry % 10);
        carry /= 10;
        if (exponent < 0) {
            *ret_exact &= digit == 0;
            half = exponent == -1 ? digit : 0;
        } else if (digit != 0) {
            if (place > G_MAXINT64)
                return FALSE;
            whole += place * digit;
        }
        if (exponent >= 0 && place <= G_MAXINT64)
            place *= 10;
    }
    whole += half >= 5;
    if (whole > G_MAXINT64)
        return FALSE;
    *ret = (guint64)whole;
    return TRUE;
}

gboolean decimal_parse(const char *text, gsize len, guint64 unit, gint64 *ret, gboolean *ret_exact)
{
    Parts parts;
    guint64 magnitude;
    gboolean exact;
    g_assert(unit >= 1 && unit <= DECIMAL_UNIT_MAX);
    if (!split(text, len, &parts))
        return FALSE;
    gboolean fits = parts.n_digits <= FAST_DIGITS
                        ? scale(parts.value, unit, parts.exponent, &magnitude, &exact)
                        : scale_long(&parts, unit, &magnitude, &exact);
    if (!fits)
        return FALSE;
    *ret = parts.negative ? -(gint64)magnitude : (gint64)magnitude;
    if (ret_exact != NULL)
        *ret_exact = exact;
    return TRUE;
}
