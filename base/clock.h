/* The clock that measurements read: CLOCK_MONOTONIC in microseconds, from an arbitrary zero.
 *
 * For differences only. Tens of nanoseconds a call; cannot fail.
 */
#ifndef KV_BASE_CLOCK_H
#define KV_BASE_CLOCK_H

double clock_us(void);

#endif
