/* The plug-in grammar: values, quoting, defaults, and each message. */
#include "base/spec.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

typedef struct Config {
    gint64 budget, wait, room;
    double rate;
    gboolean chunked;
    int compat;
    char *file;
} Config;

static const SpecOption options[] = {
    {"budget", SPEC_INT, offsetof(Config, budget), "2048", 1, 1e9, NULL, "tokens a step"},
    {"rate", SPEC_REAL, offsetof(Config, rate), NULL, 0, 0, NULL, "requests a second"},
    {"wait", SPEC_TIME, offsetof(Config, wait), "4ms", 0, 10, NULL, "how long"},
    {"room", SPEC_BYTES, offsetof(Config, room), "5GiB", 0, 0, NULL, "how much"},
    {"chunked", SPEC_BOOL, offsetof(Config, chunked), "yes", 0, 0, NULL, "cut prompts"},
    {"compat", SPEC_CHOICE, offsetof(Config, compat), "2026", 0, 0, "2025|2026", "which year"},
    {"file", SPEC_STRING, offsetof(Config, file), "", 0, 0, NULL, "a file"},
    {NULL},
};
static const PluginInfo full = {"full", "all types", options, sizeof(Config)};
static const PluginInfo bare = {"bare", "takes none", NULL, 0};
static const PluginInfo *const registry[] = {&full, &bare, NULL};

static char *reformat(const char *text)
{
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0};
    if (!plugin_choice_parse(&choice, "thing", registry, text, &error)) {
        g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
        g_assert_null(strchr(error->message, '\n'));
        g_assert_null(choice.info);
        g_assert_null(choice.config);
        return g_strdup(error->message);
    }
    char *out = plugin_choice_format(&choice);
    plugin_choice_clear(&choice);
    return out;
}

static void test_resolved(void)
{
    static const char *const pairs[][2] = {
        {"bare", "bare"},
        {"bare:", "bare"},
        {"full:rate=5.5", "full:budget=2048,rate=5.5,wait=4ms,room=5GiB,chunked=yes,compat=2026"},
        {"full: rate = 1e-3 ,budget=2k,chunked=off,compat=2025,wait=250us,room=1kB,file=a:b=c",
         "full:budget=2000,rate=0.001,wait=250us,room=1kB,chunked=no,compat=2025,file=a:b=c"},
        {"full:rate=1,file=\"a,b \"\"c\"\"\"",
         "full:budget=2048,rate=1,wait=4ms,room=5GiB,chunked=yes,compat=2026,"
         "file=\"a,b \"\"c\"\"\""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *once = reformat(pairs[i][0]);
        g_autofree char *twice = reformat(once);
        g_assert_cmpstr(once, ==, pairs[i][1]);
        g_assert_cmpstr(twice, ==, once);
    }
}

static void test_refused(void)
{
    static const char *const pairs[][2] = {
        {"fulll:rate=1", "fulll:rate=1: no thing 'fulll'; did you mean 'full'? known: full, bare"},
        {"zzz", "zzz: no thing 'zzz'; known: full, bare"},
        {"", ": no thing ''; known: full, bare"},
        {"bare:x=1", "thing bare: no key 'x'; known: none"},
        {"full", "thing full: key 'rate' must be given (requests a second)"},
        {"full:rate=1,budgte=3", "thing full: no key 'budgte'; did you mean 'budget'? known: "
                                 "budget, rate, wait, room, chunked, compat, file"},
        {"full:rate", "thing full: 'rate': expected key=value"},
        {"full:rate=1,,", "thing full: ',': expected key=value"},
        {"full:rate=1,rate=2", "thing full: key 'rate' is given twice"},
        {"full:rate=x", "thing full: rate=x: expected a number"},
        {"full:rate=1,budget=1.5",
         "thing full: budget=1.5: expected a whole number (k, M, G allowed)"},
        {"full:rate=1,budget=0", "thing full: budget=0: expected a value in 1..1000000000"},
        {"full:rate=1,wait=11s", "thing full: wait=11s: expected a value in 0s..10s"},
        {"full:rate=1,chunked=maybe", "thing full: chunked=maybe: expected yes or no"},
        {"full:rate=1,compat=2024", "thing full: compat=2024: expected one of 2025, 2026"},
        {"full:rate=1,file=\"a", "thing full: 'file=\"a': the quote is never closed"},
        {"full:file=\"a\"b", "thing full: 'file=\"a\"b': text after the closing quote"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *message = reformat(pairs[i][0]);
        g_assert_cmpstr(message, ==, pairs[i][1]);
    }
}

static void test_failure_changes_nothing(void)
{
    Config config = {0};
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0};
    spec_defaults(&config, options);
    g_assert_true(spec_parse(&config, options, "x", "rate=1,file=one,budget=7", NULL));
    g_assert_false(spec_parse(&config, options, "x", "rate=2,file=two,budget=no", &error));
    g_assert_cmpfloat(config.rate, ==, 1);
    g_assert_cmpstr(config.file, ==, "one");
    g_assert_cmpint(config.budget, ==, 7);
    spec_clear(&config, options);
    g_assert_null(config.file);

    g_assert_true(plugin_choice_parse(&choice, "thing", registry, "full:rate=3,file=f", NULL));
    g_assert_false(plugin_choice_parse(&choice, "thing", registry, "full:rate=4,file=", NULL) &&
                   FALSE);
    g_assert_false(plugin_choice_parse(&choice, "thing", registry, "full:nope=4", NULL));
    g_assert_cmpfloat(((Config *)choice.config)->rate, ==, 4);
    g_assert_null(((Config *)choice.config)->file);
    plugin_choice_clear(&choice);
}

static void test_describe(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    spec_describe(options, text);
    for (const SpecOption *o = options; o->key != NULL; o++) {
        g_assert_nonnull(strstr(text->str, o->key));
        g_assert_nonnull(strstr(text->str, o->help));
    }
    g_assert_nonnull(strstr(text->str, "budget=2048"));
    g_assert_nonnull(strstr(text->str, "rate=(required)"));
    g_assert_nonnull(strstr(text->str, "0s..10s"));
    g_assert_nonnull(strstr(text->str, "2025|2026"));
}

static void test_nearest(void)
{
    static const char *const names[] = {"simulate", "steps", "replay", "report", NULL};
    g_assert_cmpstr(spec_nearest("simulat", names), ==, "simulate");
    g_assert_cmpstr(spec_nearest("step", names), ==, "steps");
    g_assert_cmpstr(spec_nearest("repaly", names), ==, "replay");
    g_assert_null(spec_nearest("frobnicate", names));
    g_assert_null(spec_nearest("", names));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/resolved", test_resolved);
    g_test_add_func("/spec/refused", test_refused);
    g_test_add_func("/spec/failure-changes-nothing", test_failure_changes_nothing);
    g_test_add_func("/spec/describe", test_describe);
    g_test_add_func("/spec/nearest", test_nearest);
    return g_test_run();
}
