/* The plug-in grammar: whatever parses is printed to text that parses to the same text. */
#include "tests/fuzz/fuzz.h"

#include <stddef.h>
#include <string.h>

#include "base/spec.h"

typedef struct Config {
    gint64 count, time, bytes;
    double real;
    gboolean yes;
    int choice;
    char *string;
} Config;

static const SpecOption options[] = {
    {"count", SPEC_INT, offsetof(Config, count), "1k", -1e6, 1e6, NULL, "count"},
    {"real", SPEC_REAL, offsetof(Config, real), "0.5", 0, 0, NULL, "real"},
    {"time", SPEC_TIME, offsetof(Config, time), "4ms", 0, 0, NULL, "time"},
    {"bytes", SPEC_BYTES, offsetof(Config, bytes), "5GiB", 0, 0, NULL, "bytes"},
    {"yes", SPEC_BOOL, offsetof(Config, yes), "yes", 0, 0, NULL, "yes"},
    {"choice", SPEC_CHOICE, offsetof(Config, choice), "b", 0, 0, "a|b|c", "choice"},
    {"string", SPEC_STRING, offsetof(Config, string), "", 0, 0, NULL, "string"},
    {NULL},
};
static const PluginInfo plugin = {"p", "a plug-in", options, sizeof(Config)};
static const PluginInfo *const registry[] = {&plugin, NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    PluginChoice choice = {0}, again = {0};
    if (!plugin_choice_parse(&choice, "plug-in", registry, text, &error)) {
        g_assert_nonnull(error);
        return 0;
    }
    g_autofree char *once = plugin_choice_format(&choice);
    g_assert_true(plugin_choice_parse(&again, "plug-in", registry, once, NULL));
    g_autofree char *twice = plugin_choice_format(&again);
    g_assert_cmpstr(once, ==, twice);
    plugin_choice_clear(&choice);
    plugin_choice_clear(&again);
    return 0;
}
