#include "replay/backend_ranks.h"

#include <math.h>

#include "base/error.h"
#include "replay/crew.h"

typedef struct Rank {
    Backend *backend;
    gint device;
    Execution execution;
    const char *refused;
    double rate;
    GError *error;
} Rank;

typedef struct RanksBackend {
    Backend base;
    BackendOps ops; /* the ranks' own, with ours in front */
    const BackendOps *inner;
    BackendConfig config;
    Devices devices;
    Crew *crew; /* a member a device */
    Rank *rank; /* [n] */
    guint n;
} RanksBackend;

guint64 backend_rank_seed(guint64 seed, gint rank)
{
    return seed + (guint64)rank * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
}

/* --- jobs: what one host thread does for the ranks of its device --- */

typedef struct Job {
    RanksBackend *self;
    void (*rank)(struct Job *job, Rank *rank, guint index);
    const Step *step;
    const StepRow *rows;
    guint32 n_rows;
    const Route *route;
    const AttnPlan *plan;
    gint repeats;
    guint what;
} Job;

static void do_ranks(gpointer data, guint member)
{
    Job *job = data;
    for (guint r = member; r < job->self->n; r += crew_members(job->self->crew))
        if (job->self->rank[r].error == NULL)
            job->rank(job, &job->self->rank[r], r);
}

/* Runs it for every rank; the first rank's error, if any, says which rank and device. */
static gboolean run(RanksBackend *self, Job *job, GError **error)
{
    job->self = self;
    crew_run(self->crew, do_ranks, job);
    for (guint r = 0; r < self->n; r++) {
        GError *own = g_steal_pointer(&self->rank[r].error);
        if (own == NULL)
            continue;
        for (guint later = r + 1; later < self->n; later++)
            g_clear_error(&self->rank[later].error);
        g_propagate_prefixed_error(error, own, "rank %u of %u on device %d: ", r, self->n,
                                   self->rank[r].device);
        return FALSE;
    }
    return TRUE;
}

/* Threads of a CPU engine are shared out among the devices that work at once. */
static gint threads_each(const BackendConfig *config, guint members)
{
    if (members < 2)
        return config->threads;
    const gint all = config->threads > 0 ? config->threads : (gint)g_get_num_processors();
    return MAX(all / (gint)members, 1);
}

static void create_rank(Job *job, Rank *rank, guint index)
{
    const RanksBackend *self = job->self;
    BackendConfig config = self->config;
    config.device = rank->device;
    config.seed = backend_rank_seed(config.seed, (gint)index);
    config.threads = threads_each(&config, crew_members(self->crew));
    rank->backend = self->inner->create(&config, &rank->error);
}

static void free_rank(Job *job, Rank *rank, guint index)
{
    g_clear_pointer(&rank->backend, backend_free);
}

static void begin_rank(Job *job, Rank *rank, guint index)
{
    job->self->inner->begin_step(rank->backend, job->step, job->rows, job->n_rows, &rank->error);
}

static void execute_rank(Job *job, Rank *rank, guint index)
{
    job->self->inner->execute(rank->backend, job->route, job->plan, job->repeats, job->what,
                              &rank->execution, &rank->error);
}

static void refuse_rank(Job *job, Rank *rank, guint index)
{
    rank->refused = job->self->inner->refuses(rank->backend, job->route);
}

static void rate_rank(Job *job, Rank *rank, guint index)
{
    rank->rate = job->self->inner->read_rate(rank->backend);
}

/* --- the backend --- */

static void ranks_free(Backend *base)
{
    RanksBackend *self = (RanksBackend *)base;
    Job job = {.rank = free_rank};
    run(self, &job, NULL);
    crew_free(self->crew);
    g_free(self->rank);
    g_free(self);
}

static gint ranks_workers(Backend *base)
{
    const RanksBackend *self = (RanksBackend *)base;
    gint least = G_MAXINT;
    for (guint r = 0; r < self->n; r++)
        least = MIN(least, self->inner->workers(self->rank[r].backend));
    return least;
}

/* As the rank with the fewest CTAs wants it. */
static void ranks_fit_plan(Backend *base, const Route *route, AttnPlanConfig *config, gint32 rows,
                           const gint32 *lens)
{
    const RanksBackend *self = (RanksBackend *)base;
    AttnPlanConfig least = *config;
    for (guint r = 0; r < self->n; r++) {
        AttnPlanConfig c = *config;
        self->inner->fit_plan(self->rank[r].backend, route, &c, rows, lens);
        if (r == 0 || c.workers < least.workers)
            least = c;
    }
    *config = least;
}

/* Of one device: the slowest one's, all measured at once. */
static double ranks_read_rate(Backend *base)
{
    RanksBackend *self = (RanksBackend *)base;
    Job job = {.rank = rate_rank};
    run(self, &job, NULL);
    double least = self->rank[0].rate;
    for (guint r = 1; r < self->n; r++)
        least = MIN(least, self->rank[r].rate);
    return least;
}

static const char *ranks_refuses(Backend *base, const Route *route)
{
    RanksBackend *self = (RanksBackend *)base;
    Job job = {.rank = refuse_rank, .route = route};
    run(self, &job, NULL);
    for (guint r = 0; r < self->n; r++)
        if (self->rank[r].refused != NULL)
            return self->rank[r].refused;
    return NULL;
}

static gboolean ranks_begin_step(Backend *base, const Step *step, const StepRow *rows,
                                 guint32 n_rows, GError **error)
{
    Job job = {.rank = begin_rank, .step = step, .rows = rows, .n_rows = n_rows};
    return run((RanksBackend *)base, &job, error);
}

/* NaN stays. */
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static void combine(const RanksBackend *self, Execution *ret)
{
    double mean = 0;
    *ret = self->rank[0].execution;
    ret->ranks = (gint)self->n;
    for (guint r = 0; r < self->n; r++) {
        const Execution *e = &self->rank[r].execution;
        ret->rank_us[r] = e->kernel_us;
        ret->kernel_us = MAX(ret->kernel_us, e->kernel_us);
        ret->wall_us = MAX(ret->wall_us, e->wall_us);
        ret->plan_us = MAX(ret->plan_us, e->plan_us);
        ret->tables_us = MAX(ret->tables_us, e->tables_us);
        ret->launches_seen = MAX(ret->launches_seen, e->launches_seen);
        ret->max_abs_err = larger(ret->max_abs_err, e->max_abs_err);
        mean += e->mean_abs_err / self->n;
    }
    if (ret->checked)
        ret->mean_abs_err = mean;
    ret->rank_skew_us = execution_skew(ret);
}

static gboolean ranks_execute(Backend *base, const Route *route, const AttnPlan *plan, gint repeats,
                              guint what, Execution *ret, GError **error)
{
    RanksBackend *self = (RanksBackend *)base;
    Job job = {
        .rank = execute_rank, .route = route, .plan = plan, .repeats = repeats, .what = what};
    if (!run(self, &job, error))
        return FALSE;
    combine(self, ret);
    return TRUE;
}

static void ranks_describe(Backend *base, JsonBuilder *builder)
{
    const RanksBackend *self = (RanksBackend *)base;
    self->inner->describe(self->rank[0].backend, builder);
    json_builder_set_member_name(builder, "ranks_on_devices");
    json_builder_begin_array(builder);
    for (guint r = 0; r < self->n; r++)
        json_builder_add_int_value(builder, self->rank[r].device);
    json_builder_end_array(builder);
    json_builder_set_member_name(builder, "ranks_at_once");
    json_builder_add_int_value(builder, crew_members(self->crew));
}

Backend *backend_ranks_new(const BackendOps *ops, const BackendConfig *config,
                           const Devices *devices, GError **error)
{
    if (config->tp > EXECUTION_RANKS) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--tp %d: at most %d shares are executed",
                    config->tp, EXECUTION_RANKS);
        return NULL;
    }
    RanksBackend *self = g_new0(RanksBackend, 1);
    self->ops = *ops;
    self->ops.free = ranks_free;
    self->ops.workers = ranks_workers;
    self->ops.fit_plan = ops->fit_plan != NULL ? ranks_fit_plan : NULL;
    self->ops.read_rate = ops->read_rate != NULL ? ranks_read_rate : NULL;
    self->ops.refuses = ranks_refuses;
    self->ops.begin_step = ranks_begin_step;
    self->ops.execute = ranks_execute;
    self->ops.describe = ranks_describe;
    self->ops.outputs = NULL;
    self->ops.replays = NULL;
    self->base.ops = &self->ops;
    self->inner = ops;
    self->config = *config;
    self->devices = *devices;
    self->n = (guint)config->tp;
    self->rank = g_new0(Rank, self->n);
    for (guint r = 0; r < self->n; r++)
        self->rank[r].device = devices->ordinal[r % devices->n];
    self->crew = crew_new(MIN(devices->n, self->n), "kvreplay-rank");
    Job job = {.rank = create_rank};
    if (run(self, &job, error))
        return &self->base;
    ranks_free(&self->base);
    return NULL;
}
