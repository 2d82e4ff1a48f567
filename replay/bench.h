/* Bench: routes and peers cell by cell, on any backend that executes.
 *
 * A cell is a batch: how many rows, their lengths (equal, or a published family: bimodal, uniform,
 * zipf), and a shape. Right before fast: in each cell every route first runs once on the same
 * pages; its longest and its shortest row, and others while the check's bytes last, are held
 * against the fp64 reference, and all of its rows against the first route that passed. Only what is
 * right is timed.
 *
 * Timing, the same for all: in each round every route runs, in another order each time. On a GPU
 * caches are emptied before a route's turn. It runs once untimed, so that its code is in them, and
 * then once for each of its times, always on other pages than the run before, so that K and V are
 * not:
 *   kernel      events around its launches, behind a spinning kernel
 *   wall        plan with its uploads, launches, synchronised; plan is the first part of it
 *   graph       kernel and wall once more with the launches replayed from one captured graph, where
 *               the route's launches stay the same from step to step
 * Block tables are an engine's own and brought there before; no time has them. Times are medians
 * over rounds, microseconds. Rounds, where not given, are 11 up to 1 GB of K and V, after one that
 * does not count, 5 up to 8 GB, 3 above; there a run of its own to warm the code is left out, and
 * so are graphs: both are some microseconds of two milliseconds and more.
 *
 * A cell or route that cannot be run is a line with the reason, never silence. The read rate that
 * percentages and the floor (5 us + bytes / read rate) refer to is measured in the same run.
 *
 * Memory: cells of a shape whose pools have fewer than 2^32 elements a tensor share one pool (some
 * peers cannot address more), the others another; a cell above `max_bytes` of K and V is left out
 * with the arithmetic. Errors: USAGE for cells that make no sense, MACHINE from the backend.
 */
#ifndef KV_REPLAY_BENCH_H
#define KV_REPLAY_BENCH_H

#include "base/outfile.h"
#include "base/progress.h"
#include "replay/backend.h"

/* Equal; published (long batches of their own lengths); by a context: ragged = its first row that
 * long, the others 1 to that long evenly spread; spike = its first row that long, the others a
 * sixteenth. */
typedef enum {
    BENCH_EQUAL,
    BENCH_BIMODAL,
    BENCH_UNIFORM,
    BENCH_ZIPF,
    BENCH_RAGGED,
    BENCH_SPIKE
} BenchFamily;
extern const char *const bench_families[]; /* their names, NULL-ended, in that order */

typedef struct BenchCell {
    BenchFamily family;
    gint32 context; /* equal: every row's length; ragged, spike: the longest; others: 0 */
    gint32 rows;
    AttnShape shape;
} BenchCell;

typedef struct BenchConfig {
    PluginChoice backend; /* of `backends`; info NULL = auto */
    PluginChoice splits;  /* of `split_rules` */
    GPtrArray *routes; /* PluginChoice *; empty = all built-in ones, and the peers that are built */
    GArray *cells;     /* BenchCell */
    BackendConfig config; /* shape and pool_pages are the cells' */
    gint rounds;          /* 0 = by size, on a CPU 3 */
    gboolean kernel_only; /* leave out wall, plan and graph times */
    gboolean emptied; /* kernel times as in a replay: caches emptied before each, the code's too */
    double seconds;   /* cells after this long are left out and say so; 0 = no limit */
    gint64 max_bytes; /* K and V of a cell; 0 = what the backend says it has, or 1 GiB */
    const char *commit;   /* borrowed; for the CSV; NULL = not known */
    OutFile *calibration; /* borrowed; a calibration table of the cells; NULL = none */
} BenchConfig;            /* config.check_bytes 0 = 64 MiB */
void bench_config_init(BenchConfig *config);
void bench_config_clear(BenchConfig *config);

/* Adds the product of
 * "len=2k,8k,bimodal,ragged:8k;rows=1,4;heads=32:8,8:8;dim=128;page=16;dtype=fp16", keys in any
 * order, each optional (defaults: len=8k, rows=8, heads=32:8, dim=128, page=16, dtype=fp16,
 * layout=hnd); or a set by name: "quick" (12 cells), "full" (the grid of docs/results), "published"
 * (the batches of arXiv 2606.26666: B 1, 4, 8), "calibration" (other lengths and rows than those,
 * several shapes: for a profile that is to be judged on the others). */
gboolean bench_add_cells(BenchConfig *config, const char *text, GError **error);
/* TRUE for what bench_add_cells() can make: rows, context and shape within its limits. */
gboolean bench_cell_check(const BenchCell *cell);
/* "bimodal_B8", "8K_B4_G8_d64", "8K_B4_H64x8"; what differs from 32:8 heads, d 128, page 16, fp16
 * is named: _G and the group size where there are 32 query heads, _H and both head counts else. No
 * two cells have the same name. */
char *bench_cell_name(const BenchCell *cell);
/* lens[cell->rows]; the same for the same seed. */
void bench_cell_lens(const BenchCell *cell, guint64 seed, gint32 *lens);

typedef struct BenchLine { /* one route in one cell; what was not measured is -1 */
    char *label;
    gboolean peer;
    char *note;    /* why it was not timed; NULL = it was */
    gint workers;  /* that its plan was made for */
    gint rounds;   /* that its times are medians of */
    gint launches; /* -1 = not known */
    double kernel_us, plan_us, wall_us;
    double graph_us, graph_wall_us;
    AttnCounts counts; /* of its plan; a peer's: zeros */
    gint64 merge_state_bytes, upload_bytes;
    gint checked_rows; /* 0 = none */
    double max_abs_err, mean_abs_err;
    double rows_diff, flashinfer_diff; /* largest difference over all rows from the first right
                                          route, and from route `flashinfer` */
} BenchLine;

typedef struct BenchCellResult {
    BenchCell cell;
    gint64 kv_bytes;
    gint32 max_len;
    gint rounds;
    char *note;    /* why none was timed; NULL = see the lines */
    GArray *lines; /* BenchLine */
} BenchCellResult;

typedef struct BenchResult {
    const char *backend;
    char *device;    /* name */
    JsonNode *about; /* what the backend says of itself */
    const char *commit;
    double read_rate; /* bytes a microsecond, measured; 0 = not known */
    double empty_us;  /* wall time of a kernel that does nothing, in a graph; 0 = not known */
    gint workers;     /* that plans are made for, where a route has none of its own */
    guint64 seed;
    gboolean wrong;   /* a route failed its check */
    GPtrArray *cells; /* BenchCellResult * */
} BenchResult;
void bench_result_free(BenchResult *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BenchResult, bench_result_free)

/* `csv` may be NULL; lines are written cell by cell. After an interruption what was done is in csv,
 * and the error says so. */
BenchResult *bench_run(const BenchConfig *config, OutFile *csv, Progress *progress, GError **error);
/* The terminal's table: a line a cell and route; best of ours, best peer, their ratio. */
void bench_result_table(const BenchResult *self, GString *out);
void bench_result_to_json(const BenchResult *self, JsonBuilder *builder);
/* Kernel time of the fastest peer of the cell, 0 where there is none. */
double bench_best_peer(const BenchCellResult *cell);
/* The shorter of a route's times with and without a graph. */
double bench_line_kernel(const BenchLine *line);
double bench_line_wall(const BenchLine *line);
/* 5 us + bytes / read rate; 0 where no rate is known. */
double bench_floor(double read_rate, gint64 kv_bytes);

#endif
