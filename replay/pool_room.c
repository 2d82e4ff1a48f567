#include "replay/pool_room.h"

#include "base/error.h"

gint64 pool_room_pages(const PoolRoom *room)
{
    const gint64 each = room->page_bytes * MAX(room->layers, 1);
    return MAX(room->free - room->reserve, 0) / MAX(each, 1);
}

gboolean pool_room_check(const PoolRoom *room, GError **error)
{
    const double gib = 1 << 30;
    const gint64 fit = pool_room_pages(room);
    if (room->pages <= fit)
        return TRUE;
    const double layer = (double)room->pages * (double)room->page_bytes;
    g_set_error(
        error, KV_ERROR, KV_ERROR_MACHINE,
        "%s: too little memory: %" G_GINT64_FORMAT " pages x %" G_GINT64_FORMAT
        " bytes of K and V x %d layer%s = %.2f GiB, with %.2f GiB of work space %.2f GiB, "
        "and %.2f GiB are free: %" G_GINT64_FORMAT " pages would fit (--pool-pages, --layers)",
        room->device, room->pages, room->page_bytes, room->layers, room->layers == 1 ? "" : "s",
        layer * room->layers / gib, (double)room->reserve / gib,
        (layer * room->layers + (double)room->reserve) / gib, (double)room->free / gib, fit);
    return FALSE;
}
