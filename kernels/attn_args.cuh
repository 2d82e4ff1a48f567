/* What the decode kernel is told, and how it uses its shared memory. */
#ifndef KV_KERNELS_ATTN_ARGS_CUH
#define KV_KERNELS_ATTN_ARGS_CUH

#include "kernels/cuda_ptx.cuh"

namespace kv
{

constexpr int TILE = 16; /* tokens */
/* Most warps of a CTA; entries of 128 bytes make tiles half as large, so more are worked at. */
constexpr int max_warps(int d)
{
    return d == 64 ? 12 : 8;
}

/* One CTA's work in task mode: tokens [begin, end) of (row, head); slot < 0: the output. */
struct StreamTask {
    int row, head, begin, end;
    int slot, first_slot, n_slots; /* n_slots 0: merged by a later launch */
};

struct StreamArgs {
    const char *k, *v;
    int64_t page_bytes;
    int head_bytes, token_bytes;
    int page_shift; /* log2 of the page size */
    int rows, kv_heads, group;
    const int *lens, *table, *offset;
    const void *q;
    void *out;
    int table_lines, q_lines; /* 128-byte lines to fetch into L2 before they are asked for */
    float scale_log2;         /* scale x log2 e */
    const StreamTask *tasks;  /* NULL: persistent */
    int n_tasks;
    float *slots;        /* all words EMPTY between launches (attn_exchange.cuh) */
    uint32_t *arrivals;  /* by first slot, zero between launches: the last to arrive is the only
                            reader; NULL: readers are known beforehand */
    int readers;         /* CTAs that may wait for the slots of a (row, KV head), 1..MAX_READERS */
    int part_rows;       /* persistent: most rows that are cut into parts (attn_plan.cuh), <= 32 */
    int part_budget;     /* parts of one KV head that run at once */
    uint32_t part_scale; /* KV heads / grid, times 2^31 */
    int c0,
        min_units; /* persistent: tiles a (row, head) costs besides its own; least share of a CTA */
    int stages, buffers; /* ring depth 2..4; merge buffers 1..2 */
    int rounds; /* the warps of a CTA wait for one another every so many tiles each; 0 = never */
    uint32_t delay_seed; /* tests: random waits before global protocol steps; 0 = none */
};

template <int D> struct Geometry {
    static constexpr int ROW = 2 * D;            /* bytes of an entry */
    static constexpr int CHUNKS = D / 8;         /* 16-byte chunks of an entry */
    static constexpr int ROWS_PER = 32 / CHUNKS; /* entries a warp copies at once */
    static constexpr int COPIES = TILE / ROWS_PER;
    static constexpr int HALF = TILE * ROW; /* K (or V) of a tile */
    static constexpr int STAGE = 2 * HALF;
};

/* Floats of one warp's part of a merge buffer: m, l of 8 heads, then pairs of heads, padded so that
 * the stores of an accumulator meet no bank twice. */
__host__ __device__ constexpr int pairs_per_pass(int group)
{
    return group > 8 ? 4 : (group + 1) / 2;
}
__host__ __device__ constexpr int merge_floats(int group, int d)
{
    return (16 + pairs_per_pass(group) * (2 * d + 8) + 27) / 32 * 32 + 4;
}
/* Bytes of all the CTA's merge buffers. */
__host__ __device__ constexpr int merge_bytes(int group, int d, int warps, int buffers)
{
    return 4 * merge_floats(group, d) * warps * buffers;
}

/* Bytes of the plan in shared memory: two prefixes, lengths, table offsets, and scratch of the
 * scan. */
__host__ __device__ constexpr int plan_bytes(int rows)
{
    return 4 * (2 * (rows + 1) + 2 * rows + 2 * 16);
}

struct Smem {
    uint32_t ring;   /* this warp's */
    uint64_t policy; /* of K and V in L2 */
    float *merge;    /* of the warps' states */
    int *
        units; /* [rows + 1] units of the rows before: kv_heads x (tiles + c0) each, 0 when empty */
    int *tiles; /* [rows + 1] tiles of the rows before */
    int *len, *off, *scan;
};

/* What a CTA works through: tile ordinals [g0, g1); of a task those of its (row, head). */
struct Range {
    int g0, g1;
    bool task;          /* one task: of a list, or a part of the persistent plan; else a range */
    int off;            /* a task: where the row's block table begins */
    int row_lo, row_hi; /* persistent: rows of the first and last tile */
    int head;           /* persistent: KV head of the first tile */
    int cta, ctas;      /* persistent: index in the order of tiles, and how many work */
    int share, extra;   /* persistent: the first `extra` CTAs have share + 1 units, others share */
};

__device__ __forceinline__ void random_delay(const StreamArgs &a, uint32_t salt)
{
    if (a.delay_seed) {
        uint32_t x = a.delay_seed ^ (blockIdx.x * 0x9e3779b9u) ^ (salt * 0x85ebca6bu);
        x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
        __nanosleep(x & 0x3fff);
    }
}

} // namespace kv
#endif
