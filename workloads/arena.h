/* Storage for the variable parts of waiting requests (block keys, observations).
 *
 * Bump allocation in chunks with a count of the living; a chunk is used again when the last of its
 * pieces is released. Right for pieces that live about as long as their neighbours.
 */
#ifndef KV_WORKLOADS_ARENA_H
#define KV_WORKLOADS_ARENA_H

#include "workloads/request.h"

typedef struct Arena Arena;
typedef struct ArenaChunk ArenaChunk;
Arena *arena_new(void);
void arena_free(Arena *self);
/* Points the request's blocks and observation at copies; the chunk they lie in, NULL if it has
 * none. */
ArenaChunk *arena_keep(Arena *self, Request *request);
/* The same with a copy of the request itself in front; *ret_chunk is never NULL. */
const Request *arena_keep_whole(Arena *self, const Request *request, ArenaChunk **ret_chunk);
void arena_release(Arena *self, ArenaChunk *chunk); /* NULL is fine */
gsize arena_bytes(const Arena *self);               /* in use, whole chunks */

#endif
