#include "replay/devices.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

static gboolean add(Devices *ret, gint64 ordinal, gint present, const char *text, GError **error)
{
    for (guint i = 0; i < ret->n; i++)
        if (ret->ordinal[i] == ordinal) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--devices %s: device %d is named twice",
                        text, (gint)ordinal);
            return FALSE;
        }
    if (present >= 0 && ordinal >= present) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "--devices %s: no device %d: this machine has %d", text, (gint)ordinal,
                    present);
        return FALSE;
    }
    ret->ordinal[ret->n++] = (gint)ordinal;
    return TRUE;
}

static gboolean parse_list(Devices *ret, const char *text, gint present, GError **error)
{
    g_auto(GStrv) part = g_strsplit(text, ",", -1);
    if (g_strv_length(part) > DEVICES_MAX) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--devices: at most %d", DEVICES_MAX);
        return FALSE;
    }
    for (guint i = 0; i == 0 || part[i] != NULL; i++) {
        gint64 ordinal;
        if (part[i] == NULL || !kv_parse_count(part[i], &ordinal) || ordinal < 0 ||
            ordinal > 1023) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                        "--devices '%s': expected auto, all or device numbers such as 0,1", text);
            return FALSE;
        }
        if (!add(ret, ordinal, present, text, error))
            return FALSE;
    }
    return TRUE;
}

gboolean devices_resolve(Devices *ret, const char *text, const BackendOps *ops, gint one,
                         guint replicas, gint tp, GError **error)
{
    const gint present = ops->devices != NULL ? ops->devices() : -1;
    const gboolean automatic = text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0;
    *ret = (Devices){0};
    if (!automatic && strcmp(text, "all") != 0)
        return parse_list(ret, text, present, error);
    if (automatic && replicas <= 1 && tp <= 1) {
        ret->ordinal[ret->n++] = one;
        return TRUE;
    }
    const gint all = CLAMP(present, 1, DEVICES_MAX); /* none: creating the backend says so */
    const gint wanted = automatic ? (gint)MIN(replicas * (gint64)tp, DEVICES_MAX) : all;
    for (gint i = 0; i < MIN(all, wanted); i++)
        ret->ordinal[ret->n++] = i;
    return TRUE;
}

guint devices_groups(const Devices *self, gint tp)
{
    return MAX(self->n / (guint)MAX(tp, 1), 1);
}

Devices devices_group(const Devices *self, gint tp, guint group)
{
    Devices ret = {0};
    const guint size = MIN((guint)MAX(tp, 1), self->n);
    for (guint i = 0; i < size; i++)
        ret.ordinal[ret.n++] = self->ordinal[group * size + i];
    return ret;
}

char *devices_text(const Devices *self)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < self->n; i++)
        g_string_append_printf(text, "%s%d", i > 0 ? ";" : "", self->ordinal[i]);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
