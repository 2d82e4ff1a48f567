#include "workloads/json_text.h"

#include <math.h>

#include "base/units.h"

void json_text_init(JsonText *self)
{
    *self = (JsonText){.text = g_string_new(NULL), .fresh = TRUE};
}

char *json_text_finish(JsonText *self)
{
    g_string_append_c(self->text, '\n');
    return g_string_free(g_steal_pointer(&self->text), FALSE);
}

static void escape(GString *out, const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, -1);
    g_string_append_c(out, '"');
    for (const char *p = valid; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            g_string_append_printf(out, "\\%c", *p);
        else if ((guchar)*p < 0x20)
            g_string_append_printf(out, "\\u%04x", *p);
        else
            g_string_append_c(out, *p);
    }
    g_string_append_c(out, '"');
}

static void lead(JsonText *self, const char *name)
{
    if (!self->fresh)
        g_string_append_c(self->text, ',');
    if (self->depth > 0) {
        g_string_append_c(self->text, '\n');
        for (guint i = 0; i < self->depth; i++)
            g_string_append(self->text, "  ");
    }
    if (name != NULL) {
        escape(self->text, name);
        g_string_append(self->text, ": ");
    }
    self->fresh = FALSE;
}

void json_text_begin(JsonText *self, const char *name, char open)
{
    lead(self, name);
    g_string_append_c(self->text, open);
    self->depth++;
    self->fresh = TRUE;
}

void json_text_end(JsonText *self, char close)
{
    self->depth--;
    if (!self->fresh) {
        g_string_append_c(self->text, '\n');
        for (guint i = 0; i < self->depth; i++)
            g_string_append(self->text, "  ");
    }
    g_string_append_c(self->text, close);
    self->fresh = FALSE;
}

void json_text_string(JsonText *self, const char *name, const char *value)
{
    lead(self, name);
    if (value != NULL)
        escape(self->text, value);
    else
        g_string_append(self->text, "null");
}

void json_text_int(JsonText *self, const char *name, gint64 value)
{
    lead(self, name);
    g_string_append_printf(self->text, "%" G_GINT64_FORMAT, value);
}

void json_text_real(JsonText *self, const char *name, double value)
{
    lead(self, name);
    g_autofree char *text = !isfinite(value) ? g_strdup("null")
                            : fabs(value) < 1e15 && value == (double)(gint64)value
                                ? g_strdup_printf("%" G_GINT64_FORMAT, (gint64)value)
                                : kv_format_real(value);
    g_string_append(self->text, text);
}

void json_text_raw(JsonText *self, const char *name, const char *value)
{
    lead(self, name);
    g_string_append(self->text, value);
}
