/* Model shapes by name: what attention needs to know of a model.
 *
 * Source of each: the `config.json` that the model's publisher ships (num_hidden_layers,
 * num_attention_heads, num_key_value_heads, head_dim). Read-only data.
 */
#ifndef KV_CLI_MODELS_H
#define KV_CLI_MODELS_H

#include <glib.h>

typedef struct ModelShape {
    const char *name;
    guint32 layers, q_heads, kv_heads, head_dim;
} ModelShape;

extern const ModelShape model_shapes[]; /* ends with name NULL */
gboolean model_shape_find(const char *name, ModelShape *ret, GError **error);

#endif
