/* main.csv and ratios.csv: the serving traces, five held-out seeds, routes and both policies. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/paper_run.h"

/* The published gates choose among the published splits (and FlashInfer); the cost models choose
 * among our own routes, the balanced splits too. */
static const struct {
    const char *name;
    gboolean published;
} policy_rows[] = {{"paper-v1", TRUE}, {"paper-v2", TRUE}, {"cost", FALSE}, {"learned", FALSE}};

/* A line of main.csv under way: values by seed. */
typedef struct Entry {
    const char *kind;
    char *name;
    GArray *event, *wall, *plan; /* ms: of a seed, its mean over executed steps; NaN where none */
    double launches, merges, tasks, merge_mib; /* sums over counted seeds */
    guint counted;
    guint64 executed, checked;
    double max_err;
    GHashTable *chosen; /* policies: route -> guint64 * steps; NULL */
    char *refused;      /* why there are no figures, or what a reader must know of them */
} Entry;

static void entry_free(gpointer data)
{
    Entry *e = data;
    g_free(e->name);
    g_free(e->refused);
    g_array_unref(e->event);
    g_array_unref(e->wall);
    g_array_unref(e->plan);
    g_clear_pointer(&e->chosen, g_hash_table_unref);
    g_free(e);
}

static Entry *entry_get(GPtrArray *entries, const char *kind, const char *name)
{
    for (guint i = 0; i < entries->len; i++) {
        Entry *e = entries->pdata[i];
        if (strcmp(e->kind, kind) == 0 && strcmp(e->name, name) == 0)
            return e;
    }
    Entry *e = g_new0(Entry, 1);
    e->kind = kind;
    e->name = g_strdup(name);
    e->event = g_array_new(FALSE, FALSE, sizeof(double));
    e->wall = g_array_new(FALSE, FALSE, sizeof(double));
    e->plan = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(entries, e);
    return e;
}

static void entry_add_times(Entry *e, double event, double wall, double plan)
{
    g_array_append_val(e->event, event);
    g_array_append_val(e->wall, wall);
    g_array_append_val(e->plan, plan);
}

/* --- one seed --- */

static GPtrArray *lanes_of(const PaperRun *run, const PaperExperiment *e, gboolean with_peers,
                           gboolean balanced)
{
    static const char *const queues[] = {"masked", "workqueue", "workqueue-fused"};
    GPtrArray *lanes = paper_lanes_new();
    paper_lane_add(lanes, "single", "single");
    g_autofree char *buckets = g_strdup_printf("buckets S=%" G_GINT64_FORMAT, e->buckets_s);
    paper_lane_add(lanes, buckets, "buckets:s=%" G_GINT64_FORMAT, e->buckets_s);
    for (guint i = 0; i < G_N_ELEMENTS(queues); i++) {
        g_autofree char *name = g_strdup_printf("%s S=%" G_GINT64_FORMAT, queues[i], e->queue_s);
        paper_lane_add(lanes, name, "%s:s=%" G_GINT64_FORMAT, queues[i], e->queue_s);
    }
    if (with_peers)
        paper_lanes_add_peers(lanes, run);
    if (balanced) {
        paper_lane_add(lanes, "workqueue balanced", "workqueue");
        paper_lane_add(lanes, "workqueue-fused balanced", "workqueue-fused");
        paper_lane_add(lanes, "persistent", "persistent");
    }
    return lanes;
}

static guint64 steps_to_execute(const PaperRun *run, const PaperExperiment *e)
{
    const guint nth = (guint)(e->seed - PAPER_FIRST_HELD_OUT);
    if (!run->executes)
        return 0;
    if (run->gpu)
        return run->quick ? 8 : G_MAXUINT64;
    if (e->max_active == 1)
        return run->quick ? 3 : 8;
    return !run->quick ? 3 : nth < 1 ? 1 : 0;
}

static void add_lanes(GPtrArray *entries, const PaperSeries *series)
{
    for (guint i = 0; i < series->lanes->len; i++) {
        const PaperLane *lane = series->lanes->pdata[i];
        Entry *e = entry_get(entries, "route", lane->name);
        if (lane->refused != NULL) {
            if (e->refused == NULL)
                e->refused = g_strdup(lane->refused);
            continue;
        }
        e->counted++;
        e->launches += lane->launches;
        e->merges += lane->merges;
        e->tasks += lane->tasks;
        e->merge_mib += lane->merge_mib;
        e->executed += lane->executed;
        e->checked += lane->checked;
        e->max_err = fmax(e->max_err, lane->max_err);
        entry_add_times(e, paper_mean(lane->event), paper_mean(lane->wall), paper_mean(lane->plan));
    }
}

static const PaperLane *lane_named(const PaperSeries *series, const char *name)
{
    for (guint i = 0; i < series->lanes->len; i++) {
        const PaperLane *lane = series->lanes->pdata[i];
        if (strcmp(lane->name, name) == 0)
            return lane;
    }
    return NULL;
}

static gboolean has_lane(const PaperSeries *series, const char *name)
{
    const PaperLane *lane = lane_named(series, name);
    return lane != NULL && lane->refused == NULL;
}

/* What a policy chose (from a counting run over some of the lanes), with the times measured. */
static void add_policy(GPtrArray *entries, const char *name, const PaperSeries *series,
                       const PaperSeries *policy)
{
    Entry *e = entry_get(entries, "policy", name);
    g_autoptr(GArray) event = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) wall = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) plan = g_array_new(FALSE, FALSE, sizeof(double));
    if (e->chosen == NULL)
        e->chosen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint step = 0; step < policy->chosen->len; step++) {
        const guint at = g_array_index(policy->chosen, guint, step);
        const PaperLane *lane =
            lane_named(series, ((const PaperLane *)policy->lanes->pdata[at])->name);
        guint64 *n = g_hash_table_lookup(e->chosen, lane->name);
        if (n == NULL) {
            n = g_new0(guint64, 1);
            g_hash_table_insert(e->chosen, g_strdup(lane->name), n);
        }
        ++*n;
        const double share = 1 / (double)policy->chosen->len;
        e->launches += lane->launches * share;
        e->merges += lane->merges * share;
        e->tasks += lane->tasks * share;
        e->merge_mib += lane->merge_mib * share;
        e->executed += !isnan(g_array_index(lane->event, double, step));
        g_array_append_val(event, g_array_index(lane->event, double, step));
        g_array_append_val(wall, g_array_index(lane->wall, double, step));
        g_array_append_val(plan, g_array_index(lane->plan, double, step));
    }
    e->counted++;
    entry_add_times(e, paper_mean(event), paper_mean(wall), paper_mean(plan));
}

static gboolean measure_policies(const PaperRun *run, const PaperExperiment *e, const char *name,
                                 GPtrArray *entries, const PaperSeries *series, GError **error)
{
    for (guint p = 0; p < G_N_ELEMENTS(policy_rows); p++) {
        PaperRun counting = *run;
        const char *text = policy_rows[p].name;
        Entry *entry = entry_get(entries, "policy", text);
        if (strcmp(text, "learned") == 0 && !run->learned) {
            if (entry->refused == NULL)
                entry->refused = g_strdup("n/a: no learned model of this card; calibrate --fit "
                                          "makes one, --profile FILE gives it");
            continue;
        }
        g_autofree char *policy_name = g_strconcat(name, "-", text, NULL);
        if (!run->gpu) /* which can tell what a peer's route does only by running */
            counting.backend = "counters";
        PaperMeasure count = {
            .name = policy_name,
            .experiment = e,
            .policy = text,
            .lanes = lanes_of(run, e, policy_rows[p].published, !policy_rows[p].published)};
        g_autoptr(PaperSeries) policy = paper_measure(&counting, &count, error);
        if (policy == NULL)
            return FALSE;
        add_policy(entries, text, series, policy);
        if (policy_rows[p].published && entry->refused == NULL && !has_lane(policy, "flashinfer"))
            entry->refused = g_strdup("flashinfer is not built in or cannot run here: its gates "
                                      "fall to workqueue-fused");
        if (strcmp(text, "cost") == 0 && run->profile == NULL && entry->refused == NULL)
            entry->refused = g_strdup("the cost model is a guess of a small GPU's; --profile FILE "
                                      "replaces it");
    }
    return TRUE;
}

static gboolean measure_seed(PaperRun *run, const PaperExperiment *e, GPtrArray *entries,
                             guint64 *ret_steps, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s-b%" G_GINT64_FORMAT "-%" G_GINT64_FORMAT, e->trace,
                                            e->max_active, e->seed);
    PaperMeasure m = {.name = name,
                      .experiment = e,
                      .execute = steps_to_execute(run, e),
                      .check_every = run->gpu ? 8 : 1,
                      .lanes = lanes_of(run, e, TRUE, TRUE)};
    g_autoptr(PaperSeries) series = paper_measure(run, &m, error);
    if (series == NULL)
        return FALSE;
    *ret_steps += series->steps;
    add_lanes(entries, series);
    return measure_policies(run, e, name, entries, series, error);
}

/* --- writing --- */

static const char main_header[] =
    "trace,max_active,kind,name,device,seeds_counted,seeds_executed,steps_counted,steps_executed,"
    "executions_checked,launches_per_step,merge_launches_per_step,tasks_per_step,"
    "merge_mib_per_step,event_ms,event_ms_sd,wall_ms,wall_ms_sd,plan_ms,"
    "event_and_plan_each_layer_ms,event_and_plan_once_a_step_ms,wall_plan_each_layer_ms,"
    "wall_plan_once_a_step_ms,max_abs_err,chosen,note";

static char *chosen_text(const Entry *e, guint64 steps)
{
    if (e->chosen == NULL)
        return NULL;
    GString *text = g_string_new(NULL);
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(e->chosen), (GCompareFunc)strcmp);
    for (GList *at = names; at != NULL; at = at->next)
        g_string_append_printf(text, "%s%s %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                               text->len > 0 ? "; " : "", (char *)at->data,
                               *(guint64 *)g_hash_table_lookup(e->chosen, at->data), steps);
    return g_string_free(text, FALSE);
}

static guint known(const GArray *values)
{
    guint n = 0;
    for (guint i = 0; i < values->len; i++)
        n += !isnan(g_array_index(values, double, i));
    return n;
}

static void main_line(PaperCsv *csv, const PaperRun *run, const PaperPreset *preset, const Entry *e,
                      guint64 steps)
{
    const double n = e->counted > 0 ? e->counted : (double)NAN, L = run->layers;
    const double event = paper_mean(e->event), wall = paper_mean(e->wall),
                 plan = paper_mean(e->plan);
    g_autofree char *chosen = chosen_text(e, steps);
    paper_csv_text(csv, preset->trace);
    paper_csv_int(csv, preset->max_active);
    paper_csv_text(csv, e->kind);
    paper_csv_text(csv, e->name);
    paper_csv_text(csv, run->device_name);
    paper_csv_int(csv, e->counted);
    paper_csv_int(csv, known(e->event));
    paper_csv_int(csv, e->counted > 0 ? (gint64)steps : 0);
    paper_csv_int(csv, (gint64)e->executed);
    paper_csv_int(csv, (gint64)e->checked);
    paper_csv_real(csv, e->launches / n, 4);
    paper_csv_real(csv, e->merges / n, 4);
    paper_csv_real(csv, e->tasks / n, 2);
    paper_csv_real(csv, e->merge_mib / n, 4);
    paper_csv_real(csv, event, 4);
    paper_csv_real(csv, paper_deviation(e->event), 4);
    paper_csv_real(csv, wall, 4);
    paper_csv_real(csv, paper_deviation(e->wall), 4);
    paper_csv_real(csv, plan, 5);
    paper_csv_real(csv, event + plan, 4);
    paper_csv_real(csv, event + plan / L, 4);
    paper_csv_real(csv, wall, 4);
    paper_csv_real(csv, wall - plan + plan / L, 4);
    paper_csv_real(csv, e->checked > 0 ? e->max_err : (double)NAN, -3);
    paper_csv_text(csv, chosen);
    paper_csv_text(csv, e->refused);
    paper_csv_end(csv);
}

/* The published card's lines: mean over the seeds whose logs were published. */
static void published_lines(PaperCsv *csv, const PaperPreset *preset)
{
    for (guint r = 0; r < 3; r++) {
        g_autoptr(GArray) event = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GArray) wall = g_array_new(FALSE, FALSE, sizeof(double));
        const PaperPublished *last = NULL;
        for (const PaperPublished *p = paper_published; p->trace != NULL; p++)
            if (strcmp(p->trace, preset->trace) == 0 && p->max_active == preset->max_active) {
                g_array_append_val(event, p->route[r].event_ms);
                g_array_append_val(wall, p->route[r].wall_ms);
                last = p;
            }
        if (last == NULL)
            return;
        paper_csv_text(csv, preset->trace);
        paper_csv_int(csv, preset->max_active);
        paper_csv_text(csv, "published");
        paper_csv_text(csv, last->route[r].route);
        paper_csv_text(csv, PAPER_CARD);
        paper_csv_int(csv, event->len);
        paper_csv_int(csv, event->len);
        paper_csv_int(csv, (gint64)event->len * last->steps);
        paper_csv_int(csv, (gint64)event->len * last->steps);
        paper_csv_int(csv, event->len);
        paper_csv_text(csv, last->route[r].count[PAPER_LAUNCHES]);
        paper_csv_text(csv, last->route[r].count[PAPER_MERGE_LAUNCHES]);
        paper_csv_text(csv, NULL);
        paper_csv_text(csv, last->route[r].count[PAPER_MERGE_MIB]);
        paper_csv_real(csv, paper_mean(event), 4);
        paper_csv_real(csv, paper_deviation(event), 4);
        paper_csv_real(csv, paper_mean(wall), 4);
        paper_csv_real(csv, paper_deviation(wall), 4);
        for (guint i = 0; i < 5; i++)
            paper_csv_text(csv, NULL);
        paper_csv_real(csv, last->max_abs_err, -3);
        paper_csv_text(csv, NULL);
        paper_csv_text(csv, r == 0 ? "FlashInfer 0.2.5; its plan runs inside the step" : NULL);
        paper_csv_end(csv);
    }
}

static const char ratios_header[] =
    "trace,max_active,what,policy,device,event_ratio,wall_ratio,wall_ratio_plan_once_a_step,note";

static void published_ratio(PaperCsv *csv, const PaperRatio *r, gboolean first)
{
    paper_csv_text(csv, r->trace);
    paper_csv_int(csv, r->max_active);
    paper_csv_text(csv, first ? "published, first version" : "published, latest version");
    paper_csv_text(csv, "paper's own");
    paper_csv_text(csv, PAPER_CARD);
    paper_csv_real(csv, first ? (double)NAN : r->latest_event, 3);
    paper_csv_real(csv, first ? r->first_wall : r->latest_wall, 3);
    paper_csv_text(csv, NULL);
    paper_csv_text(csv, first ? "one seed (20260623), another run than the published logs"
                              : "mean of five held-out seeds");
    paper_csv_end(csv);
}

/* Time of `base` over that of the policy, both measured here: mean of the seeds' ratios. */
static double ratio_of(const GArray *base, const GArray *policy, const GArray *base_plan,
                       const GArray *plan, double keep)
{
    g_autoptr(GArray) ratio = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < base->len && i < policy->len; i++) {
        const double a =
            g_array_index(base, double, i) - (1 - keep) * g_array_index(base_plan, double, i);
        const double b =
            g_array_index(policy, double, i) - (1 - keep) * g_array_index(plan, double, i);
        const double r = a / b;
        g_array_append_val(ratio, r);
    }
    return paper_mean(ratio);
}

static void measured_ratio(PaperCsv *csv, const PaperRun *run, const PaperPreset *preset,
                           const Entry *base, const Entry *policy)
{
    paper_csv_text(csv, preset->trace);
    paper_csv_int(csv, preset->max_active);
    g_autofree char *what = g_strdup_printf("measured here, %s / policy", base->name);
    paper_csv_text(csv, what);
    paper_csv_text(csv, policy->name);
    paper_csv_text(csv, run->device_name);
    paper_csv_real(csv, ratio_of(base->event, policy->event, base->plan, policy->plan, 1), 3);
    paper_csv_real(csv, ratio_of(base->wall, policy->wall, base->plan, policy->plan, 1), 3);
    paper_csv_real(
        csv, ratio_of(base->wall, policy->wall, base->plan, policy->plan, 1.0 / run->layers), 3);
    paper_csv_text(csv, strcmp(base->name, "flashinfer") == 0
                            ? NULL
                            : "no FlashInfer here: the unsplit route is the baseline");
    paper_csv_end(csv);
}

static void write_ratios(PaperCsv *csv, const PaperRun *run, const PaperPreset *preset,
                         GPtrArray *entries)
{
    for (const PaperRatio *r = paper_ratios; r->trace != NULL; r++)
        if (strcmp(r->trace, preset->trace) == 0 && r->max_active == preset->max_active) {
            published_ratio(csv, r, TRUE);
            published_ratio(csv, r, FALSE);
        }
    const Entry *base = entry_get(entries, "route", "flashinfer");
    if (base->event->len == 0)
        base = entry_get(entries, "route", "single");
    for (guint p = 0; p < G_N_ELEMENTS(policy_rows); p++)
        measured_ratio(csv, run, preset, base, entry_get(entries, "policy", policy_rows[p].name));
}

static gboolean one_preset(PaperRun *run, const PaperPreset *preset, PaperCsv *csv,
                           PaperCsv *ratios, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(entry_free);
    guint64 steps = 0;
    for (guint k = 0; k < PAPER_HELD_OUT; k++) {
        PaperExperiment e;
        gboolean published;
        if (!paper_experiment_init(&e, preset->trace, preset->max_active,
                                   PAPER_FIRST_HELD_OUT + (gint)k, &published, error))
            return FALSE;
        const gboolean ok = measure_seed(run, &e, entries, &steps, error);
        paper_experiment_clear(&e);
        if (!ok)
            return FALSE;
    }
    for (guint i = 0; i < entries->len; i++)
        main_line(csv, run, preset, entries->pdata[i], steps);
    published_lines(csv, preset);
    write_ratios(ratios, run, preset, entries);
    return TRUE;
}

gboolean paper_write_main(PaperRun *run, GError **error)
{
    PaperCsv csv, ratios;
    if (!paper_csv_open(&csv, run, "main.csv", main_header, error))
        return FALSE;
    if (!paper_csv_open(&ratios, run, "ratios.csv", ratios_header, error))
        return paper_csv_close(&csv, FALSE, error);
    gboolean ok = TRUE;
    for (const PaperPreset *p = paper_presets; ok && p->trace != NULL; p++)
        ok = one_preset(run, p, &csv, &ratios, error);
    ok = paper_csv_close(&csv, ok, error);
    return paper_csv_close(&ratios, ok, error);
}
