/* Backend `counters`: every step planned and counted, none executed: a whole log in seconds. */
#include "replay/backend.h"

typedef struct Counters {
    Backend base;
    gint workers;
} Counters;

static Backend *counters_create(const BackendConfig *config, GError **error)
{
    Counters *self = g_new0(Counters, 1);
    self->base.ops = &backend_counters;
    self->workers = config->sms;
    return &self->base;
}

static void counters_free(Backend *self)
{
    g_free(self);
}

static gboolean counters_available(const BackendConfig *config, char **ret_why)
{
    *ret_why = g_strdup("plans and counts on any machine");
    return TRUE;
}

static gint counters_workers(Backend *self)
{
    return ((Counters *)self)->workers;
}

static const char *counters_refuses(Backend *self, const Route *route)
{
    return route->ops->kind == ROUTE_PEER ? "a peer plans for itself: it can be counted only where "
                                            "it runs (backend cuda)"
                                          : NULL;
}

static gboolean counters_begin_step(Backend *self, const Step *step, const StepRow *rows,
                                    guint32 n_rows, GError **error)
{
    return TRUE;
}

static void counters_describe(Backend *self, JsonBuilder *builder)
{
    json_builder_set_member_name(builder, "name");
    json_builder_add_string_value(builder, "none (counters)");
}

const BackendOps backend_counters = {
    .info = {"counters", "plans and counts every step, executes none", NULL, 0},
    .executes = FALSE,
    .create = counters_create,
    .available = counters_available,
    .workers = counters_workers,
    .refuses = counters_refuses,
    .begin_step = counters_begin_step,
    .describe = counters_describe,
    .free = counters_free,
};
