/* Models by name, or by a Hugging Face config.json: the shapes that times and memory follow from.
 *
 * Decoder-only transformers with gated feed-forward layers. `hidden`, `feed_forward` and
 * `vocabulary` are widths; parameters are counted from them (norms and biases left out: below 0.1
 * %). Source of the table: each publisher's config.json.
 */
#ifndef KV_SIM_MODEL_INFO_H
#define KV_SIM_MODEL_INFO_H

#include <glib.h>

typedef struct ModelInfo {
    const char *name; /* "config.json" when read from one */
    guint layers, hidden, q_heads, kv_heads, head_dim, feed_forward, vocabulary;
    gboolean tied; /* the output layer is the embedding */
} ModelInfo;

extern const ModelInfo model_infos[]; /* ends with name NULL */
/* By name, case ignored. FALSE + USAGE error that lists the known ones. */
gboolean model_info_find(const char *name, ModelInfo *ret, GError **error);
/* From a file. FALSE + INPUT error "FILE: ..." that names the missing key. */
gboolean model_info_read(const char *path, ModelInfo *ret, GError **error);

double model_info_step_parameters(const ModelInfo *m); /* that every step reads */
double model_info_parameters(const ModelInfo *m);      /* held in memory */
/* Bytes of one stored entry, K and V of all layers; `element` bytes each number. */
double model_info_entry_bytes(const ModelInfo *m, double element);

typedef enum { NUMBER_FP16, NUMBER_FP8, NUMBER_INT8, NUMBER_INT4 } NumberType;
#define NUMBER_CHOICES "fp16|fp8|int8|int4"
double number_bytes(NumberType type); /* int4: 4.25 bits, scales of groups of 128 included */

#endif
