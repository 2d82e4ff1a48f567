/* The steps file (.kvsteps): every step of one replica, as deltas, framed and checksummed.
 *
 * docs/steps-file.md is the format. A file is a magic line, a JSON header, zstd frames of whole
 * steps (each with its step range, size and checksum), and an index. It is readable while being
 * written (the .part), and a cut or damaged file gives what is whole and then an INPUT error that
 * says at which byte and step.
 *
 * The reader rebuilds the batch: rows with slots, lengths and block tables, brought forward one
 * step at a time (steps_reader_next) or from the nearest frame's key state (steps_reader_seek).
 */
#ifndef KV_SIM_STEPS_FILE_H
#define KV_SIM_STEPS_FILE_H

#include "sim/step.h"

typedef struct StepsHeader {
    char *workload;        /* name */
    char *workload_sha256; /* NULL for generators */
    char *scenario;        /* the resolved scenario, INI text */
    char *model;           /* model name */
    guint32 layers, q_heads, kv_heads, head_dim;
    char *dtype;       /* "fp16", "bf16" */
    guint32 page_size; /* entries */
    guint64 pool_pages;
    guint64 seed;
    guint32 replica;
} StepsHeader;
void steps_header_clear(StepsHeader *header);

typedef struct StepsWriter StepsWriter;
/* Borrows `header` for the call. */
StepsWriter *steps_writer_new(const char *path, const StepsHeader *header, GError **error);
StepSink *steps_writer_sink(StepsWriter *self);
/* Writes the last frame and the index; renames. */
gboolean steps_writer_commit(StepsWriter *self, GError **error);
void steps_writer_keep(
    StepsWriter *self); /* after an interruption: leave the .part, whole frames */
void steps_writer_free(StepsWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StepsWriter, steps_writer_free)

typedef struct StepRow {
    guint64 request;
    guint32 slot;
    guint32 length;
    guint32 n_pages; /* >= ceil(length / page size) */
    gboolean paused;
    const guint32 *pages; /* [n_pages] */
} StepRow;

typedef struct StepsReader StepsReader;
StepsReader *steps_reader_open(const char *path, GError **error);
void steps_reader_free(StepsReader *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StepsReader, steps_reader_free)

const StepsHeader *steps_reader_header(const StepsReader *self);
gint64 steps_reader_count(const StepsReader *self); /* from the index; -1 where there is none */
guint32 steps_reader_max_slots(const StepsReader *self); /* slots seen so far, or from the index */
/* 1 = a step, 0 = end, -1 = error. The step's deltas are against the step read before; after a seek
 * the first step read gives its whole batch as `joined` (paused rows are then in `paused` too), and
 * no other deltas. Valid until the next call. */
int steps_reader_next(StepsReader *self, const Step **ret_step, GError **error);
/* The next step read is `index`. */
gboolean steps_reader_seek(StepsReader *self, guint64 index, GError **error);
/* The decode rows of the step last read, in batch order, paused ones included and marked. */
const StepRow *steps_reader_rows(const StepsReader *self, guint32 *ret_n);

#endif
