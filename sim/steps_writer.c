#include "sim/steps_file.h"
#include "sim/batch.h"
#include "sim/steps_format.h"
#include "sim/steps_header.h"
#include "sim/varint.h"
#include "base/error.h"
#include "base/outfile.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define FRAME_TARGET_BYTES                                                                         \
    (256u * 1024) /* of step records, at least; 8 key states where larger                          \
                   */
#define FRAME_MAX_STEPS 16384
#define ZSTD_LEVEL 3

struct StepsWriter {
    StepSink sink;
    OutFile *out;
    StepsHeader header;
    gboolean head_written;
    Batch batch;
    StepPredictor prev;
    guint64 next_step;
    guint64 offset; /* bytes written */
    GArray *index;  /* FrameEntry */
    guint8 *raw;    /* the frame in the making */
    gsize raw_size, raw_cap, key_size;
    guint32 frame_steps;
    guint8 *stored;
    gsize stored_cap;
    ZSTD_CCtx *zstd;
};

static guint8 *reserve(StepsWriter *self, gsize numbers)
{
    gsize want = self->raw_size + numbers * VARINT_MAX;
    if (want > self->raw_cap) {
        self->raw_cap = MAX(want, self->raw_cap * 2);
        self->raw = g_realloc(self->raw, self->raw_cap);
    }
    return self->raw + self->raw_size;
}

static void used_to(StepsWriter *self, const guint8 *p)
{
    self->raw_size = (gsize)(p - self->raw);
}

static guint8 *put_signed(guint8 *p, guint64 value, guint64 predicted)
{
    return varint_put(p, zigzag_fold((gint64)(value - predicted)));
}

static gboolean write_bytes(StepsWriter *self, const void *data, gsize size, GError **error)
{
    fwrite(data, 1, size, out_file_stream(self->out));
    self->offset += size;
    return out_file_ok(self->out, error);
}

static gboolean write_head(StepsWriter *self, GError **error)
{
    if (self->head_written)
        return TRUE;
    self->head_written = TRUE;
    g_autofree char *json = steps_header_to_json(&self->header);
    gsize size = strlen(json);
    guint8 number[4];
    put_le32(number, (guint32)size);
    gboolean ok = write_bytes(self, STEPS_MAGIC, STEPS_MAGIC_SIZE, error) &&
                  write_bytes(self, number, 4, error) && write_bytes(self, json, size, error);
    put_le32(number, (guint32)crc32(0, (const guint8 *)json, (uInt)size));
    return ok && write_bytes(self, number, 4, error);
}

static guint8 *put_pages(StepsWriter *self, guint8 *p, const guint32 *pages, guint32 n)
{
    for (guint32 i = 0; i < n; i++) {
        p = put_signed(p, pages[i], self->prev.page);
        self->prev.page = pages[i];
    }
    return p;
}

static guint8 *put_row(StepsWriter *self, const StepJoin *row)
{
    guint8 *p = reserve(self, 4 + (gsize)row->n_pages);
    p = put_signed(p, row->request, self->prev.request);
    self->prev.request = row->request;
    p = varint_put(p, row->slot);
    p = varint_put(p, row->length);
    p = varint_put(p, row->n_pages);
    return put_pages(self, p, row->pages, row->n_pages);
}

static void begin_frame(StepsWriter *self, kv_ns start)
{
    FrameEntry entry = {self->offset, self->next_step};
    g_array_append_val(self->index, entry);
    self->raw_size = 0;
    self->frame_steps = 0;
    kv_ns end = self->next_step ? self->prev.end : start;
    self->prev = (StepPredictor){.end = end};
    guint8 *p = reserve(self, 2);
    p = varint_put(p, zigzag_fold(end));
    p = varint_put(p, self->batch.n_rows);
    used_to(self, p);
    for (guint32 i = 0; i < self->batch.n_rows; i++) {
        guint32 slot = self->batch.order[i];
        const BatchSlot *s = &self->batch.slots[slot];
        StepJoin row = {s->request, slot, batch_length(&self->batch, slot), s->n_pages, s->pages};
        used_to(self, put_row(self, &row));
        p = varint_put(reserve(self, 1), s->paused ? 1 : 0);
        used_to(self, p);
    }
    self->key_size = self->raw_size;
}

static gboolean end_frame(StepsWriter *self, GError **error)
{
    if (self->frame_steps == 0)
        return TRUE;
    gsize bound = ZSTD_compressBound(self->raw_size);
    if (bound + FRAME_HEAD > self->stored_cap) {
        self->stored_cap = bound + FRAME_HEAD;
        self->stored = g_realloc(self->stored, self->stored_cap);
    }
    gsize size =
        ZSTD_compress2(self->zstd, self->stored + FRAME_HEAD, bound, self->raw, self->raw_size);
    if (ZSTD_isError(size) || self->raw_size > FRAME_MAX_BYTES) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "steps file: cannot compress a frame: %s",
                    ZSTD_isError(size) ? ZSTD_getErrorName(size) : "too large");
        return FALSE;
    }
    guint8 *h = self->stored;
    memcpy(h, FRAME_MAGIC, 4);
    put_le32(h + 4, self->frame_steps);
    put_le64(h + 8, self->next_step - self->frame_steps);
    put_le32(h + 16, (guint32)self->raw_size);
    put_le32(h + 20, (guint32)size);
    uLong crc = crc32(0, h, 24);
    put_le32(h + 24, (guint32)crc32(crc, h + FRAME_HEAD, (uInt)size));
    self->frame_steps = 0;
    if (!write_bytes(self, h, FRAME_HEAD + size, error))
        return FALSE;
    fflush(out_file_stream(self->out)); /* readable while being written */
    return out_file_ok(self->out, error);
}

static guint8 *put_slots(guint8 *p, const guint32 *slots, guint32 n)
{
    p = varint_put(p, n);
    guint32 last = 0;
    for (guint32 i = 0; i < n; i++) {
        p = put_signed(p, slots[i], last);
        last = slots[i];
    }
    return p;
}

static guint8 *put_appended(StepsWriter *self, const Step *s)
{
    guint8 *p = varint_put(reserve(self, 1 + 2 * (gsize)s->n_appended), s->n_appended);
    guint32 last = 0;
    for (guint32 i = 0; i < s->n_appended; i++) {
        p = put_signed(p, s->appended[i].slot, last);
        last = s->appended[i].slot;
        p = put_pages(self, p, &s->appended[i].page, 1);
    }
    return p;
}

static guint8 *put_prefill(StepsWriter *self, const Step *s)
{
    guint8 *p = varint_put(reserve(self, 1 + 4 * (gsize)s->n_prefill), s->n_prefill);
    for (guint32 i = 0; i < s->n_prefill; i++) {
        p = put_signed(p, s->prefill[i].request, self->prev.request);
        self->prev.request = s->prefill[i].request;
        p = varint_put(p, s->prefill[i].offset);
        p = varint_put(p, s->prefill[i].tokens);
        p = varint_put(p, s->prefill[i].cached);
    }
    return p;
}

static void put_lists(StepsWriter *self, const Step *s)
{
    guint8 *p = reserve(self, 3 + (gsize)s->n_left + s->n_paused + s->n_resumed);
    if (s->n_left)
        p = put_slots(p, s->left, s->n_left);
    if (s->n_paused)
        p = put_slots(p, s->paused, s->n_paused);
    if (s->n_resumed)
        p = put_slots(p, s->resumed, s->n_resumed);
    used_to(self, p);
    if (s->n_joined) {
        used_to(self, varint_put(reserve(self, 1), s->n_joined));
        for (guint32 i = 0; i < s->n_joined; i++)
            used_to(self, put_row(self, &s->joined[i]));
    }
    if (s->n_appended)
        used_to(self, put_appended(self, s));
    if (s->n_prefill)
        used_to(self, put_prefill(self, s));
}

static void put_step(StepsWriter *self, const Step *s)
{
    StepPredictor *prev = &self->prev;
    gboolean state = s->waiting != prev->waiting ||
                     s->pages_used != prev->pages_used + s->n_appended ||
                     s->tokens_held != prev->tokens_held + s->rows;
    guint flags = (s->start != prev->end ? STEP_GAP : 0) | (state ? STEP_STATE : 0) |
                  (s->n_left ? STEP_LEFT : 0) | (s->n_paused ? STEP_PAUSED : 0) |
                  (s->n_resumed ? STEP_RESUMED : 0) | (s->n_joined ? STEP_JOINED : 0) |
                  (s->n_appended ? STEP_APPENDED : 0) | (s->n_prefill ? STEP_PREFILL : 0);
    guint8 *p = reserve(self, 6);
    *p++ = (guint8)flags;
    if (flags & STEP_GAP)
        p = put_signed(p, (guint64)s->start, (guint64)prev->end);
    p = put_signed(p, (guint64)s->duration, (guint64)prev->duration);
    if (state) {
        p = put_signed(p, s->waiting, prev->waiting);
        p = put_signed(p, s->pages_used, (guint64)prev->pages_used + s->n_appended);
        p = put_signed(p, s->tokens_held, prev->tokens_held + s->rows);
    }
    used_to(self, p);
    put_lists(self, s);
    prev->end = s->start + s->duration;
    prev->duration = s->duration;
    prev->waiting = s->waiting;
    prev->pages_used = s->pages_used;
    prev->tokens_held = s->tokens_held;
}

static gboolean writer_begin(StepSink *sink, guint64 pool_pages, GError **error)
{
    StepsWriter *self = (StepsWriter *)sink;
    self->header.pool_pages = pool_pages;
    return write_head(self, error);
}

static gboolean writer_step(StepSink *sink, const Step *step, GError **error)
{
    StepsWriter *self = (StepsWriter *)sink;
    if (!write_head(self, error))
        return FALSE;
    if (self->frame_steps == 0)
        begin_frame(self, step->start);
    put_step(self, step);
    const char *problem = batch_apply(&self->batch, step);
    g_assert_cmpstr(problem, ==, NULL);
    g_assert_cmpuint(self->batch.rows, ==, step->rows);
    g_assert_cmpuint((guint64)self->batch.sum_length, ==, step->sum_length);
    self->next_step++;
    self->frame_steps++;
    gsize records = self->raw_size - self->key_size;
    if (self->frame_steps == FRAME_MAX_STEPS ||
        (records >= FRAME_TARGET_BYTES && records >= 8 * self->key_size))
        return end_frame(self, error);
    return TRUE;
}

StepsWriter *steps_writer_new(const char *path, const StepsHeader *header, GError **error)
{
    OutFile *out = out_file_new(path, error);
    if (out == NULL)
        return NULL;
    StepsWriter *self = g_new0(StepsWriter, 1);
    self->sink.begin = writer_begin;
    self->sink.step = writer_step;
    self->out = out;
    steps_header_copy(&self->header, header);
    batch_init(&self->batch);
    self->index = g_array_new(FALSE, FALSE, sizeof(FrameEntry));
    self->zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(self->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(self->zstd, ZSTD_c_checksumFlag, 1);
    return self;
}

StepSink *steps_writer_sink(StepsWriter *self)
{
    return &self->sink;
}

static gboolean write_index(StepsWriter *self, GError **error)
{
    guint32 n = self->index->len;
    gsize size = 8 + 16 * (gsize)n + 12 + 4 + TRAILER_BYTES;
    g_autofree guint8 *data = g_malloc(size);
    guint8 *p = data;
    memcpy(p, INDEX_MAGIC, 4);
    put_le32(p + 4, n);
    p += 8;
    for (guint32 i = 0; i < n; i++, p += 16) {
        const FrameEntry *e = &g_array_index(self->index, FrameEntry, i);
        put_le64(p, e->offset);
        put_le64(p + 8, e->first_step);
    }
    put_le64(p, self->next_step);
    put_le32(p + 8, self->batch.slots_seen);
    put_le32(p + 12, (guint32)crc32(0, data, (uInt)(p + 12 - data)));
    put_le64(p + 16, self->offset);
    memcpy(p + 24, STEPS_TRAILER_MAGIC, 8);
    return write_bytes(self, data, size, error);
}

gboolean steps_writer_commit(StepsWriter *self, GError **error)
{
    return write_head(self, error) && end_frame(self, error) && write_index(self, error) &&
           out_file_commit(self->out, error);
}

void steps_writer_keep(StepsWriter *self)
{
    if (write_head(self, NULL))
        end_frame(self, NULL);
    out_file_keep(self->out);
}

void steps_writer_free(StepsWriter *self)
{
    if (self == NULL)
        return;
    out_file_free(self->out);
    steps_header_clear(&self->header);
    batch_clear(&self->batch);
    g_array_unref(self->index);
    g_free(self->raw);
    g_free(self->stored);
    ZSTD_freeCCtx(self->zstd);
    g_free(self);
}
