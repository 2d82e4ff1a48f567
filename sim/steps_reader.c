#include "sim/steps_file.h"
#include "sim/batch.h"
#include "sim/steps_format.h"
#include "sim/steps_header.h"
#include "sim/varint.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

struct StepsReader {
    FILE *file;
    char *path;
    StepsHeader header;
    gboolean whole;      /* has an index: not cut, not in the making */
    gboolean growing;    /* a .part: it may end anywhere */
    guint64 end;         /* offset at which frames end (the index), or the size of the file */
    guint64 first_frame; /* offset */
    GArray *index;       /* FrameEntry: from the index, or of the frames met so far */
    gint64 count;
    guint32 index_slots;

    guint64 offset; /* of the next frame */
    guint8 *stored, *raw;
    gsize stored_cap, raw_cap;
    ZSTD_DCtx *zstd;
    guint64 frame_offset; /* of the frame in hand */
    guint32 frame_left;   /* steps of it not yet read */
    VarintReader in;

    Batch batch;
    StepPredictor prev;
    guint64 next_step;
    gboolean whole_batch; /* give the next step's whole batch as joined */
    Step step;
    GArray *left, *paused, *resumed, *joined, *appended, *prefill, *pages, *rows;
};

static gboolean fail(StepsReader *self, GError **error, guint64 offset, const char *what)
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

static gboolean read_header(StepsReader *self, GError **error)
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

/* Takes the index where the file has a sound one. */
static void read_index(StepsReader *self)
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

StepsReader *steps_reader_open(const char *path, GError **error)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0) {
        kv_set_errno(error, KV_ERROR_INPUT, errno, "%s", path);
        if (file)
            fclose(file);
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: not a regular file", path);
        fclose(file);
        return NULL;
    }
    StepsReader *self = g_new0(StepsReader, 1);
    self->file = file;
    self->path = g_strdup(path);
    self->growing = g_str_has_suffix(path, ".part");
    self->end = (guint64)st.st_size;
    self->count = -1;
    self->index = g_array_new(FALSE, FALSE, sizeof(FrameEntry));
    self->zstd = ZSTD_createDCtx();
    batch_init(&self->batch);
    self->left = g_array_new(FALSE, FALSE, sizeof(guint32));
    self->paused = g_array_new(FALSE, FALSE, sizeof(guint32));
    self->resumed = g_array_new(FALSE, FALSE, sizeof(guint32));
    self->joined = g_array_new(FALSE, FALSE, sizeof(StepJoin));
    self->appended = g_array_new(FALSE, FALSE, sizeof(StepAppend));
    self->prefill = g_array_new(FALSE, FALSE, sizeof(StepPrefill));
    self->pages = g_array_new(FALSE, FALSE, sizeof(guint32));
    self->rows = g_array_new(FALSE, FALSE, sizeof(StepRow));
    if (!read_header(self, error)) {
        steps_reader_free(self);
        return NULL;
    }
    read_index(self);
    return self;
}

void steps_reader_free(StepsReader *self)
{
    if (self == NULL)
        return;
    fclose(self->file);
    g_free(self->path);
    steps_header_clear(&self->header);
    GArray *const arrays[] = {self->index,   self->left,   self->paused,
                              self->resumed, self->joined, self->appended,
                              self->prefill, self->pages,  self->rows};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_free(self->stored);
    g_free(self->raw);
    ZSTD_freeDCtx(self->zstd);
    batch_clear(&self->batch);
    g_free(self);
}

const StepsHeader *steps_reader_header(const StepsReader *self)
{
    return &self->header;
}

gint64 steps_reader_count(const StepsReader *self)
{
    return self->count;
}

guint32 steps_reader_max_slots(const StepsReader *self)
{
    return MAX(self->index_slots, self->batch.slots_seen);
}

static guint64 get_signed(VarintReader *in, guint64 predicted)
{
    return predicted + (guint64)zigzag_unfold(varint_get(in));
}

/* A count of things that take at least `bytes` each: more than what is left is damage. */
static guint32 get_count(VarintReader *in, gsize bytes)
{
    guint64 n = varint_get(in);
    if (n > (gsize)(in->end - in->p) / bytes)
        in->bad = TRUE;
    return in->bad ? 0 : (guint32)n;
}

static guint32 get_page(StepsReader *self)
{
    guint32 page = (guint32)get_signed(&self->in, self->prev.page);
    if (page >= self->header.pool_pages)
        self->in.bad = TRUE;
    self->prev.page = page;
    return page;
}

/* The pages go to the end of self->pages; `pages` is set once that array no longer moves. */
static StepJoin get_row(StepsReader *self)
{
    VarintReader *in = &self->in;
    StepJoin row = {0};
    row.request = self->prev.request = get_signed(in, self->prev.request);
    row.slot = (guint32)varint_get(in);
    row.length = (guint32)varint_get(in);
    row.n_pages = get_count(in, 1);
    for (guint32 i = 0; i < row.n_pages && !in->bad; i++) {
        guint32 page = get_page(self);
        g_array_append_val(self->pages, page);
    }
    return row;
}

static const char *read_key_state(StepsReader *self, gboolean restore)
{
    VarintReader *in = &self->in;
    kv_ns end = zigzag_unfold(varint_get(in));
    self->prev = (StepPredictor){.end = end};
    guint32 n = get_count(in, 5);
    if (restore)
        batch_empty(&self->batch);
    for (guint32 i = 0; i < n && !in->bad; i++) {
        g_array_set_size(self->pages, 0);
        StepJoin row = get_row(self);
        gboolean paused = varint_get(in) != 0;
        row.pages = (const guint32 *)(gpointer)self->pages->data;
        const char *problem =
            restore && !in->bad ? batch_restore(&self->batch, &row, paused) : NULL;
        if (problem)
            return problem;
    }
    return NULL;
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
        return fail(self, error, offset, "a frame is cut");
    uLong crc = crc32(0, head, 24);
    if (crc32(crc, self->stored, size) != get_le32(head + 24))
        return fail(self, error, offset, "a frame's checksum is wrong");
    if (raw_size > self->raw_cap) {
        self->raw = g_realloc(self->raw, raw_size);
        self->raw_cap = raw_size;
    }
    gsize got = ZSTD_decompressDCtx(self->zstd, self->raw, raw_size, self->stored, size);
    if (ZSTD_isError(got) || got != raw_size)
        return fail(self, error, offset, "a frame does not decompress");
    return TRUE;
}

/* 1 = a frame is in hand, 0 = no more, -1 = error. */
static int next_frame(StepsReader *self, gboolean restore, GError **error)
{
    guint8 head[FRAME_HEAD];
    if (self->whole && self->offset >= self->end)
        return 0;
    if (!read_at(self, self->offset, head, FRAME_HEAD)) {
        if (self->growing)
            return 0;
        fail(self, error, self->offset, "the file is cut (no index)");
        return -1;
    }
    guint32 steps = get_le32(head + 4), size = get_le32(head + 20);
    guint64 first = get_le64(head + 8);
    if (memcmp(head, FRAME_MAGIC, 4) != 0 || steps == 0 || size > FRAME_MAX_BYTES ||
        get_le32(head + 16) > FRAME_MAX_BYTES || (!restore && first != self->next_step)) {
        fail(self, error, self->offset, "a damaged frame, or the index of a damaged file,");
        return -1;
    }
    struct stat st;
    if (fstat(fileno(self->file), &st) == 0 &&
        (guint64)st.st_size < self->offset + FRAME_HEAD + size) {
        if (self->growing)
            return 0;
        fail(self, error, self->offset, "a frame is cut");
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
    const char *problem = read_key_state(self, restore);
    if (problem || self->in.bad) {
        fail(self, error, self->frame_offset, problem ? problem : "a damaged key state");
        return -1;
    }
    return 1;
}

static void get_slots(VarintReader *in, GArray *slots)
{
    guint32 n = get_count(in, 1);
    g_array_set_size(slots, n);
    guint64 last = 0;
    for (guint32 i = 0; i < n; i++) {
        last = get_signed(in, last);
        g_array_index(slots, guint32, i) = (guint32)last;
    }
}

static void get_joined(StepsReader *self)
{
    guint32 n = get_count(&self->in, 4);
    for (guint32 i = 0; i < n && !self->in.bad; i++) {
        StepJoin row = get_row(self);
        g_array_append_val(self->joined, row);
    }
    const guint32 *pages = (const guint32 *)(gpointer)self->pages->data;
    for (guint32 i = 0; i < self->joined->len; i++) {
        StepJoin *row = &g_array_index(self->joined, StepJoin, i);
        row->pages = pages;
        pages += row->n_pages;
    }
}

static void get_appended(StepsReader *self)
{
    guint32 n = get_count(&self->in, 2);
    guint64 slot = 0;
    for (guint32 i = 0; i < n && !self->in.bad; i++) {
        slot = get_signed(&self->in, slot);
        StepAppend a = {(guint32)slot, get_page(self)};
        g_array_append_val(self->appended, a);
    }
}

static void get_prefill(StepsReader *self)
{
    VarintReader *in = &self->in;
    guint32 n = get_count(in, 4);
    for (guint32 i = 0; i < n && !in->bad; i++) {
        StepPrefill p = {0};
        p.request = self->prev.request = get_signed(in, self->prev.request);
        p.offset = (guint32)varint_get(in);
        p.tokens = (guint32)varint_get(in);
        p.cached = (guint32)varint_get(in);
        g_array_append_val(self->prefill, p);
    }
}

static void get_lists(StepsReader *self, guint flags)
{
    GArray *const arrays[] = {self->left,     self->paused,  self->resumed, self->joined,
                              self->appended, self->prefill, self->pages};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_set_size(arrays[i], 0);
    if (flags & STEP_LEFT)
        get_slots(&self->in, self->left);
    if (flags & STEP_PAUSED)
        get_slots(&self->in, self->paused);
    if (flags & STEP_RESUMED)
        get_slots(&self->in, self->resumed);
    if (flags & STEP_JOINED)
        get_joined(self);
    if (flags & STEP_APPENDED)
        get_appended(self);
    if (flags & STEP_PREFILL)
        get_prefill(self);
}

static void point_step_at_lists(StepsReader *self)
{
    Step *s = &self->step;
    s->n_left = self->left->len;
    s->left = (const guint32 *)(gpointer)self->left->data;
    s->n_paused = self->paused->len;
    s->paused = (const guint32 *)(gpointer)self->paused->data;
    s->n_resumed = self->resumed->len;
    s->resumed = (const guint32 *)(gpointer)self->resumed->data;
    s->n_joined = self->joined->len;
    s->joined = (const StepJoin *)(gpointer)self->joined->data;
    s->n_appended = self->appended->len;
    s->appended = (const StepAppend *)(gpointer)self->appended->data;
    s->n_prefill = self->prefill->len;
    s->prefill = (const StepPrefill *)(gpointer)self->prefill->data;
}

/* Reads one record into self->step and brings the batch forward. NULL, or what is wrong. */
static const char *read_step(StepsReader *self)
{
    VarintReader *in = &self->in;
    StepPredictor *prev = &self->prev;
    Step *s = &self->step;
    if (in->p == in->end)
        return "a frame holds fewer steps than it says";
    guint flags = *in->p++;
    *s = (Step){.index = self->next_step, .start = prev->end};
    if (flags & STEP_GAP)
        s->start = (kv_ns)get_signed(in, (guint64)prev->end);
    s->duration = (kv_ns)get_signed(in, (guint64)prev->duration);
    gint64 waiting = 0, pages = 0, tokens = 0;
    if (flags & STEP_STATE) {
        waiting = zigzag_unfold(varint_get(in));
        pages = zigzag_unfold(varint_get(in));
        tokens = zigzag_unfold(varint_get(in));
    }
    get_lists(self, flags);
    if (in->bad)
        return "a damaged step record";
    point_step_at_lists(self);
    const char *problem = batch_apply(&self->batch, s);
    if (problem)
        return problem;
    s->rows = self->batch.rows;
    s->sum_length = (guint64)self->batch.sum_length;
    s->max_length = batch_max_length(&self->batch);
    s->waiting = prev->waiting + (guint32)waiting;
    s->pages_used = prev->pages_used + s->n_appended + (guint32)pages;
    s->tokens_held = prev->tokens_held + s->rows + (guint64)tokens;
    prev->end = s->start + s->duration;
    prev->duration = s->duration;
    prev->waiting = s->waiting;
    prev->pages_used = s->pages_used;
    prev->tokens_held = s->tokens_held;
    self->next_step++;
    self->frame_left--;
    return NULL;
}

/* After a seek: the whole batch as joined, the paused ones also as paused, nothing else. */
static void give_whole_batch(StepsReader *self)
{
    GArray *const arrays[] = {self->left, self->paused, self->resumed, self->joined,
                              self->appended};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_set_size(arrays[i], 0);
    const Batch *b = &self->batch;
    for (guint32 i = 0; i < b->n_rows; i++) {
        guint32 slot = b->order[i];
        const BatchSlot *s = &b->slots[slot];
        StepJoin row = {s->request, slot, batch_length(b, slot), s->n_pages, s->pages};
        g_array_append_val(self->joined, row);
        if (s->paused)
            g_array_append_val(self->paused, slot);
    }
    point_step_at_lists(self);
}

/* 1 = a step is in self->step, 0 = end, -1 = error. */
static int advance(StepsReader *self, GError **error)
{
    while (self->frame_left == 0) {
        int got = next_frame(self, FALSE, error);
        if (got <= 0)
            return got;
    }
    const char *problem = read_step(self);
    if (problem) {
        fail(self, error, self->frame_offset, problem);
        self->frame_left = 0;
        self->offset = G_MAXINT64; /* nothing more can be read */
        self->growing = FALSE;
        self->whole = FALSE;
        return -1;
    }
    return 1;
}

int steps_reader_next(StepsReader *self, const Step **ret_step, GError **error)
{
    int got = advance(self, error);
    if (got <= 0)
        return got;
    if (self->whole_batch)
        give_whole_batch(self);
    self->whole_batch = FALSE;
    *ret_step = &self->step;
    return 1;
}

/* The frame that holds `index`, as far as the frames are known. */
static const FrameEntry *find_frame(const StepsReader *self, guint64 index)
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

gboolean steps_reader_seek(StepsReader *self, guint64 index, GError **error)
{
    const FrameEntry *e = find_frame(self, index);
    self->offset = e ? e->offset : self->first_frame;
    batch_empty(&self->batch);
    self->frame_left = 0;
    self->next_step = e ? e->first_step : 0;
    int got = next_frame(self, TRUE, error);
    while (got > 0 && self->next_step < index)
        got = advance(self, error);
    if (got < 0)
        return FALSE;
    if (self->next_step != index) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "%s: step %" G_GUINT64_FORMAT " is past the end (%" G_GUINT64_FORMAT " steps)",
                    self->path, index, self->next_step);
        return FALSE;
    }
    self->whole_batch = TRUE;
    return TRUE;
}

const StepRow *steps_reader_rows(const StepsReader *self, guint32 *ret_n)
{
    const Batch *b = &self->batch;
    g_array_set_size(self->rows, b->n_rows);
    StepRow *rows = (StepRow *)(gpointer)self->rows->data;
    for (guint32 i = 0; i < b->n_rows; i++) {
        guint32 slot = b->order[i];
        const BatchSlot *s = &b->slots[slot];
        rows[i] =
            (StepRow){s->request, slot, batch_length(b, slot), s->n_pages, s->paused, s->pages};
    }
    *ret_n = b->n_rows;
    return rows;
}
