/* layer.csv: a whole decode step by cell and route, measured on a GPU or counted (replay/layer.h).
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/paper_layer.h"
#include "cli/scenario.h"
#include "cli/stages.h"
#include "replay/bench.h"

enum { CHECK_BYTES = 144 << 20, QUICK_CHECK_BYTES = 16 << 20, REPEATS = 9, QUICK_REPEATS = 3 };

static const char default_cells[] = "len=2k,8k,32k,bimodal;rows=1,2,4,8,16,32,64";
static const char quick_cells[] = "len=2k,8k;rows=1,8";
static const char default_routes[] = "persistent,workqueue-fused,workqueue,buckets";

/* --- what is to be run --- */

static char *route_label(const PluginChoice *choice)
{
    const RouteConfig *c = choice->config;
    const Route route = {.ops = (const RouteOps *)choice->info, .config = *c};
    g_autofree char *setting = route_setting(&route);
    g_autofree char *plain = g_strdup_printf("%s:s=%" G_GINT64_FORMAT, choice->info->name, c->s);
    return strcmp(setting, plain) == 0
               ? g_strdup_printf("%s S=%" G_GINT64_FORMAT, choice->info->name, c->s)
               : g_steal_pointer(&setting);
}

static gboolean open_routes(LayerStudy *self, const char *text, GError **error)
{
    ReplayConfig *c = &self->config;
    if (!scenario_parse_routes(text != NULL ? text : default_routes, c->routes, error))
        return FALSE;
    if (c->routes->len < 1 || c->routes->len > LAYER_ROUTES) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--routes '%s': expected 1 to %d routes", text,
                    LAYER_ROUTES);
        return FALSE;
    }
    if (!routes_differ(c->routes, error))
        return FALSE;
    self->n = c->routes->len;
    for (guint i = 0; i < self->n; i++) {
        const PluginChoice *choice = c->routes->pdata[i];
        self->route[i] = (Route){(const RouteOps *)choice->info,
                                 *(const RouteConfig *)choice->config, route_label(choice)};
        self->candidate[i] = (Candidate){.route = &self->route[i], .measured_us = (double)NAN};
        if (self->route[i].ops->kind == ROUTE_BUILTIN)
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                    "--routes %s: the layer runtime runs kvreplay's own routes",
                    choice->info->name);
        return FALSE;
    }
    return TRUE;
}

/* Lengths and rows are the cells', heads the model's; page size and dtype are one for all. */
static gboolean open_cells(LayerStudy *self, const char *text, GError **error)
{
    if (text == NULL)
        text = self->run->quick ? quick_cells : default_cells;
    if (strstr(text, "heads=") != NULL || strstr(text, "dim=") != NULL) {
        g_set_error_literal(error, KV_ERROR, KV_ERROR_USAGE,
                            "--cells: heads= and dim= are the model's (--model, --tp)");
        return FALSE;
    }
    if (!bench_add_cells(&self->cells, text, error))
        return FALSE;
    const AttnShape *first = &g_array_index(self->cells.cells, BenchCell, 0).shape;
    for (guint i = 0; i < self->cells.cells->len; i++) {
        const BenchCell *cell = &g_array_index(self->cells.cells, BenchCell, i);
        if (cell->rows <= LAYER_MAX_ROWS && cell->shape.page_size == first->page_size &&
            cell->shape.dtype == first->dtype && cell->shape.layout == first->layout)
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "--cells: at most %d rows, and one page size, dtype and layout for all",
                    LAYER_MAX_ROWS);
        return FALSE;
    }
    return TRUE;
}

static gboolean open_profile(LayerStudy *self, GError **error)
{
    self->profile = self->run->profile != NULL ? device_profile_read(self->run->profile, error)
                                               : device_profile_guess();
    self->gpu = gpu_info_find(self->options->gpu, error);
    return self->profile != NULL && self->gpu != NULL;
}

static gboolean is_file(const char *name)
{
    return strchr(name, '/') != NULL || g_str_has_suffix(name, ".json");
}

static gboolean open_model(LayerStudy *self, const char *name, GError **error)
{
    const AttnShape *cell = &g_array_index(self->cells.cells, BenchCell, 0).shape;
    if (!(is_file(name) ? model_info_read(name, &self->model, error)
                        : model_info_find(name, &self->model, error)) ||
        !layer_shape_init(&self->shape, &self->model, self->options->tp, cell->page_size,
                          cell->dtype, error))
        return FALSE;
    if (is_file(name)) /* every such file has the same name */
        self->model.name = name;
    self->shape.attn.layout = cell->layout;
    self->layers = self->options->layers > 0 ? self->options->layers : self->shape.layers;
    return TRUE;
}

static void study_clear(LayerStudy *self)
{
    for (guint i = 0; i < self->n; i++)
        g_free(self->route[i].label);
    replay_config_clear(&self->config);
    bench_config_clear(&self->cells);
    g_clear_pointer(&self->profile, device_profile_free);
    g_clear_pointer(&self->engine, layer_engine_free);
    g_clear_pointer(&self->about, json_node_unref);
    g_clear_object(&self->json);
    g_free(self->floor_of);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LayerStudy, study_clear)

/* --- a model --- */

static gint32 *cell_lens(const LayerStudy *self, const BenchCell *cell)
{
    gint32 *lens = g_new(gint32, cell->rows);
    bench_cell_lens(cell, self->options->seed, lens);
    return lens;
}

static void cells_extent(const LayerStudy *self, LayerConfig *ret)
{
    ret->max_rows = 4; /* the check's */
    ret->max_len = 1024;
    ret->least_pages = G_MAXINT64;
    for (guint i = 0; i < self->cells.cells->len; i++) {
        const BenchCell *cell = &g_array_index(self->cells.cells, BenchCell, i);
        g_autofree gint32 *lens = cell_lens(self, cell);
        const gint64 pages = layer_cell_pages(&self->shape.attn, cell->rows, lens);
        for (gint32 r = 0; r < cell->rows; r++)
            ret->max_len = MAX(ret->max_len, lens[r]);
        ret->max_rows = MAX(ret->max_rows, cell->rows);
        ret->least_pages = MIN(ret->least_pages, pages);
        ret->most_pages = MAX(ret->most_pages, pages);
    }
}

static void put_real(JsonBuilder *b, const char *name, double value)
{
    json_builder_set_member_name(b, name);
    if (isfinite(value))
        json_builder_add_double_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void put_check(LayerStudy *self, const LayerCheck *c)
{
    static const char *const gemms[LAYER_GEMMS] = {"qkv", "o", "gate_up", "down", "head"};
    JsonBuilder *b = self->json;
    json_builder_set_member_name(b, "check");
    json_builder_begin_object(b);
    for (LayerGemm g = 0; g < LAYER_GEMMS; g++)
        put_real(b, gemms[g], c->gemm[g]);
    put_real(b, "norm", c->norm);
    put_real(b, "rope", c->rope);
    put_real(b, "silu", c->silu);
    put_real(b, "attention_max", c->attention_max);
    put_real(b, "attention_mean", c->attention_mean);
    put_real(b, "tokens_wrong", c->tokens_wrong);
    put_real(b, "embeddings_wrong", c->embeddings_wrong);
    put_real(b, "values", (double)c->values);
    json_builder_end_object(b);
}

/* Three ragged rows in a bucket of four, piece by piece, before anything is timed. */
static gboolean check_model(LayerStudy *self, GError **error)
{
    static const gint32 lens[] = {1000, 37, 513};
    LayerCheck check;
    if (!layer_engine_cell(self->engine, G_N_ELEMENTS(lens), lens, error) ||
        !layer_engine_check(self->engine, &self->route[0], &self->config.splits, FALSE, &check,
                            error))
        return FALSE;
    put_check(self, &check);
    if (layer_check_passes(self->shape.attn.dtype, &check))
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                "%s: a piece of the step differs from fp64: products %.1e %.1e %.1e %.1e %.1e, "
                "norm %.1e, rotation %.1e, gate %.1e, attention %.1e, %d tokens, %d embeddings",
                self->model.name, check.gemm[0], check.gemm[1], check.gemm[2], check.gemm[3],
                check.gemm[4], check.norm, check.rope, check.silu, check.attention_max,
                check.tokens_wrong, check.embeddings_wrong);
    return FALSE;
}

static gboolean open_engine(LayerStudy *self, GError **error)
{
    LayerConfig config = {.shape = self->shape,
                          .layers = self->layers,
                          .device = self->run->device,
                          .seed = self->options->seed,
                          .greedy = self->options->greedy};
    cells_extent(self, &config);
    if (!self->run->gpu) {
        const gint64 memory = (gint64)(self->gpu->memory_gib * (1 << 30));
        return layer_memory_plan(&self->shape, self->layers, layer_bucket(config.max_rows),
                                 config.max_len, config.least_pages, config.most_pages, memory,
                                 &self->memory, error);
    }
    self->engine = layer_engine_new(&config, error);
    if (self->engine == NULL)
        return FALSE;
    self->memory = *layer_engine_memory(self->engine);
    self->read_rate = layer_engine_read_rate(self->engine);
    g_autoptr(JsonBuilder) about = json_builder_new();
    json_builder_begin_object(about);
    layer_engine_describe(self->engine, about);
    json_builder_end_object(about);
    g_clear_pointer(&self->about, json_node_unref);
    self->about = json_builder_get_root(about);
    return check_model(self, error);
}

/* --- a cell --- */

static gint workers_of(LayerStudy *self, const Route *route)
{
    return self->engine != NULL ? layer_engine_workers(self->engine, route)
                                : 2 * (gint)self->gpu->sms;
}

/* Which policy takes which route of this cell: "cost" in choices[i] where it takes route i. */
static void ask_policies(LayerStudy *self, const LayerCellFigures *f, GString **choices)
{
    static const char *const names[] = {"paper-v1", "paper-v2", "cost", "learned"};
    gint32 least = G_MAXINT32, most = 0;
    guint64 sum = 0;
    for (gint32 r = 0; r < f->cell->rows; r++) {
        least = MIN(least, f->lens[r]);
        most = MAX(most, f->lens[r]);
        sum += (guint64)f->lens[r];
    }
    const StepFeatures step = {.shape = self->shape.attn,
                               .workers = self->profile->workers,
                               .rows = (guint32)f->cell->rows,
                               .max_length = (guint32)most,
                               .min_length = (guint32)least,
                               .sum_length = sum,
                               .lens = f->lens};
    for (guint p = 0; p < G_N_ELEMENTS(names); p++) {
        PluginChoice choice = {0};
        g_autoptr(Policy) policy = NULL;
        if (plugin_choice_parse(&choice, "policy", policies, names[p], NULL))
            policy = policy_new(&choice, self->profile, NULL);
        if (policy != NULL && (policy->ops->begin == NULL ||
                               policy->ops->begin(policy, self->candidate, self->n, NULL))) {
            GString *to = choices[policy->ops->choose(policy, &step, self->candidate, self->n)];
            g_string_append_printf(to, "%s%s", to->len > 0 ? " " : "", names[p]);
        }
        plugin_choice_clear(&choice);
    }
}

static gboolean count_route(LayerStudy *self, const LayerCellFigures *f, guint i, GError **error)
{
    AttnPlanConfig config;
    route_plan_config(&config, &self->route[i], &self->config.splits, &self->shape.attn,
                      workers_of(self, &self->route[i]));
    if (attn_plan_count(&self->candidate[i].counts, &config, &self->shape.attn, f->cell->rows,
                        f->lens) == ATTN_OK)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(ATTN_NO_MEMORY));
    return FALSE;
}

static gboolean run_cell(LayerStudy *self, LayerCellFigures *f, GError **error)
{
    const gboolean quick = self->run->quick;
    g_autoptr(GError) local = NULL;
    GString *choices[LAYER_ROUTES];
    if (f->kv_sets == 0)
        f->note = g_strdup_printf("n/a: not even one layer's K and V fit: %s", f->sums);
    else if (self->engine != NULL &&
             !layer_engine_cell(self->engine, f->cell->rows, f->lens, error))
        return FALSE;
    for (guint i = 0; i < self->n; i++)
        if (!count_route(self, f, i, error))
            return FALSE;
    for (guint i = 0; i < self->n; i++)
        choices[i] = g_string_new(NULL);
    ask_policies(self, f, choices);
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < self->n; i++) {
        LayerTimes times = {.checked_rows = -1};
        const gboolean measured = self->engine != NULL && f->kv_sets > 0;
        if (measured)
            ok = layer_engine_measure(self->engine, &self->route[i], &self->config.splits,
                                      quick ? QUICK_REPEATS : REPEATS,
                                      quick ? QUICK_CHECK_BYTES : CHECK_BYTES, &times, error);
        if (measured && times.checked_rows > 0 &&
            !backend_errors_pass(self->shape.attn.dtype, times.max_abs_err, times.mean_abs_err))
            self->run->wrong++;
        self->run->checked += (guint64)(measured ? times.checked_rows : 0);
        if (ok)
            paper_layer_line(self, f, i, measured ? &times : NULL, choices[i]->str);
    }
    for (guint i = 0; i < self->n; i++)
        g_string_free(choices[i], TRUE);
    return ok && progress_check(self->run->progress, error);
}

static gboolean run_cells(LayerStudy *self, GError **error)
{
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < self->cells.cells->len; i++) {
        const BenchCell *cell = &g_array_index(self->cells.cells, BenchCell, i);
        LayerCellFigures f = {.cell = cell, .lens = cell_lens(self, cell)};
        f.bucket = layer_bucket(cell->rows);
        f.pages = layer_cell_pages(&self->shape.attn, cell->rows, f.lens);
        f.kv_sets = layer_kv_sets(&self->memory, f.pages);
        f.sums = layer_memory_text(&self->memory, f.pages);
        layer_work(&self->shape, self->layers, f.bucket, cell->rows, f.lens, &f.work);
        ok = run_cell(self, &f, error);
        g_free(f.lens);
        g_free(f.sums);
        g_free(f.note);
    }
    return ok;
}

static gboolean run_model(LayerStudy *self, const char *name, GError **error)
{
    g_autofree char *what = g_strdup_printf("layer %s", name);
    if (!open_model(self, name, error))
        return FALSE;
    json_builder_begin_object(self->json);
    json_builder_set_member_name(self->json, "model");
    json_builder_add_string_value(self->json, name);
    const gboolean ok = open_engine(self, error) && run_cells(self, error);
    json_builder_end_object(self->json);
    g_clear_pointer(&self->engine, layer_engine_free);
    if (!ok)
        g_prefix_error(error, "%s: ", what);
    return ok;
}

/* --- all of it --- */

static gboolean write_json(LayerStudy *self, GError **error)
{
    JsonBuilder *b = self->json;
    json_builder_end_array(b);
    json_builder_set_member_name(b, "device");
    if (self->about != NULL)
        json_builder_add_value(b, json_node_copy(self->about));
    else
        json_builder_add_null_value(b);
    json_builder_end_object(b);
    g_autofree char *path = g_build_filename(self->run->out, "layer.json", NULL);
    g_autofree char *text = json_builder_text(b);
    return write_text(path, text, error);
}

static gboolean study_open(LayerStudy *self, PaperRun *run, const PaperLayer *options,
                           GError **error)
{
    *self = (LayerStudy){.run = run, .options = options, .json = json_builder_new()};
    replay_config_init(&self->config);
    bench_config_init(&self->cells);
    if (!open_routes(self, options->routes, error) || !open_cells(self, options->cells, error) ||
        !open_profile(self, error))
        return FALSE;
    for (guint i = 0; options->models[i] != NULL; i++) { /* before anything is run */
        for (guint k = 0; k < i; k++)
            if (strcmp(options->models[k], options->models[i]) == 0) {
                g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--model %s is named twice",
                            options->models[i]);
                return FALSE;
            }
        if (!open_model(self, options->models[i], error))
            return FALSE;
    }
    return TRUE;
}

gboolean paper_check_layer(PaperRun *run, const PaperLayer *options, GError **error)
{
    g_auto(LayerStudy) self;
    return study_open(&self, run, options, error);
}

gboolean paper_write_layer(PaperRun *run, const PaperLayer *options, GError **error)
{
    g_auto(LayerStudy) self;
    if (!study_open(&self, run, options, error))
        return FALSE;
    json_builder_begin_object(self.json);
    json_add_program(self.json);
    json_builder_set_member_name(self.json, "backend");
    json_builder_add_string_value(self.json, run->gpu ? run->backend : "counters");
    json_builder_set_member_name(self.json, "backend_line");
    json_builder_add_string_value(self.json, run->backend_line);
    json_builder_set_member_name(self.json, "models");
    json_builder_begin_array(self.json);
    if (!paper_csv_open(&self.csv, run, "layer.csv", paper_layer_header, error))
        return FALSE;
    self.csv.dear = run->gpu;
    gboolean ok = TRUE;
    for (guint i = 0; ok && options->models[i] != NULL; i++)
        ok = run_model(&self, options->models[i], error);
    return paper_csv_close(&self.csv, ok, error) && write_json(&self, error);
}
