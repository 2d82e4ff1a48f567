/* The one grammar for every plug-in choice: NAME[:key=value,...].
 *
 * Options are data: a table of {key, type, offset, default, range, help} per plug-in parses the
 * text, prints the resolved text (every key, so that a scenario can be run again), and is what
 * `kvreplay list` shows. A plug-in's config is a plain struct of `config_size` bytes; strings in it
 * are owned by it and freed by plugin_config_free().
 *
 * A registry is a NULL-ended array of pointers to structs that begin with a PluginInfo. Adding a
 * plug-in is one new file and one array line.
 *
 * Values may hold ':' and '='; ',' ends a value unless the value is in double quotes, in which ""
 * stands for one quote. Blanks around keys and unquoted values do not count. A key may be given
 * once.
 */
#ifndef KV_BASE_SPEC_H
#define KV_BASE_SPEC_H

#include <glib.h>

typedef enum {
    SPEC_INT,    /* gint64; k/M/G accepted */
    SPEC_REAL,   /* double */
    SPEC_TIME,   /* kv_ns */
    SPEC_BYTES,  /* gint64 */
    SPEC_BOOL,   /* gboolean: yes/no/true/false/on/off/1/0 */
    SPEC_STRING, /* char *, owned */
    SPEC_CHOICE, /* int: index into `choices` */
} SpecType;

typedef struct SpecOption {
    const char *key; /* NULL ends a table */
    SpecType type;
    gsize offset;        /* into the plug-in's config struct */
    const char *def;     /* default as text; NULL = must be given; "" for an absent string (NULL) */
    double min, max;     /* inclusive; both 0 = no limit; times in seconds */
    const char *choices; /* "2025|2026" for SPEC_CHOICE */
    const char *help;
} SpecOption;

typedef struct PluginInfo {
    const char *name;
    const char *summary;       /* one line for `list` */
    const SpecOption *options; /* NULL = takes none */
    gsize config_size;
} PluginInfo;

typedef struct PluginChoice {
    const PluginInfo *info; /* points into the registry: cast to the ops struct */
    gpointer config;        /* config_size bytes, owned */
} PluginChoice;

/* Parses `text` against the registry. `kind` ("scheduler") is for messages. On failure nothing is
 * changed and the error (USAGE) names the text, the key, and what was expected or near. */
gboolean plugin_choice_parse(PluginChoice *ret, const char *kind, const PluginInfo *const *registry,
                             const char *text, GError **error);
void plugin_choice_clear(PluginChoice *choice);
/* "NAME:key=value,..." with every key, in table order; absent strings whose default is absence
 * are left out. Free it. */
char *plugin_choice_format(const PluginChoice *choice);
const PluginInfo *plugin_find(const PluginInfo *const *registry, const char *name);

/* One "key=value,..." tail (NULL = none) into a config that already holds its defaults
 * (spec_defaults). Keys without a default must be among them. On failure nothing is changed. */
gboolean spec_parse(gpointer config, const SpecOption *options, const char *what, const char *tail,
                    GError **error);
void spec_defaults(gpointer config, const SpecOption *options);
void spec_clear(gpointer config, const SpecOption *options);
/* Appends the table as help lines: key, default, unit or range, meaning. */
void spec_describe(const SpecOption *options, GString *out);
/* The name of a NULL-ended list that `text` was likely meant to be; NULL when none is near. */
const char *spec_nearest(const char *text, const char *const *names);

#endif
