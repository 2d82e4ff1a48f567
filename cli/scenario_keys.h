/* The table of scenario keys: data for cli/scenario.c, `--help`, completion and the man pages. */
#ifndef KV_CLI_SCENARIO_KEYS_H
#define KV_CLI_SCENARIO_KEYS_H

#include "base/spec.h"
#include "cli/scenario.h"

typedef enum {
    KEY_TEXT,
    KEY_COUNT, /* k, M accepted */
    KEY_TIME,
    KEY_FLAG,   /* yes/no; --key and --no-key */
    KEY_PLUGIN, /* NAME[:key=value,...] of `registry` */
} KeyType;

typedef struct ScenarioKey {
    ScenarioGroup group;
    const char *key;
    KeyType type;
    const char *def; /* "" = absent */
    const char *arg; /* for --help */
    const char *help;
    const char *kind; /* KEY_PLUGIN: "scheduler" */
    const PluginInfo *const *registry;
} ScenarioKey;

extern const ScenarioKey scenario_keys[]; /* ends with key NULL */

/* Names that other tools use, turned into ours: vLLM's flags. `set` names a key inside the plug-in
 * text of `key` (NULL: the whole value); `shift` is added to a number. */
typedef struct ScenarioAlias {
    const char *alias;
    const char *key;
    const char *set;
    int shift;
    const char *help;
} ScenarioAlias;

extern const ScenarioAlias scenario_aliases[]; /* ends with alias NULL */

#endif
