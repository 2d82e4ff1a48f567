#include "sim/steps_frames.h"
#include "sim/steps_header.h"
#include "base/error.h"

#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

gboolean steps_frames_fail(const StepsReader *self, GError **error, guint64 offset,
                           const char *what)
{
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: %s at byte %" G_GUINT64_FORMAT ", step %" G_GUINT64_FORMAT
                " (the steps before it are whole)",
                self->path, what, offset, self->next_step);
    return FALSE;
}

/* Reads exactly `size` bytes at `offset`; FALSE without an error when the file is shorter. */
static gboolean read_at(StepsReader *self, guint64 offset, void *data, gsize size)
{
    return fseeko(self->file, (off_t)offset, SEEK_SET) == 0 &&
           fread(data, 1, size, self->file) == size;
}

gboolean steps_frames_read_header(StepsReader *self, GError **error)
{
    guint8 head[STEPS_MAGIC_SIZE + 4] = {0};
    gboolean got = read_at(self, 0, head, sizeof head);
    if (memcmp(head, STEPS_MAGIC, STEPS_MAGIC_SIZE) != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: not a steps file (expected it to begin with \"kvsteps 1\")", self->path);
        return FALSE;
    }
    guint32 size = get_le32(head + STEPS_MAGIC_SIZE);
    g_autofree char *json = NULL;
    guint8 crc[4];
    if (got && size <= HEADER_MAX_BYTES && size <= self->end) {
        json = g_malloc((gsize)size + 1);
        got = read_at(self, sizeof head, json, size) && read_at(self, sizeof head + size, crc, 4);
    } else {
        got = FALSE;
    }
    if (!got || crc32(0, (guint8 *)json, size) != get_le32(crc)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: the header at byte %d is cut or damaged",
                    self->path, STEPS_MAGIC_SIZE);
        return FALSE;
    }
    self->first_frame = self->offset = sizeof head + (guint64)size + 4;
    return steps_header_from_json(&self->header, json, size, self->path, error);
}

void steps_frames_read_index(StepsReader *self)
{
    guint8 trailer[TRAILER_BYTES];
    if (self->end < self->first_frame + TRAILER_BYTES ||
        !read_at(self, self->end - TRAILER_BYTES, trailer, TRAILER_BYTES) ||
        memcmp(trailer + 8, STEPS_TRAILER_MAGIC, 8) != 0)
        return;
    guint64 at = get_le64(trailer);
    if (at < self->first_frame || at > self->end - TRAILER_BYTES)
        return;
    gsize size = (gsize)(self->end - TRAILER_BYTES - at);
    g_autofree guint8 *data = g_malloc(size + 1);
    if (size < 24 || !read_at(self, at, data, size) || memcmp(data, INDEX_MAGIC, 4) != 0)
        return;
    guint32 n = get_le32(data + 4);
    if (size != 8 + 16 * (gsize)n + 16 ||
        crc32(0, data, (uInt)(size - 4)) != get_le32(data + size - 4))
        return;
    for (guint32 i = 0; i < n; i++) {
        const guint8 *p = data + 8 + 16 * (gsize)i;
        FrameEntry e = {get_le64(p), get_le64(p + 8)};
        g_array_append_val(self->index, e);
    }
    self->count = (gint64)get_le64(data + size - 16);
    self->index_slots = get_le32(data + size - 8);
    self->whole = TRUE;
    self->end = at;
}

static void note_frame(StepsReader *self, guint64 first_step)
{
    guint n = self->index->len;
    if (self->whole || (n && g_array_index(self->index, FrameEntry, n - 1).offset >= self->offset))
        return;
    FrameEntry e = {self->offset, first_step};
    g_array_append_val(self->index, e);
}

static gboolean decompress(StepsReader *self, const guint8 *head, GError **error)
{
    guint32 raw_size = get_le32(head + 16), size = get_le32(head + 20);
    if (size > self->stored_cap) {
        self->stored = g_realloc(self->stored, size);
        self->stored_cap = size;
    }
    guint64 offset = self->offset;
    if (!read_at(self, offset + FRAME_HEAD, self->stored, size))
        return steps_frames_fail(self, error, offset, "a frame is cut");
    uLong crc = crc32(0, head, 24);
    if (crc32(crc, self->stored, size) != get_le32(head + 24))
        return steps_frames_fail(self, error, offset, "a frame's checksum is wrong");
    if (raw_size > self->raw_cap) {
        self->raw = g_realloc(self->raw, raw_size);
        self->raw_cap = raw_size;
    }
    gsize got = ZSTD_decompressDCtx(self->zstd, self->raw, raw_size, self->stored, size);
    if (ZSTD_isError(got) || got != raw_size)
        return steps_frames_fail(self, error, offset, "a frame does not decompress");
    return TRUE;
}

int steps_frames_next(StepsReader *self, gboolean any_step, GError **error)
{
    guint8 head[FRAME_HEAD];
    if (self->whole && self->offset >= self->end)
        return 0;
    if (!read_at(self, self->offset, head, FRAME_HEAD)) {
        if (self->growing)
            return 0;
        steps_frames_fail(self, error, self->offset, "the file is cut (no index)");
        return -1;
    }
    guint32 steps = get_le32(head + 4), size = get_le32(head + 20);
    guint64 first = get_le64(head + 8);
    if (memcmp(head, FRAME_MAGIC, 4) != 0 || steps == 0 || size > FRAME_MAX_BYTES ||
        get_le32(head + 16) > FRAME_MAX_BYTES || (!any_step && first != self->next_step)) {
        steps_frames_fail(self, error, self->offset,
                          "a damaged frame, or the index of a damaged file,");
        return -1;
    }
    struct stat st;
    if (fstat(fileno(self->file), &st) == 0 &&
        (guint64)st.st_size < self->offset + FRAME_HEAD + size) {
        if (self->growing)
            return 0;
        steps_frames_fail(self, error, self->offset, "a frame is cut");
        return -1;
    }
    if (!decompress(self, head, error))
        return -1;
    note_frame(self, first);
    self->frame_offset = self->offset;
    self->offset += FRAME_HEAD + (guint64)size;
    self->frame_left = steps;
    self->next_step = first;
    self->in = (VarintReader){self->raw, self->raw + get_le32(head + 16), FALSE};
    return 1;
}

const FrameEntry *steps_frames_find(const StepsReader *self, guint64 index)
{
    const FrameEntry *found = NULL;
    guint lo = 0, hi = self->index->len;
    while (lo < hi) {
        guint mid = lo + (hi - lo) / 2;
        const FrameEntry *e = &g_array_index(self->index, FrameEntry, mid);
        if (e->first_step <= index) {
            found = e;
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return found;
}
