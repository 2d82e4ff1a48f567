/* Host tier: pages that were evicted from the GPU's pool but kept in host memory, by key.
 *
 * Least recently used goes first when it is full. A page that is brought back stays here too. All
 * operations are O(1); memory 40 bytes a page held. Bytes moved are counted; times are the
 * caller's.
 */
#ifndef KV_SIM_HOST_TIER_H
#define KV_SIM_HOST_TIER_H

#include <glib.h>

typedef struct HostTier HostTier;
HostTier *host_tier_new(guint64 pages); /* room; >= 1 */
void host_tier_free(HostTier *self);
/* An evicted page: TRUE when it had to be copied (it was not here yet). */
gboolean host_tier_put(HostTier *self, guint64 key);
gboolean host_tier_has(const HostTier *self, guint64 key);
void host_tier_use(HostTier *self, guint64 key); /* it was brought back */

#endif
