/* Empirical: (prompt, output) pairs of a recorded log, drawn with replacement, each pair as likely.
 *
 * Joint rows keep what prompt and output have to do with one another. The log may be of any format;
 * rows that cannot be replayed (zero output, failed) are left out. Memory: 8 bytes a row.
 */
#include "base/error.h"
#include "workloads/lengths/lengths.h"
#include "workloads/log_source.h"

typedef struct EmpiricalConfig {
    char *file, *format;
} EmpiricalConfig;

typedef struct Pair {
    gint32 prompt, output;
} Pair;

typedef struct Empirical {
    LengthModel base;
    GArray *pairs; /* Pair */
} Empirical;

static void empirical_free(LengthModel *base)
{
    Empirical *self = (Empirical *)base;
    g_array_unref(self->pairs);
    g_free(self);
}

static gboolean read_pairs(const EmpiricalConfig *config, GArray *pairs, GError **error)
{
    WorkloadConfig log;
    workload_config_init(&log);
    log.workload = g_strdup(config->file);
    if (config->format != NULL) {
        g_free(log.format);
        log.format = g_strdup(config->format);
    }
    g_autoptr(Workload) workload = workload_open(&log, error);
    workload_config_clear(&log);
    if (workload == NULL)
        return FALSE;
    Request request;
    int got;
    while ((got = request_source_next(workload_source(workload), &request, error)) == 1) {
        Pair pair = {request.prompt, request.output};
        g_array_append_val(pairs, pair);
    }
    return got == 0;
}

static LengthModel *empirical_open(gconstpointer config, guint64 seed, guint32 replication,
                                   GError **error)
{
    Empirical *self = g_new0(Empirical, 1);
    length_model_init(&self->base, &lengths_empirical, seed, replication);
    self->pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    if (!read_pairs(config, self->pairs, error)) {
        g_prefix_error(error, "lengths empirical: ");
        empirical_free(&self->base);
        return NULL;
    }
    return &self->base;
}

static void empirical_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    Empirical *self = (Empirical *)base;
    guint64 i = rng_below(&base->prompt, self->pairs->len);
    Pair pair = g_array_index(self->pairs, Pair, i);
    *ret_prompt = pair.prompt;
    *ret_output = pair.output;
}

static const SpecOption empirical_options[] = {
    {"file", SPEC_STRING, G_STRUCT_OFFSET(EmpiricalConfig, file), NULL, 0, 0, NULL,
     "recorded log with the lengths"},
    {"format", SPEC_STRING, G_STRUCT_OFFSET(EmpiricalConfig, format), "", 0, 0, NULL,
     "its format; found out if absent"},
    {NULL},
};

const LengthOps lengths_empirical = {
    .info = {"empirical", "(prompt, output) rows of a log, drawn with replacement",
             empirical_options, sizeof(EmpiricalConfig)},
    .open = empirical_open,
    .next = empirical_next,
    .free = empirical_free,
};
