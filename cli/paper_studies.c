/* The studies beside the serving traces, a table each: isolated, splits, gqa, merge, graph, plan,
 * padding, corrected. All have the same columns, a line a case and route.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/paper_run.h"

static const char study_header[] =
    "study,case,route,device,rows,steps_counted,steps_executed,executions_checked,"
    "launches_per_step,merge_launches_per_step,tasks_per_step,kv_mib_per_step,"
    "kv_touched_mib_per_step,merge_mib_per_step,event_ms,event_ms_low95,event_ms_high95,wall_ms,"
    "wall_ms_low95,wall_ms_high95,plan_ms,max_abs_err,mean_abs_err,note";

typedef struct Study {
    PaperRun *run;
    PaperCsv csv;
    const char *name;
} Study;

typedef struct Case {
    const char *name;
    PaperExperiment experiment; /* taken over */
    GPtrArray *lanes;           /* taken over */
    double kv_mib;              /* about, of a step: how many steps a CPU can execute */
    gint layers, check_every;
    gboolean graphs;
    const char *unless; /* not executed, for this reason; NULL */
} Case;

/* A GPU executes all steps; a CPU as many as read about so much. */
static guint64 steps_to_execute(const PaperRun *run, double kv_mib)
{
    const double mib = run->quick ? 200 : 3000, most = run->quick ? 3 : 12;
    if (!run->executes)
        return 0;
    return run->gpu ? (run->quick ? 8 : G_MAXUINT64) : (guint64)CLAMP(mib / kv_mib, 1, most);
}

static void interval(PaperCsv *csv, const GArray *ms)
{
    double low, high;
    paper_interval(ms, &low, &high);
    paper_csv_real(csv, paper_mean(ms), 5);
    paper_csv_real(csv, low, 5);
    paper_csv_real(csv, high, 5);
}

static void study_line(Study *self, const Case *c, const PaperSeries *series, const PaperLane *lane)
{
    PaperCsv *csv = &self->csv;
    const gboolean ran = lane->refused == NULL;
    paper_csv_text(csv, self->name);
    paper_csv_text(csv, c->name);
    paper_csv_text(csv, lane->name);
    paper_csv_text(csv, self->run->device_name);
    paper_csv_real(csv, (double)series->rows / MAX((double)series->steps, 1), 3);
    paper_csv_int(csv, ran ? (gint64)series->steps : 0);
    paper_csv_int(csv, (gint64)lane->executed);
    paper_csv_int(csv, (gint64)lane->checked);
    const double counts[] = {lane->launches, lane->merges,      lane->tasks,
                             lane->kv_mib,   lane->touched_mib, lane->merge_mib};
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        paper_csv_real(csv, ran ? counts[i] : (double)NAN, 4);
    interval(csv, lane->event);
    interval(csv, lane->wall);
    paper_csv_real(csv, paper_mean(lane->plan), 5);
    paper_csv_real(csv, lane->max_err, -3);
    paper_csv_real(csv, lane->mean_err, -3);
    paper_csv_text(csv, ran ? c->unless : lane->refused);
    paper_csv_end(csv);
}

static gboolean run_case(Study *self, Case *c, GError **error)
{
    g_autofree char *plain = g_strdelimit(g_strdup(c->name), " =", '-');
    g_autofree char *name = g_strconcat(self->name, "-", plain, NULL);
    PaperMeasure m = {
        .name = name,
        .experiment = &c->experiment,
        .execute =
            c->unless != NULL ? 0 : steps_to_execute(self->run, c->kv_mib * MAX(c->layers, 1)),
        .check_every = self->run->gpu ? MAX(c->check_every, 1) : 1,
        .layers = c->layers,
        .graphs = c->graphs,
        .lanes = c->lanes,
    };
    g_autoptr(PaperSeries) series = paper_measure(self->run, &m, error);
    paper_experiment_clear(&c->experiment);
    if (series == NULL)
        return FALSE;
    for (guint i = 0; i < series->lanes->len; i++)
        study_line(self, c, series, series->lanes->pdata[i]);
    return TRUE;
}

static gboolean published_experiment(PaperExperiment *ret, const char *trace, gint64 max_active,
                                     GError **error)
{
    gboolean published;
    return paper_experiment_init(ret, trace, max_active, PAPER_FIRST_HELD_OUT, &published, error);
}

static GPtrArray *common_lanes(const PaperRun *run, gint64 buckets_s, gint64 queue_s)
{
    GPtrArray *lanes = paper_lanes_new();
    g_autofree char *buckets = g_strdup_printf("buckets S=%" G_GINT64_FORMAT, buckets_s);
    g_autofree char *queue = g_strdup_printf("workqueue S=%" G_GINT64_FORMAT, queue_s);
    paper_lane_add(lanes, "single", "single");
    paper_lane_add(lanes, buckets, "buckets:s=%" G_GINT64_FORMAT, buckets_s);
    paper_lane_add(lanes, queue, "workqueue:s=%" G_GINT64_FORMAT, queue_s);
    paper_lane_add(lanes, "workqueue balanced", "workqueue");
    paper_lane_add(lanes, "workqueue-fused balanced", "workqueue-fused");
    paper_lane_add(lanes, "persistent", "persistent");
    paper_lanes_add_peers(lanes, run);
    return lanes;
}

/* --- the studies --- */

static gboolean isolated(Study *self, GError **error)
{
    static const gint64 lengths[] = {8192, 32768, 65536};
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree char *name = g_strdup_printf("%" G_GINT64_FORMAT "K", lengths[i] / 1024);
        Case c = {.name = name, .kv_mib = (double)lengths[i] / 256, .check_every = 8};
        /* A request a step, each on its own pages: no cache holds the next one's. */
        paper_experiment_one_row(&c.experiment, lengths[i], self->run->gpu ? 32 : 12, 1,
                                 PAPER_FIRST_HELD_OUT);
        c.experiment.holes = 0.5;
        c.lanes = common_lanes(self->run, c.experiment.buckets_s, c.experiment.queue_s);
        if (!run_case(self, &c, error))
            return FALSE;
        for (const PaperIsolated *p = paper_isolated; p->kernel != NULL; p++) {
            PaperCsv *csv = &self->csv;
            paper_csv_text(csv, self->name);
            paper_csv_text(csv, name);
            paper_csv_text(csv, p->kernel);
            paper_csv_text(csv, PAPER_CARD);
            paper_csv_int(csv, 1);
            for (guint k = 0; k < 9; k++)
                paper_csv_text(csv, NULL);
            paper_csv_real(csv, p->ms[i], 4);
            for (guint k = 0; k < 9; k++)
                paper_csv_text(csv, NULL);
            paper_csv_end(csv);
        }
    }
    return TRUE;
}

static gboolean splits(Study *self, GError **error)
{
    static const gint of_b1[] = {28, 32, 36}, of_b8[] = {16, 20, 24};
    Case one = {.name = "bucketed B1", .kv_mib = 32, .check_every = 8};
    Case eight = {.name = "bimodal B8", .kv_mib = 550, .check_every = 8};
    if (!published_experiment(&one.experiment, "bucketed", 1, error) ||
        !published_experiment(&eight.experiment, "bimodal", 8, error))
        return FALSE;
    one.lanes = paper_lanes_new();
    eight.lanes = paper_lanes_new();
    for (guint i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("buckets S=%d", of_b1[i]);
        paper_lane_add(one.lanes, name, "buckets:s=%d", of_b1[i]);
    }
    for (guint i = 0; i < 3; i++) {
        g_autofree char *queue = g_strdup_printf("workqueue S=%d", of_b8[i]);
        paper_lane_add(eight.lanes, queue, "workqueue:s=%d", of_b8[i]);
    }
    paper_lane_add(one.lanes, "buckets balanced", "buckets");
    paper_lane_add(eight.lanes, "workqueue balanced", "workqueue");
    return run_case(self, &one, error) && run_case(self, &eight, error);
}

static gboolean gqa(Study *self, GError **error)
{
    static const gint groups[] = {1, 4, 8};
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++) {
        g_autofree char *name = g_strdup_printf("G=%d", groups[i]);
        Case c = {.name = name, .kv_mib = 64, .check_every = 8};
        paper_experiment_one_row(&c.experiment, 8192, 12, 1, PAPER_FIRST_HELD_OUT);
        c.experiment.q_heads = 8 * groups[i];
        c.lanes = common_lanes(self->run, c.experiment.buckets_s, c.experiment.queue_s);
        if (!run_case(self, &c, error))
            return FALSE;
    }
    return TRUE;
}

/* Fused against two launches, at the same splits. */
static void add_merge_lanes(GPtrArray *lanes, gint64 s)
{
    paper_lane_add(lanes, "workqueue (two launches)", "workqueue:s=%" G_GINT64_FORMAT, s);
    paper_lane_add(lanes, "workqueue-fused (one)", "workqueue-fused:s=%" G_GINT64_FORMAT, s);
}

static gboolean on_traces(Study *self, gboolean graphs, const char *unless, GError **error)
{
    static const struct {
        const char *name, *trace;
        gint max_active;
        double kv_mib;
    } traces[] = {{"bucketed B1", "bucketed", 1, 32}, {"bimodal B8", "bimodal", 8, 550}};
    for (guint i = 0; i < G_N_ELEMENTS(traces); i++) {
        const char *suffix = strcmp(self->name, "graph") != 0 ? "" : graphs ? " graph" : " direct";
        g_autofree char *name = g_strconcat(traces[i].name, suffix, NULL);
        Case c = {.name = name,
                  .kv_mib = traces[i].kv_mib,
                  .check_every = 8,
                  .graphs = graphs && unless == NULL,
                  .unless = unless};
        if (!published_experiment(&c.experiment, traces[i].trace, traces[i].max_active, error))
            return FALSE;
        c.lanes = paper_lanes_new();
        add_merge_lanes(c.lanes, c.experiment.queue_s);
        if (strcmp(self->name, "graph") == 0)
            paper_lane_add(c.lanes, "buckets", "buckets:s=%" G_GINT64_FORMAT,
                           c.experiment.buckets_s);
        if (!run_case(self, &c, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean merge(Study *self, GError **error)
{
    return on_traces(self, FALSE, NULL, error);
}

static gboolean graph(Study *self, GError **error)
{
    const char *unless =
        self->run->gpu ? NULL : "n/a: a CUDA graph needs a GPU; counted, not executed";
    return on_traces(self, FALSE, unless, error) && on_traces(self, TRUE, unless, error);
}

/* The plan's two readings, both measured: one layer a plan, and L layers that share it. */
static gboolean plan(Study *self, GError **error)
{
    const gint shared = self->run->gpu || !self->run->quick ? self->run->layers : 4;
    const gint layers[] = {1, shared};
    for (guint i = 0; i < G_N_ELEMENTS(layers); i++) {
        g_autofree char *name = g_strdup_printf("bucketed B1 L=%d", layers[i]);
        Case c = {.name = name, .kv_mib = 32, .layers = layers[i], .check_every = 8};
        if (!published_experiment(&c.experiment, "bucketed", 1, error))
            return FALSE;
        c.lanes = paper_lanes_new();
        paper_lane_add(c.lanes, "buckets S=32", "buckets:s=32");
        paper_lane_add(c.lanes, "workqueue balanced", "workqueue");
        paper_lane_add(c.lanes, "persistent", "persistent");
        paper_lanes_add_peers(c.lanes, self->run);
        if (!run_case(self, &c, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean padding(Study *self, GError **error)
{
    static const struct {
        const char *name;
        gint width;
    } widths[] = {{"exact", 1},   {"2K", 2048},   {"4K", 4096},       {"8K", 8192},
                  {"16K", 16384}, {"32K", 32768}, {"single", 1 << 24}};
    Case c = {.name = "bimodal B8", .kv_mib = 550, .check_every = 8};
    if (!published_experiment(&c.experiment, "bimodal", 8, error))
        return FALSE;
    c.lanes = paper_lanes_new();
    for (guint i = 0; i < G_N_ELEMENTS(widths); i++)
        paper_lane_add(c.lanes, widths[i].name, "buckets:s=%" G_GINT64_FORMAT ",width=%d",
                       c.experiment.buckets_s, widths[i].width);
    return run_case(self, &c, error);
}

/* B1 rows that are as long as they are called, all executed steps checked, with an interval. */
static gboolean corrected(Study *self, GError **error)
{
    static const gint64 lengths[] = {16384, 32768, 65536, 131072};
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree char *name = g_strdup_printf("%" G_GINT64_FORMAT "K", lengths[i] / 1024);
        Case c = {.name = name, .kv_mib = (double)lengths[i] / 256, .check_every = 1};
        paper_experiment_one_row(&c.experiment, lengths[i], 1, paper_presets[0].steps,
                                 PAPER_FIRST_HELD_OUT);
        c.lanes = common_lanes(self->run, c.experiment.buckets_s, c.experiment.queue_s);
        if (!run_case(self, &c, error))
            return FALSE;
    }
    return TRUE;
}

static const struct {
    const char *name;
    gboolean (*write)(Study *self, GError **error);
} studies[] = {{"isolated", isolated}, {"splits", splits},      {"gqa", gqa},
               {"merge", merge},       {"graph", graph},        {"plan", plan},
               {"padding", padding},   {"corrected", corrected}};

gboolean paper_write_studies(PaperRun *run, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(studies); i++) {
        Study study = {.run = run, .name = studies[i].name};
        g_autofree char *file = g_strconcat(studies[i].name, ".csv", NULL);
        if (!paper_csv_open(&study.csv, run, file, study_header, error))
            return FALSE;
        const gboolean ok = studies[i].write(&study, error);
        if (!paper_csv_close(&study.csv, ok, error))
            return FALSE;
    }
    return TRUE;
}
