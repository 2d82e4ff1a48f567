#include "workloads/format.h"

typedef struct Note {
    char *kind, *where; /* where it first happened; NULL */
    guint64 count;
} Note;

struct FormatNotes {
    GArray *notes; /* Note, in order of appearance; few kinds, so a walk is enough */
    kv_ns duration;
};

static void note_clear(gpointer note)
{
    g_free(((Note *)note)->kind);
    g_free(((Note *)note)->where);
}

FormatNotes *format_notes_new(void)
{
    FormatNotes *self = g_new0(FormatNotes, 1);
    self->notes = g_array_new(FALSE, FALSE, sizeof(Note));
    self->duration = KV_NS_NONE;
    g_array_set_clear_func(self->notes, note_clear);
    return self;
}

void format_notes_free(FormatNotes *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->notes);
    g_free(self);
}

static Note *find(const FormatNotes *self, const char *kind)
{
    for (guint i = 0; i < self->notes->len; i++) {
        Note *note = &g_array_index(self->notes, Note, i);
        if (g_str_equal(note->kind, kind))
            return note;
    }
    return NULL;
}

void format_note_count(FormatNotes *self, const char *kind, guint64 count)
{
    if (count == 0)
        return;
    Note *note = find(self, kind);
    if (note != NULL) {
        note->count += count;
        return;
    }
    Note fresh = {.kind = g_strdup(kind), .count = count};
    g_array_append_val(self->notes, fresh);
}

void format_note(FormatNotes *self, const char *kind)
{
    format_note_count(self, kind, 1);
}

void format_note_at(FormatNotes *self, const char *kind, const char *where)
{
    format_note_count(self, kind, 1);
    Note *note = find(self, kind);
    if (note->where == NULL)
        note->where = g_strdup(where);
}

guint64 format_notes_count(const FormatNotes *self, const char *kind)
{
    const Note *note = find(self, kind);
    return note != NULL ? note->count : 0;
}

void format_notes_list(const FormatNotes *self, GPtrArray *texts)
{
    g_ptr_array_set_size(texts, 0);
    for (guint i = 0; i < self->notes->len; i++) {
        const Note *note = &g_array_index(self->notes, Note, i);
        g_autofree char *times = note->count == 1
                                     ? g_strdup("")
                                     : g_strdup_printf("%" G_GUINT64_FORMAT " times", note->count);
        gboolean both = note->where != NULL && times[0] != '\0',
                 any = note->where != NULL || times[0] != '\0';
        g_ptr_array_add(texts,
                        g_strdup_printf("%s%s%s%s%s%s", note->kind, any ? " (" : "", times,
                                        both ? "; first: " : "",
                                        note->where != NULL ? note->where : "", any ? ")" : ""));
    }
}

void format_notes_set_duration(FormatNotes *self, kv_ns duration)
{
    self->duration = duration;
}

kv_ns format_notes_duration(const FormatNotes *self)
{
    return self->duration;
}
