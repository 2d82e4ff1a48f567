/* steps.kvsteps into RunData: row lengths and page ids over time, for the two maps. */
#include "plots/run_data.h"

#include <math.h>

#include "sim/steps_file.h"

typedef struct Pages {
    guint64 per_cell; /* page ids in one cell of the map */
    guint32 *held;    /* [RUN_PAGE_CELLS] pages that decode rows hold now */
    GHashTable *rows; /* slot -> GArray of page ids */
} Pages;

/* A page of a prefix shared by several rows counts once a row here: the share is capped. */
static void hold(Pages *pages, guint32 page, int change)
{
    guint64 cell = MIN(page / pages->per_cell, RUN_PAGE_CELLS - 1);
    pages->held[cell] += (guint32)change;
}

static void drop_row(Pages *pages, guint32 slot)
{
    GArray *ids = g_hash_table_lookup(pages->rows, GUINT_TO_POINTER(slot));
    for (guint i = 0; ids != NULL && i < ids->len; i++)
        hold(pages, g_array_index(ids, guint32, i), -1);
    g_hash_table_remove(pages->rows, GUINT_TO_POINTER(slot));
}

static void follow_pages(Pages *pages, const Step *step)
{
    for (guint i = 0; i < step->n_left; i++)
        drop_row(pages, step->left[i]);
    for (guint i = 0; i < step->n_joined; i++) {
        const StepJoin *join = &step->joined[i];
        drop_row(pages, join->slot);
        GArray *ids = g_array_sized_new(FALSE, FALSE, sizeof(guint32), join->n_pages + 8);
        g_array_append_vals(ids, join->pages, join->n_pages);
        g_hash_table_insert(pages->rows, GUINT_TO_POINTER(join->slot), ids);
        for (guint k = 0; k < join->n_pages; k++)
            hold(pages, join->pages[k], 1);
    }
    for (guint i = 0; i < step->n_appended; i++) {
        GArray *ids = g_hash_table_lookup(pages->rows, GUINT_TO_POINTER(step->appended[i].slot));
        if (ids == NULL)
            continue;
        g_array_append_val(ids, step->appended[i].page);
        hold(pages, step->appended[i].page, 1);
    }
}

static void add_step(StepsData *self, Pages *pages, const Step *step, const StepRow *rows,
                     guint32 n_rows, const StepsHeader *header)
{
    double lengths[RUN_LENGTH_CELLS] = {0}, share[RUN_PAGE_CELLS], fill[2];
    kv_ns end = step->start + step->duration;
    for (guint32 i = 0; i < n_rows; i++)
        if (!rows[i].paused)
            lengths[run_length_cell(rows[i].length)]++;
    for (guint i = 0; i < RUN_PAGE_CELLS; i++)
        share[i] = MIN(1, (double)pages->held[i] / (double)pages->per_cell);
    fill[0] = (double)step->pages_used / (double)header->pool_pages;
    fill[1] = step->pages_used == 0
                  ? (double)NAN
                  : (double)step->tokens_held / ((double)step->pages_used * header->page_size);
    time_bins_add(self->lengths, step->start, end, lengths);
    time_bins_add(self->pages, step->start, end, share);
    time_bins_add(self->fill, step->start, end, fill);
    if (self->steps == 0)
        self->first = step->start;
    self->last = end;
    self->steps++;
}

static void ids_free(gpointer ids)
{
    g_array_unref(ids);
}

static gboolean read_steps(StepsData *self, StepsReader *reader, Progress *progress, GError **error)
{
    const StepsHeader *header = steps_reader_header(reader);
    Pages pages = {.per_cell = MAX(1, (header->pool_pages + RUN_PAGE_CELLS - 1) / RUN_PAGE_CELLS)};
    pages.held = g_new0(guint32, RUN_PAGE_CELLS);
    pages.rows = g_hash_table_new_full(NULL, NULL, NULL, ids_free);
    self->pool_pages = header->pool_pages;
    self->pages_per_cell = pages.per_cell;
    const Step *step;
    int got;
    while ((got = steps_reader_next(reader, &step, error)) > 0) {
        guint32 n_rows;
        const StepRow *rows = steps_reader_rows(reader, &n_rows);
        follow_pages(&pages, step);
        add_step(self, &pages, step, rows, n_rows, header);
        if (self->steps % 1024 == 0 && !progress_check(progress, error)) {
            got = -1;
            break;
        }
    }
    g_hash_table_unref(pages.rows);
    g_free(pages.held);
    return got == 0;
}

void steps_data_free(StepsData *self)
{
    if (self == NULL)
        return;
    time_bins_free(self->lengths);
    time_bins_free(self->pages);
    time_bins_free(self->fill);
    g_free(self);
}

gboolean run_data_read_steps(RunData *self, const char *path, Progress *progress, GError **error)
{
    g_autoptr(StepsReader) reader = steps_reader_open(path, error);
    if (reader == NULL)
        return FALSE;
    StepsData *data = g_new0(StepsData, 1);
    data->lengths = time_bins_new(RUN_LENGTH_CELLS, RUN_MAP_BINS);
    data->pages = time_bins_new(RUN_PAGE_CELLS, RUN_MAP_BINS);
    data->fill = time_bins_new(2, RUN_TIME_BINS);
    self->kv_heads = steps_reader_header(reader)->kv_heads;
    self->steps_data = data;
    return read_steps(data, reader, progress, error);
}
