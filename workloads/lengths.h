/* Lengths: prompt and output tokens of generated requests.
 *
 * A model gives pairs from a stream of its own (the arrivals do not shift it). Real draws are
 * rounded to the nearest token and clamped to [1, max]; what that does to the mean is documented
 * with each law in docs/workloads.md.
 */
#ifndef KV_WORKLOADS_LENGTHS_H
#define KV_WORKLOADS_LENGTHS_H

#include <glib.h>

#include "base/rng.h"
#include "base/spec.h"

typedef struct LengthModel LengthModel;

typedef struct LengthOps {
    PluginInfo info;
    LengthModel *(*open)(gconstpointer config, guint64 seed, guint32 replication, GError **error);
    void (*next)(LengthModel *self, gint32 *ret_prompt, gint32 *ret_output);
    void (*free)(LengthModel *self); /* NULL = g_free */
} LengthOps;

struct LengthModel {
    const LengthOps *ops;
    RngStream prompt, output;
};

extern const PluginInfo *const lengths[]; /* of LengthOps */

void length_model_free(LengthModel *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LengthModel, length_model_free)
static inline void length_model_next(LengthModel *self, gint32 *ret_prompt, gint32 *ret_output)
{
    self->ops->next(self, ret_prompt, ret_output);
}

/* For the models: streams for prompts and outputs set up; nearest token, clamped. */
void length_model_init(LengthModel *self, const LengthOps *ops, guint64 seed, guint32 replication);
gint32 length_tokens(double value, gint64 max);

#endif
