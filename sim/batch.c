#include "sim/batch.h"

#include <string.h>

void batch_init(Batch *b)
{
    memset(b, 0, sizeof *b);
}

void batch_clear(Batch *b)
{
    for (guint32 i = 0; i < b->n_slots; i++)
        g_free(b->slots[i].pages);
    g_free(b->slots);
    g_free(b->order);
    batch_init(b);
}

void batch_empty(Batch *b)
{
    for (guint32 i = 0; i < b->n_slots; i++)
        b->slots[i].used = FALSE;
    b->n_rows = 0;
    b->rows = 0;
    b->sum_length = 0;
    b->max_length = 0;
}

guint32 batch_length(const Batch *b, guint32 slot)
{
    const BatchSlot *s = &b->slots[slot];
    return (guint32)(s->paused ? s->frozen : s->base + b->applied);
}

guint32 batch_max_length(Batch *b)
{
    if (b->max_length < 0) {
        b->max_length = 0;
        for (guint32 i = 0; i < b->n_rows; i++)
            if (!b->slots[b->order[i]].paused)
                b->max_length = MAX(b->max_length, (gint64)batch_length(b, b->order[i]));
    }
    return (guint32)b->max_length;
}

static BatchSlot *used_slot(Batch *b, guint32 slot)
{
    return slot < b->n_slots && b->slots[slot].used ? &b->slots[slot] : NULL;
}

static void grow_slots(Batch *b, guint32 slot)
{
    if (slot < b->n_slots)
        return;
    guint32 n = MAX(slot + 1, b->n_slots + b->n_slots / 2);
    b->slots = g_renew(BatchSlot, b->slots, n);
    memset(b->slots + b->n_slots, 0, (n - b->n_slots) * sizeof *b->slots);
    b->n_slots = n;
}

static void add_page(BatchSlot *s, guint32 page)
{
    if (s->n_pages == s->cap_pages) {
        s->cap_pages = MAX(16, s->cap_pages * 2);
        s->pages = g_renew(guint32, s->pages, s->cap_pages);
    }
    s->pages[s->n_pages++] = page;
}

static const char *add_row(Batch *b, const StepJoin *j)
{
    if (j->slot >= BATCH_MAX_SLOTS)
        return "a slot number out of range";
    grow_slots(b, j->slot);
    b->slots_seen = MAX(b->slots_seen, j->slot + 1);
    BatchSlot *s = &b->slots[j->slot];
    if (s->used)
        return "a row joins in a slot that is taken";
    if (j->n_pages > s->cap_pages) {
        s->cap_pages = j->n_pages + j->n_pages / 4;
        s->pages = g_renew(guint32, s->pages, s->cap_pages);
    }
    if (j->n_pages)
        memcpy(s->pages, j->pages, j->n_pages * sizeof *s->pages);
    s->n_pages = j->n_pages;
    s->request = j->request;
    s->base = (gint64)j->length - b->applied;
    s->used = TRUE;
    s->paused = FALSE;
    if (b->n_rows == b->cap_rows) {
        b->cap_rows = MAX(64, b->cap_rows * 2);
        b->order = g_renew(guint32, b->order, b->cap_rows);
    }
    b->order[b->n_rows++] = j->slot;
    b->rows++;
    b->sum_length += j->length;
    if (b->max_length >= 0)
        b->max_length = MAX(b->max_length, (gint64)j->length);
    return NULL;
}

/* Takes a growing row out of the totals. */
static void stop_growing(Batch *b, guint32 slot)
{
    gint64 length = batch_length(b, slot);
    b->rows--;
    b->sum_length -= length;
    if (length == b->max_length)
        b->max_length = -1;
}

static const char *remove_rows(Batch *b, const Step *step)
{
    if (step->n_left == 0)
        return NULL;
    for (guint32 i = 0; i < step->n_left; i++) {
        BatchSlot *s = used_slot(b, step->left[i]);
        if (s == NULL)
            return "a row leaves that is not in the batch";
        if (!s->paused)
            stop_growing(b, step->left[i]);
        s->used = FALSE;
    }
    guint32 kept = 0;
    for (guint32 i = 0; i < b->n_rows; i++)
        if (b->slots[b->order[i]].used)
            b->order[kept++] = b->order[i];
    b->n_rows = kept;
    return NULL;
}

static const char *pause_rows(Batch *b, const Step *step)
{
    for (guint32 i = 0; i < step->n_paused; i++) {
        BatchSlot *s = used_slot(b, step->paused[i]);
        if (s == NULL || s->paused)
            return "a row is paused that is not growing";
        stop_growing(b, step->paused[i]);
        s->frozen = s->base + b->applied;
        s->paused = TRUE;
    }
    for (guint32 i = 0; i < step->n_resumed; i++) {
        BatchSlot *s = used_slot(b, step->resumed[i]);
        if (s == NULL || !s->paused)
            return "a row is resumed that is not paused";
        s->paused = FALSE;
        s->base = s->frozen - b->applied;
        b->rows++;
        b->sum_length += s->frozen;
        if (b->max_length >= 0)
            b->max_length = MAX(b->max_length, s->frozen);
    }
    return NULL;
}

const char *batch_apply(Batch *b, const Step *step)
{
    const char *problem = remove_rows(b, step);
    if (problem == NULL)
        problem = pause_rows(b, step);
    if (problem)
        return problem;
    b->applied++;
    b->sum_length += b->rows;
    if (b->max_length >= 0 && b->rows)
        b->max_length++;
    for (guint32 i = 0; i < step->n_joined && problem == NULL; i++)
        problem = add_row(b, &step->joined[i]);
    for (guint32 i = 0; i < step->n_appended && problem == NULL; i++) {
        BatchSlot *s = used_slot(b, step->appended[i].slot);
        if (s == NULL)
            return "a page is appended to a row that is not in the batch";
        add_page(s, step->appended[i].page);
    }
    return problem;
}

const char *batch_restore(Batch *b, const StepJoin *row, gboolean paused)
{
    const char *problem = add_row(b, row);
    if (problem == NULL && paused) {
        stop_growing(b, row->slot);
        b->slots[row->slot].frozen = row->length;
        b->slots[row->slot].paused = TRUE;
    }
    return problem;
}
