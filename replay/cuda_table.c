#include "replay/cuda_table.h"

#include <string.h>

#include "base/error.h"
#include "replay/backend.h"

struct CudaTable {
    const TableMemory *memory;
    gint32 *ids;           /* host copy, [slots * stride] */
    guint8 *dirty;         /* [slots * stride] */
    guint32 *held;         /* [slots] pages of the row in the slot */
    gsize slots, stride;   /* stride: entries of `ids` a slot */
    GArray *changed;       /* gint32: where */
    gboolean moved;        /* laid out anew: send all */
    GArray *lens, *offset; /* gint32, by row */
    GArray *keys;          /* gint64, by row */
    guint32 max_length;
    gint32 *device_ids;
    gsize device_words;
    char *staging, *device_step; /* keys, lens, offset, where, what */
    gsize step_bytes;            /* capacity of both */
    gsize rows_room;             /* rows that the arrays in device_step are laid out for */
    gint64 upload_bytes;
    gint copies;
};

CudaTable *cuda_table_new(const TableMemory *memory)
{
    CudaTable *self = g_new0(CudaTable, 1);
    self->memory = memory;
    self->changed = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->lens = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->offset = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->keys = g_array_new(FALSE, FALSE, sizeof(gint64));
    return self;
}

void cuda_table_free(CudaTable *self)
{
    if (self == NULL)
        return;
    g_free(self->ids);
    g_free(self->dirty);
    g_free(self->held);
    g_array_unref(self->changed);
    g_array_unref(self->lens);
    g_array_unref(self->offset);
    g_array_unref(self->keys);
    self->memory->put(self->device_ids);
    self->memory->put(self->device_step);
    self->memory->put_pinned(self->staging);
    g_free(self);
}

/* --- the host's copy --- */

static void lay_out(CudaTable *self, gsize slots, gsize stride)
{
    gint32 *ids = g_new0(gint32, slots * stride);
    guint32 *held = g_new0(guint32, slots);
    for (gsize s = 0; s < self->slots; s++) {
        memcpy(ids + s * stride, self->ids + s * self->stride, sizeof(gint32) * self->held[s]);
        held[s] = self->held[s];
    }
    g_free(self->ids);
    g_free(self->held);
    g_free(self->dirty);
    self->ids = ids;
    self->held = held;
    self->dirty = g_new0(guint8, slots * stride);
    self->slots = slots;
    self->stride = stride;
    self->moved = TRUE;
    g_array_set_size(self->changed, 0);
}

static void make_room(CudaTable *self, guint32 slot, guint32 pages)
{
    gsize slots = MAX(self->slots, 16), stride = MAX(self->stride, 64);
    while (slots <= slot)
        slots *= 2;
    while (stride < pages)
        stride *= 2;
    if (slots != self->slots || stride != self->stride)
        lay_out(self, slots, stride);
}

static gboolean put(CudaTable *self, guint32 slot, guint32 i, guint32 page, gint64 pool_pages,
                    GError **error)
{
    if ((gint64)page >= pool_pages) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "slot %u: page %u of its block table is not below the pool's %" G_GINT64_FORMAT,
                    slot, page, pool_pages);
        return FALSE;
    }
    const gsize at = slot * self->stride + i;
    self->ids[at] = (gint32)page;
    if (!self->moved && !self->dirty[at]) {
        const gint32 where = (gint32)at;
        self->dirty[at] = 1;
        g_array_append_val(self->changed, where);
    }
    return TRUE;
}

static gboolean take_rows(CudaTable *self, const StepRow *rows, guint32 n_rows, gint32 page_size,
                          GError **error)
{
    g_array_set_size(self->lens, 0);
    g_array_set_size(self->offset, 0);
    g_array_set_size(self->keys, 0);
    self->max_length = 0;
    for (guint32 r = 0; r < n_rows; r++) {
        if (rows[r].paused)
            continue;
        const gint32 len = (gint32)rows[r].length, from = (gint32)(rows[r].slot * self->stride);
        const gint64 key = backend_query_key(rows[r].request, rows[r].length);
        if (rows[r].slot >= self->slots ||
            ((gint64)len + page_size - 1) / page_size > (gint64)self->held[rows[r].slot]) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                        "request %" G_GUINT64_FORMAT ": length %d needs more pages than its block "
                        "table holds",
                        rows[r].request, len);
            return FALSE;
        }
        g_array_append_val(self->lens, len);
        g_array_append_val(self->offset, from);
        g_array_append_val(self->keys, key);
        self->max_length = MAX(self->max_length, rows[r].length);
    }
    return TRUE;
}

gboolean cuda_table_step(CudaTable *self, const Step *step, const StepRow *rows, guint32 n_rows,
                         gint64 pool_pages, gint32 page_size, GError **error)
{
    for (guint32 i = 0; i < step->n_joined; i++) {
        const StepJoin *join = &step->joined[i];
        make_room(self, join->slot, join->n_pages);
        for (guint32 p = 0; p < join->n_pages; p++)
            if (!put(self, join->slot, p, join->pages[p], pool_pages, error))
                return FALSE;
        self->held[join->slot] = join->n_pages;
    }
    for (guint32 i = 0; i < step->n_appended; i++) {
        const guint32 slot = step->appended[i].slot;
        make_room(self, slot, 0);
        const guint32 at = self->held[slot];
        make_room(self, slot, at + 1);
        if (!put(self, slot, at, step->appended[i].page, pool_pages, error))
            return FALSE;
        self->held[slot] = at + 1;
    }
    return take_rows(self, rows, n_rows, page_size, error);
}

/* --- to the device --- */

/* Waits for the copies in flight first: the staging buffer is about to be written. */
static gboolean grow(CudaTable *self, gsize bytes, gpointer stream, GError **error)
{
    if (!self->memory->wait(stream, error))
        return FALSE;
    if (bytes <= self->step_bytes)
        return TRUE;
    bytes = MAX(2 * bytes, 1 << 16);
    self->memory->put(self->device_step);
    self->memory->put_pinned(self->staging);
    self->device_step = self->staging = NULL;
    self->step_bytes = 0;
    void *step = NULL, *staging = NULL;
    const gboolean ok =
        self->memory->get(&step, bytes, error) && self->memory->get_pinned(&staging, bytes, error);
    self->device_step = step;
    self->staging = staging;
    if (!ok)
        return FALSE;
    self->step_bytes = bytes;
    return TRUE;
}

static gboolean send_all(CudaTable *self, gpointer stream, GError **error)
{
    const gsize words = self->slots * self->stride;
    if (words > self->device_words) {
        void *ids = NULL;
        self->memory->put(self->device_ids);
        self->device_ids = NULL;
        self->device_words = 0;
        if (!self->memory->get(&ids, words * sizeof(gint32), error))
            return FALSE;
        self->device_ids = ids;
        self->device_words = words;
    }
    if (!self->memory->copy(self->device_ids, self->ids, words * sizeof(gint32), stream, error))
        return FALSE;
    self->upload_bytes += (gint64)(words * sizeof(gint32));
    self->copies++;
    self->moved = FALSE;
    return TRUE;
}

static void stage(CudaTable *self, gsize rows, gsize changed)
{
    gint64 *keys = (gint64 *)(gpointer)self->staging;
    gint32 *lens = (gint32 *)(keys + rows), *offset = lens + rows, *where = offset + rows;
    memcpy(keys, self->keys->data, rows * sizeof(gint64));
    memcpy(lens, self->lens->data, rows * sizeof(gint32));
    memcpy(offset, self->offset->data, rows * sizeof(gint32));
    for (gsize i = 0; i < changed; i++) {
        const gint32 at = g_array_index(self->changed, gint32, i);
        where[i] = at;
        where[changed + i] = self->ids[at];
        self->dirty[at] = 0;
    }
    g_array_set_size(self->changed, 0);
}

gboolean cuda_table_flush(CudaTable *self, void *stream, GError **error)
{
    const gsize rows = self->lens->len;
    const gsize changed = self->moved ? 0 : self->changed->len;
    const gsize bytes = rows * 16 + changed * 8;
    self->upload_bytes = 0;
    self->copies = 0;
    if (!grow(self, bytes, stream, error) || (self->moved && !send_all(self, stream, error)))
        return FALSE;
    self->rows_room = rows;
    if (bytes > 0) {
        stage(self, rows, changed);
        if (!self->memory->copy(self->device_step, self->staging, bytes, stream, error))
            return FALSE;
        self->upload_bytes += (gint64)bytes;
        self->copies++;
    }
    const gint32 *where = cuda_table_offset(self) + rows;
    return changed == 0 || self->memory->scatter(self->device_ids, where, where + changed,
                                                 (gint32)changed, stream, error);
}

/* --- what is there --- */

guint32 cuda_table_rows(const CudaTable *self)
{
    return self->lens->len;
}
guint32 cuda_table_max_length(const CudaTable *self)
{
    return self->max_length;
}
const gint64 *cuda_table_keys(const CudaTable *self)
{
    return (const gint64 *)(gpointer)self->device_step;
}
const gint32 *cuda_table_lens(const CudaTable *self)
{
    return (const gint32 *)(cuda_table_keys(self) + self->rows_room);
}
const gint32 *cuda_table_offset(const CudaTable *self)
{
    return cuda_table_lens(self) + self->rows_room;
}
const gint32 *cuda_table_ids(const CudaTable *self)
{
    return self->device_ids;
}
gint64 cuda_table_ids_room(const CudaTable *self)
{
    return (gint64)self->slots * (gint64)self->stride;
}
const gint32 *cuda_table_host_lens(const CudaTable *self)
{
    return (const gint32 *)(gpointer)self->lens->data;
}
const gint32 *cuda_table_host_offset(const CudaTable *self)
{
    return (const gint32 *)(gpointer)self->offset->data;
}
const gint32 *cuda_table_host_ids(const CudaTable *self)
{
    return self->ids;
}
const gint64 *cuda_table_host_keys(const CudaTable *self)
{
    return (const gint64 *)(gpointer)self->keys->data;
}
gint64 cuda_table_upload_bytes(const CudaTable *self)
{
    return self->upload_bytes;
}
gint cuda_table_copies(const CudaTable *self)
{
    return self->copies;
}
