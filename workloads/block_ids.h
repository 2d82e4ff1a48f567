/* Block ids of a log to block keys, checked.
 *
 * A key is chained: it stands for its block's id and for everything before it (key_set.h), so that
 * equal keys mean equal prefixes even in a log whose ids repeat out of place. `scope` keeps ids of
 * different conversations apart where they are only unique within one.
 *
 * Checks, each counted as a note with the first line, or an error under strict: the number of ids
 * against the prompt length (ceil or floor), and that an id always follows the same id (the ids
 * form a tree; up to BLOCK_TREE_MAX ids are remembered).
 */
#ifndef KV_WORKLOADS_BLOCK_IDS_H
#define KV_WORKLOADS_BLOCK_IDS_H

#include "workloads/format.h"

#define BLOCK_TREE_MAX (4u << 20)

typedef enum { BLOCKS_CEIL, BLOCKS_FLOOR, BLOCKS_EITHER } BlockRule;

typedef struct BlockIds BlockIds;
BlockIds *block_ids_new(Input *input, FormatNotes *notes, gboolean strict, gint32 block_tokens,
                        BlockRule rule, gboolean check_tree);
void block_ids_free(BlockIds *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BlockIds, block_ids_free)
/* Sets record's keys from its ids; record->prompt must be set. Too many ids are cut. Keys are valid
 * until the next call. */
gboolean block_ids_apply(BlockIds *self, LogRecord *record, guint64 scope, const guint64 *ids,
                         gsize n, GError **error);
gint32 block_ids_tokens(const BlockIds *self);

#endif
