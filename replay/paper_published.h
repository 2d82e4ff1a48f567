/* Times that were published for the experiments (arXiv 2606.26666 and its public logs; RTX 3060,
 * FlashInfer 0.2.5): for display beside this machine's, never instead. Milliseconds; 0 = none. */
#ifndef KV_REPLAY_PAPER_PUBLISHED_H
#define KV_REPLAY_PAPER_PUBLISHED_H

#include <glib.h>

typedef struct PublishedTimes {
    double event_ms, wall_ms;
} PublishedTimes;

PublishedTimes paper_published_serving(const char *trace, gint64 max_active, gint64 seed,
                                       const char *route);
/* Isolated kernels, one row, 50 % holes. Route names as ours; "workqueue" is its own kernel. */
PublishedTimes paper_published_isolated(gint64 length, const char *route);

#endif
