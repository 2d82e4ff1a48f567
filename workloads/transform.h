/* Transforms: what a user does to a stream of requests before it is run.
 *
 * Text: items separated by ';', applied from left to right, each NAME=VALUE (short for the
 * transform's first key) or NAME:key=value,... : "slice=300s..320s;scale=2;clamp:context=8192".
 * Each transform is a source that wraps a source; all stream in constant memory. After each, time
 * zero is again the first arrival. Turns of a closed loop pass through; what a transform does to
 * them is said in its file.
 */
#ifndef KV_WORKLOADS_TRANSFORM_H
#define KV_WORKLOADS_TRANSFORM_H

#include "workloads/format.h"
#include "workloads/request.h"

typedef struct TransformArgs {
    const char *arrivals; /* plug-in text that replaces the arrivals, keeping lengths; NULL */
    const char *lengths;  /* ... that replaces the lengths, keeping the gaps; NULL */
    guint64 seed;
    guint32 replication;
    /* Opens the stream below transform `index` anew; NULL + error where that cannot be. */
    RequestSource *(*reopen)(gpointer data, guint index, GError **error);
    gpointer reopen_data;
    guint index; /* for the transform's own use */
} TransformArgs;

typedef struct TransformOps {
    PluginInfo info;
    /* Takes `inner` when it succeeds. `index` tells several of a kind apart (random streams). */
    RequestSource *(*wrap)(gconstpointer config, RequestSource *inner, const TransformArgs *args,
                           guint index, FormatNotes *notes, GError **error);
} TransformOps;

extern const PluginInfo *const transforms[]; /* of TransformOps */

/* The parsed list; owns the configs, must outlive the sources. `text` NULL = none. */
typedef struct TransformList TransformList;
TransformList *transform_list_new(const char *text, const TransformArgs *args, GError **error);
void transform_list_free(TransformList *self); /* NULL is fine */
/* Puts the first `n` transforms on top of *source. */
gboolean transform_list_wrap_first(TransformList *self, guint n, RequestSource **source,
                                   GError **error);
/* Puts the whole list, and then the replacements of TransformArgs, on top of *source. */
gboolean transform_list_wrap(TransformList *self, RequestSource **source, GError **error);
/* Appends what was changed, with counts. */
void transform_list_notes(const TransformList *self, GPtrArray *texts);

#endif
