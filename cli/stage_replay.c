/* The replay stage: steps files of one or several replicas into one set of outputs. */
#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/stages.h"
#include "replay/replay_fleet.h"

/* A replica's inputs, outputs and run. Owns all of it. */
typedef struct Replica {
    char *steps_path;
    StepsReader *steps;
    guint32 number;
    char *csv_path, *calibration_path; /* its own; NULL = none */
    char *earlier;
    OutFile *csv, *calibration;
} Replica;

static void replica_clear(gpointer data)
{
    Replica *r = data;
    steps_reader_free(r->steps);
    out_file_free(r->csv);
    out_file_free(r->calibration);
    g_free(r->steps_path);
    g_free(r->csv_path);
    g_free(r->calibration_path);
    g_free(r->earlier);
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    const Replica *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

#define REPLICA(all, k) (&g_array_index((all), Replica, (k)))

/* One engine in several replicas: replay.csv has no column for another model or another log. */
static gboolean same_engine(const Replica *a, const Replica *b, GError **error)
{
    const StepsHeader *x = steps_reader_header(a->steps), *y = steps_reader_header(b->steps);
    const struct {
        const char *name;
        guint64 a, b;
    } numbers[] = {
        {"layers", x->layers, y->layers},          {"q_heads", x->q_heads, y->q_heads},
        {"kv_heads", x->kv_heads, y->kv_heads},    {"head_dim", x->head_dim, y->head_dim},
        {"page_size", x->page_size, y->page_size},
    };
    const struct {
        const char *name, *a, *b;
    } texts[] = {{"model", x->model, y->model},
                 {"dtype", x->dtype, y->dtype},
                 {"workload_sha256", x->workload_sha256, y->workload_sha256}};
    g_autofree char *what = NULL;
    for (guint i = 0; what == NULL && i < G_N_ELEMENTS(texts); i++)
        if (g_strcmp0(texts[i].a, texts[i].b) != 0)
            what = g_strdup_printf("%s '%s' and '%s'", texts[i].name,
                                   texts[i].a != NULL ? texts[i].a : "",
                                   texts[i].b != NULL ? texts[i].b : "");
    for (guint i = 0; what == NULL && i < G_N_ELEMENTS(numbers); i++)
        if (numbers[i].a != numbers[i].b)
            what = g_strdup_printf("%s %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
                                   numbers[i].name, numbers[i].a, numbers[i].b);
    if (what == NULL)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s and %s differ: %s: expected the files of one simulate --replicas",
                a->steps_path, b->steps_path, what);
    return FALSE;
}

/* In the order of their replica numbers, which must differ. */
static GArray *open_all(const char *const *paths, GError **error)
{
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(Replica));
    g_array_set_clear_func(all, replica_clear);
    for (; *paths != NULL; paths++) {
        Replica r = {.steps_path = g_strdup(*paths)};
        r.steps = steps_reader_open(*paths, error);
        r.number = r.steps != NULL ? steps_reader_header(r.steps)->replica : 0;
        g_array_append_val(all, r);
        if (r.steps == NULL)
            return NULL;
    }
    g_array_sort(all, by_number);
    for (guint k = 1; k < all->len; k++)
        if (REPLICA(all, k)->number == REPLICA(all, k - 1)->number) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s and %s are both of replica %u",
                        REPLICA(all, k - 1)->steps_path, REPLICA(all, k)->steps_path,
                        REPLICA(all, k)->number);
            return NULL;
        }
    for (guint k = 1; k < all->len; k++)
        if (!same_engine(REPLICA(all, 0), REPLICA(all, k), error))
            return NULL;
    return g_steal_pointer(&all);
}

/* What an interrupted replay left of CSV, moved out of the way of the new one: "CSV.earlier", the
 * longer of its .part and of what a resume before it started from. NULL where there is none. */
static char *claim_earlier(const char *csv)
{
    g_autofree char *part = g_strconcat(csv, ".part", NULL);
    g_autofree char *earlier = g_strconcat(csv, ".earlier", NULL);
    GStatBuf a, b;
    gboolean have_part = g_stat(part, &a) == 0, have_earlier = g_stat(earlier, &b) == 0;
    if (have_part && (!have_earlier || a.st_size > b.st_size) && g_rename(part, earlier) == 0)
        have_earlier = TRUE;
    return have_earlier ? g_steal_pointer(&earlier) : NULL;
}

static gboolean open_outputs(Replica *r, guint k, const ReplayStage *stage, GError **error)
{
    if (stage->csv != NULL) {
        r->csv_path = replica_path(stage->csv, k);
        if (stage->resume)
            r->earlier = claim_earlier(r->csv_path);
        if ((r->csv = out_file_new(r->csv_path, error)) == NULL)
            return FALSE;
    }
    if (stage->calibration == NULL)
        return TRUE;
    r->calibration_path = replica_path(stage->calibration, k);
    return (r->calibration = out_file_new(r->calibration_path, error)) != NULL;
}

/* Measured lines are dear: what is whole stays in the .part, whatever ended the run. */
static void keep_outputs(GArray *all)
{
    for (guint k = 0; k < all->len; k++) {
        if (REPLICA(all, k)->csv != NULL)
            out_file_keep(REPLICA(all, k)->csv);
        if (REPLICA(all, k)->calibration != NULL)
            out_file_keep(REPLICA(all, k)->calibration);
    }
}

/* The lines of `from`, whose file is PATH.part, behind those of `to`; not its header. */
static gboolean append(OutFile *to, OutFile *from, const char *path, GError **error)
{
    g_autofree char *part = g_strconcat(path, ".part", NULL);
    char buffer[1 << 16];
    gsize n;
    fflush(out_file_stream(from));
    if (!out_file_ok(from, error))
        return FALSE;
    FILE *in = g_fopen(part, "r");
    if (in == NULL) {
        kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be read again", part);
        return FALSE;
    }
    int c;
    while ((c = getc(in)) != EOF && c != '\n')
        ;
    while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
        fwrite(buffer, 1, n, out_file_stream(to));
    const gboolean whole = ferror(in) == 0;
    fclose(in);
    if (!whole)
        kv_set_errno(error, KV_ERROR_MACHINE, EIO, "%s: cannot be read again", part);
    return whole && out_file_ok(to, error);
}

/* All replicas' lines into the first one's files, under their final names. */
static gboolean commit_outputs(GArray *all, GError **error)
{
    Replica *first = REPLICA(all, 0);
    for (guint k = 1; k < all->len; k++) {
        Replica *r = REPLICA(all, k);
        if ((r->csv != NULL && !append(first->csv, r->csv, r->csv_path, error)) ||
            (r->calibration != NULL &&
             !append(first->calibration, r->calibration, r->calibration_path, error)))
            return FALSE;
    }
    if ((first->csv != NULL && !out_file_commit(first->csv, error)) ||
        (first->calibration != NULL && !out_file_commit(first->calibration, error)))
        return FALSE;
    for (guint k = 0; k < all->len; k++)
        if (REPLICA(all, k)->earlier != NULL)
            g_unlink(REPLICA(all, k)->earlier);
    return TRUE;
}

static void add_result(JsonBuilder *json, const ReplayResult *result)
{
    json_builder_set_member_name(json, "replay");
    json_builder_begin_object(json);
    replay_result_to_json(result, json);
    json_builder_end_object(json);
}

static void add_results(JsonBuilder *json, const ReplicaRun *runs, guint n)
{
    add_result(json, runs[0].result);
    if (n < 2)
        return;
    json_builder_set_member_name(json, "replays");
    json_builder_begin_array(json);
    for (guint k = 1; k < n; k++) {
        json_builder_begin_object(json);
        add_result(json, runs[k].result);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static gboolean check_results(const ReplicaRun *runs, guint n, const char *csv, GError **error)
{
    for (guint k = 0; k < n; k++)
        if (!replay_result_correct(runs[k].result)) {
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                        "an output differs from the fp64 reference by more than the tolerance "
                        "(max 2e-3, mean 3e-4): see max_abs_err in %s",
                        csv != NULL ? csv : "the result");
            return FALSE;
        }
    return TRUE;
}

static gboolean run_all(const Scenario *scenario, GArray *all, ReplicaRun *runs, Progress *progress,
                        GError **error)
{
    ReplayConfig config;
    for (guint k = 0; k < all->len; k++)
        runs[k] = (ReplicaRun){.steps = REPLICA(all, k)->steps,
                               .csv = REPLICA(all, k)->csv,
                               .calibration = REPLICA(all, k)->calibration,
                               .resume = REPLICA(all, k)->earlier};
    const gboolean ok = scenario_replay_config(scenario, &config, error) &&
                        replay_fleet_run(&config, runs, all->len, progress, error);
    replay_config_clear(&config);
    return ok;
}

static gboolean check_stage(const ReplayStage *stage, GArray *all, GError **error)
{
    const char *const to[] = {stage->csv, stage->calibration};
    for (guint i = 0; i < G_N_ELEMENTS(to); i++)
        if (all->len > 1 && g_strcmp0(to[i], "-") == 0) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                        "several replicas need a file to write to, not standard output");
            return FALSE;
        }
    return TRUE;
}

gboolean stage_replay(const Scenario *scenario, const ReplayStage *stage, Progress *progress,
                      JsonBuilder *json, GError **error)
{
    g_autoptr(GArray) all = open_all(stage->steps, error);
    if (all == NULL || !check_stage(stage, all, error))
        return FALSE;
    for (guint k = 0; k < all->len; k++)
        if (!open_outputs(REPLICA(all, k), k, stage, error))
            return FALSE;
    g_autofree ReplicaRun *runs = g_new0(ReplicaRun, all->len);
    gboolean ok = run_all(scenario, all, runs, progress, error) && commit_outputs(all, error);
    if (!ok) {
        keep_outputs(all);
    } else {
        add_results(json, runs, all->len);
        ok = check_results(runs, all->len, stage->csv, error);
    }
    for (guint k = 0; k < all->len; k++) {
        replay_result_free(runs[k].result);
        g_clear_error(&runs[k].error);
    }
    return ok;
}
