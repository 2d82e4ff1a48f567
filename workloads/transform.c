#include "workloads/transform.h"

#include <string.h>

#include "base/error.h"
#include "workloads/transforms/transforms.h"

const PluginInfo *const transforms[] = {
    &transform_scale.info,  &transform_slice.info, &transform_rows.info,     &transform_thin.info,
    &transform_repeat.info, &transform_clamp.info, &transform_resample.info, NULL,
};

struct TransformList {
    GArray *choices; /* PluginChoice */
    TransformArgs args;
    FormatNotes *notes;
};

/* NAME=VALUE is NAME:FIRSTKEY=VALUE. */
static char *full_text(const char *item)
{
    gsize n = strcspn(item, "=:");
    if (item[n] != '=')
        return g_strdup(item);
    g_autofree char *name = g_strndup(item, n);
    const PluginInfo *info = plugin_find(transforms, name);
    const char *key = info != NULL && info->options != NULL ? info->options[0].key : "value";
    return g_strdup_printf("%s:%s=%s", name, key, item + n + 1);
}

static void choice_clear(gpointer choice)
{
    plugin_choice_clear(choice);
}

TransformList *transform_list_new(const char *text, const TransformArgs *args, GError **error)
{
    TransformList *self = g_new0(TransformList, 1);
    self->choices = g_array_new(FALSE, FALSE, sizeof(PluginChoice));
    g_array_set_clear_func(self->choices, choice_clear);
    self->args = *args;
    self->notes = format_notes_new();
    g_auto(GStrv) items = g_strsplit(text != NULL ? text : "", ";", -1);
    for (guint i = 0; items[i] != NULL; i++) {
        if (*g_strstrip(items[i]) == '\0')
            continue;
        g_autofree char *full = full_text(items[i]);
        PluginChoice choice = {0};
        if (!plugin_choice_parse(&choice, "transform", transforms, full, error)) {
            transform_list_free(self);
            return NULL;
        }
        g_array_append_val(self->choices, choice);
    }
    return self;
}

void transform_list_free(TransformList *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->choices);
    format_notes_free(self->notes);
    g_free(self);
}

gboolean transform_list_wrap_first(TransformList *self, guint n, RequestSource **source,
                                   GError **error)
{
    for (guint i = 0; i < n; i++) {
        const PluginChoice *choice = &g_array_index(self->choices, PluginChoice, i);
        const TransformOps *ops = (const TransformOps *)choice->info;
        RequestSource *outer =
            ops->wrap(choice->config, *source, &self->args, i, self->notes, error);
        if (outer == NULL)
            return FALSE;
        *source = outer;
    }
    return TRUE;
}

gboolean transform_list_wrap(TransformList *self, RequestSource **source, GError **error)
{
    if (!transform_list_wrap_first(self, self->choices->len, source, error))
        return FALSE;
    if (self->args.arrivals != NULL) {
        RequestSource *outer = replace_arrivals_new(*source, &self->args, error);
        if (outer == NULL)
            return FALSE;
        *source = outer;
    }
    if (self->args.lengths != NULL) {
        RequestSource *outer = replace_lengths_new(*source, &self->args, error);
        if (outer == NULL)
            return FALSE;
        *source = outer;
    }
    return TRUE;
}

void transform_list_notes(const TransformList *self, GPtrArray *texts)
{
    g_autoptr(GPtrArray) own = g_ptr_array_new_with_free_func(g_free);
    format_notes_list(self->notes, own);
    for (guint i = 0; i < own->len; i++)
        g_ptr_array_add(texts, g_strdup(g_ptr_array_index(own, i)));
}
