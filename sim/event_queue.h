/* Event queue: an array heap of things that will happen, keyed (time, priority, sequence).
 *
 * Times are kv_ns. Of equal times the lower priority number comes first, then what was added first:
 * the sequence number is given on adding and never reused, so the order is total and the same on
 * every run. push and pop cost O(log n); memory is 32 bytes an event and grows by doubling. Data
 * pointers are borrowed. There is no cancelling: an event that no longer matters is recognised by
 * its owner.
 */
#ifndef KV_SIM_EVENT_QUEUE_H
#define KV_SIM_EVENT_QUEUE_H

#include "base/ns.h"

typedef struct Event {
    kv_ns time;
    guint32 priority;
    guint64 sequence;
    gpointer data;
} Event;

typedef struct EventQueue {
    Event *heap;
    gsize n, cap;
    guint64 next_sequence;
} EventQueue;

void event_queue_init(EventQueue *q);
void event_queue_clear(EventQueue *q);
void event_queue_push(EventQueue *q, kv_ns time, guint32 priority, gpointer data);
/* Time of the first event; KV_NS_MAX when empty. */
kv_ns event_queue_next(const EventQueue *q);
/* The first event's data, taken out. The queue must not be empty. */
gpointer event_queue_pop(EventQueue *q);

#endif
