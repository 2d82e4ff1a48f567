#include "base/spec.h"

#include <string.h>

#include "base/error.h"
#include "base/spec_value.h"

/* Edit distance (Levenshtein 1966), one row at a time. */
static guint distance(const char *a, const char *b)
{
    gsize na = strlen(a), nb = strlen(b);
    g_autofree guint *row = g_new(guint, nb + 1);
    for (gsize j = 0; j <= nb; j++)
        row[j] = (guint)j;
    for (gsize i = 1; i <= na; i++) {
        guint diagonal = row[0];
        row[0] = (guint)i;
        for (gsize j = 1; j <= nb; j++) {
            guint above = row[j];
            guint change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = MIN(change, MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[nb];
}

const char *spec_nearest(const char *text, const char *const *names)
{
    const char *best = NULL;
    guint best_distance = 1 + (guint)strlen(text) / 3;
    if (strlen(text) > 64)
        return NULL;
    for (; *names != NULL; names++) {
        guint d = distance(text, *names);
        if (d < best_distance || (d == best_distance && best == NULL)) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

/* --- messages --- */

/* "WHAT: no SORT 'TEXT'; did you mean 'x'? known: a, b, c" */
static void unknown(GError **error, const char *what, const char *sort, const char *text,
                    GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    const char *const *list = (const char *const *)names->pdata;
    const char *near = spec_nearest(text, list);
    g_autofree char *joined = g_strjoinv(", ", (char **)names->pdata);
    g_autofree char *hint = near ? g_strdup_printf("; did you mean '%s'?", near) : g_strdup(";");
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: no %s '%s'%s known: %s", what, sort, text,
                hint, names->len > 1 ? joined : "none");
}

static void unknown_key(GError **error, const char *what, const SpecOption *options,
                        const char *key)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++)
        g_ptr_array_add(names, (gpointer)o->key);
    unknown(error, what, "key", key, names);
}

/* --- key=value,... --- */

/* Takes "key=value" off *tail, the value out of its quotes. FALSE + reason when there is none. */
static gboolean take_pair(const char **tail, char **ret_key, char **ret_value,
                          const char **ret_reason)
{
    const char *p = *tail, *equals = p + strcspn(p, "=,");
    if (*equals != '=') {
        *ret_reason = "expected key=value";
        return FALSE;
    }
    const char *v = equals + 1;
    GString *value = g_string_new(NULL);
    if (*v == '"') {
        for (v++; *v != '\0' && (*v != '"' || v[1] == '"'); v++) {
            v += *v == '"'; /* "" inside quotes is one quote */
            g_string_append_c(value, *v);
        }
        if (*v != '"' || (v[1] != '\0' && v[1] != ',')) {
            *ret_reason = *v != '"' ? "the quote is never closed" : "text after the closing quote";
            g_string_free(value, TRUE);
            return FALSE;
        }
        v++;
    } else {
        gsize len = strcspn(v, ",");
        g_string_append_len(value, v, (gssize)len);
        g_strstrip(value->str);
        v += len;
    }
    *ret_key = g_strstrip(g_strndup(p, (gsize)(equals - p)));
    *ret_value = g_string_free(value, FALSE);
    *tail = *v == ',' ? v + 1 : v;
    return TRUE;
}

static const SpecOption *find_option(const SpecOption *options, const char *key)
{
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++)
        if (strcmp(o->key, key) == 0)
            return o;
    return NULL;
}

static gboolean is_given(const GArray *values, const SpecOption *option)
{
    for (guint i = 0; i < values->len; i++)
        if (g_array_index(values, SpecValue, i).option == option)
            return TRUE;
    return FALSE;
}

/* Reads one pair's text as the option's type and appends it to `values`. */
static gboolean add_value(GArray *values, const SpecOption *options, const char *what,
                          const char *key, const char *text, GError **error)
{
    const SpecOption *option = find_option(options, key);
    SpecValue value = {0};
    if (option == NULL) {
        unknown_key(error, what, options, key);
        return FALSE;
    }
    if (is_given(values, option)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: key '%s' is given twice", what, key);
        return FALSE;
    }
    if (!spec_value_parse(option, text, &value)) {
        g_autofree char *type = spec_type_text(option);
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: %s=%s: expected %s", what, key, text,
                    type);
        return FALSE;
    }
    if (!spec_value_in_range(&value)) {
        g_autofree char *range = spec_range_text(option);
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: %s=%s: expected a value in %s", what, key,
                    text, range);
        return FALSE;
    }
    g_array_append_val(values, value);
    return TRUE;
}

static gboolean read_values(GArray *values, const SpecOption *options, const char *what,
                            const char *tail, GError **error)
{
    while (tail != NULL && *tail != '\0') {
        g_autofree char *key = NULL;
        g_autofree char *text = NULL;
        const char *reason;
        if (!take_pair(&tail, &key, &text, &reason)) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: '%s': %s", what, tail, reason);
            return FALSE;
        }
        if (!add_value(values, options, what, key, text, error))
            return FALSE;
    }
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++) {
        if (o->def == NULL && !is_given(values, o)) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: key '%s' must be given (%s)", what,
                        o->key, o->help);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean spec_parse(gpointer config, const SpecOption *options, const char *what, const char *tail,
                    GError **error)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(SpecValue));
    gboolean good = read_values(values, options, what, tail, error);
    for (guint i = 0; i < values->len; i++) {
        SpecValue *value = &g_array_index(values, SpecValue, i);
        if (good)
            spec_value_store(value, config);
        else if (value->option->type == SPEC_STRING)
            g_free(value->as.string);
    }
    return good;
}

static char **string_field(gpointer config, const SpecOption *option)
{
    return (char **)((char *)config + option->offset);
}

void spec_defaults(gpointer config, const SpecOption *options)
{
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++) {
        SpecValue value = {.option = o};
        if (o->def != NULL) {
            gboolean good = spec_value_parse(o, o->def, &value);
            g_assert(good); /* the table's own default */
        }
        if (o->type == SPEC_STRING)
            *string_field(config, o) = NULL; /* the struct comes uninitialised or zeroed */
        spec_value_store(&value, config);
    }
}

void spec_clear(gpointer config, const SpecOption *options)
{
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++)
        if (o->type == SPEC_STRING)
            g_clear_pointer(string_field(config, o), g_free);
}

void spec_describe(const SpecOption *options, GString *out)
{
    for (const SpecOption *o = options; o != NULL && o->key != NULL; o++) {
        g_autofree char *range = spec_range_text(o);
        const char *sorts[] = {"count", "number", "time", "bytes", "yes/no", "text", o->choices};
        g_autofree char *left = g_strdup_printf("%s=%s", o->key, o->def ? o->def : "(required)");
        g_string_append_printf(out, "    %-28s %s%s%s%s: %s\n", left, sorts[o->type],
                               range[0] ? " in " : "", range, "", o->help);
    }
}

/* --- plug-ins --- */

const PluginInfo *plugin_find(const PluginInfo *const *registry, const char *name)
{
    for (; *registry != NULL; registry++)
        if (strcmp((*registry)->name, name) == 0)
            return *registry;
    return NULL;
}

gboolean plugin_choice_parse(PluginChoice *ret, const char *kind, const PluginInfo *const *registry,
                             const char *text, GError **error)
{
    const char *colon = strchr(text, ':');
    g_autofree char *name = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
    const PluginInfo *info = plugin_find(registry, g_strstrip(name));
    if (info == NULL) {
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        for (; *registry != NULL; registry++)
            g_ptr_array_add(names, (gpointer)(*registry)->name);
        unknown(error, text, kind, name, names);
        return FALSE;
    }
    g_autofree char *what = g_strdup_printf("%s %s", kind, name);
    PluginChoice fresh = {.info = info, .config = g_malloc0(info->config_size)};
    spec_defaults(fresh.config, info->options);
    if (!spec_parse(fresh.config, info->options, what, colon ? colon + 1 : NULL, error)) {
        plugin_choice_clear(&fresh);
        return FALSE;
    }
    plugin_choice_clear(ret);
    *ret = fresh;
    return TRUE;
}

void plugin_choice_clear(PluginChoice *choice)
{
    if (choice->info != NULL)
        spec_clear(choice->config, choice->info->options);
    g_clear_pointer(&choice->config, g_free);
    choice->info = NULL;
}

static void append_quoted(GString *out, const char *text)
{
    gsize len = strlen(text);
    gboolean plain = strpbrk(text, ",\"") == NULL;
    if (len > 0)
        plain = plain && !g_ascii_isspace(text[0]) && !g_ascii_isspace(text[len - 1]);
    if (plain) {
        g_string_append(out, text);
        return;
    }
    g_string_append_c(out, '"');
    for (; *text != '\0'; text++)
        g_string_append(out, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    g_string_append_c(out, '"');
}

char *plugin_choice_format(const PluginChoice *choice)
{
    GString *out = g_string_new(choice->info->name);
    char separator = ':';
    for (const SpecOption *o = choice->info->options; o != NULL && o->key != NULL; o++) {
        g_autofree char *text = spec_value_format(o, choice->config);
        if (text == NULL && o->def != NULL && o->def[0] == '\0')
            continue; /* an absent string whose default is absence */
        g_string_append_printf(out, "%c%s=", separator, o->key);
        append_quoted(out, text ? text : "");
        separator = ',';
    }
    return g_string_free(out, FALSE);
}
