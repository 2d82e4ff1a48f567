#include "replay/replay_fleet.h"

#include "base/error.h"
#include "replay/crew.h"

typedef struct Fleet {
    const ReplayConfig *config;
    ReplicaRun *runs;
    guint n;
    Devices devices;
    gint tp;
    guint groups;
    gint threads; /* of a CPU engine, each group's */
    Progress *progress;
    volatile int interrupted; /* what the groups' own progress looks at */
    gint steps_done;          /* atomic */
    GMutex lock;
    GCond ended;
    guint running; /* groups */
} Fleet;

static void run_one(Fleet *self, guint group, guint replica, Progress *progress)
{
    ReplicaRun *run = &self->runs[replica];
    const Devices on = devices_group(&self->devices, self->tp, group);
    ReplayConfig config = *self->config; /* its plug-in choices stay the caller's */
    config.on = &on;
    config.config.threads = self->threads;
    config.calibration = run->calibration;
    config.resume = run->resume;
    config.steps_done = &self->steps_done;
    run->result = replay_run(&config, run->steps, run->csv, progress, &run->error);
}

/* What no other replica would do better at. */
static gboolean stops_the_rest(const GError *error)
{
    return g_error_matches(error, KV_ERROR, KV_ERROR_INTERRUPTED) ||
           g_error_matches(error, KV_ERROR, KV_ERROR_USAGE) ||
           g_error_matches(error, KV_ERROR, KV_ERROR_UNSUPPORTED);
}

static void run_group(Fleet *self, guint group, Progress *progress)
{
    for (guint k = group; k < self->n; k += self->groups) {
        run_one(self, group, k, progress);
        if (self->runs[k].error != NULL && stops_the_rest(self->runs[k].error))
            return;
    }
}

/* --- several groups --- */

static void group_thread(gpointer data, guint group)
{
    Fleet *self = data;
    g_autoptr(Progress) progress = progress_new(TRUE, &self->interrupted);
    run_group(self, group, progress);
    g_mutex_lock(&self->lock);
    self->running--;
    g_cond_signal(&self->ended);
    g_mutex_unlock(&self->lock);
}

static gpointer run_crew(gpointer data)
{
    Fleet *self = data;
    g_autoptr(Crew) crew = crew_new(self->groups, "kvreplay-device");
    crew_run(crew, group_thread, self);
    return NULL;
}

/* The calling thread shows progress and hands an interruption on. */
static void run_groups(Fleet *self)
{
    guint64 total = 0;
    for (guint k = 0; k < self->n; k++)
        total += (guint64)MAX(steps_reader_count(self->runs[k].steps), 0);
    self->running = self->groups;
    progress_begin(self->progress, "replay", total);
    GThread *thread = g_thread_new("kvreplay-fleet", run_crew, self);
    g_mutex_lock(&self->lock);
    while (self->running > 0) {
        g_cond_wait_until(&self->ended, &self->lock, g_get_monotonic_time() + 100000);
        progress_show(self->progress, (guint64)g_atomic_int_get(&self->steps_done));
        if (progress_stop(self->progress))
            self->interrupted = 1;
    }
    g_mutex_unlock(&self->lock);
    g_thread_join(thread);
    progress_end(self->progress);
}

/* --- the verdict --- */

static char *place(const Fleet *self, guint replica)
{
    const Devices on = devices_group(&self->devices, self->tp, replica % self->groups);
    g_autofree char *devices = devices_text(&on);
    return g_strdup_printf("replica %u on device %s",
                           steps_reader_header(self->runs[replica].steps)->replica, devices);
}

static gboolean verdict(const Fleet *self, GError **error)
{
    guint failed = 0, ended = 0;
    const GError *first = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint k = 0; k < self->n; k++) {
        const GError *own = self->runs[k].error;
        ended += self->runs[k].result != NULL;
        if (own == NULL)
            continue;
        if (first == NULL || g_error_matches(first, KV_ERROR, KV_ERROR_INTERRUPTED))
            first = own;
        g_autofree char *where = place(self, k);
        g_string_append_printf(text, "%s%s: %s", failed++ > 0 ? "; " : "", where, own->message);
    }
    if (first == NULL)
        return TRUE;
    if (self->n == 1 || g_error_matches(first, KV_ERROR, KV_ERROR_INTERRUPTED))
        g_propagate_error(error, g_error_copy(first));
    else
        g_set_error(error, KV_ERROR, first->code, "%s (%u of %u replicas ended)", text->str, ended,
                    self->n);
    return FALSE;
}

gboolean replay_fleet_run(const ReplayConfig *config, ReplicaRun *runs, guint n, Progress *progress,
                          GError **error)
{
    Fleet self = {.config = config,
                  .runs = runs,
                  .n = n,
                  .tp = MAX(config->config.tp, 1),
                  .threads = config->config.threads,
                  .progress = progress};
    g_autofree char *reason = NULL;
    const BackendOps *ops = backend_choose(config->backend.info, &config->config, &reason);
    if (!devices_resolve(&self.devices, config->devices, ops, config->config.device, n, self.tp,
                         error))
        return FALSE;
    self.groups = MIN(devices_groups(&self.devices, self.tp), n);
    if (self.groups == 1) {
        run_group(&self, 0, progress);
        return verdict(&self, error);
    }
    const gint all = self.threads > 0 ? self.threads : (gint)g_get_num_processors();
    self.threads = MAX(all / (gint)self.groups, 1);
    g_mutex_init(&self.lock);
    g_cond_init(&self.ended);
    run_groups(&self);
    g_mutex_clear(&self.lock);
    g_cond_clear(&self.ended);
    return verdict(&self, error);
}
