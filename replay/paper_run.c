#include "replay/paper_run.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/paper_published.h"
#include "replay/result.h"

enum { FIRST_SEED = 20260623, PUBLISHED_SMS = 28, MAX_SETTINGS = 10 };

typedef struct Setting {
    char *route; /* route text */
    const char *text;
} Setting;

/* One steps file and the routes to run over it. */
typedef struct Cell {
    const char *table, *trace;
    gint64 max_active, seed, length;
    gint group;
    gboolean executes;
    Setting setting[MAX_SETTINGS];
    guint n;
} Cell;

typedef struct Run {
    const PaperRun *config;
    char *steps; /* the file in hand */
    FILE *out, *shares;
    Progress *progress;
    guint64 cells, checked, wrong, executed;
    double max_err;
    char *backend;
    JsonNode *device;
} Run;

void paper_run_init(PaperRun *self, gboolean quick)
{
    *self = (PaperRun){
        .config = {.layers = 1, .tp = 1, .seed = FIRST_SEED},
        .seeds = 5,
        .executed = quick ? 1 : 8,
    };
}

static void G_GNUC_PRINTF(3, 4) add_setting(Cell *cell, const char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_assert(cell->n < MAX_SETTINGS);
    cell->setting[cell->n++] = (Setting){g_strdup_vprintf(format, args), text};
    va_end(args);
}

/* --- output --- */

static void put(FILE *out, const char *format, gboolean known, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE] = "";
    if (known && isfinite(value))
        g_ascii_formatd(text, sizeof text, format, value);
    fprintf(out, ",%s", text);
}

static void put_row(Run *run, const Cell *cell, const Setting *setting, const ReplayResult *r,
                    const RouteTotals *t)
{
    FILE *out = run->out;
    const double n = (double)r->decode_steps, mib = 1 << 20;
    const gboolean counted = t->refused == NULL && t->counted, ran = t->executed > 0;
    const double e = (double)MAX(t->executed, 1), c = (double)MAX(t->checked, 1);
    g_auto(GStrv) name = g_strsplit(setting->route, ":", 2);
    fprintf(out,
            "%s,%s,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
            ",%d,%s,%s,%" G_GUINT64_FORMAT,
            cell->table, cell->trace, cell->max_active, cell->seed, cell->length, cell->group,
            name[0], setting->text, r->decode_steps);
    put(out, "%.4f", TRUE, (double)t->kv_bytes / mib / n);
    put(out, "%.4f", counted, (double)t->launches / n);
    put(out, "%.4f", counted, (double)t->merge_launches / n);
    put(out, "%.4f", counted, (double)t->tasks / n);
    put(out, "%.4f", counted, (double)t->tasks / n / PUBLISHED_SMS);
    put(out, "%.6f", counted, (double)t->merge_state_bytes / mib / n);
    fprintf(out, ",%" G_GUINT64_FORMAT, t->executed);
    put(out, "%.3f", ran, t->kernel_sum / e);
    put(out, "%.3f", ran, t->plan_sum / e);
    put(out, "%.3f", ran, t->wall_sum / e);
    put(out, "%.3f", ran, (double)t->executed_kv_bytes / t->kernel_sum / 1e3);
    fprintf(out, ",%" G_GUINT64_FORMAT, t->checked);
    put(out, "%.3e", t->checked > 0, t->max_err);
    put(out, "%.3e", t->checked > 0, t->mean_err_sum / c);
    PublishedTimes p = {0};
    const gboolean published = strcmp(setting->text, "published") == 0;
    if (published && strcmp(cell->table, "serving") == 0)
        p = paper_published_serving(cell->trace, cell->max_active, cell->seed, name[0]);
    else if (published && strcmp(cell->table, "isolated") == 0)
        p = paper_published_isolated(cell->length, name[0]);
    put(out, "%.4f", p.event_ms > 0, p.event_ms);
    put(out, "%.4f", p.wall_ms > 0, p.wall_ms);
    fprintf(out, ",%s\n", t->refused != NULL ? "refused" : "");
}

static const char header[] =
    "table,trace,max_active,seed,length,group,route,setting,steps,kv_mib_per_step,"
    "launches_per_step,merge_launches_per_step,tasks_per_step,tasks_per_28_sms,merge_mib_per_step,"
    "executed_steps,kernel_us,plan_us,wall_us,kernel_gb_per_s,checked_steps,max_abs_err,"
    "mean_abs_err,published_rtx3060_event_ms,published_rtx3060_wall_ms,note\n";

/* --- running a cell --- */

static gboolean add_routes(const Cell *cell, ReplayConfig *config, GError **error)
{
    for (guint i = 0; i < cell->n; i++) {
        PluginChoice *choice = g_new0(PluginChoice, 1);
        if (!plugin_choice_parse(choice, "route", routes, cell->setting[i].route, error)) {
            g_free(choice);
            return FALSE;
        }
        g_ptr_array_add(config->routes, choice);
    }
    return TRUE;
}

static void set_execution(const Run *run, const Cell *cell, ReplayConfig *config)
{
    const PaperRun *c = run->config;
    config->config = c->config;
    config->profile = g_strdup(c->profile);
    config->repeats = c->repeats;
    config->check_every = 1;
    config->backend.info = cell->executes ? c->backend : &backend_counters.info;
    config->execute = c->execute_all ? EXECUTE_ALL : EXECUTE_SAMPLE;
    config->execute_a = cell->executes ? (guint64)c->executed : 0;
}

static void note_result(Run *run, const Cell *cell, ReplayResult *r)
{
    run->cells++;
    run->executed += r->executed_steps;
    for (guint i = 0; i < r->n_routes; i++) {
        const RouteTotals *t = &r->route[i];
        put_row(run, cell, &cell->setting[i], r, t);
        run->checked += t->checked;
        run->wrong += t->wrong;
        run->max_err = t->max_err <= run->max_err ? run->max_err : t->max_err; /* NaN stays */
    }
    if (run->device == NULL && r->executed_steps > 0) {
        run->backend = g_strdup(r->backend);
        run->device = json_node_copy(r->device);
    }
}

/* Replays run->steps with the cell's routes. */
static gboolean run_routes(Run *run, const Cell *cell, GError **error)
{
    ReplayConfig config;
    replay_config_init(&config);
    set_execution(run, cell, &config);
    g_autoptr(StepsReader) steps = steps_reader_open(run->steps, error);
    g_autoptr(ReplayResult) r = NULL;
    if (steps != NULL && add_routes(cell, &config, error))
        r = replay_run(&config, steps, NULL, run->progress, error);
    replay_config_clear(&config);
    if (r == NULL)
        return FALSE;
    note_result(run, cell, r);
    return TRUE;
}

static gboolean finish_cell(Run *run, Cell *cell, gboolean written, GError **error)
{
    const gboolean ok = written && run_routes(run, cell, error);
    for (guint i = 0; i < cell->n; i++)
        g_free(cell->setting[i].route);
    cell->n = 0;
    g_unlink(run->steps);
    return ok;
}

/* --- the tables --- */

static gboolean policy_shares(Run *run, const PaperExperiment *e, GError **error)
{
    static const char *const names[] = {"paper-v1", "paper-v2", "cost"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        ReplayConfig config;
        if (!paper_replay_config(e, names[i], &config, error))
            return FALSE;
        config.backend.info = &backend_counters.info;
        config.profile = g_strdup(run->config->profile);
        g_autoptr(StepsReader) steps = steps_reader_open(run->steps, error);
        g_autoptr(ReplayResult) r =
            steps != NULL ? replay_run(&config, steps, NULL, NULL, error) : NULL;
        replay_config_clear(&config);
        if (r == NULL)
            return FALSE;
        for (guint k = 0; k < r->n_routes; k++) {
            fprintf(run->shares, "%s,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%s,%s", e->trace,
                    e->max_active, e->seed, names[i], r->route[k].label);
            put(run->shares, "%.6f", TRUE, (double)r->route[k].chosen / (double)r->decode_steps);
            fputc('\n', run->shares);
        }
    }
    return TRUE;
}

/* A trace's cell; `fill` names the routes. */
static gboolean trace_cell(Run *run, const char *table, const PaperPreset *preset, gint seed_index,
                           gint group, void (*fill)(Cell *, const PaperExperiment *),
                           gboolean policies_too, GError **error)
{
    PaperExperiment e;
    gboolean published;
    if (!paper_experiment_init(&e, preset->trace, preset->max_active, FIRST_SEED + seed_index,
                               &published, error))
        return FALSE;
    e.q_heads = 8 * group;
    Cell cell = {
        .table = table,
        .trace = preset->trace,
        .max_active = preset->max_active,
        .seed = e.seed,
        .group = group,
        .executes = run->config->execute_all || (seed_index == 0 && run->config->executed > 0),
    };
    fill(&cell, &e);
    gboolean ok = paper_write_steps(&e, run->steps, error);
    ok = ok && (!policies_too || policy_shares(run, &e, error));
    ok = finish_cell(run, &cell, ok, error);
    paper_experiment_clear(&e);
    return ok;
}

static void fill_serving(Cell *cell, const PaperExperiment *e)
{
    add_setting(cell, "balanced", "single");
    add_setting(cell, "published", "buckets:s=%d", (gint)e->buckets_s);
    add_setting(cell, "published", "masked:s=%d", (gint)e->queue_s);
    add_setting(cell, "published", "workqueue:s=%d", (gint)e->queue_s);
    add_setting(cell, "published", "workqueue-fused:s=%d", (gint)e->queue_s);
    add_setting(cell, "balanced", "workqueue");
    add_setting(cell, "balanced", "workqueue-fused");
    add_setting(cell, "balanced", "persistent");
}

static void fill_padding(Cell *cell, const PaperExperiment *e)
{
    static const struct {
        gint width;
        const char *text;
    } widths[] = {{1, "exact"},     {2048, "2048"},   {4096, "4096"},  {8192, "8192"},
                  {16384, "16384"}, {32768, "32768"}, {1 << 24, "one"}};
    for (guint i = 0; i < G_N_ELEMENTS(widths); i++)
        add_setting(cell, widths[i].text, "buckets:s=%d,width=%d", (gint)e->buckets_s,
                    widths[i].width);
}

static void fill_splits(Cell *cell, const PaperExperiment *e)
{
    const gboolean one = e->max_active == 1;
    static const char *const texts[] = {"28", "32", "36", "16", "20", "24"};
    for (guint i = one ? 0 : 3; i < (one ? 3 : 6); i++)
        add_setting(cell, texts[i], "%s:s=%s", one ? "buckets" : "workqueue", texts[i]);
    add_setting(cell, "balanced", "%s", one ? "buckets" : "workqueue");
}

static gboolean serving_tables(Run *run, GError **error)
{
    for (const PaperPreset *p = paper_presets; p->trace != NULL; p++)
        for (gint seed = 0; seed < run->config->seeds; seed++)
            if (!trace_cell(run, "serving", p, seed, 4, fill_serving, TRUE, error))
                return FALSE;
    const PaperPreset *one = &paper_presets[0], *bimodal = &paper_presets[3];
    return trace_cell(run, "padding", bimodal, 0, 4, fill_padding, FALSE, error) &&
           trace_cell(run, "splits", one, 0, 4, fill_splits, FALSE, error) &&
           trace_cell(run, "splits", bimodal, 0, 4, fill_splits, FALSE, error) &&
           trace_cell(run, "gqa", bimodal, 0, 1, fill_serving, FALSE, error) &&
           trace_cell(run, "gqa", bimodal, 0, 4, fill_serving, FALSE, error) &&
           trace_cell(run, "gqa", bimodal, 0, 8, fill_serving, FALSE, error);
}

static gboolean row_cell(Run *run, const char *table, gint32 length, double holes, GError **error)
{
    Cell cell = {
        .table = table,
        .trace = "row",
        .max_active = 1,
        .seed = FIRST_SEED,
        .length = length,
        .group = 4,
        .executes = run->config->executed > 0 || run->config->execute_all,
    };
    const PaperExperiment b1 = {.max_active = 1, .buckets_s = 32, .queue_s = 24};
    fill_serving(&cell, &b1);
    return finish_cell(
        run, &cell, paper_write_rows(&length, 1, 32, holes, FIRST_SEED, run->steps, error), error);
}

static gboolean row_tables(Run *run, GError **error)
{
    static const gint32 isolated[] = {8192, 32768, 65536}, real[] = {16384, 32768, 65536, 131072};
    for (guint i = 0; i < G_N_ELEMENTS(isolated); i++)
        if (!row_cell(run, "isolated", isolated[i], 0.5, error))
            return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(real); i++)
        if (!row_cell(run, "long", real[i], 0, error))
            return FALSE;
    return TRUE;
}

static void put_summary(const Run *run, JsonBuilder *b)
{
    json_builder_set_member_name(b, "backend");
    json_builder_add_string_value(b, run->backend != NULL ? run->backend : "counters");
    if (run->device != NULL) {
        json_builder_set_member_name(b, "device");
        json_builder_add_value(b, json_node_copy(run->device));
    }
    const struct {
        const char *key;
        guint64 value;
    } counts[] = {{"cells", run->cells},
                  {"executed_steps", run->executed},
                  {"checked_outputs", run->checked},
                  {"wrong_outputs", run->wrong}};
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++) {
        json_builder_set_member_name(b, counts[i].key);
        json_builder_add_int_value(b, (gint64)counts[i].value);
    }
    if (run->checked > 0 && isfinite(run->max_err)) {
        json_builder_set_member_name(b, "max_abs_err");
        json_builder_add_double_value(b, run->max_err);
    }
}

gboolean paper_run(const PaperRun *self, const char *folder, Progress *progress,
                   JsonBuilder *summary, GError **error)
{
    g_autofree char *table = g_build_filename(folder, "paper.csv", NULL);
    g_autofree char *shares = g_build_filename(folder, "policies.csv", NULL);
    g_autofree char *steps = g_build_filename(folder, "cell.kvsteps", NULL);
    if (!out_folder_make(folder, error))
        return FALSE;
    g_autoptr(OutFile) out = out_file_new(table, error);
    g_autoptr(OutFile) out_shares = out != NULL ? out_file_new(shares, error) : NULL;
    if (out_shares == NULL)
        return FALSE;
    Run run = {
        .config = self,
        .steps = steps,
        .out = out_file_stream(out),
        .shares = out_file_stream(out_shares),
        .progress = progress,
    };
    fputs(header, run.out);
    fputs("trace,max_active,seed,policy,route,share\n", run.shares);
    const gboolean ok = serving_tables(&run, error) && row_tables(&run, error) &&
                        out_file_commit(out, error) && out_file_commit(out_shares, error);
    if (ok)
        put_summary(&run, summary);
    g_free(run.backend);
    g_clear_pointer(&run.device, json_node_unref);
    if (ok && run.wrong > 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "%" G_GUINT64_FORMAT " checked outputs differ from the fp64 reference by more "
                    "than the tolerance: see max_abs_err in %s",
                    run.wrong, table);
        return FALSE;
    }
    return ok;
}
