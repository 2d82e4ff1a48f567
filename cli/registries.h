/* Every registry of the program, by the name that `list` uses. */
#ifndef KV_CLI_REGISTRIES_H
#define KV_CLI_REGISTRIES_H

#include "base/spec.h"

typedef struct Registry {
    const char *kind;
    const PluginInfo *const *plugins; /* NULL-ended */
    const char *summary;
} Registry;

extern const Registry registries[]; /* ends with kind NULL */

#endif
