/* The transforms' ops, one per file of this folder; for the registry in transform.c only. */
#ifndef KV_WORKLOADS_TRANSFORMS_TRANSFORMS_H
#define KV_WORKLOADS_TRANSFORMS_TRANSFORMS_H

#include "workloads/transform.h"

extern const TransformOps transform_scale;
extern const TransformOps transform_slice;
extern const TransformOps transform_rows;
extern const TransformOps transform_thin;
extern const TransformOps transform_repeat;
extern const TransformOps transform_clamp;
extern const TransformOps transform_resample;

/* What all have in common: an inner source, and turns that pass through. */
typedef struct Wrapped {
    RequestSource base;
    RequestSource *inner;
} Wrapped;
int wrapped_next_turn(RequestSource *self, const Request *finished, kv_ns now, Request *ret,
                      GError **error);
void wrapped_free(RequestSource *self);

/* Sources for TransformArgs' replacements. Take `inner` when they succeed. */
RequestSource *replace_arrivals_new(RequestSource *inner, const TransformArgs *args,
                                    GError **error);
RequestSource *replace_lengths_new(RequestSource *inner, const TransformArgs *args, GError **error);

#endif
