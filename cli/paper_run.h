/* `kvreplay paper --out`: the published experiments as tables, on the machine at hand.
 *
 * Private to cli/paper_*.c. A PaperSeries is one experiment through a set of routes: the steps file
 * and replay.csv stay in the output folder (steps/NAME.kvsteps, replay/NAME.csv), and everything
 * shown is read back from that replay.csv, so that any figure can be traced to its lines. Times
 * are milliseconds a step and layer; NaN = that step was counted and not executed.
 *
 * A table is written whole or not at all. Published figures of the other card are lines of their
 * own, with `device` saying so; no column holds both.
 */
#ifndef KV_CLI_PAPER_RUN_H
#define KV_CLI_PAPER_RUN_H

#include "base/outfile.h"
#include "replay/paper.h"
#include "replay/paper_published.h"

typedef struct PaperRun {
    const char *out;     /* folder */
    const char *backend; /* as named; NULL = auto */
    const char *profile; /* device profile file; NULL = the built-in guess */
    gboolean learned;    /* the profile has a learned model */
    gboolean quick;
    gboolean scripts;       /* no gnuplot: data and scripts of the pictures alone */
    gboolean executes, gpu; /* what the backend does */
    gint layers, device;
    Progress *progress;
    char *backend_line, *device_name;
    guint64 checked; /* executions compared with the reference so far */
    guint64 wrong;   /* series with an output outside of the tolerance, or NaN */
    double max_err;
} PaperRun;

/* `--runtime layer` (replay/layer.h). Everything borrowed. */
typedef struct PaperLayer {
    char **models;   /* names, or config.json files; NULL-ended */
    gint tp, layers; /* layers 0 = the model's */
    const char *cells, *routes;
    const char *gpu; /* whose rates stand in where nothing is measured */
    guint64 seed;
    gboolean greedy;
} PaperLayer;

typedef struct PaperLane { /* a route through the series */
    char *name, *spec;
    char *refused;  /* NULL = it ran */
    char *left_out; /* why it did not run in all steps: then it has no figures, and this is the
                       reason for `refused` */
    double launches, merges, tasks, kv_mib, touched_mib, merge_mib; /* means a step */
    GArray *event, *wall, *plan;                                    /* [steps] ms */
    guint64 executed, checked;
    double max_err, mean_err;
} PaperLane;

typedef struct PaperSeries {
    GPtrArray *lanes; /* PaperLane * */
    GArray *chosen;   /* guint: the policy's lane, by step */
    guint64 steps, executed, rows;
} PaperSeries;

typedef struct PaperMeasure {
    const char *name; /* of its files */
    const PaperExperiment *experiment;
    const char *policy; /* NULL = paper-v1 */
    guint64 execute;    /* steps, spread evenly; 0 = count alone, G_MAXUINT64 = all */
    gint check_every;   /* executed steps; 1 = all */
    gint layers;        /* executed on one plan; 1 */
    gboolean graphs;    /* cuda */
    GPtrArray *lanes;   /* PaperLane *, from paper_lane_add(); taken over */
} PaperMeasure;

GPtrArray *paper_lanes_new(void);
void paper_lane_add(GPtrArray *lanes, const char *name, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* The peers that are built, where the backend is a GPU's. */
void paper_lanes_add_peers(GPtrArray *lanes, const PaperRun *run);
/* NULL + error. An output outside the tolerance is counted in run->wrong, and is no error here. */
PaperSeries *paper_measure(PaperRun *run, const PaperMeasure *measure, GError **error);
void paper_series_free(PaperSeries *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PaperSeries, paper_series_free)

/* Mean over the values that are not NaN; NaN where there is none. */
double paper_mean(const GArray *values);
/* Sample deviation of those; NaN below two. */
double paper_deviation(const GArray *values);
/* 95 % interval of the mean by bootstrap (1000 resamples, seeded); NaN below three values. */
void paper_interval(const GArray *values, double *ret_low, double *ret_high);

/* A CSV line: fields in order, then paper_csv_end(). Reals: `decimals`, NaN = empty. */
typedef struct PaperCsv {
    OutFile *out;
    gboolean begun; /* the line in hand */
    gboolean dear;  /* its lines are measured */
    guint lines;
} PaperCsv;
gboolean paper_csv_open(PaperCsv *csv, const PaperRun *run, const char *file, const char *header,
                        GError **error);
void paper_csv_text(PaperCsv *csv, const char *text);
void paper_csv_int(PaperCsv *csv, gint64 value);
void paper_csv_real(PaperCsv *csv, double value, gint decimals);
void paper_csv_end(PaperCsv *csv);
/* Commits if `ok`; else what was measured stays as the .part. Returns ok and no error. */
gboolean paper_csv_close(PaperCsv *csv, gboolean ok, GError **error);

/* The tables. */
gboolean paper_write_counters(PaperRun *run, GError **error);
gboolean paper_write_main(PaperRun *run, GError **error);
gboolean paper_write_studies(PaperRun *run, GError **error);
/* Everything that paper_write_layer() would refuse of its options, before anything is run. */
gboolean paper_check_layer(PaperRun *run, const PaperLayer *layer, GError **error);
/* layer.csv and layer.json: measured where the backend is a GPU's, else counted. */
gboolean paper_write_layer(PaperRun *run, const PaperLayer *layer, GError **error);
/* Pictures (or their data and scripts alone) and report of what lies in the folder. */
gboolean paper_draw(const char *folder, gboolean scripts_only, GError **error);
/* The folder: the tables of attention alone, or of whole layers (NULL = not asked for), or both;
 * then the pictures and the report of all that lies there. */
gboolean paper_write_all(PaperRun *run, gboolean attention, const PaperLayer *layer,
                         GError **error);

#endif
