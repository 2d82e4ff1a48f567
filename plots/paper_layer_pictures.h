/* The pictures of layer.csv: shares of a whole step by batch and context, a panel a model and
 * context; and the host's side by route. Private to plots/paper_*.c.
 */
#ifndef KV_PLOTS_PAPER_LAYER_PICTURES_H
#define KV_PLOTS_PAPER_LAYER_PICTURES_H

#include "plots/paper_table.h"
#include "plots/picture.h"

/* NULL where the table has nothing to show. */
Picture *paper_layer_shares(const PaperTable *table);
Picture *paper_layer_host(const PaperTable *table);

#endif
