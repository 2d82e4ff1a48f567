/* The waiting line of a scheduler, in one of four orders.
 *
 * fcfs is a ring: arrivals go to the tail, preempted requests to the head. The others are heaps by
 * (key, arrival, id): sjf by prompt + output tokens, priority by the request's priority, edf by its
 * deadline (none = last); a preempted request goes where its key says. All operations but listing
 * are O(log n) or better. Requests are borrowed.
 */
#ifndef KV_SIM_WAIT_QUEUE_H
#define KV_SIM_WAIT_QUEUE_H

#include "sim/sim_request.h"

typedef enum { ORDER_FCFS, ORDER_SJF, ORDER_PRIORITY, ORDER_EDF } WaitOrder;
#define WAIT_ORDER_CHOICES "fcfs|sjf|priority|edf"

typedef struct WaitQueue {
    WaitOrder order;
    SimRequest **items; /* a ring (fcfs, from `head`) or a heap */
    gsize n, cap, head;
} WaitQueue;

void wait_queue_init(WaitQueue *q, WaitOrder order);
void wait_queue_clear(WaitQueue *q);
void wait_queue_push(WaitQueue *q, SimRequest *r);
void wait_queue_push_back(WaitQueue *q, SimRequest *r); /* a preempted one */
SimRequest *wait_queue_peek(const WaitQueue *q);        /* NULL when empty */
SimRequest *wait_queue_pop(WaitQueue *q);
/* All of them in the order in which they would be taken. Free it. */
SimRequest **wait_queue_list(const WaitQueue *q);

#endif
