/* The steps file's layout, shared by writer and reader; docs/steps-file.md tells it in full.
 *
 *   magic line  "kvsteps 1\n"
 *   header      u32 size, JSON, u32 crc32 of the JSON
 *   frames      FRAME_HEAD bytes: "KVSF", u32 steps, u64 first step, u32 raw size, u32 stored size,
 *               u32 crc32 (of the 24 bytes before and the stored bytes); then a zstd frame
 *   index       "KVSI", u32 frames, {u64 offset, u64 first step} each, u64 steps, u32 slots, u32
 * crc32 trailer     u64 offset of the index, "KVSEND1\n" Fixed-size integers are little-endian.
 * Inside a frame all numbers are varints (sim/varint.h): the key state (the batch before the
 * frame's first step), then one record a step. Every predictor is reset at a frame's start, so a
 * frame can be read by itself.
 */
#ifndef KV_SIM_STEPS_FORMAT_H
#define KV_SIM_STEPS_FORMAT_H

#include "sim/step.h"

#define STEPS_MAGIC "kvsteps 1\n"
#define STEPS_MAGIC_SIZE 10
#define STEPS_TRAILER_MAGIC "KVSEND1\n"
#define FRAME_MAGIC "KVSF"
#define INDEX_MAGIC "KVSI"
#define FRAME_HEAD 28
#define FRAME_MAX_BYTES (1u << 30)
#define HEADER_MAX_BYTES (64u << 20)
#define TRAILER_BYTES 16

/* First byte of a step record: which parts follow, in this order. */
enum {
    STEP_GAP = 1,   /* the step does not start where the one before ended */
    STEP_STATE = 2, /* waiting, pages used or tokens held are not as predicted */
    STEP_LEFT = 4,
    STEP_PAUSED = 8,
    STEP_RESUMED = 16,
    STEP_JOINED = 32,
    STEP_APPENDED = 64,
    STEP_PREFILL = 128,
};

/* What the next record is predicted from. */
typedef struct StepPredictor {
    kv_ns end; /* of the step before */
    kv_ns duration;
    guint32 waiting, pages_used;
    guint64 tokens_held;
    guint64 request; /* last one written */
    guint32 page;    /* last one written */
} StepPredictor;

typedef struct FrameEntry {
    guint64 offset, first_step;
} FrameEntry;

static inline void put_le32(guint8 *p, guint32 v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (guint8)(v >> (8 * i));
}
static inline void put_le64(guint8 *p, guint64 v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (guint8)(v >> (8 * i));
}
static inline guint32 get_le32(const guint8 *p)
{
    return p[0] | (guint32)p[1] << 8 | (guint32)p[2] << 16 | (guint32)p[3] << 24;
}
static inline guint64 get_le64(const guint8 *p)
{
    return get_le32(p) | (guint64)get_le32(p + 4) << 32;
}

#endif
