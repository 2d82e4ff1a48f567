#include "sim/steps_frames.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
    if (!steps_frames_read_header(self, error)) {
        steps_reader_free(self);
        return NULL;
    }
    steps_frames_read_index(self);
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

/* A frame and its key state. 1 = in hand, 0 = no more, -1 = error. */
static int next_frame(StepsReader *self, gboolean restore, GError **error)
{
    int got = steps_frames_next(self, restore, error);
    if (got <= 0)
        return got;
    const char *problem = read_key_state(self, restore);
    if (problem || self->in.bad) {
        steps_frames_fail(self, error, self->frame_offset,
                          problem ? problem : "a damaged key state");
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
        steps_frames_fail(self, error, self->frame_offset, problem);
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

gboolean steps_reader_seek(StepsReader *self, guint64 index, GError **error)
{
    const FrameEntry *e = steps_frames_find(self, index);
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
