/* Steps file: what is read is what was written, from any step; damage gives what is whole, then an
 * error that says where. Random batches exercise every kind of delta. */
#include "base/error.h"
#include "sim/batch.h"
#include "sim/steps_file.h"
#include "sim/steps_header.h"

#include <glib/gstdio.h>
#include <string.h>

#define POOL 5000

/* A growing, random batch, kept apart from sim/batch.c: plain arrays, everything touched each step.
 */
typedef struct Row {
    guint64 request;
    guint32 slot, length;
    gboolean paused, gone;
    GArray *pages;
} Row;

typedef struct Copy { /* one step, kept whole */
    Step step;
    GArray *rows; /* StepRow with own pages */
} Copy;

typedef struct Model {
    GRand *rand;
    GPtrArray *rows; /* Row * in order */
    GQueue free_slots;
    guint32 next_slot;
    guint64 next_request;
    kv_ns now;
    guint64 index;
    GArray *left, *paused, *resumed, *joined, *appended, *prefill;
    GPtrArray *copies;
} Model;

static void row_free(gpointer p)
{
    Row *r = p;
    g_array_unref(r->pages);
    g_free(r);
}

static void copy_free(gpointer p)
{
    Copy *c = p;
    for (guint i = 0; i < c->rows->len; i++)
        g_free((gpointer)g_array_index(c->rows, StepRow, i).pages);
    g_array_unref(c->rows);
    g_free(c);
}

static void model_init(Model *m, guint32 seed)
{
    memset(m, 0, sizeof *m);
    m->rand = g_rand_new_with_seed(seed);
    m->rows = g_ptr_array_new_with_free_func(row_free);
    g_queue_init(&m->free_slots);
    m->left = g_array_new(FALSE, FALSE, sizeof(guint32));
    m->paused = g_array_new(FALSE, FALSE, sizeof(guint32));
    m->resumed = g_array_new(FALSE, FALSE, sizeof(guint32));
    m->joined = g_array_new(FALSE, FALSE, sizeof(StepJoin));
    m->appended = g_array_new(FALSE, FALSE, sizeof(StepAppend));
    m->prefill = g_array_new(FALSE, FALSE, sizeof(StepPrefill));
    m->copies = g_ptr_array_new_with_free_func(copy_free);
}

static void model_clear(Model *m)
{
    g_rand_free(m->rand);
    g_ptr_array_unref(m->rows);
    g_queue_clear(&m->free_slots);
    GArray *const arrays[] = {m->left, m->paused, m->resumed, m->joined, m->appended, m->prefill};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_ptr_array_unref(m->copies);
}

static void change_rows(Model *m)
{
    for (guint i = 0; i < m->rows->len; i++) {
        Row *r = m->rows->pdata[i];
        guint dice = (guint)g_rand_int_range(m->rand, 0, 100);
        if (dice < 3) {
            g_array_append_val(m->left, r->slot);
            r->gone = TRUE;
        } else if (dice < 5 && !r->paused) {
            g_array_append_val(m->paused, r->slot);
            r->paused = TRUE;
        } else if (dice < 40 && r->paused) {
            g_array_append_val(m->resumed, r->slot);
            r->paused = FALSE;
        }
    }
    for (guint i = m->rows->len; i-- > 0;) {
        Row *r = m->rows->pdata[i];
        if (r->gone) {
            g_queue_push_head(&m->free_slots, GUINT_TO_POINTER(r->slot));
            g_ptr_array_remove_index(m->rows, i);
        } else if (!r->paused) {
            r->length++;
        }
    }
}

static void join_row(Model *m)
{
    Row *r = g_new0(Row, 1);
    r->request = m->next_request++;
    r->slot = g_queue_is_empty(&m->free_slots) ? m->next_slot++
                                               : GPOINTER_TO_UINT(g_queue_pop_head(&m->free_slots));
    r->length = (guint32)g_rand_int_range(m->rand, 1, 700);
    r->pages = g_array_new(FALSE, FALSE, sizeof(guint32));
    guint32 first = (guint32)g_rand_int_range(m->rand, 0, POOL / 2);
    for (guint32 i = 0; i < (r->length + 15) / 16; i++) {
        guint32 page = first + i;
        g_array_append_val(r->pages, page);
    }
    g_ptr_array_add(m->rows, r);
    StepJoin j = {r->request, r->slot, r->length, r->pages->len,
                  (guint32 *)(gpointer)r->pages->data};
    g_array_append_val(m->joined, j);
}

static void append_pages(Model *m)
{
    for (guint i = 0; i < m->rows->len; i++) {
        Row *r = m->rows->pdata[i];
        if (r->length > r->pages->len * 16) {
            guint32 page = (guint32)g_rand_int_range(m->rand, 0, POOL);
            StepAppend a = {r->slot, page};
            g_array_append_val(r->pages, page);
            g_array_append_val(m->appended, a);
        }
    }
}

static void keep_copy(Model *m, const Step *step)
{
    Copy *c = g_new0(Copy, 1);
    c->step = *step;
    c->rows = g_array_new(FALSE, FALSE, sizeof(StepRow));
    for (guint i = 0; i < m->rows->len; i++) {
        Row *r = m->rows->pdata[i];
        StepRow row = {r->request,    r->slot,   r->length,
                       r->pages->len, r->paused, g_memdup2(r->pages->data, r->pages->len * 4)};
        g_array_append_val(c->rows, row);
    }
    g_ptr_array_add(m->copies, c);
}

#define LIST(step, name, type)                                                                     \
    do {                                                                                           \
        (step).n_##name = m->name->len;                                                            \
        (step).name = (const type *)(gpointer)m->name->data;                                       \
    } while (0)

/* Makes the next step; valid until the next call. */
static Step model_step(Model *m)
{
    GArray *const arrays[] = {m->left, m->paused, m->resumed, m->joined, m->appended, m->prefill};
    for (gsize i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_set_size(arrays[i], 0);
    change_rows(m);
    append_pages(m);
    while (g_rand_int_range(m->rand, 0, 100) < 40)
        join_row(m);
    if (g_rand_int_range(m->rand, 0, 10) == 0) {
        StepPrefill p = {m->next_request, 0, (guint32)g_rand_int_range(m->rand, 1, 2048), 16};
        g_array_append_val(m->prefill, p);
    }
    if (g_rand_int_range(m->rand, 0, 50) == 0)
        m->now += g_rand_int_range(m->rand, 1, 1 << 30);
    Step s = {.index = m->index++, .start = m->now};
    s.duration = 1 + g_rand_int_range(m->rand, 0, 1 << 20);
    s.waiting = (guint32)g_rand_int_range(m->rand, 0, 3);
    m->now += s.duration;
    for (guint i = 0; i < m->rows->len; i++) {
        Row *r = m->rows->pdata[i];
        s.pages_used += r->pages->len;
        s.tokens_held += r->length;
        if (r->paused)
            continue;
        s.rows++;
        s.sum_length += r->length;
        s.max_length = MAX(s.max_length, r->length);
    }
    LIST(s, left, guint32);
    LIST(s, paused, guint32);
    LIST(s, resumed, guint32);
    LIST(s, joined, StepJoin);
    LIST(s, appended, StepAppend);
    LIST(s, prefill, StepPrefill);
    keep_copy(m, &s);
    return s;
}

static char *folder(void)
{
    g_autoptr(GError) error = NULL;
    char *dir = g_dir_make_tmp("kvsteps-XXXXXX", &error);
    g_assert_no_error(error);
    return dir;
}

static char workload[] = "log.csv", sha256[] = "ab", scenario[] = "[workload]\nseed=1\n";
static char model[] = "llama-3.1-8b", dtype[] = "fp16";
static const StepsHeader header = {
    .workload = workload,
    .workload_sha256 = sha256,
    .scenario = scenario,
    .model = model,
    .layers = 32,
    .q_heads = 32,
    .kv_heads = 8,
    .head_dim = 128,
    .dtype = dtype,
    .page_size = 16,
    .pool_pages = POOL,
    .seed = 7,
    .replica = 2,
};

static void write_model(Model *m, const char *path, guint steps, gboolean commit)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(StepsWriter) w = steps_writer_new(path, &header, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < steps; i++) {
        Step s = model_step(m);
        steps_writer_sink(w)->step(steps_writer_sink(w), &s, &error);
        g_assert_no_error(error);
    }
    if (commit)
        steps_writer_commit(w, &error);
    else
        steps_writer_keep(w);
    g_assert_no_error(error);
}

static void compare_rows(StepsReader *r, const Copy *c)
{
    guint32 n;
    const StepRow *rows = steps_reader_rows(r, &n);
    g_assert_cmpuint(n, ==, c->rows->len);
    for (guint32 i = 0; i < n; i++) {
        const StepRow *e = &g_array_index(c->rows, StepRow, i);
        g_assert_cmpuint(rows[i].request, ==, e->request);
        g_assert_cmpuint(rows[i].slot, ==, e->slot);
        g_assert_cmpuint(rows[i].length, ==, e->length);
        g_assert_cmpint(rows[i].paused, ==, e->paused);
        g_assert_cmpmem(rows[i].pages, rows[i].n_pages * 4, e->pages, e->n_pages * 4);
    }
}

static void compare_step(const Step *s, const Step *e)
{
    g_assert_cmpuint(s->index, ==, e->index);
    g_assert_cmpint(s->start, ==, e->start);
    g_assert_cmpint(s->duration, ==, e->duration);
    g_assert_cmpuint(s->waiting, ==, e->waiting);
    g_assert_cmpuint(s->pages_used, ==, e->pages_used);
    g_assert_cmpuint(s->tokens_held, ==, e->tokens_held);
    g_assert_cmpuint(s->rows, ==, e->rows);
    g_assert_cmpuint(s->sum_length, ==, e->sum_length);
    g_assert_cmpuint(s->max_length, ==, e->max_length);
    g_assert_cmpuint(s->n_prefill, ==, e->n_prefill);
}

static void test_round_trip(void)
{
    g_autofree char *dir = folder();
    g_autofree char *path = g_build_filename(dir, "a.kvsteps", NULL);
    g_autoptr(GError) error = NULL;
    Model m;
    model_init(&m, g_test_rand_int());
    write_model(&m, path, 3000, TRUE);
    g_autoptr(StepsReader) r = steps_reader_open(path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(steps_reader_count(r), ==, 3000);
    g_assert_cmpuint(steps_reader_max_slots(r), ==, m.next_slot);
    const StepsHeader *h = steps_reader_header(r);
    g_assert_cmpstr(h->workload, ==, header.workload);
    g_assert_cmpstr(h->scenario, ==, header.scenario);
    g_assert_cmpuint(h->pool_pages, ==, POOL);
    g_assert_cmpuint(h->replica, ==, 2);
    const Step *s;
    for (guint i = 0; i < 3000; i++) {
        const Copy *c = m.copies->pdata[i];
        g_assert_cmpint(steps_reader_next(r, &s, &error), ==, 1);
        compare_step(s, &c->step);
        g_assert_cmpuint(s->n_left, ==, c->step.n_left);
        g_assert_cmpuint(s->n_joined, ==, c->step.n_joined);
        g_assert_cmpuint(s->n_appended, ==, c->step.n_appended);
        compare_rows(r, c);
    }
    g_assert_cmpint(steps_reader_next(r, &s, &error), ==, 0);
    for (guint k = 0; k < 40; k++) {
        guint i = (guint)g_test_rand_int_range(0, 3000);
        steps_reader_seek(r, i, &error);
        g_assert_no_error(error);
        for (guint j = i; j < MIN(i + 3, 3000u); j++) {
            const Copy *c = m.copies->pdata[j];
            g_assert_cmpint(steps_reader_next(r, &s, &error), ==, 1);
            compare_step(s, &c->step);
            compare_rows(r, c);
            if (j == i)
                g_assert_cmpuint(s->n_joined, ==, c->rows->len);
        }
    }
    g_assert_true(steps_reader_seek(r, 3000, &error)); /* the end */
    g_assert_false(steps_reader_seek(r, 3001, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    g_remove(path);
    g_rmdir(dir);
    model_clear(&m);
}

static guint read_all(const char *path, GError **error)
{
    g_autoptr(StepsReader) r = steps_reader_open(path, error);
    if (r == NULL)
        return 0;
    guint n = 0;
    const Step *s;
    while (steps_reader_next(r, &s, error) == 1)
        n++;
    return n;
}

static void test_damage(void)
{
    g_autofree char *dir = folder();
    g_autofree char *path = g_build_filename(dir, "a.kvsteps", NULL);
    g_autofree char *part = g_build_filename(dir, "b.part", NULL);
    Model m;
    model_init(&m, g_test_rand_int());
    write_model(&m, path, 4000, TRUE);
    g_autofree char *data = NULL;
    gsize size;
    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    for (guint k = 0; k < 60; k++) { /* cut */
        g_autoptr(GError) error = NULL;
        gsize cut = (gsize)g_test_rand_int_range(0, (gint32)size);
        g_assert_true(g_file_set_contents(path, data, (gssize)cut, NULL));
        guint n = read_all(path, &error);
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, "a.kvsteps: "));
        g_assert_true(g_file_set_contents(part, data, (gssize)cut, NULL));
        g_autoptr(GError) growing = NULL;
        g_assert_cmpuint(read_all(part, &growing), ==, n);
    }
    for (guint k = 0; k < 120; k++) { /* flip a bit */
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = g_memdup2(data, size);
        bad[g_test_rand_int_range(0, (gint32)size)] ^= (char)(1 << g_test_rand_int_range(0, 8));
        g_assert_true(g_file_set_contents(path, bad, (gssize)size, NULL));
        guint n = read_all(path, &error);
        g_assert_true(error != NULL || n == 4000);
    }
    g_remove(path);
    g_remove(part);
    g_rmdir(dir);
    model_clear(&m);
}

static void test_part(void)
{
    g_autofree char *dir = folder();
    g_autofree char *path = g_build_filename(dir, "a.kvsteps", NULL);
    g_autofree char *part = g_strconcat(path, ".part", NULL);
    g_autoptr(GError) error = NULL;
    Model m;
    model_init(&m, g_test_rand_int());
    write_model(&m, path, 500, FALSE);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_cmpuint(read_all(part, &error), ==, 500);
    g_assert_no_error(error);
    g_remove(part);
    g_rmdir(dir);
    model_clear(&m);
}

static void test_not_one(void)
{
    g_autofree char *dir = folder();
    g_autofree char *path = g_build_filename(dir, "a", NULL);
    const char *const texts[] = {"", "kvsteps", "kvsteps 2\n", "a,b\n1,2\n",
                                 "kvsteps 1\n\377\377\377\377"};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_set_contents(path, texts[i], -1, NULL));
        g_assert_null(steps_reader_open(path, &error));
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(steps_reader_open(dir, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_remove(path);
    g_rmdir(dir);
}

/* A header that nests without end is refused, not followed. */
static void test_deep_header(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    StepsHeader ret = {0};
    for (guint i = 0; i < 1000000; i++)
        g_string_append_c(text, '[');
    g_assert_false(steps_header_from_json(&ret, text->str, text->len, "s.kvsteps", &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/steps-file/round-trip", test_round_trip);
    g_test_add_func("/steps-file/damage", test_damage);
    g_test_add_func("/steps-file/part", test_part);
    g_test_add_func("/steps-file/not-one", test_not_one);
    g_test_add_func("/steps-file/deep-header", test_deep_header);
    return g_test_run();
}
