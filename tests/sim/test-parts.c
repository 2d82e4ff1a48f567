/* The simulator's structures against plain ones: event queue, waiting line, page pool. */
#include "base/error.h"
#include "sim/event_queue.h"
#include "sim/page_pool.h"
#include "sim/wait_queue.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return x->sequence < y->sequence ? -1 : 1;
}

/* Times, then priorities, then the order of adding: as a stable sort has it. */
static void test_event_order(void)
{
    enum { N = 2000 };
    EventQueue q;
    event_queue_init(&q);
    Event expected[N];
    for (guint i = 0; i < N; i++) {
        expected[i] = (Event){g_test_rand_int_range(0, 50), (guint32)g_test_rand_int_range(0, 3), i,
                              GUINT_TO_POINTER(i)};
        event_queue_push(&q, expected[i].time, expected[i].priority, expected[i].data);
    }
    qsort(expected, N, sizeof *expected, by_key);
    for (guint i = 0; i < N; i++) {
        g_assert_cmpint(event_queue_next(&q), ==, expected[i].time);
        g_assert_true(event_queue_pop(&q) == expected[i].data);
    }
    g_assert_cmpint(event_queue_next(&q), ==, KV_NS_MAX);
    event_queue_clear(&q);
}

static void test_wait_orders(void)
{
    SimRequest r[4] = {0};
    const gint32 prompt[] = {50, 10, 30, 10}, priority[] = {2, 1, 0, 1};
    const kv_ns deadline[] = {KV_NS_NONE, 400, 90, 100};
    for (guint i = 0; i < 4; i++)
        r[i].request = (Request){.id = i,
                                 .arrival = 10 * i,
                                 .prompt = prompt[i],
                                 .output = 1,
                                 .priority = priority[i],
                                 .deadline = deadline[i]};
    const guint64 expected[][4] = {{0, 1, 2, 3}, {1, 3, 2, 0}, {2, 1, 3, 0}, {2, 3, 1, 0}};
    for (guint order = 0; order < 4; order++) {
        WaitQueue q;
        wait_queue_init(&q, (WaitOrder)order);
        for (guint i = 0; i < 4; i++)
            wait_queue_push(&q, &r[i]);
        g_autofree SimRequest **list = wait_queue_list(&q);
        for (guint i = 0; i < 4; i++) {
            g_assert_cmpuint(list[i]->request.id, ==, expected[order][i]);
            g_assert_true(wait_queue_peek(&q) == list[i]);
            g_assert_true(wait_queue_pop(&q) == list[i]);
        }
        wait_queue_push(&q, &r[0]);
        wait_queue_push_back(&q, &r[2]); /* a preempted one: to the head of a fcfs line */
        if (order == ORDER_FCFS)
            g_assert_true(wait_queue_peek(&q) == &r[2]);
        wait_queue_clear(&q);
    }
}

/* Random tables taken, shared, named and given back; everything recounted after each. */
static void random_pool(gboolean caching, const char *layout)
{
    enum { TABLES = 12, PAGES = 60 };
    PagePool pool;
    g_autoptr(GError) error = NULL;
    g_assert_true(page_pool_init(&pool, PAGES, caching, g_test_rand_bit(), layout, 5, &error));
    GArray *tables[TABLES];
    guint32 *holders = g_new0(guint32, pool.id_limit + 1);
    for (guint i = 0; i < TABLES; i++)
        tables[i] = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint turn = 0; turn < 3000; turn++) {
        GArray *t = tables[g_test_rand_int_range(0, TABLES)];
        guint32 n = (guint32)g_test_rand_int_range(1, 9), taken[9];
        if (t->len > 0 && g_test_rand_bit()) {
            page_pool_give(&pool, (guint32 *)(gpointer)t->data, t->len);
            for (guint i = 0; i < t->len; i++)
                holders[g_array_index(t, guint32, i)]--;
            g_array_set_size(t, 0);
            continue;
        }
        guint32 hit =
            caching ? page_pool_find(&pool, 2 + (guint64)g_test_rand_int_range(0, 30)) : PAGE_NONE;
        if (hit != PAGE_NONE) {
            page_pool_touch(&pool, hit);
            g_array_append_val(t, hit);
            holders[hit]++;
        }
        n = MIN(n, pool.n_free);
        guint32 next[9];
        g_assert_cmpuint(page_pool_peek(&pool, n, next), ==, n);
        page_pool_take(&pool, n, taken);
        g_assert_cmpmem(next, n * 4, taken, n * 4);
        for (guint32 i = 0; i < n; i++) {
            holders[taken[i]]++;
            if (caching && g_test_rand_bit())
                page_pool_name(&pool, taken[i], 2 + (guint64)g_test_rand_int_range(0, 30));
        }
        g_array_append_vals(t, taken, n);
        g_assert_cmpstr(page_pool_check(&pool, holders), ==, NULL);
    }
    for (guint i = 0; i < TABLES; i++)
        g_array_unref(tables[i]);
    g_free(holders);
    page_pool_clear(&pool);
}

static void test_pool(void)
{
    random_pool(FALSE, "fresh");
    random_pool(FALSE, "churned");
    random_pool(FALSE, "holes:fraction=0.5");
    for (guint i = 0; i < 4; i++)
        random_pool(TRUE, i & 1 ? "churned" : "fresh");
    PagePool pool;
    g_autoptr(GError) error = NULL;
    g_assert_false(page_pool_init(&pool, 10, FALSE, FALSE, "fragmented", 1, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parts/event-order", test_event_order);
    g_test_add_func("/parts/wait-orders", test_wait_orders);
    g_test_add_func("/parts/pool", test_pool);
    return g_test_run();
}
