#include "sim/event_queue.h"

#include <string.h>

void event_queue_init(EventQueue *q)
{
    memset(q, 0, sizeof *q);
}

void event_queue_clear(EventQueue *q)
{
    g_free(q->heap);
    event_queue_init(q);
}

static gboolean event_before(const Event *a, const Event *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->sequence < b->sequence;
}

void event_queue_push(EventQueue *q, kv_ns time, guint32 priority, gpointer data)
{
    if (q->n == q->cap) {
        q->cap = MAX(8, q->cap * 2);
        q->heap = g_renew(Event, q->heap, q->cap);
    }
    Event e = {time, priority, q->next_sequence++, data};
    gsize i = q->n++;
    while (i > 0 && event_before(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
}

kv_ns event_queue_next(const EventQueue *q)
{
    return q->n ? q->heap[0].time : KV_NS_MAX;
}

gpointer event_queue_pop(EventQueue *q)
{
    g_assert(q->n > 0);
    gpointer data = q->heap[0].data;
    Event e = q->heap[--q->n];
    gsize i = 0;
    for (gsize child = 1; child < q->n; child = 2 * i + 1) {
        if (child + 1 < q->n && event_before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!event_before(&q->heap[child], &e))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = e;
    return data;
}
