/* Decimals, nanoseconds and units: exactness at the edges, and what must be refused. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/units.h"

#define S G_GINT64_CONSTANT(1000000000)

typedef struct DecimalCase {
    const char *text;
    guint64 unit;
    gint64 value;
    gboolean exact;
} DecimalCase;

static const DecimalCase decimals[] = {
    {"0", 1, 0, TRUE},
    {"-0.0", S, 0, TRUE},
    {"12.345678901", S, 12345678901, TRUE},
    {"+1", S, S, TRUE},
    {".5", S, S / 2, TRUE},
    {"5.", S, 5 * S, TRUE},
    {"1e3", 1, 1000, TRUE},
    {"1E-3", S, 1000000, TRUE},
    {"1.5e+2", 1, 150, TRUE},
    {"-2.5", 1, -3, FALSE}, /* half away from zero */
    {"2.5", 1, 3, FALSE},
    {"2.4999999999999999999999999999", 1, 2, FALSE},
    {"2.5000000000000000000000000001", 1, 3, FALSE},
    {"0.0000000004", S, 0, FALSE},
    {"0.0000000005", S, 1, FALSE},
    {"0.00000000049999999999999999999999", S, 0, FALSE},
    {"1700000000.1234567", S, 1700000000123456700, TRUE},
    {"1700000000.123456789123", S, 1700000000123456789, FALSE},
    {"1700000000.12345678950000000000", S, 1700000000123456790, FALSE},
    {"9223372036854775807", 1, G_MAXINT64, TRUE},
    {"-9223372036854775807", 1, -G_MAXINT64, TRUE},
    {"9223372036.854775807", S, G_MAXINT64, TRUE},
    {"9223372036.8547758074", S, G_MAXINT64, FALSE},
    {"0000000000000000000000000000000000001", 1, 1, TRUE},
    {"1.0000000000000000000000000000000000", 1, 1, TRUE},
    {"100000000000000000000e-20", 1, 1, TRUE},
    {"0.00000000000000000001e20", 1, 1, TRUE},
    {"1e-400000000000", S, 0, FALSE},
    {"0e999999999999", S, 0, TRUE},
    {"0.30000000000000000000000000000", 60 * S, 18 * S, TRUE},
    {"1.25", 3600 * S, 4500 * S, TRUE},
    {"0.00000000000013888888888888888888888", 3600 * S, 0, FALSE}, /* 0.49999... ns */
    {"0.00000000000013888888888888888888889", 3600 * S, 1, FALSE}, /* 0.50000... ns */
};

static void test_decimal(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(decimals); i++) {
        const DecimalCase *c = &decimals[i];
        gint64 value;
        gboolean exact;
        g_test_message("%s x %" G_GUINT64_FORMAT, c->text, c->unit);
        g_assert_true(decimal_parse(c->text, strlen(c->text), c->unit, &value, &exact));
        g_assert_cmpint(value, ==, c->value);
        g_assert_cmpint(exact, ==, c->exact);
    }
}

static void test_decimal_refused(void)
{
    static const char *const texts[] = {
        "",
        "-",
        "+",
        ".",
        "-.",
        "e5",
        "1e",
        "1e+",
        "1.2.3",
        "1,5",
        " 1",
        "1 ",
        "0x10",
        "inf",
        "nan",
        "1_000",
        "--1",
        "1e5x",
        "١",
        "1e1.5",
        "1-",
        "1e--1",
        "9223372036854775808",
        "-9223372036854775808",
        "9223372036854775807.5",
        "92233720368547758070",
        "1e19",
        "1e100000000000000000000",
        "100000000000000000000000",
        "99999999999999999999.9",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        gint64 value = 77;
        g_test_message("'%s'", texts[i]);
        g_assert_false(decimal_parse(texts[i], strlen(texts[i]), 1, &value, NULL));
        g_assert_cmpint(value, ==, 77);
    }
    gint64 value;
    g_assert_false(decimal_parse("9223372036.8547758075", 21, S, &value, NULL));
    g_assert_true(decimal_parse("123456", 3, 1, &value, NULL)); /* by length, not by NUL */
    g_assert_cmpint(value, ==, 123);
}

/* The long way and the short way agree: zeros behind the digits force the long one. */
static void test_decimal_long_agrees(void)
{
    for (int i = 0; i < 20000; i++) {
        guint64 unit = (guint64)g_test_rand_int_range(1, 1 << 30) * (guint64)(1 + i % 1000);
        g_autofree char *text = g_strdup_printf("%d.%09d", g_test_rand_int_range(0, 1000000),
                                                g_test_rand_int_range(0, 1000000000));
        g_autofree char *longer = g_strconcat(text, "00000000000000000000", NULL);
        gint64 a = 0, b = 0;
        gboolean ea = FALSE, eb = FALSE;
        g_assert_true(decimal_parse(text, strlen(text), unit, &a, &ea) ==
                      decimal_parse(longer, strlen(longer), unit, &b, &eb));
        g_assert_cmpint(a, ==, b);
        g_assert_cmpint(ea, ==, eb);
    }
}

static void test_ns(void)
{
    char text[KV_NS_TEXT_SIZE];
    g_assert_cmpstr(kv_ns_text(0, text), ==, "0.000000000");
    g_assert_cmpstr(kv_ns_text(12345678901, text), ==, "12.345678901");
    g_assert_cmpstr(kv_ns_text(-1, text), ==, "-0.000000001");
    g_assert_cmpstr(kv_ns_text(KV_NS_MAX, text), ==, "9223372036.854775807");
    g_assert_cmpstr(kv_ns_text(KV_NS_NONE, text), ==, "-9223372036.854775808");
    g_assert_cmpint(kv_ns_from_seconds(0.0), ==, 0);
    g_assert_cmpint(kv_ns_from_seconds(1e-300), ==, 0);
    g_assert_cmpint(kv_ns_from_seconds(0x1p-31), ==, 0); /* 0.4656 ns */
    g_assert_cmpint(kv_ns_from_seconds(0.1), ==, 100000000);
    g_assert_cmpint(kv_ns_from_seconds(-0.1), ==, -100000000);
    g_assert_cmpint(kv_ns_from_seconds(0x1p-10), ==, 976563); /* 976562.5: away from zero */
    g_assert_cmpint(kv_ns_from_seconds(-0x1p-10), ==, -976563);
    g_assert_cmpint(kv_ns_from_seconds(4294967296.0), ==, 4294967296 * S);
    /* 1700000000.1 as a double is 1700000000.099999904632568359375 */
    g_assert_cmpint(kv_ns_from_seconds(1700000000.1), ==, 1700000000099999905);
}

static void test_ns_round_trip(void)
{
    for (int i = 0; i < 20000; i++) {
        char text[KV_NS_TEXT_SIZE];
        kv_ns t = (gint64)((guint64)g_test_rand_int() << 32 | (guint32)g_test_rand_int()), back;
        t >>= g_test_rand_int_range(0, 60);
        if (t == KV_NS_NONE)
            continue;
        kv_ns_text(t, text);
        g_assert_true(kv_ns_parse_decimal(text, strlen(text), KV_SECOND, &back));
        g_assert_cmpint(t, ==, back);
        g_autofree char *shortest = kv_format_time(t);
        g_assert_true(kv_parse_time(shortest, &back));
        g_assert_cmpint(t, ==, back);
        g_autofree char *bytes = kv_format_bytes(ABS(t));
        g_assert_true(kv_parse_bytes(bytes, &back));
        g_assert_cmpint(ABS(t), ==, back);
    }
}

static void test_units_read(void)
{
    gint64 v;
    double r;
    g_assert_true(kv_parse_time("4ms", &v) && v == 4000000);
    g_assert_true(kv_parse_time("1.5s", &v) && v == 1500000000);
    g_assert_true(kv_parse_time("640us", &v) && v == 640000);
    g_assert_true(kv_parse_time("436ns", &v) && v == 436);
    g_assert_true(kv_parse_time("2m", &v) && v == 120 * S);
    g_assert_true(kv_parse_time("1h", &v) && v == 3600 * S);
    g_assert_true(kv_parse_time("2.5", &v) && v == 2500000000);
    g_assert_true(kv_parse_time("-1ms", &v) && v == -1000000);
    g_assert_false(kv_parse_time("4 ms", &v));
    g_assert_false(kv_parse_time("4MS", &v));
    g_assert_false(kv_parse_time("ms", &v));
    g_assert_false(kv_parse_time("4ms ", &v));
    g_assert_false(kv_parse_time("4e3e", &v));
    g_assert_true(kv_parse_bytes("5GiB", &v) && v == G_GINT64_CONSTANT(5) << 30);
    g_assert_true(kv_parse_bytes("64MiB", &v) && v == 64 << 20);
    g_assert_true(kv_parse_bytes("1.5GB", &v) && v == 1500000000);
    g_assert_true(kv_parse_bytes("4096", &v) && v == 4096);
    g_assert_true(kv_parse_bytes("0.5KiB", &v) && v == 512);
    g_assert_false(kv_parse_bytes("0.3KiB", &v)); /* 307.2 bytes */
    g_assert_false(kv_parse_bytes("-1", &v));
    g_assert_false(kv_parse_bytes("9000000TiB", &v));
    g_assert_true(kv_parse_count("1M", &v) && v == 1000000);
    g_assert_true(kv_parse_count("2.5k", &v) && v == 2500);
    g_assert_true(kv_parse_count("-3", &v) && v == -3);
    g_assert_false(kv_parse_count("2.0005k", &v));
    g_assert_false(kv_parse_count("1.5", &v));
    g_assert_true(kv_parse_real("-1.5e-3", &r) && r == -1.5e-3);
    g_assert_false(kv_parse_real("inf", &r));
    g_assert_false(kv_parse_real("1e999", &r));
    g_assert_false(kv_parse_real("0x1p3", &r));
    g_assert_false(kv_parse_real(" 1", &r));
    g_assert_false(kv_parse_real("", &r));
    g_assert_false(kv_parse_real("1,5", &r));
}

static void check_format(char *text, const char *expect)
{
    g_assert_cmpstr(text, ==, expect);
    g_free(text);
}

static void test_units_written(void)
{
    check_format(kv_format_time(16 * KV_MS), "16ms");
    check_format(kv_format_time(640 * KV_US), "640us");
    check_format(kv_format_time(436), "436ns");
    check_format(kv_format_time(1500 * KV_MS), "1.5s");
    check_format(kv_format_time(0), "0s");
    check_format(kv_format_time(60 * S), "1m");
    check_format(kv_format_time(90 * S), "90s");
    check_format(kv_format_time(-500 * KV_US), "-500us");
    check_format(kv_format_bytes(G_GINT64_CONSTANT(5) << 30), "5GiB");
    check_format(kv_format_bytes(1500000000), "1.5GB");
    check_format(kv_format_bytes(77), "77");
    check_format(kv_format_real(0.1), "0.1");
    check_format(kv_format_real(5.5), "5.5");
    check_format(kv_format_real(1.0 / 3), "0.3333333333333333");
    check_format(kv_format_real(1e22), "1e+22");
}

static void test_locale(void)
{
    const char *was = setlocale(LC_ALL, "de_DE.UTF-8");
    if (was == NULL) {
        g_test_skip("no German locale on this machine");
        return;
    }
    double r;
    g_assert_true(kv_parse_real("1.5", &r) && r == 1.5);
    check_format(kv_format_real(1.5), "1.5");
    setlocale(LC_ALL, "C");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/decimal/values", test_decimal);
    g_test_add_func("/decimal/refused", test_decimal_refused);
    g_test_add_func("/decimal/long-agrees", test_decimal_long_agrees);
    g_test_add_func("/ns/values", test_ns);
    g_test_add_func("/ns/round-trip", test_ns_round_trip);
    g_test_add_func("/units/read", test_units_read);
    g_test_add_func("/units/written", test_units_written);
    g_test_add_func("/units/locale", test_locale);
    return g_test_run();
}
