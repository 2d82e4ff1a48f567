/* The reader's lower half: the file, its header and index, one frame in hand. Private to the steps
 * file.
 *
 * steps_frames_next() puts the next frame's bytes into `in` and checks all that can be checked
 * without knowing what is inside; the upper half (sim/steps_reader.c) reads the records. */
#ifndef KV_SIM_STEPS_FRAMES_H
#define KV_SIM_STEPS_FRAMES_H

#include "sim/batch.h"
#include "sim/steps_file.h"
#include "sim/steps_format.h"
#include "sim/varint.h"

#include <stdio.h>
#include <zstd.h>

struct StepsReader {
    FILE *file;
    char *path;
    StepsHeader header;
    gboolean whole;      /* has an index: not cut, not in the making */
    gboolean growing;    /* a .part: it may end anywhere */
    guint64 end;         /* offset at which frames end (the index), or the size of the file */
    guint64 first_frame; /* offset */
    GArray *index;       /* FrameEntry: from the index, or of the frames met so far */
    gint64 count;
    guint32 index_slots;

    guint64 offset; /* of the next frame */
    guint8 *stored, *raw;
    gsize stored_cap, raw_cap;
    ZSTD_DCtx *zstd;
    guint64 frame_offset; /* of the frame in hand */
    guint32 frame_left;   /* steps of it not yet read */
    VarintReader in;

    Batch batch;
    StepPredictor prev;
    guint64 next_step;
    gboolean whole_batch; /* give the next step's whole batch as joined */
    Step step;
    GArray *left, *paused, *resumed, *joined, *appended, *prefill, *pages, *rows;
};

/* Sets an INPUT error that names the file, the byte and the step. Returns FALSE. */
gboolean steps_frames_fail(const StepsReader *self, GError **error, guint64 offset,
                           const char *what);
gboolean steps_frames_read_header(StepsReader *self, GError **error);
/* Takes the index where the file has a sound one. */
void steps_frames_read_index(StepsReader *self);
/* 1 = a frame is in hand, 0 = no more, -1 = error. `any_step`: it need not go on where the last one
 * ended (a seek). */
int steps_frames_next(StepsReader *self, gboolean any_step, GError **error);
/* The frame that holds step `index`, as far as the frames are known; NULL = the first. */
const FrameEntry *steps_frames_find(const StepsReader *self, guint64 index);

#endif
