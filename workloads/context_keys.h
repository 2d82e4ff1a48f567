/* Block keys of a context that grows turn by turn.
 *
 * For logs and generators that say what is new in a turn and not what the whole context is. The
 * context is a list of pieces (content, length); token i of content c is the same token wherever c
 * is used from its start. A block's key is chained from what it is made of, so two contexts share
 * the keys of what they have in common from the start, and nothing else. Only full blocks have
 * keys.
 */
#ifndef KV_WORKLOADS_CONTEXT_KEYS_H
#define KV_WORKLOADS_CONTEXT_KEYS_H

#include "workloads/request.h"

typedef struct ContextKeys ContextKeys;
ContextKeys *context_keys_new(gint32 block_tokens);
void context_keys_free(ContextKeys *self);
void context_keys_append(ContextKeys *self, guint64 content, gint64 tokens);
void context_keys_truncate(ContextKeys *self, gint64 tokens); /* to the first `tokens` */
gint64 context_keys_tokens(const ContextKeys *self);
/* Keys of the full blocks; valid until the context changes. */
const guint64 *context_keys_get(const ContextKeys *self, guint32 *ret_n);

#endif
