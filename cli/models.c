#include "cli/models.h"

#include <string.h>

#include "base/error.h"

const ModelShape model_shapes[] = {
    {"llama-3.1-8b", 32, 32, 8, 128},
    {"llama-3.1-70b", 80, 64, 8, 128},
    {"llama-3.2-1b", 16, 32, 8, 64},
    {NULL, 0, 0, 0, 0},
};

gboolean model_shape_find(const char *name, ModelShape *ret, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (const ModelShape *m = model_shapes; m->name != NULL; m++) {
        if (g_ascii_strcasecmp(m->name, name) == 0) {
            *ret = *m;
            return TRUE;
        }
        g_string_append_printf(known, " %s", m->name);
    }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "model: unknown model '%s', known:%s", name,
                known->str);
    return FALSE;
}
