/* Planning: how one step's decode attention is cut into tasks and launches, on every engine.
 *
 * attn_plan_build() is a pure function of (config, shape, lengths): the CPU engine executes the
 * very tasks that the GPU gets, and the counters backend counts them. Cost O(rows + tasks), no
 * allocation once the plan's arrays have grown (they are reused from step to step). Host only.
 *
 * Split rules. A row of T units (unit = max(tile, page size) tokens) is cut into S splits at units
 * T*s/S; when T < S some are empty, and no tasks (in `masked`: neutral ones). `fixed`: S for every
 * row. `balanced`: S = ceil(T / chunk) with one chunk for the step, the better of two: the smallest
 * for which all tasks run at once, so that no CTA gets a second one; or a quarter of a worker's
 * share, so that the last tasks to end are short. `buckets` chooses so within each bucket, whose
 * launch runs alone. A row with one task needs no merge; a step in which no row needs one has no
 * merge launch.
 *
 * The built-in kernels load just the entries of their tasks: page tails and bucket padding are
 * masked, not read, so kv_bytes_touched = kv_bytes here; peers' kernels differ.
 *
 * Tasks of a (row, KV head) cover its entries in order, without overlap. A task with slot < 0
 * covers its whole (row, KV head) and writes the output; others write a partial state into their
 * slot, and the slots of a (row, KV head) are consecutive, in token order, so that a merge in slot
 * order gives the same bits whoever runs it.
 */
#ifndef KV_KERNELS_PLAN_H
#define KV_KERNELS_PLAN_H

#include "kernels/attn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum AttnRoute {
    ATTN_SINGLE,    /* 1 launch: a task per (row, KV head), no split */
    ATTN_BUCKETS,   /* per distinct (or padded) length: an attention and a merge launch */
    ATTN_MASKED,    /* 2 launches: rectangular (row, KV head, split) grid, empty ones neutral */
    ATTN_WORKQUEUE, /* 2 launches: non-empty tasks, then a segmented merge */
    ATTN_WORKQUEUE_FUSED, /* 1 launch: the last task of a (row, KV head) merges */
    ATTN_PERSISTENT,      /* 1 launch: `workers` CTAs, each a part of a row or a range of tiles */
    ATTN_ROUTE_MAX
} AttnRoute;
const char *attn_route_name(AttnRoute route);

typedef enum AttnSplitRule {
    ATTN_SPLITS_BALANCED, /* tasks of nearly equal bytes, row-local; neither S nor thresholds by
                             hand */
    ATTN_SPLITS_FIXED,    /* S for every row: split s covers tiles [T*s/S, T*(s+1)/S), T =
                             ceil(len/tile) */
} AttnSplitRule;

typedef struct AttnPlanConfig {
    AttnRoute route;
    AttnSplitRule rule;
    int32_t s;          /* fixed: splits a row, >= 1 */
    int32_t tile;       /* tokens; split bounds are multiples of it (the published one: 32), and of
                           the page size where that is larger (not in `persistent`) */
    int32_t workers;    /* balanced and persistent: CTAs (or threads) that run at once, >= 1 */
    int32_t min_tokens; /* balanced, persistent: no task is planned shorter than this */
    int32_t bucket_width; /* buckets: rows whose lengths round up to the same multiple share a
                             launch, cut as its longest row is; 0 or 1 = exact lengths */
    int32_t c0_tiles;     /* persistent, ranges: cost of a (row, KV head) in tiles, besides its
                             own; parts do without */
} AttnPlanConfig;
/* Defaults for a route: balanced, tile 32 and at least 128 tokens a task; persistent: tile 16, at
 * least 64 tokens, c0 12 (meant for 256-byte entries: callers scale it by 128 / head_dim). */
void attn_plan_config_init(AttnPlanConfig *config, AttnRoute route, int32_t workers);

/* `persistent`, the rules that a device-side planner must repeat. First: one part a CTA. Where
 * there are no more than ATTN_PART_ROWS rows, row r of T_r = ceil(len/tile) tiles is cut into n_r =
 * ceil(T_r / C) parts, part s of them tiles T_r*s/n_r up to T_r*(s+1)/n_r, for the smallest of four
 * C = M + 1 + floor(M i/64), i = 0..3, for which no more parts come out than `workers` run at once
 * and which is no less than min_tokens. M is the mean share, floor(sum(T_r) floor(2^31 kv_heads /
 * workers) / 2^31). Rows of no entries have no part (and one task that writes
 * zeros). attn_plan_persistent_part() returns C, or 0 where there is none: then ranges;
 * *ret_parts (NULL: not asked) the parts of all KV heads. */
enum { ATTN_PART_ROWS = 32 };
int32_t attn_plan_persistent_part(const AttnPlanConfig *config, const AttnShape *shape,
                                  int32_t rows, const int32_t *lens, int64_t *ret_parts);
static inline uint32_t attn_plan_part_scale(int32_t workers, int32_t kv_heads)
{
    return (uint32_t)(((uint64_t)kv_heads << 31) / (uint64_t)workers);
}

/* Ranges. All (row, KV head) pairs with
 * len > 0 are laid end to end, rows first, each as c0 + ceil(len/tile) units: V units in all. N =
 * V / ceil(min_tokens/tile) CTAs, at least 1 and at most `workers`. CTA c owns the units
 * [begin(c), begin(c+1)), begin(c) = c*(V/N) + min(c, V mod N); the first c0 units of a pair are
 * its overhead and hold no tile. A pair that one CTA owns whole is written out by it; of a cut one
 * every CTA that owns at least one tile keeps a state, in CTA order. */
int32_t attn_plan_persistent_ctas(const AttnPlanConfig *config, const AttnShape *shape,
                                  int32_t rows, const int32_t *lens, int64_t *ret_units);

/* Balanced task lists: how evenly one wave of tasks fills `workers` CTAs: tokens in all / (workers
 * x the longest task), 1 = perfectly; 0 when there is more than one wave. O(rows log). */
double attn_plan_evenness(const AttnPlanConfig *config, const AttnShape *shape, int32_t rows,
                          const int32_t *lens);

typedef struct AttnTask {
    int32_t row, kv_head;
    int32_t begin, end; /* tokens; begin == end only in `masked` (a neutral state is written) */
    int32_t slot;       /* partial slot, or -1: write the output */
} AttnTask;

typedef struct AttnMerge { /* one (row, KV head) whose states must be merged */
    int32_t row, kv_head;
    int32_t first_slot, n_slots;
} AttnMerge;

typedef enum AttnLaunchKind {
    ATTN_LAUNCH_ATTENTION,
    ATTN_LAUNCH_MERGE,
    ATTN_LAUNCH_FUSED
} AttnLaunchKind;

typedef struct AttnLaunch {
    AttnLaunchKind kind;
    int32_t first, count; /* tasks (attention, fused) or merges (merge) */
    int32_t length;       /* buckets: the bucket's length; else 0 */
} AttnLaunch;

/* What the step costs by this plan; one layer. docs/accounting.md defines each. */
typedef struct AttnCounts {
    int32_t launches, merge_launches;
    int64_t tasks;      /* non-empty ones */
    int64_t grid_tasks; /* with the empty ones (masked's neutral ones, rows of no entries) */
    int32_t max_splits; /* the largest split count asked of a row (>= 1 where there are rows) */
    double nonempty_fraction; /* tasks / (rows x kv_heads x largest split count) */
    int64_t kv_bytes;         /* 2 x sum(len) x kv_heads x d x element bytes */
    int64_t kv_bytes_touched; /* what the tasks make the kernel read, padding and page tails in */
    int64_t longest_tokens;   /* sum over attention launches of the longest task, whole units, at
                                 most the longest row; persistent: a CTA's share. For cost models */
    int64_t partial_slots;
    int64_t merge_state_bytes; /* partial_slots x G x (2 + d) x 4 */
} AttnCounts;

typedef struct AttnPlan {
    AttnPlanConfig config;
    int32_t rows;
    AttnTask *tasks;
    int32_t n_tasks, cap_tasks;
    AttnMerge *merges;
    int32_t n_merges, cap_merges;
    AttnLaunch *launches;
    int32_t n_launches, cap_launches;
    int32_t max_splits;
    AttnCounts counts;
    void *scratch; /* the planner's own, kept from step to step */
    size_t cap_scratch;
} AttnPlan;

void attn_plan_init(AttnPlan *plan); /* empty; no allocation */
void attn_plan_free(AttnPlan *plan);
/* Zero-length rows get one task of no tokens that writes zeros. The plan is valid until the next
 * build. ATTN_NO_MEMORY leaves it empty. */
AttnStatus attn_plan_build(AttnPlan *plan, const AttnPlanConfig *config, const AttnShape *shape,
                           int32_t rows, const int32_t *lens);
/* The counters alone, without building the task lists: O(rows), for runs that execute nothing.
 * Equal to attn_plan_build()'s counts (a test compares them). */
AttnStatus attn_plan_count(AttnCounts *ret, const AttnPlanConfig *config, const AttnShape *shape,
                           int32_t rows, const int32_t *lens);
/* Recounts a plan from scratch: coverage, order, slots. NULL when sound, else what is wrong. */
const char *attn_plan_check(const AttnPlan *plan, const AttnShape *shape, int32_t rows,
                            const int32_t *lens);

#ifdef __cplusplus
}
#endif
#endif
