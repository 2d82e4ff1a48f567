#include "cli/scenario.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/scenario_keys.h"

#define MAX_KEYS 128

typedef enum { FROM_DEFAULT, FROM_FILE, FROM_FLAG } ValueOrigin;

struct Scenario {
    char *values[MAX_KEYS];
    ValueOrigin origin[MAX_KEYS];
};

static const struct {
    ScenarioGroup group;
    const char *name, *title;
} group_names[] = {
    {SCENARIO_WORKLOAD, "workload", "Workload options:"},
    {SCENARIO_MODEL, "model", "Model options:"},
    {SCENARIO_ENGINE, "engine", "Engine options:"},
    {SCENARIO_REPLAY, "replay", "Replay options:"},
    {SCENARIO_OUTPUT, "output", "Output options:"},
};

static int key_index(const char *key)
{
    for (int i = 0; scenario_keys[i].key != NULL; i++)
        if (strcmp(scenario_keys[i].key, key) == 0)
            return i;
    return -1;
}

Scenario *scenario_new(void)
{
    Scenario *self = g_new0(Scenario, 1);
    for (int i = 0; scenario_keys[i].key != NULL; i++) {
        g_assert(i < MAX_KEYS);
        self->values[i] = g_strdup(scenario_keys[i].def);
    }
    return self;
}

void scenario_free(Scenario *self)
{
    if (self == NULL)
        return;
    for (int i = 0; i < MAX_KEYS; i++)
        g_free(self->values[i]);
    g_free(self);
}

static void set_value(Scenario *self, int i, const char *value, ValueOrigin origin)
{
    if (origin < self->origin[i])
        return;
    char *copy = g_strdup(value); /* `value` may be the old one */
    g_free(self->values[i]);
    self->values[i] = copy;
    self->origin[i] = origin;
}

/* `text` with key=value replaced or added in its option list. */
static char *spec_text_set(const char *text, const char *key, const char *value)
{
    const char *colon = strchr(text, ':');
    GString *out = g_string_new_len(text, colon != NULL ? colon - text : (gssize)strlen(text));
    char separator = ':';
    g_auto(GStrv) parts = g_strsplit(colon != NULL ? colon + 1 : "", ",", -1);
    gsize key_len = strlen(key);
    for (char **p = parts; *p != NULL; p++) {
        if (**p == '\0' || (strncmp(*p, key, key_len) == 0 && (*p)[key_len] == '='))
            continue;
        g_string_append_printf(out, "%c%s", separator, *p);
        separator = ',';
    }
    g_string_append_printf(out, "%c%s=%s", separator, key, value);
    return g_string_free(out, FALSE);
}

static gboolean apply_alias(Scenario *self, const ScenarioAlias *alias, const char *value,
                            GError **error)
{
    gint64 number;
    if (!kv_parse_count(value, &number)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--%s: '%s' is not a whole number",
                    alias->alias, value);
        return FALSE;
    }
    int i = key_index(alias->key);
    g_autofree char *shifted = g_strdup_printf("%" G_GINT64_FORMAT, number + alias->shift);
    g_autofree char *text =
        alias->set != NULL ? spec_text_set(self->values[i], alias->set, shifted) : NULL;
    set_value(self, i, text != NULL ? text : shifted, FROM_FLAG);
    return TRUE;
}

static gboolean on_option(const char *option, const char *value, gpointer data, GError **error)
{
    Scenario *self = data;
    const char *name = option + 2; /* long options only */
    for (const ScenarioAlias *a = scenario_aliases; a->alias != NULL; a++)
        if (strcmp(a->alias, name) == 0)
            return apply_alias(self, a, value, error);
    int i = key_index(name);
    if (i >= 0) {
        set_value(self, i, value != NULL ? value : "yes", FROM_FLAG);
        return TRUE;
    }
    g_assert(g_str_has_prefix(name, "no-"));
    set_value(self, key_index(name + 3), "no", FROM_FLAG);
    return TRUE;
}

static void add_entry(GArray *entries, const char *name, int flags, const char *help,
                      const char *arg)
{
    GOptionEntry e = {g_intern_string(name),
                      0,
                      flags,
                      G_OPTION_ARG_CALLBACK,
                      (gpointer)(GOptionArgFunc)on_option,
                      help,
                      arg};
    g_array_append_val(entries, e);
}

static void add_group_entries(GArray *entries, ScenarioGroup group)
{
    for (int i = 0; scenario_keys[i].key != NULL; i++) {
        const ScenarioKey *k = &scenario_keys[i];
        if (k->group != group)
            continue;
        gboolean flag = k->type == KEY_FLAG;
        gboolean on_by_default = flag && strcmp(k->def, "yes") == 0;
        g_autofree char *help =
            flag ? g_strdup(k->help)
                 : g_strdup_printf("%s%s%s%s", k->help, *k->def ? " (default " : "", k->def,
                                   *k->def ? ")" : "");
        g_autofree char *no = g_strdup_printf("no-%s", k->key);
        g_autofree char *no_help =
            on_by_default ? g_strdup_printf("do not: %s", k->help) : g_strdup(k->help);
        add_entry(entries, k->key,
                  (flag ? G_OPTION_FLAG_OPTIONAL_ARG : 0) |
                      (on_by_default ? G_OPTION_FLAG_HIDDEN : 0),
                  g_intern_string(help), k->arg);
        if (flag)
            add_entry(entries, no,
                      G_OPTION_FLAG_NO_ARG | (on_by_default ? 0 : G_OPTION_FLAG_HIDDEN),
                      g_intern_string(no_help), NULL);
    }
    for (const ScenarioAlias *a = scenario_aliases; a->alias != NULL; a++)
        if (scenario_keys[key_index(a->key)].group == group)
            add_entry(entries, a->alias, 0, a->help, "N");
}

void scenario_add_options(Scenario *self, GOptionContext *context, ScenarioGroup groups)
{
    for (gsize g = 0; g < G_N_ELEMENTS(group_names); g++) {
        if (!(groups & group_names[g].group))
            continue;
        GOptionGroup *group =
            g_option_group_new(group_names[g].name, group_names[g].title, "", self, NULL);
        g_autoptr(GArray) entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
        add_group_entries(entries, group_names[g].group);
        g_option_group_add_entries(group, (GOptionEntry *)(gpointer)entries->data);
        g_option_context_add_group(context, group);
    }
}

/* Line of `key` in [group], of [group] itself where key is NULL; 0 = not found. */
static guint find_line(const char *text, const char *group, const char *key)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gboolean inside = FALSE;
    for (guint i = 0; lines[i] != NULL; i++) {
        char *line = g_strstrip(lines[i]);
        if (*line == '[') {
            char *end = strchr(line, ']');
            inside = end != NULL && (gsize)(end - line - 1) == strlen(group) &&
                     strncmp(line + 1, group, strlen(group)) == 0;
            if (inside && key == NULL)
                return i + 1;
        } else if (inside && key != NULL && g_str_has_prefix(line, key)) {
            const char *p = line + strlen(key);
            while (*p == ' ' || *p == '\t')
                p++;
            if (*p == '=')
                return i + 1;
        }
    }
    return 0;
}

static gboolean load_group(Scenario *self, GKeyFile *file, const char *path, const char *text,
                           const char *group, GError **error)
{
    ScenarioGroup bit = 0;
    for (gsize g = 0; g < G_N_ELEMENTS(group_names); g++)
        if (strcmp(group_names[g].name, group) == 0)
            bit = group_names[g].group;
    if (bit == 0) {
        g_set_error(
            error, KV_ERROR, KV_ERROR_USAGE,
            "%s:%u: unknown group [%s], expected [workload] [model] [engine] [replay] [output]",
            path, find_line(text, group, NULL), group);
        return FALSE;
    }
    g_auto(GStrv) keys = g_key_file_get_keys(file, group, NULL, error);
    if (keys == NULL)
        return FALSE;
    for (char **k = keys; *k != NULL; k++) {
        int i = key_index(*k);
        if (i < 0 || scenario_keys[i].group != bit) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s:%u: unknown key '%s' in [%s]", path,
                        find_line(text, group, *k), *k, group);
            return FALSE;
        }
        g_autofree char *value = g_key_file_get_string(file, group, *k, error);
        if (value == NULL)
            return FALSE;
        set_value(self, i, value, FROM_FILE);
    }
    return TRUE;
}

/* GKeyFile names no lines and lets keys come twice: looked at before it. */
static gboolean check_lines(const char *name, const char *text, gsize len, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *group = g_strdup("");
    g_autofree char *copy = g_strndup(text, len);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        const char *wrong = NULL;
        char *line = lines[i];
        gboolean utf8 = g_utf8_validate(line, -1, NULL);
        g_strstrip(line);
        char *equals = strchr(line, '=');
        if (!utf8)
            wrong = "not UTF-8";
        else if (*line == '[' && g_str_has_suffix(line, "]")) {
            g_free(group);
            group = g_strdup(line);
        } else if (*line != '\0' && *line != '#' && (equals == NULL || equals == line))
            wrong = "expected [group], KEY=VALUE or # comment";
        else if (*line != '\0' && *line != '#') {
            char *key = g_strdup_printf("%s%.*s", group, (int)(equals - line), line);
            if (!g_hash_table_add(seen, g_strchomp(key)))
                wrong = "this key is given twice";
        }
        if (wrong != NULL) {
            g_autofree char *shown = g_utf8_make_valid(line, MIN((gssize)strlen(line), 60));
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s:%u: \"%s\": %s", name, i + 1, shown,
                        wrong);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean scenario_load_text(Scenario *self, const char *name, const char *text, gsize len,
                            GError **error)
{
    g_autoptr(GError) local = NULL;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3, len -= 3;
    if (!check_lines(name, text, len, error))
        return FALSE;
    g_autoptr(GKeyFile) file = g_key_file_new();
    if (!g_key_file_load_from_data(file, text, len, G_KEY_FILE_NONE, &local)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: not a scenario file: %s", name,
                    local->message);
        return FALSE;
    }
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    for (char **g = groups; *g != NULL; g++)
        if (!load_group(self, file, name, text, *g, error))
            return FALSE;
    return TRUE;
}

gboolean scenario_load(Scenario *self, const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize len;
    g_autoptr(GError) local = NULL;
    if (!g_file_get_contents(path, &text, &len, &local)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s", local->message);
        return FALSE;
    }
    return scenario_load_text(self, path, text, len, error);
}

const char *scenario_get(const Scenario *self, const char *key)
{
    int i = key_index(key);
    g_assert(i >= 0);
    return *self->values[i] != '\0' ? self->values[i] : NULL;
}

gboolean scenario_get_flag(const Scenario *self, const char *key)
{
    const char *v = scenario_get(self, key);
    return v != NULL && (strcmp(v, "yes") == 0 || strcmp(v, "true") == 0 || strcmp(v, "on") == 0 ||
                         strcmp(v, "1") == 0);
}

gboolean scenario_get_int(const Scenario *self, const char *key, gint64 min, gint64 max,
                          gint64 *ret, GError **error)
{
    const char *v = scenario_get(self, key);
    gint64 n;
    if (v == NULL || !kv_parse_count(v, &n) || n < min || n > max) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "%s: '%s' is not a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                    key, v != NULL ? v : "", min, max);
        return FALSE;
    }
    *ret = n;
    return TRUE;
}

void scenario_set(Scenario *self, const char *key, const char *value)
{
    int i = key_index(key);
    g_assert(i >= 0);
    set_value(self, i, value, FROM_FLAG);
}

gboolean scenario_set_inside(Scenario *self, const char *key, const char *option, const char *value,
                             GError **error)
{
    const char *text = scenario_get(self, key);
    if (text == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s.%s: --%s is not given", key, option, key);
        return FALSE;
    }
    g_autofree char *changed = spec_text_set(text, option, value);
    scenario_set(self, key, changed);
    return TRUE;
}

Scenario *scenario_copy(const Scenario *self)
{
    Scenario *copy = g_new0(Scenario, 1);
    for (int i = 0; i < MAX_KEYS; i++) {
        copy->values[i] = g_strdup(self->values[i]);
        copy->origin[i] = self->origin[i];
    }
    return copy;
}

gboolean scenario_is_given(const Scenario *self, const char *key)
{
    int i = key_index(key);
    g_assert(i >= 0);
    return self->origin[i] != FROM_DEFAULT;
}

/* A plug-in text with every key; the text itself where it does not parse (reported elsewhere). */
static char *resolved(const ScenarioKey *k, const char *value)
{
    if (k->type == KEY_PLUGIN && *value != '\0') {
        PluginChoice choice = {0};
        if (plugin_choice_parse(&choice, k->kind, k->registry, value, NULL)) {
            char *text = plugin_choice_format(&choice);
            plugin_choice_clear(&choice);
            return text;
        }
    }
    return g_strdup(value);
}

char *scenario_to_ini(const Scenario *self, ScenarioGroup groups)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    for (int i = 0; scenario_keys[i].key != NULL; i++) {
        const ScenarioKey *k = &scenario_keys[i];
        for (gsize g = 0; g < G_N_ELEMENTS(group_names); g++) {
            if (!(groups & k->group) || k->group != group_names[g].group)
                continue;
            g_autofree char *text = resolved(k, self->values[i]);
            g_key_file_set_string(file, group_names[g].name, k->key, text);
        }
    }
    return g_key_file_to_data(file, NULL, NULL);
}

const char *scenario_key(guint i, ScenarioGroup *ret_group, const char **ret_help)
{
    for (guint j = 0; scenario_keys[j].key != NULL; j++) {
        if (j == i) {
            *ret_group = scenario_keys[j].group;
            *ret_help = scenario_keys[j].help;
            return scenario_keys[j].key;
        }
    }
    return NULL;
}
