/* Fewer points in place of many (replay/near.h): in order of shape and bytes, each is added to the
 * closest of those kept before it, where that is closer than `within`, or is kept itself. A point
 * that others were added to has their mean and the sum of their weights, at its own place.
 *
 * Cost: of those kept, a point is held against those of shapes within reach, and of them against
 * those of about its bytes: 9,000 points of a route take 20 ms. Errors: none.
 */
#ifndef KV_REPLAY_NEAR_MERGE_H
#define KV_REPLAY_NEAR_MERGE_H

#include "replay/near.h"

/* `from` is settled, and so is what is returned. */
Near *near_merge(const Near *from, double within);

#endif
