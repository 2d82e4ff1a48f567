/* The kernel lab: batches on a device, checked against the fp64 reference and timed, without GLib.
 *
 * A Batch has its own lens, table and offset on the device in `sets` copies over different pages of
 * one Pool, so that a timing loop that takes another set each time finds L2 cold. Any CUDA failure
 * ends the program with file and line: this is a measuring tool, not a library.
 */
#ifndef KV_TESTS_GPU_LAB_H
#define KV_TESTS_GPU_LAB_H

#include "kernels/attn_cuda.h"
#include "kernels/attn_device.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

void lab_fail(const char *file, int line, const char *what) __attribute__((noreturn));
#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t lab_e = (call);                                                                \
        if (lab_e != cudaSuccess)                                                                  \
            lab_fail(__FILE__, __LINE__, cudaGetErrorString(lab_e));                               \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        AttnCudaError lab_error = {"?"};                                                           \
        if ((call) != ATTN_OK)                                                                     \
            lab_fail(__FILE__, __LINE__, lab_error.text);                                          \
    } while (0)

/* Small generator (splitmix64). */
typedef struct Random {
    uint64_t state;
} Random;
uint64_t random_next(Random *r);
int random_below(Random *r, int n); /* 0 .. n-1 */

typedef struct Batch {
    AttnShape shape;
    int rows, sets;
    int *lens;           /* host, [rows] */
    int64_t n_pages;     /* of one set */
    int *table, *offset; /* host, set 0 */
    AttnBatch *on;       /* [sets] device pointers; out and q shared */
    int *device_ints;    /* owned */
    void *q, *out;       /* owned device memory */
    double kv_bytes;
} Batch;

/* Pages of all sets are drawn from a permutation of 0 .. pool_pages-1 (sets x n_pages of them,
 * modulo the pool). */
Batch *batch_new(const AttnShape *shape, int rows, const int *lens, int64_t pool_pages, int sets,
                 Random *random);
void batch_free(Batch *self);
/* Puts other lengths (of the same number of rows, not longer in pages) into set 0's device arrays.
 */
void batch_change_lens(Batch *self, const int *lens);

typedef struct Errors {
    double max_abs, mean_abs;
    long values, bad; /* bad: beyond the tolerance, or NaN */
} Errors;
/* The fp64 reference of set `set`, [rows][q_heads][head_dim], of every `every`-th row. K, V, q and
 * the table are read back from the device. Free it. */
double *batch_reference(const Batch *self, const AttnPool *pool, int set, int every);
/* Compares the device's outputs with it. */
void batch_compare(const Batch *self, const double *want, int every, Errors *ret);
/* |error| allowed for a reference value. */
double tolerance(AttnDtype dtype, double value);

/* Loads alone by the persistent plan, no arithmetic: the gather floor (d 128, fp16). */
void gather_run(const AttnCuda *cuda, const AttnPool *pool, const AttnBatch *batch,
                const AttnPlan *plan, const AttnShape *shape, void *stream);

int lab_check(int argc, char **argv);
int lab_time(int argc, char **argv);
int lab_stress(int argc, char **argv);
#endif
