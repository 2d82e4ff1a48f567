#include "sim/wait_queue.h"

#include <string.h>

void wait_queue_init(WaitQueue *q, WaitOrder order)
{
    memset(q, 0, sizeof *q);
    q->order = order;
}

void wait_queue_clear(WaitQueue *q)
{
    g_free(q->items);
    wait_queue_init(q, q->order);
}

static gint64 wait_key(const WaitQueue *q, const SimRequest *r)
{
    switch (q->order) {
    case ORDER_SJF:
        return (gint64)r->request.prompt + r->request.output;
    case ORDER_PRIORITY:
        return r->request.priority;
    case ORDER_EDF:
        return r->request.deadline == KV_NS_NONE ? KV_NS_MAX
                                                 : r->request.arrival + r->request.deadline;
    case ORDER_FCFS:
        break;
    }
    return 0;
}

static gboolean goes_before(const WaitQueue *q, const SimRequest *a, const SimRequest *b)
{
    gint64 ka = wait_key(q, a), kb = wait_key(q, b);
    if (ka != kb)
        return ka < kb;
    if (a->request.arrival != b->request.arrival)
        return a->request.arrival < b->request.arrival;
    return a->request.id < b->request.id;
}

static void grow(WaitQueue *q)
{
    if (q->n < q->cap)
        return;
    gsize cap = MAX(64, q->cap * 2);
    SimRequest **items = g_new(SimRequest *, cap);
    for (gsize i = 0; i < q->n; i++)
        items[i] = q->items[q->cap ? (q->head + i) & (q->cap - 1) : i];
    g_free(q->items);
    q->items = items;
    q->cap = cap;
    q->head = 0;
}

static void heap_push(WaitQueue *q, SimRequest *r)
{
    gsize i = q->n++;
    while (i > 0 && goes_before(q, r, q->items[(i - 1) / 2])) {
        q->items[i] = q->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->items[i] = r;
}

static SimRequest *heap_pop(WaitQueue *q)
{
    SimRequest *first = q->items[0], *last = q->items[--q->n];
    gsize i = 0;
    for (gsize child = 1; child < q->n; child = 2 * i + 1) {
        if (child + 1 < q->n && goes_before(q, q->items[child + 1], q->items[child]))
            child++;
        if (!goes_before(q, q->items[child], last))
            break;
        q->items[i] = q->items[child];
        i = child;
    }
    q->items[i] = last;
    return first;
}

void wait_queue_push(WaitQueue *q, SimRequest *r)
{
    grow(q);
    if (q->order == ORDER_FCFS)
        q->items[(q->head + q->n++) & (q->cap - 1)] = r;
    else
        heap_push(q, r);
}

void wait_queue_push_back(WaitQueue *q, SimRequest *r)
{
    grow(q);
    if (q->order == ORDER_FCFS) {
        q->head = (q->head - 1) & (q->cap - 1);
        q->items[q->head] = r;
        q->n++;
    } else {
        heap_push(q, r);
    }
}

SimRequest *wait_queue_peek(const WaitQueue *q)
{
    return q->n ? q->items[q->head] : NULL;
}

SimRequest *wait_queue_pop(WaitQueue *q)
{
    g_assert(q->n > 0);
    if (q->order != ORDER_FCFS)
        return heap_pop(q);
    SimRequest *r = q->items[q->head];
    q->head = (q->head + 1) & (q->cap - 1);
    q->n--;
    return r;
}

SimRequest **wait_queue_list(const WaitQueue *q)
{
    SimRequest **list = g_new(SimRequest *, q->n + 1);
    if (q->order == ORDER_FCFS) {
        for (gsize i = 0; i < q->n; i++)
            list[i] = q->items[(q->head + i) & (q->cap - 1)];
        return list;
    }
    WaitQueue copy = *q;
    copy.items = g_memdup2(q->items, q->n * sizeof *q->items);
    for (gsize i = 0; i < q->n; i++)
        list[i] = heap_pop(&copy);
    g_free(copy.items);
    return list;
}
