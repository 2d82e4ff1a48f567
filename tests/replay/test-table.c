/* Block tables on a device (replay/cuda_table.h) against a simple model: random joins, appends,
 * pauses and leaves; the device here is host memory that counts copies and fails when told to. */
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "replay/backend.h"
#include "replay/cuda_table.h"

enum { SLOTS = 70, PAGE = 16, POOL = 100000 };

static gint fail_after = -1; /* calls until one fails; -1 = none */
static gint blocks;          /* not given back */
static gint64 copied, scattered, copies;

static gboolean goes_well(GError **error)
{
    if (fail_after < 0 || fail_after-- > 0)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "block tables: as told");
    return FALSE;
}

static gboolean get(void **ret, gsize bytes, GError **error)
{
    if (!goes_well(error))
        return FALSE;
    blocks++;
    *ret = g_malloc(bytes);
    memset(*ret, 0xee, bytes);
    return TRUE;
}

static void put(void *memory)
{
    blocks -= memory != NULL;
    g_free(memory);
}

static gboolean copy(void *to, const void *from, gsize bytes, void *stream, GError **error)
{
    if (!goes_well(error))
        return FALSE;
    copies++;
    copied += (gint64)bytes;
    memcpy(to, from, bytes);
    return TRUE;
}

static gboolean scatter(gint32 *table, const gint32 *where, const gint32 *what, gint32 n,
                        void *stream, GError **error)
{
    if (!goes_well(error))
        return FALSE;
    scattered += n;
    for (gint32 i = 0; i < n; i++)
        table[where[i]] = what[i];
    return TRUE;
}

static gboolean wait_for(void *stream, GError **error)
{
    return goes_well(error);
}

static const TableMemory host_memory = {get, put, get, put, copy, scatter, wait_for};

/* --- the model: what every slot holds --- */

typedef struct ModelRow {
    gboolean there, paused;
    guint64 request;
    guint32 length;
    GArray *pages; /* guint32 */
} ModelRow;

typedef struct Model {
    ModelRow row[SLOTS];
    GArray *order; /* guint32 slots, in order of joining */
    RngStream rng;
    guint64 requests;
    guint32 next_page;
} Model;

/* The deltas of one step, as a steps file gives them. */
typedef struct Deltas {
    Step step;
    GArray *joined, *appended, *rows, *left;
} Deltas;

static guint32 pages_for(guint32 length)
{
    return (length + PAGE - 1) / PAGE;
}

static guint32 new_page(Model *m)
{
    m->next_page = (m->next_page + 7919) % POOL;
    return m->next_page;
}

static void leave(Model *m, guint index, Deltas *d)
{
    const guint32 slot = g_array_index(m->order, guint32, index);
    m->row[slot].there = FALSE;
    g_array_append_val(d->left, slot);
    g_array_remove_index(m->order, index);
}

static void join(Model *m, guint32 longest, Deltas *d)
{
    guint32 slot = (guint32)rng_below(&m->rng, SLOTS);
    if (m->row[slot].there)
        return;
    ModelRow *row = &m->row[slot];
    row->there = TRUE;
    row->paused = FALSE;
    row->request = m->requests++;
    row->length = 1 + (guint32)rng_below(&m->rng, longest);
    g_array_set_size(row->pages, 0);
    const guint32 ahead = (guint32)rng_below(&m->rng, 3);
    for (guint32 i = 0; i < pages_for(row->length) + ahead; i++) {
        const guint32 page = new_page(m);
        g_array_append_val(row->pages, page);
    }
    const StepJoin j = {row->request, slot, row->length, row->pages->len, NULL};
    g_array_append_val(d->joined, j);
    g_array_append_val(m->order, slot);
}

static gboolean joined_now(const Deltas *d, guint32 slot)
{
    for (guint i = 0; i < d->joined->len; i++)
        if (g_array_index(d->joined, StepJoin, i).slot == slot)
            return TRUE;
    return FALSE;
}

static void grow(Model *m, Deltas *d)
{
    for (guint i = 0; i < m->order->len; i++) {
        const guint32 slot = g_array_index(m->order, guint32, i);
        ModelRow *row = &m->row[slot];
        if (joined_now(d, slot))
            continue;
        row->paused = rng_below(&m->rng, 16) == 0;
        row->length += !row->paused;
        if (pages_for(row->length) <= row->pages->len)
            continue;
        const guint32 page = new_page(m);
        g_array_append_val(row->pages, page);
        const StepAppend a = {slot, page};
        g_array_append_val(d->appended, a);
    }
}

static void finish(Model *m, Deltas *d)
{
    for (guint i = 0; i < d->joined->len; i++) {
        StepJoin *j = &g_array_index(d->joined, StepJoin, i);
        j->pages = (const guint32 *)(gpointer)m->row[j->slot].pages->data;
    }
    for (guint i = 0; i < m->order->len; i++) {
        const guint32 slot = g_array_index(m->order, guint32, i);
        const ModelRow *row = &m->row[slot];
        const StepRow r = {.request = row->request,
                           .slot = slot,
                           .length = row->length,
                           .n_pages = row->pages->len,
                           .paused = row->paused,
                           .pages = (const guint32 *)(gpointer)row->pages->data};
        g_array_append_val(d->rows, r);
    }
    d->step.joined = (const StepJoin *)(gpointer)d->joined->data;
    d->step.n_joined = d->joined->len;
    d->step.appended = (const StepAppend *)(gpointer)d->appended->data;
    d->step.n_appended = d->appended->len;
    d->step.left = (const guint32 *)(gpointer)d->left->data;
    d->step.n_left = d->left->len;
}

static void deltas_init(Deltas *d)
{
    memset(d, 0, sizeof *d);
    d->joined = g_array_new(FALSE, FALSE, sizeof(StepJoin));
    d->appended = g_array_new(FALSE, FALSE, sizeof(StepAppend));
    d->rows = g_array_new(FALSE, FALSE, sizeof(StepRow));
    d->left = g_array_new(FALSE, FALSE, sizeof(guint32));
}

static void deltas_clear(Deltas *d)
{
    GArray *all[] = {d->joined, d->appended, d->rows, d->left};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        g_array_unref(all[i]);
}

static void model_init(Model *m, guint64 seed)
{
    memset(m, 0, sizeof *m);
    rng_init(&m->rng, seed, RNG_TEST, 0, 0);
    m->order = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint i = 0; i < SLOTS; i++)
        m->row[i].pages = g_array_new(FALSE, FALSE, sizeof(guint32));
}

static void model_clear(Model *m)
{
    for (guint i = 0; i < SLOTS; i++)
        g_array_unref(m->row[i].pages);
    g_array_unref(m->order);
}

/* A step of the model; `longest` prompt of those that join. */
static void advance(Model *m, guint32 longest, Deltas *d)
{
    for (guint i = m->order->len; i-- > 0;)
        if (rng_below(&m->rng, 12) == 0)
            leave(m, i, d);
    const guint n = (guint)rng_below(&m->rng, 5);
    for (guint i = 0; i < n; i++)
        join(m, longest, d);
    grow(m, d);
    finish(m, d);
}

static void check(const Model *m, const CudaTable *table, const Deltas *d)
{
    guint32 at = 0, longest = 0;
    for (guint i = 0; i < d->rows->len; i++) {
        const StepRow *row = &g_array_index(d->rows, StepRow, i);
        if (row->paused)
            continue;
        const gint32 from = cuda_table_offset(table)[at];
        g_assert_cmpint(cuda_table_lens(table)[at], ==, row->length);
        g_assert_cmpint(cuda_table_host_lens(table)[at], ==, row->length);
        g_assert_cmpint(cuda_table_host_offset(table)[at], ==, from);
        g_assert_cmpint(cuda_table_keys(table)[at], ==,
                        backend_query_key(row->request, row->length));
        g_assert_cmpint(cuda_table_host_keys(table)[at], ==, cuda_table_keys(table)[at]);
        g_assert_cmpmem(cuda_table_ids(table) + from, 4 * pages_for(row->length), row->pages,
                        4 * pages_for(row->length));
        g_assert_cmpmem(cuda_table_host_ids(table) + from, 4 * pages_for(row->length), row->pages,
                        4 * pages_for(row->length));
        longest = MAX(longest, row->length);
        at++;
    }
    g_assert_cmpuint(cuda_table_rows(table), ==, at);
    g_assert_cmpuint(cuda_table_max_length(table), ==, longest);
}

/* Deltas of several steps may meet one flush: steps that are not executed are not sent. */
static void test_model(void)
{
    for (guint64 seed = 1; seed <= 20; seed++) {
        Model m;
        guint sent_whole = 0;
        gint64 pending = 0; /* words changed since the last flush, at most */
        model_init(&m, seed);
        g_autoptr(CudaTable) table = cuda_table_new(&host_memory);
        for (guint step = 0; step < 200; step++) {
            Deltas d;
            g_autoptr(GError) error = NULL;
            deltas_init(&d);
            /* Prompts grow past the stride now and then. */
            advance(&m, step < 50 ? 400 : step < 120 ? 1500 : 9000, &d);
            g_assert_true(cuda_table_step(table, &d.step, (const StepRow *)(gpointer)d.rows->data,
                                          d.rows->len, POOL, PAGE, &error));
            for (guint i = 0; i < d.step.n_joined; i++)
                pending += d.step.joined[i].n_pages;
            pending += d.step.n_appended;
            if (rng_below(&m.rng, 3) != 0) {
                copied = scattered = copies = 0;
                g_assert_true(cuda_table_flush(table, NULL, &error));
                g_assert_no_error(error);
                check(&m, table, &d);
                g_assert_cmpint(cuda_table_upload_bytes(table), ==, copied);
                g_assert_cmpint(cuda_table_copies(table), ==, copies);
                const gint64 rows = cuda_table_rows(table);
                if (scattered > 0 || copied <= 16 * rows) { /* deltas alone */
                    g_assert_cmpint(scattered, <=, pending);
                    g_assert_cmpint(copied, ==, 16 * rows + 8 * scattered);
                } else {
                    sent_whole++;
                }
                pending = 0;
            }
            deltas_clear(&d);
        }
        g_assert_cmpuint(sent_whole, >, 1); /* first, and when it grew */
        g_assert_cmpuint(sent_whole, <, 12);
        model_clear(&m);
    }
    g_assert_cmpint(blocks, ==, 0);
}

static void test_bad_steps(void)
{
    g_autoptr(CudaTable) table = cuda_table_new(&host_memory);
    g_autoptr(GError) error = NULL;
    const guint32 pages[2] = {5, 10}, large[1] = {10};
    const StepJoin good = {1, 0, 20, 2, pages}, outside = {2, 1, 3, 1, large};
    StepRow row = {.request = 1, .slot = 0, .length = 33, .n_pages = 2, .pages = pages};
    const Step one = {.n_joined = 1, .joined = &outside}, two = {.n_joined = 1, .joined = &good};
    g_assert_false(cuda_table_step(table, &one, &row, 0, 10, PAGE, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "page 10"));
    g_clear_error(&error);
    /* 33 entries need a third page. */
    g_assert_false(cuda_table_step(table, &two, &row, 1, 11, PAGE, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_clear_error(&error);
    row.length = 32;
    row.slot = 1000; /* never joined */
    g_assert_false(cuda_table_step(table, &two, &row, 1, 11, PAGE, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_clear_error(&error);
    row.slot = 0;
    g_assert_true(cuda_table_step(table, &two, &row, 1, 11, PAGE, &error));
    g_assert_true(cuda_table_flush(table, NULL, &error));
    g_assert_cmpint(cuda_table_ids(table)[cuda_table_offset(table)[0] + 1], ==, 10);
}

/* Whatever call fails: an error, no crash, nothing leaked. */
static void test_failures(void)
{
    const guint32 pages[2] = {5, 9};
    const StepJoin join_one = {1, 0, 20, 2, pages};
    const StepRow row = {.request = 1, .slot = 0, .length = 20, .n_pages = 2, .pages = pages};
    const Step step = {.n_joined = 1, .joined = &join_one};
    gint n = 0;
    for (gboolean failed = TRUE; failed; n++) {
        CudaTable *table = cuda_table_new(&host_memory);
        g_autoptr(GError) error = NULL;
        fail_after = -1;
        g_assert_true(cuda_table_step(table, &step, &row, 1, 10, PAGE, &error));
        fail_after = n;
        failed = !cuda_table_flush(table, NULL, &error);
        g_assert_true(failed == (error != NULL));
        fail_after = -1;
        cuda_table_free(table);
        g_assert_cmpint(blocks, ==, 0);
    }
    g_assert_cmpint(n, >=, 5); /* wait, two memories, two copies at least could fail */
}

static void test_empty(void)
{
    g_autoptr(CudaTable) table = cuda_table_new(&host_memory);
    g_autoptr(GError) error = NULL;
    const Step step = {0};
    g_assert_true(cuda_table_step(table, &step, NULL, 0, 10, PAGE, &error));
    g_assert_true(cuda_table_flush(table, NULL, &error));
    g_assert_cmpuint(cuda_table_rows(table), ==, 0);
    g_assert_cmpint(cuda_table_upload_bytes(table), ==, 0);
    g_assert_cmpint(cuda_table_copies(table), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/table/model", test_model);
    g_test_add_func("/table/bad-steps", test_bad_steps);
    g_test_add_func("/table/failures", test_failures);
    g_test_add_func("/table/empty", test_empty);
    return g_test_run();
}
