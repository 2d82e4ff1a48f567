/* Azure logs: every digit of the time, every row, and what bad files get. */
#include "tests/workloads/support.h"

#include <string.h>

#include "workloads/field.h"

static void check_arrivals(GArray *all, const kv_ns *expected, guint n)
{
    g_assert_cmpuint(all->len, ==, n);
    for (guint i = 0; i < n; i++)
        g_assert_cmpint(REQUEST(all, i)->arrival, ==, expected[i]);
}

/* All seven fraction digits count, CRLF is no part of a field, the last row needs no line end. */
static void test_fraction_digits(void)
{
    static const kv_ns expected[] = {0, 1000000, 8000000, 10000000, 10000100};
    g_autofree char *path = test_file("cases/01-azure-fraction-digits/trace.csv");
    g_autoptr(GArray) all = test_read(path, NULL);
    check_arrivals(all, expected, 5);
    g_assert_cmpint(REQUEST(all, 4)->prompt, ==, 140);
    g_assert_cmpint(REQUEST(all, 4)->output, ==, 9);
}

/* Gaps 0.2, 86399.4, 1.0, 26438398.5, 2.0 s over midnight, 29 February and New Year. */
static void test_midnight_and_leap_day(void)
{
    static const kv_ns expected[] = {0,
                                     200000000,
                                     86399600000000,
                                     86400600000000,
                                     86400600000000 + 26438398500000000,
                                     86402600000000 + 26438398500000000};
    g_autofree char *path = test_file("cases/03-midnight-and-leap-day/trace.csv");
    g_autoptr(GArray) all = test_read(path, NULL);
    check_arrivals(all, expected, 6);
}

/* 2024: six digits with a zone beside none; 2025: an inserted column and a Z. */
static void test_variants(void)
{
    g_autofree char *a = test_write("a.csv",
                                    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                    "2024-05-10 00:00:00.009930+00:00,10,1\n"
                                    "2024-05-12 00:00:00+00:00,20,2\n"
                                    "2024-05-12 02:00:00+02:00,21,2\n",
                                    -1);
    g_autoptr(GArray) old = test_read(a, NULL);
    static const kv_ns expected[] = {0, 172799990070000, 172799990070000};
    check_arrivals(old, expected, 3);
    g_autofree char *b =
        test_write("b.csv",
                   "\xef\xbb\xbfTIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n"
                   "2024-10-15T12:00:00.269Z,3,400,17\r\n",
                   -1);
    g_autoptr(Workload) workload = test_open(b, NULL);
    g_autoptr(GArray) multimodal = test_collect(workload);
    g_assert_cmpint(REQUEST(multimodal, 0)->prompt, ==, 400);
    g_assert_cmpint(REQUEST(multimodal, 0)->output, ==, 17);
    g_assert_cmpstr(workload_info(workload)->first_arrival, ==, "2024-10-15T12:00:00.269Z");
    g_assert_cmpint(workload_info(workload)->first_arrival_ns, ==, 1728993600269000000);
}

static void test_unsorted(void)
{
    const char *text = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                       "2024-05-10 00:00:03,3,1\n2024-05-10 00:00:01,1,1\n"
                       "2024-05-10 00:00:03,4,1\n2024-05-10 00:00:02,2,1\n";
    g_autofree char *path = test_write("unsorted.csv", text, -1);
    g_autoptr(Workload) workload = test_open(path, NULL);
    g_autoptr(GArray) all = test_collect(workload);
    static const kv_ns expected[] = {0, KV_SECOND, 2 * KV_SECOND, 2 * KV_SECOND};
    check_arrivals(all, expected, 4);
    for (gint32 i = 0; i < 4; i++)
        g_assert_cmpint(REQUEST(all, i)->prompt, ==, i + 1);
    const WorkloadInfo *info = workload_info(workload);
    g_assert_cmpuint(info->warnings->len, ==, 1);
    g_assert_nonnull(strstr(g_ptr_array_index(info->warnings, 0), "(2 times)"));
}

static void refuse(const char *rows, const char *line, const char *what, const char *expected)
{
    g_autofree char *text = g_strconcat("TIMESTAMP,ContextTokens,GeneratedTokens\n", rows, NULL);
    g_autofree char *path = test_write("bad.csv", text, -1);
    test_refused(path, NULL, line, what, expected, NULL);
}

static void test_bad_input(void)
{
    refuse("2024-05-10 00:00:03,3,1\n2024-05-10 00:00:04,abc,1\n",
           "bad.csv:3:", "ContextTokens': 'abc'", "expected a whole number");
    refuse("2024-05-10 00:00:03,3,-1\n", "bad.csv:2:", "'-1'", "from 0 to 2147483647");
    refuse("2024-05-10 00:00:03,99999999999999999999,1\n", "bad.csv:2:", "9999", "whole number");
    refuse("2024-05-10 00:00:03,NaN,1\n", "bad.csv:2:", "NaN", "whole number");
    refuse("2024-05-10 00:00:03,3\n", "bad.csv:2:", "cut off", "expected 3");
    refuse("2024-05-10 00:00:03,3,1,4\n", "bad.csv:2:", "4 fields", "expected 3");
    refuse("2024-02-30 00:00:03,3,1\n", "bad.csv:2:", "2024-02-30", "a time like");
    refuse("yesterday,3,1\n", "bad.csv:2:", "yesterday", "a time like");
    refuse("2024-05-10 00:00:03,\"3,1\n", "bad.csv:2:", "quoted field", "closing quote");
    refuse("", "bad.csv:", "no request", "0 rows");
}

static void test_not_a_log(void)
{
    g_autofree char *lfs = test_write(
        "x.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", -1);
    test_refused(lfs, NULL, "x.csv:1:", "git-lfs pointer", NULL);
    g_autofree char *empty = test_write("e.csv", "", 0);
    test_refused(empty, NULL, "e.csv:1:", "empty", NULL);
    g_autofree char *utf16 = test_write("u.csv", "\xff\xfeT\0I\0", 6);
    test_refused(utf16, NULL, "UTF-16", NULL);
    g_autofree char *quotes = test_write("q.csv", "\"\"\n", -1); /* one column without a name */
    test_refused(quotes, "azure", "q.csv:1:", "no column 'TIMESTAMP'", NULL);
    g_autofree char *other = test_write("o.csv", "alpha,beta\n1,2\n", -1);
    test_refused(other, NULL, "o.csv:1:", "alpha,beta", "--format", NULL);
    test_refused(other, "azure", "o.csv:1:", "no column 'TIMESTAMP'", "alpha,beta", NULL);
}

static void test_calendar(void)
{
    static const struct {
        const char *text;
        kv_ns expected; /* KV_NS_NONE = refused */
    } cases[] = {
        {"1970-01-01 00:00:00", 0},
        {"1969-12-31T23:59:59.999999999Z", -1},
        {"2000-02-29 12:00:00", 951825600000000000},
        {"1900-02-29 12:00:00", KV_NS_NONE},
        {"2026-02-25T10:00:02.5", 1772013602500000000},
        {"2026-02-25T10:00:02.5+05:30", 1772013602500000000 - 19800 * KV_SECOND},
        {"2026-02-25T10:00:02.1234567895", 1772013602123456790},
        {"2026-02-25 24:00:00", KV_NS_NONE},
        {"2026-02-25 10:00:02.", KV_NS_NONE},
        {"2026-02-25 10:00:02Zjunk", KV_NS_NONE},
        {"2026-02-25 10:00", 1772013600000000000},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        kv_ns t = KV_NS_NONE;
        field_calendar(cases[i].text, strlen(cases[i].text), &t);
        g_assert_cmpint(t, ==, cases[i].expected);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/azure/case-01-fraction-digits", test_fraction_digits);
    g_test_add_func("/azure/case-03-midnight-and-leap-day", test_midnight_and_leap_day);
    g_test_add_func("/azure/variants", test_variants);
    g_test_add_func("/azure/unsorted", test_unsorted);
    g_test_add_func("/azure/bad-input", test_bad_input);
    g_test_add_func("/azure/not-a-log", test_not_a_log);
    g_test_add_func("/field/calendar", test_calendar);
    return g_test_run();
}
