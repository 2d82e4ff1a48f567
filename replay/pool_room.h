/* Does the K/V pool fit the memory that is free? The arithmetic, in one place, so that the refusal
 * can show it.
 *
 * Needed: pages x page bytes (K and V, one layer) x layers, beside `reserve` for work space. Bytes;
 * GiB = 2^30 in the message.
 */
#ifndef KV_REPLAY_POOL_ROOM_H
#define KV_REPLAY_POOL_ROOM_H

#include <glib.h>

typedef struct PoolRoom {
    const char *device; /* its name */
    gint64 pages, page_bytes;
    gint layers;
    gint64 reserve, free;
} PoolRoom;

/* FALSE + MACHINE error with the sum and what would fit. */
gboolean pool_room_check(const PoolRoom *room, GError **error);
/* Pages that would fit; 0 = none. */
gint64 pool_room_pages(const PoolRoom *room);

#endif
