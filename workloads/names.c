#include "workloads/names.h"

typedef struct Named {
    gint64 number;
    gint32 turns;
} Named;

struct SessionNames {
    GHashTable *names; /* char * -> Named * */
    gint64 next;
};

SessionNames *session_names_new(void)
{
    SessionNames *self = g_new0(SessionNames, 1);
    self->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return self;
}

void session_names_free(SessionNames *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->names);
    g_free(self);
}

gint64 session_number(SessionNames *self, const char *name, gsize len, gint32 *ret_turn)
{
    g_autofree char *text = g_strndup(name, len);
    Named *named = g_hash_table_lookup(self->names, text);
    if (named == NULL) {
        named = g_new0(Named, 1);
        named->number = self->next++;
        g_hash_table_insert(self->names, g_steal_pointer(&text), named);
    }
    if (ret_turn != NULL)
        *ret_turn = named->turns;
    named->turns++;
    return named->number;
}

gint64 session_fresh(SessionNames *self)
{
    return self->next++;
}
