#include "base/spec_value.h"

#include <string.h>

#include "base/units.h"

static gboolean parse_bool(const char *text, int *ret)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1", NULL};
    for (int i = 0; words[i] != NULL; i++) {
        if (g_ascii_strcasecmp(text, words[i]) == 0) {
            *ret = i & 1;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean parse_choice(const char *text, const char *choices, int *ret)
{
    g_auto(GStrv) words = g_strsplit(choices, "|", -1);
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = i;
            return TRUE;
        }
    }
    return FALSE;
}

gboolean spec_value_parse(const SpecOption *option, const char *text, SpecValue *ret)
{
    ret->option = option;
    switch (option->type) {
    case SPEC_INT:
        return kv_parse_count(text, &ret->as.integer);
    case SPEC_REAL:
        return kv_parse_real(text, &ret->as.real);
    case SPEC_TIME:
        return kv_parse_time(text, &ret->as.integer);
    case SPEC_BYTES:
        return kv_parse_bytes(text, &ret->as.integer);
    case SPEC_BOOL:
        return parse_bool(text, &ret->as.small);
    case SPEC_CHOICE:
        return parse_choice(text, option->choices, &ret->as.small);
    case SPEC_STRING:
        ret->as.string = text[0] != '\0' ? g_strdup(text) : NULL;
        return TRUE;
    }
    g_assert_not_reached();
}

gboolean spec_value_in_range(const SpecValue *value)
{
    const SpecOption *o = value->option;
    double number;
    if (o->min == 0 && o->max == 0)
        return TRUE;
    switch (o->type) {
    case SPEC_INT:
    case SPEC_BYTES:
        number = (double)value->as.integer;
        break;
    case SPEC_TIME:
        number = kv_ns_to_seconds(value->as.integer);
        break;
    case SPEC_REAL:
        number = value->as.real;
        break;
    default:
        return TRUE;
    }
    return number >= o->min && number <= o->max;
}

void spec_value_store(const SpecValue *value, gpointer config)
{
    gpointer at = (char *)config + value->option->offset;
    switch (value->option->type) {
    case SPEC_INT:
    case SPEC_TIME:
    case SPEC_BYTES:
        *(gint64 *)at = value->as.integer;
        break;
    case SPEC_REAL:
        *(double *)at = value->as.real;
        break;
    case SPEC_BOOL:
    case SPEC_CHOICE:
        *(int *)at = value->as.small;
        break;
    case SPEC_STRING:
        g_free(*(char **)at);
        *(char **)at = value->as.string;
        break;
    }
}

static char *limit_text(const SpecOption *option, double limit)
{
    if (option->type == SPEC_TIME && limit > -9e9 && limit < 9e9)
        return kv_format_time(kv_ns_from_seconds(limit));
    if (option->type == SPEC_BYTES && limit >= 0 && limit < 9e18)
        return kv_format_bytes((gint64)limit);
    if (ABS(limit) < 1e15 && limit == (double)(gint64)limit)
        return g_strdup_printf("%" G_GINT64_FORMAT, (gint64)limit);
    return kv_format_real(limit);
}

char *spec_range_text(const SpecOption *option)
{
    if (option->min == 0 && option->max == 0)
        return g_strdup("");
    g_autofree char *low = limit_text(option, option->min);
    g_autofree char *high = limit_text(option, option->max);
    return g_strdup_printf("%s..%s", low, high);
}

char *spec_type_text(const SpecOption *option)
{
    switch (option->type) {
    case SPEC_INT:
        return g_strdup("a whole number (k, M, G allowed)");
    case SPEC_REAL:
        return g_strdup("a number");
    case SPEC_TIME:
        return g_strdup("a time such as 4ms, 1.5s, 640us");
    case SPEC_BYTES:
        return g_strdup("a size such as 64MiB, 5GiB");
    case SPEC_BOOL:
        return g_strdup("yes or no");
    case SPEC_STRING:
        return g_strdup("text");
    case SPEC_CHOICE: {
        g_auto(GStrv) words = g_strsplit(option->choices, "|", -1);
        g_autofree char *list = g_strjoinv(", ", words);
        return g_strdup_printf("one of %s", list);
    }
    }
    g_assert_not_reached();
}

char *spec_value_format(const SpecOption *option, gconstpointer config)
{
    gconstpointer at = (const char *)config + option->offset;
    switch (option->type) {
    case SPEC_INT:
        return g_strdup_printf("%" G_GINT64_FORMAT, *(const gint64 *)at);
    case SPEC_REAL:
        return kv_format_real(*(const double *)at);
    case SPEC_TIME:
        return kv_format_time(*(const kv_ns *)at);
    case SPEC_BYTES:
        return kv_format_bytes(*(const gint64 *)at);
    case SPEC_BOOL:
        return g_strdup(*(const gboolean *)at ? "yes" : "no");
    case SPEC_STRING:
        return g_strdup(*(char *const *)at);
    case SPEC_CHOICE: {
        g_auto(GStrv) words = g_strsplit(option->choices, "|", -1);
        return g_strdup(words[*(const int *)at]);
    }
    }
    g_assert_not_reached();
}
