#include "workloads/workload.h"

#include <string.h>

#include "base/error.h"
#include "workloads/arrivals.h"
#include "workloads/format.h"
#include "workloads/generate.h"
#include "workloads/generator.h"
#include "workloads/lengths.h"
#include "workloads/log_source.h"
#include "workloads/sessions.h"
#include "workloads/transform.h"
#include "workloads/workload_internal.h"

#define HASH_LIMIT (64 << 20) /* bytes */

struct Workload {
    RequestSource base;
    RequestSource *source; /* top of the pipeline */
    LogSource *log;        /* borrowed from the pipeline; NULL for generators */
    WorkloadInfo info;
    char *name, *format_name, *sha256;
    GHashTable *no_drops;
    GPtrArray *no_classes; /* char *: of sources that are no log */
    PluginChoice format, generator, arrivals, lengths, sessions;
    TransformList *transforms;
    WorkloadConfig config; /* own copy, for opening the log again */
    guint64 limit;         /* requests at most; 0 = all */
    gboolean allow_empty;
};

void workload_config_init(WorkloadConfig *config)
{
    *config = (WorkloadConfig){.format = g_strdup("auto"), .seed = 1, .hash = -1};
}

void workload_config_clear(WorkloadConfig *config)
{
    char **texts[] = {&config->workload, &config->format,   &config->map,       &config->arrivals,
                      &config->lengths,  &config->sessions, &config->transforms};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_clear_pointer(texts[i], g_free);
}

/* --- giving out --- */

static gboolean nothing_given(Workload *self, GError **error)
{
    const WorkloadInfo *info = workload_info(self);
    GString *why = g_string_new(NULL);
    g_autoptr(GList) reasons =
        g_list_sort(g_hash_table_get_keys(info->dropped), (GCompareFunc)strcmp);
    for (GList *l = reasons; l != NULL; l = l->next)
        g_string_append_printf(why, "%s%s %" G_GUINT64_FORMAT,
                               why->len > 0 ? ", " : "; dropped: ", (char *)l->data,
                               *(guint64 *)g_hash_table_lookup(info->dropped, l->data));
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: no request to run: %" G_GUINT64_FORMAT " rows read%s", info->name, info->rows,
                why->str);
    g_string_free(why, TRUE);
    return FALSE;
}

static int workload_next(RequestSource *base, Request *ret, GError **error)
{
    Workload *self = (Workload *)base;
    if (self->limit > 0 && self->info.requests >= self->limit)
        return 0;
    int got = request_source_next(self->source, ret, error);
    if (got == 1)
        ret->id = self->info.requests++;
    if (got == 0 && self->info.requests == 0 && !self->allow_empty && !nothing_given(self, error))
        return -1;
    return got;
}

static int workload_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                              GError **error)
{
    Workload *self = (Workload *)base;
    if (self->limit > 0 && self->info.requests >= self->limit)
        return 0;
    int got = request_source_next_turn(self->source, finished, now, ret, error);
    if (got == 1)
        ret->id = self->info.requests++;
    return got;
}

static void workload_source_free(RequestSource *base)
{
    Workload *self = (Workload *)base;
    request_source_free(self->source);
    plugin_choice_clear(&self->format);
    plugin_choice_clear(&self->generator);
    plugin_choice_clear(&self->arrivals);
    plugin_choice_clear(&self->lengths);
    plugin_choice_clear(&self->sessions);
    transform_list_free(self->transforms);
    workload_config_clear(&self->config);
    g_hash_table_unref(self->no_drops);
    g_ptr_array_unref(self->no_classes);
    g_ptr_array_unref(self->info.warnings);
    g_free(self->sha256);
    g_free(self->name);
    g_free(self->format_name);
    g_free(self);
}

static const RequestSourceOps workload_ops = {"workload", workload_next, workload_next_turn,
                                              workload_source_free};

/* --- opening --- */

/* A file is hashed before it is read, so that the hash is known from the start (it goes into
 * headers that are written first); a pipe, only when asked for, as it is read. */
static gboolean take_hash(Workload *self, const WorkloadConfig *config, Input *input,
                          GError **error)
{
    gint64 size = g_str_equal(config->workload, "-") ? -1 : input_size(input);
    if (config->hash == 0 || (config->hash < 0 && (size < 0 || size > HASH_LIMIT)))
        return TRUE;
    if (size < 0) {
        input_set_hash(input);
        return TRUE;
    }
    g_autoptr(Input) whole = input_open(config->workload, error);
    if (whole == NULL)
        return FALSE;
    input_set_hash(whole);
    if (!input_drain(whole, error))
        return FALSE;
    self->sha256 = g_strdup(input_sha256(whole));
    return TRUE;
}

static gboolean open_log(Workload *self, const WorkloadConfig *config, GError **error)
{
    Input *input = input_open(config->workload, error);
    if (input == NULL)
        return FALSE;
    if (!take_hash(self, config, input, error)) {
        input_free(input);
        return FALSE;
    }
    gboolean automatic = config->format == NULL || g_str_equal(config->format, "auto");
    const FormatOps *ops = !automatic            ? NULL
                           : config->map != NULL ? format_mapped(input, error)
                                                 : format_probe(input, error);
    if ((automatic && ops == NULL) ||
        !plugin_choice_parse(&self->format, "format", formats,
                             automatic ? ops->info.name : config->format, error)) {
        input_free(input);
        return FALSE;
    }
    LogSourceConfig log = {
        .format = self->format,
        .map = config->map,
        .zero_output = config->zero_output,
        .strict = config->strict,
        .keep_unknown = config->keep_unknown || config->lengths != NULL,
        .seed = config->seed,
        .replication = config->replication,
    };
    self->log = log_source_new(input, &log, error);
    self->source = (RequestSource *)self->log;
    self->name = g_str_equal(config->workload, "-") ? g_strdup("standard input")
                                                    : g_path_get_basename(config->workload);
    self->format_name = g_strdup(self->format.info->name);
    return self->source != NULL;
}

static gboolean open_generator(Workload *self, const WorkloadConfig *config, GError **error)
{
    if (!plugin_choice_parse(&self->generator, "workload generator", generators, config->workload,
                             error))
        return FALSE;
    GeneratorArgs args = {
        .config = self->generator.config,
        .seed = config->seed,
        .replication = config->replication,
        .requests = config->requests,
    };
    self->source = ((const GeneratorOps *)self->generator.info)->open(&args, error);
    self->name = plugin_choice_format(&self->generator);
    self->format_name = g_strdup(self->generator.info->name);
    return self->source != NULL;
}

static gboolean parse_generated(Workload *self, const WorkloadConfig *config, GError **error)
{
    const char *a = config->arrivals != NULL ? config->arrivals : "poisson:rate=1";
    const char *l = config->lengths != NULL ? config->lengths : "fixed";
    return plugin_choice_parse(&self->arrivals, "arrivals", arrivals, a, error) &&
           plugin_choice_parse(&self->lengths, "lengths", lengths, l, error) &&
           (config->sessions == NULL ||
            plugin_choice_parse(&self->sessions, "sessions", session_models, config->sessions,
                                error));
}

static gboolean open_generated(Workload *self, const WorkloadConfig *config, GError **error)
{
    if (config->requests <= 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "a generated workload needs a number of requests (--requests N)");
        return FALSE;
    }
    if (!parse_generated(self, config, error))
        return FALSE;
    GenerateConfig generate = {
        .arrivals = self->arrivals,
        .lengths = self->lengths,
        .sessions = self->sessions,
        .requests = (guint64)config->requests,
        .seed = config->seed,
        .replication = config->replication,
    };
    self->source = generated_source_new(&generate, error);
    g_autofree char *a = plugin_choice_format(&self->arrivals);
    g_autofree char *l = plugin_choice_format(&self->lengths);
    g_autofree char *s = self->sessions.info != NULL ? plugin_choice_format(&self->sessions) : NULL;
    self->name = g_strjoin(" x ", a, l, s, NULL);
    self->format_name = g_strdup("generated");
    return self->source != NULL;
}

/* A generator's name, then ':' or nothing, and no file of that name. */
static gboolean names_generator(const char *text)
{
    g_autofree char *name = g_strndup(text, strcspn(text, ":"));
    return plugin_find(generators, name) != NULL && !g_file_test(text, G_FILE_TEST_EXISTS);
}

static gboolean open_base(Workload *self, const WorkloadConfig *config, GError **error)
{
    if (config->workload == NULL)
        return open_generated(self, config, error);
    if (names_generator(config->workload))
        return open_generator(self, config, error);
    return open_log(self, config, error);
}

/* The stream below transform `index` once more: a workload of the same description of its own. */
static RequestSource *open_again(gpointer data, guint index, GError **error)
{
    Workload *self = data;
    WorkloadConfig config = self->config;
    if (g_strcmp0(config.workload, "-") == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "transform repeat: standard input cannot be read twice: expected a file");
        return NULL;
    }
    config.transforms = NULL;
    if (config.workload != NULL)
        config.arrivals = config.lengths = NULL;
    config.hash = 0;
    config.allow_empty = TRUE;
    Workload *again = workload_open(&config, error);
    if (again == NULL)
        return NULL;
    RequestSource *source = workload_source(again);
    if (transform_list_wrap_first(self->transforms, index, &source, error))
        return source;
    request_source_free(source);
    return NULL;
}

static void copy_config(WorkloadConfig *ret, const WorkloadConfig *config)
{
    *ret = *config;
    ret->workload = g_strdup(config->workload);
    ret->format = g_strdup(config->format);
    ret->map = g_strdup(config->map);
    ret->arrivals = g_strdup(config->arrivals);
    ret->lengths = g_strdup(config->lengths);
    ret->sessions = g_strdup(config->sessions);
    ret->transforms = g_strdup(config->transforms);
}

static gboolean add_transforms(Workload *self, const WorkloadConfig *config, GError **error)
{
    TransformArgs args = {
        .arrivals = config->workload != NULL ? config->arrivals : NULL,
        .lengths = config->workload != NULL ? config->lengths : NULL,
        .seed = config->seed,
        .replication = config->replication,
        .reopen = open_again,
        .reopen_data = self,
    };
    copy_config(&self->config, config);
    self->transforms = transform_list_new(config->transforms, &args, error);
    return self->transforms != NULL && transform_list_wrap(self->transforms, &self->source, error);
}

static Workload *workload_new(void)
{
    Workload *self = g_new0(Workload, 1);
    self->base.ops = &workload_ops;
    self->no_drops = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->no_classes = g_ptr_array_new_with_free_func(g_free);
    self->info.warnings = g_ptr_array_new_with_free_func(g_free);
    return self;
}

Workload *workload_from_source(RequestSource *source, const char *name, const char *format,
                               const GPtrArray *classes)
{
    Workload *self = workload_new();
    self->source = source;
    self->name = g_strdup(name);
    self->format_name = g_strdup(format);
    self->allow_empty = TRUE;
    for (guint i = 0; classes != NULL && i < classes->len; i++)
        g_ptr_array_add(self->no_classes, g_strdup(g_ptr_array_index(classes, i)));
    return self;
}

Workload *workload_open(const WorkloadConfig *config, GError **error)
{
    Workload *self = workload_new();
    self->limit = (guint64)MAX(config->requests, 0);
    self->allow_empty = config->allow_empty;
    if (!open_base(self, config, error) || !add_transforms(self, config, error)) {
        workload_free(self);
        return NULL;
    }
    return self;
}

void workload_be_lenient(Workload *self)
{
    self->allow_empty = TRUE;
    if (self->log != NULL)
        log_source_keep_unknown(self->log);
}

void workload_free(Workload *self)
{
    if (self != NULL)
        workload_source_free(&self->base);
}

RequestSource *workload_source(Workload *self)
{
    return &self->base;
}

const WorkloadInfo *workload_info(Workload *self)
{
    WorkloadInfo *info = &self->info;
    info->recorded_duration = KV_NS_NONE;
    g_ptr_array_set_size(info->warnings, 0);
    info->dropped = self->no_drops;
    info->classes = self->no_classes;
    info->name = self->name;
    info->format = self->format_name;
    info->rows = info->requests;
    if (self->log != NULL)
        log_source_info(self->log, info);
    if (self->sha256 != NULL)
        info->sha256 = self->sha256;
    if (self->transforms != NULL)
        transform_list_notes(self->transforms, info->warnings);
    return info;
}
