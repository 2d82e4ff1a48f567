/* What block tables need of a device: memory, pinned memory, copies to it and a scatter, all queued
 * on a stream; waiting. `table_memory_cuda` is a GPU's; tests have one of host memory that counts
 * and fails as they like. Errors: MACHINE.
 */
#ifndef KV_REPLAY_TABLE_MEMORY_H
#define KV_REPLAY_TABLE_MEMORY_H

#include <glib.h>

typedef struct TableMemory {
    gboolean (*get)(void **ret, gsize bytes, GError **error);
    void (*put)(void *memory); /* NULL is fine */
    gboolean (*get_pinned)(void **ret, gsize bytes, GError **error);
    void (*put_pinned)(void *memory);
    gboolean (*copy)(void *to, const void *from, gsize bytes, void *stream, GError **error);
    /* table[where[i]] = what[i], i < n; all on the device. */
    gboolean (*scatter)(gint32 *table, const gint32 *where, const gint32 *what, gint32 n,
                        void *stream, GError **error);
    gboolean (*wait)(void *stream, GError **error);
} TableMemory;

extern const TableMemory table_memory_cuda;

#endif
