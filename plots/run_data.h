/* What one run recorded, digested for pictures in one pass over each file.
 *
 * A run is an output folder (replay.csv, requests.csv, steps.kvsteps, summary.json, scenario.ini),
 * or one CSV file of a sweep or a bench. Whatever is missing leaves its part empty; what is there
 * but damaged is an INPUT error with file and line. Nothing is kept per step or per request: memory
 * is a few MiB however long the run (bins.h), so the pictures of ten million steps cost one
 * reading.
 *
 * Times of steps and requests are simulated nanoseconds; *_us are measured microseconds, and NaN
 * where a route was not executed.
 */
#ifndef KV_PLOTS_RUN_DATA_H
#define KV_PLOTS_RUN_DATA_H

#include <json-glib/json-glib.h>

#include "base/progress.h"
#include "base/stats.h"
#include "plots/bins.h"

#define RUN_TIME_BINS 400 /* enough for one pixel in three at column width */
#define RUN_MAX_ROUTES 32
#define RUN_LENGTHS_PER_OCTAVE 4
#define RUN_LENGTH_CELLS 88 /* of a length: up to 4 M */
#define RUN_GRID 24         /* powers of two of batch size and of length */

/* Series of the step bins. */
typedef enum {
    STEP_MS,
    STEP_ROWS,
    STEP_PREFILL,
    STEP_MAX_LEN,
    STEP_SUM_LEN,
    STEP_WAITING,
    STEP_PAGES,
    STEP_REGRET_US, /* chosen route's kernel time - the fastest executed one's */
    STEP_BEST_US,
    N_STEP_SERIES
} StepSeries;

/* Series of a route's bins; per step with decode rows. */
typedef enum {
    ROUTE_LAUNCHES,
    ROUTE_MERGE_LAUNCHES,
    ROUTE_TASKS,
    ROUTE_NONEMPTY,
    ROUTE_SPLITS, /* tasks / (rows x KV heads); NaN where the KV heads are not known */
    ROUTE_KV_BYTES,
    ROUTE_MERGE_STATE,
    ROUTE_MERGE_RATIO, /* merge traffic / KV bytes */
    ROUTE_PLAN_US,
    ROUTE_KERNEL_US,
    ROUTE_WALL_US,
    N_ROUTE_SERIES
} RouteSeries;

typedef struct RouteData {
    char *name;     /* as in the file: show it through picture_text() only */
    TimeBins *bins; /* [N_ROUTE_SERIES] */
    Cell total[N_ROUTE_SERIES];
    Cell part[3];        /* executed steps: plan, kernel, rest of wall; microseconds */
    LogBins by_kv_bytes; /* GB/s, over KV bytes of the step */
    LogBins ratio_by_rows, ratio_by_len;
    guint64 chosen[RUN_GRID][RUN_GRID]; /* steps, by [log2 rows][log2 max length] */
    guint64 fastest[RUN_GRID][RUN_GRID];
} RouteData;

#define RUN_MAX_TURNS 64
typedef struct RequestData {
    guint64 n, refused;
    Sampler *ttft, *tpot, *e2e, *queue; /* ns */
    Sampler *prompt, *output;
    TimeBins *arrivals; /* one series: 1 a request */
    guint64 *turns;     /* [RUN_MAX_TURNS] requests that were turn k of a session */
    guint64 preempted;
} RequestData;

/* What the steps file adds: NULL where there is none. */
#define RUN_PAGE_CELLS 96 /* equal ranges of page ids */
#define RUN_MAP_BINS 200
typedef struct StepsData {
    guint64 steps, pool_pages, pages_per_cell;
    kv_ns first, last;
    TimeBins *lengths; /* [RUN_LENGTH_CELLS] decode rows of that length */
    TimeBins *pages;   /* [RUN_PAGE_CELLS] share of the range that decode rows hold */
    TimeBins *fill;    /* pages used / pool pages; tokens held / (pages used x page size) */
} StepsData;
void steps_data_free(StepsData *self);

typedef struct RunData {
    char *folder;                                   /* as given */
    char *label;                                    /* last part of it */
    JsonNode *summary;                              /* NULL where there is none */
    GKeyFile *scenario;                             /* NULL likewise */
    char *replay_path, *requests_path, *steps_path; /* NULL likewise */
    /* replay.csv; steps = 0 where there is none */
    guint64 steps, decode_steps, lines, compared; /* compared: > 1 route executed and one chosen */
    kv_ns first, last;
    TimeBins *step_bins;
    TimeBins *chosen_bins;         /* a series a route: launches where it was chosen, else 0 */
    guint64 chosen_steps;          /* decode steps in which some route was chosen */
    LogHist *decode_ns, *mixed_ns; /* step lengths, without and with prefill */
    GPtrArray *routes;             /* RouteData *, in order of appearance */
    double regret_us, best_us;     /* over `compared` */
    StepsData *steps_data;         /* NULL where there is no steps file */
    double kv_heads;               /* 0 = not known */
    RequestData *requests;         /* NULL where there is none */
    char *sweep_path, *bench_path, *regions_path; /* CSV files to be read by their pictures; NULL */
} RunData;

RunData *run_data_load(const char *path, Progress *progress, GError **error);
/* summary.json and scenario.ini alone, and where the rest is: quick. */
RunData *run_data_open(const char *folder, GError **error);
void run_data_free(RunData *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunData, run_data_free)

/* A number or text of summary.json by its path ("replay.device.name"); NaN or NULL if not there. */
double run_data_number(const RunData *self, const char *path);
const char *run_data_string(const RunData *self, const char *path);
JsonNode *run_data_node(const RunData *self, const char *path);
/* The first of these that is there: pool pages, KV heads ... from summary.json or scenario.ini.
 * NaN. */
double run_data_pool_pages(const RunData *self);

/* Parts of run_data_load(), each in its own file. */
gboolean run_data_read_replay(RunData *self, const char *path, Progress *progress, GError **error);
gboolean run_data_read_requests(RunData *self, const char *path, Progress *progress,
                                GError **error);
gboolean run_data_read_steps(RunData *self, const char *path, Progress *progress, GError **error);
guint run_grid_index(double x);       /* floor(log2 x), clamped */
guint run_length_cell(gint64 tokens); /* its quarter octave, clamped */

#endif
