/* Exact quantiles of token counts, however many: a count for each length.
 *
 * Lengths below TOKEN_COUNTS_DENSE are counted in an array that grows to the longest seen (8 bytes
 * a length); longer ones, which hardly occur, are kept one by one. Adding is an increment.
 */
#ifndef KV_WORKLOADS_TOKEN_COUNTS_H
#define KV_WORKLOADS_TOKEN_COUNTS_H

#include "base/stats.h"

#define TOKEN_COUNTS_DENSE (1 << 21)

typedef struct TokenCounts TokenCounts;
TokenCounts *token_counts_new(void);
void token_counts_free(TokenCounts *self);
void token_counts_add(TokenCounts *self, gint32 tokens); /* >= 0 */
/* Linear rule, as base/stats.h; n = 0: nothing else means anything. */
Summary token_counts_summary(TokenCounts *self);

#endif
