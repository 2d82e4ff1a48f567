/* Each recorded format written from the same rows: what a reader must give back. */
#ifndef KV_TESTS_WORKLOADS_FORMAT_TEXTS_H
#define KV_TESTS_WORKLOADS_FORMAT_TEXTS_H

#include "base/ns.h"

typedef struct TextRow {
    kv_ns arrival; /* from 0, in order, a multiple of the format's resolution */
    gint32 prompt, output;
    guint session;
} TextRow;

typedef struct FormatText {
    const char *format; /* with options */
    const char *map;    /* NULL */
    const char *file;   /* name to write it under */
    kv_ns resolution;
    gboolean probed;       /* found without being named */
    gint32 block_tokens;   /* keys to expect; 0 = none */
    gboolean floor_blocks; /* only full blocks have keys */
    gboolean closed;       /* later turns of a session wait for the one before */
    gboolean document;     /* one value, not lines */
    gboolean long_lines;   /* one of each way of reading: try it with 10 MB lines */
    void (*print)(GString *out, const TextRow *rows, guint n);
} FormatText;

extern const FormatText format_texts[]; /* ends with format NULL */

#endif
