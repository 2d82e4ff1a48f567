/* Judging a bench: what a policy would have taken in each cell, beside the peers, from the bench's
 * CSV and a device profile; nothing is run.
 *
 * In each cell a policy chooses among the built-in routes that were timed there (and once more with
 * the peers allowed as routes), by a model of the profile, from counters that follow from the
 * lengths alone; the lengths are drawn again from the cell's seed. Choices are single: no
 * hysteresis. For wall times `learned` has the objective wall. The profile should be fitted on
 * other cells than these (bench --cells calibration).
 *
 * A route's kernel time is the shorter with and without a graph, and so is its wall time. A peer's
 * default is what its users get: no fixed split, no other processor count; planned for graphs or
 * not. The floor is 5 us + bytes / read rate of the same run, and of walls that and the launch and
 * wait of an empty kernel: no kernel that reads every byte once can be faster, so the best peer
 * over the floor bounds what can be asked.
 *
 * Times in microseconds. Errors: INPUT for a CSV that is none of the bench's.
 */
#ifndef KV_REPLAY_BENCH_JUDGE_H
#define KV_REPLAY_BENCH_JUDGE_H

#include "replay/bench.h"
#include "replay/profile.h"

typedef enum { JUDGE_BEST, JUDGE_COST, JUDGE_LEARNED, JUDGE_PICKS } JudgePick;
extern const char *const judge_pick_names[]; /* "best of ours", "cost", "learned" */

typedef struct JudgeLine { /* one route in one cell */
    Route route;
    PluginChoice choice;
    double kernel_us, wall_us; /* negative = not there */
    gint workers;
    AttnCounts counts; /* of its plan, once decided */
    char *note;        /* NULL = timed */
} JudgeLine;

typedef struct JudgeCell {
    char *name, *note; /* note: why none was timed; NULL */
    BenchCell cell;
    guint64 seed;
    gint64 kv_bytes;
    double floor_us, empty_us; /* empty_us 0 = not known */
    GArray *lines;             /* JudgeLine */
    /* Indices into lines, -1 = none. */
    gint best_peer, best_default, best_tc, best_wall_peer;
    gint pick[JUDGE_PICKS], pick_with_peers[JUDGE_PICKS];
    gint pick_wall[JUDGE_PICKS]; /* of ours, by wall time; `cost` knows none: as by kernel time */
} JudgeCell;

typedef struct BenchJudge {
    GPtrArray *cells; /* JudgeCell * */
    gint workers;     /* CTAs that run at once */
    char *machine;    /* GPU, driver, toolkit, commit, date of its first line */
} BenchJudge;

/* Reads the CSV and finds the fastest. */
BenchJudge *bench_judge_read(const char *path, GError **error);
void bench_judge_free(BenchJudge *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BenchJudge, bench_judge_free)
/* Fills the picks of `cost` and `learned`. MACHINE when there is no memory. */
gboolean bench_judge_decide(BenchJudge *self, const DeviceProfile *profile, GError **error);
/* The cells as a calibration table, as the bench itself would have written it. */
gboolean bench_judge_calibration(const BenchJudge *self, OutFile *table, GError **error);

/* What was asked of the policies, a line each: geometric mean and least ratio, and what the floor
 * allows. Markdown. All shapes together, then shape by shape. */
void bench_judge_asked(const BenchJudge *self, GString *out);
/* Of a bench that was decided: how far apart the times of one plan are, and the cells below what
 * was asked with peers as routes. Markdown. */
void bench_judge_noise(const BenchJudge *self, GString *out);
/* Each cell in a line; Markdown. */
void bench_judge_cells(const BenchJudge *self, GString *out);
/* Every peer in every cell: its kernel time, and by its plan paid each step, over the policy's. */
void bench_judge_peers(const BenchJudge *self, JudgePick pick, GString *out);
/* The same as CSV, one line a cell. */
gboolean bench_judge_csv(const BenchJudge *self, OutFile *csv, GError **error);

#endif
