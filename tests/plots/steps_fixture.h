/* A small steps file for the tests of plots/: three requests, seven steps, worked by hand.
 *
 *   step  start ms  rows (request: length)    prefill
 *   0     0         -                         0: 20 tokens
 *   1     30        0: 21                     1: 16 of 40
 *   2     50        0: 22                     1: 24 more
 *   3     70        0: 23, 1: 41              -
 *   4     80        1: 42 (0 has left)        2: 5
 *   5     100       1: 43, 2: 6               -
 *   6     130       2: 7 (1 pauses)           -
 */
#ifndef KV_TESTS_STEPS_FIXTURE_H
#define KV_TESTS_STEPS_FIXTURE_H

#include "sim/steps_file.h"

static void steps_fixture_write(const char *path)
{
    const StepsHeader header = {.workload = (char *)"fixture",
                                .scenario = (char *)"",
                                .model = (char *)"tiny",
                                .layers = 2,
                                .q_heads = 8,
                                .kv_heads = 2,
                                .head_dim = 64,
                                .dtype = (char *)"fp16",
                                .page_size = 16,
                                .pool_pages = 64,
                                .seed = 1};
    static const guint32 pages0[] = {0, 1}, pages1[] = {10, 11, 12}, pages2[] = {0};
    static const StepJoin join0 = {0, 0, 21, 2, pages0}, join1 = {1, 1, 41, 3, pages1},
                          join2 = {2, 0, 6, 1, pages2};
    static const StepPrefill chunks[] = {
        {0, 0, 20, 0}, {1, 0, 16, 0}, {1, 16, 24, 0}, {2, 0, 5, 0}};
    static const guint32 slot0[] = {0}, slot1[] = {1};
    const Step steps[] = {{.index = 0,
                           .start = 0,
                           .duration = 30 * KV_MS,
                           .pages_used = 2,
                           .tokens_held = 20,
                           .n_prefill = 1,
                           .prefill = &chunks[0]},
                          {.index = 1,
                           .start = 30 * KV_MS,
                           .duration = 20 * KV_MS,
                           .pages_used = 3,
                           .tokens_held = 37,
                           .n_joined = 1,
                           .joined = &join0,
                           .n_prefill = 1,
                           .prefill = &chunks[1],
                           .rows = 1,
                           .max_length = 21,
                           .sum_length = 21},
                          {.index = 2,
                           .start = 50 * KV_MS,
                           .duration = 20 * KV_MS,
                           .pages_used = 5,
                           .tokens_held = 62,
                           .n_prefill = 1,
                           .prefill = &chunks[2],
                           .rows = 1,
                           .max_length = 22,
                           .sum_length = 22},
                          {.index = 3,
                           .start = 70 * KV_MS,
                           .duration = 10 * KV_MS,
                           .pages_used = 5,
                           .tokens_held = 64,
                           .n_joined = 1,
                           .joined = &join1,
                           .rows = 2,
                           .max_length = 41,
                           .sum_length = 64},
                          {.index = 4,
                           .start = 80 * KV_MS,
                           .duration = 20 * KV_MS,
                           .pages_used = 4,
                           .tokens_held = 47,
                           .n_left = 1,
                           .left = slot0,
                           .n_prefill = 1,
                           .prefill = &chunks[3],
                           .rows = 1,
                           .max_length = 42,
                           .sum_length = 42},
                          {.index = 5,
                           .start = 100 * KV_MS,
                           .duration = 30 * KV_MS,
                           .pages_used = 4,
                           .tokens_held = 49,
                           .n_joined = 1,
                           .joined = &join2,
                           .rows = 2,
                           .max_length = 43,
                           .sum_length = 49},
                          {.index = 6,
                           .start = 130 * KV_MS,
                           .duration = 5 * KV_MS,
                           .pages_used = 4,
                           .tokens_held = 50,
                           .n_paused = 1,
                           .paused = slot1,
                           .rows = 1,
                           .max_length = 7,
                           .sum_length = 7}};
    g_autoptr(GError) error = NULL;
    g_autoptr(StepsWriter) writer = steps_writer_new(path, &header, &error);
    g_assert_no_error(error);
    StepSink *sink = steps_writer_sink(writer);
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        sink->step(sink, &steps[i], &error);
        g_assert_no_error(error);
    }
    steps_writer_commit(writer, &error);
    g_assert_no_error(error);
}

#endif
