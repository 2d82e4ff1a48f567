#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "replay/calibration.h"
#include "replay/peer_counts.h"
#include "replay/replay_private.h"

static void replay_clear(Replay *self)
{
    for (guint i = 0; i < self->n; i++) {
        attn_plan_free(&self->lane[i].plan);
        g_free(self->lane[i].route.label);
    }
    g_free(self->lane);
    g_free(self->candidate);
    policy_free(self->policy);
    backend_free(self->backend);
    g_free(self->device);
    device_profile_free(self->profile);
    replay_csv_free(self->csv);
    earlier_free(self->earlier);
    replay_result_free(self->result);
    g_clear_pointer(&self->lens, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Replay, replay_clear)

/* Is this one of the steps to execute? A sample of N is spread evenly over the range. */
static gboolean wants_execution(const Replay *self, guint64 step)
{
    const ReplayConfig *c = self->config;
    if (!self->ops->executes)
        return FALSE;
    switch (c->execute) {
    case EXECUTE_ALL:
        return TRUE;
    case EXECUTE_RANGE:
        return step >= c->execute_a && step < c->execute_b;
    case EXECUTE_EVERY:
        return (step - self->first) % c->execute_a == 0;
    case EXECUTE_SAMPLE:
        break;
    }
    if (self->end == G_MAXUINT64) /* length unknown: a file without its index */
        return c->execute_a > 0 && (step - self->first) % 256 == 0;
    const guint64 all = self->end - self->first, i = step - self->first;
    if (c->execute_a >= all)
        return TRUE;
    /* In 128 bits: both factors may be large. */
    const unsigned __int128 n = c->execute_a;
    return (guint64)(n * (i + 1) / all) > (guint64)(n * i / all);
}

static void gather(Replay *self, const Step *step, const StepRow *rows, guint32 n_rows)
{
    g_array_set_size(self->lens, 0);
    gint32 least = G_MAXINT32;
    for (guint32 i = 0; i < n_rows; i++) {
        if (rows[i].paused)
            continue;
        const gint32 len = (gint32)rows[i].length;
        least = MIN(least, len);
        g_array_append_val(self->lens, len);
    }
    self->features = (StepFeatures){
        .shape = self->backend_config.shape,
        .workers = self->result->workers,
        .rows = self->lens->len,
        .max_length = step->max_length,
        .min_length = self->lens->len > 0 ? (guint32)least : 0,
        .sum_length = step->sum_length,
        .lens = (const gint32 *)(void *)self->lens->data,
    };
}

static gboolean count_lane(Replay *self, guint i, GError **error)
{
    Lane *lane = &self->lane[i];
    AttnCounts *counts = &self->candidate[i].counts;
    self->candidate[i].measured_us = (double)NAN;
    lane->executed = FALSE;
    if (lane->own_workers)
        self->ops->fit_plan(self->backend, &lane->route, &lane->plan_config,
                            (gint32)self->features.rows, self->features.lens);
    RouteTotals *t = lane->totals;
    if (!t->counted) { /* estimates, for the policy alone */
        peer_counts(counts, &lane->route, &self->backend_config.shape, self->features.workers,
                    (gint32)self->features.rows, self->features.lens);
        t->kv_bytes += counts->kv_bytes;
        t->kv_bytes_touched += counts->kv_bytes_touched;
        return TRUE;
    }
    if (attn_plan_count(counts, &lane->plan_config, &self->backend_config.shape,
                        (int32_t)self->features.rows, self->features.lens) != ATTN_OK)
        return replay_no_memory(error);
    t->launches += counts->launches;
    t->merge_launches += counts->merge_launches;
    t->tasks += counts->tasks;
    t->kv_bytes += counts->kv_bytes;
    t->kv_bytes_touched += counts->kv_bytes_touched;
    t->merge_state_bytes += counts->merge_state_bytes;
    t->nonempty += counts->nonempty_fraction;
    return TRUE;
}

static guint choose(Replay *self, gboolean timed)
{
    ReplayResult *r = self->result;
    const double from = timed ? clock_us() : 0;
    const guint chosen =
        self->policy->ops->choose(self->policy, &self->features, self->candidate, self->n);
    if (timed) {
        r->policy_us += clock_us() - from;
        r->policy_timed++;
    }
    const AttnCounts *counts = &self->candidate[chosen].counts;
    self->lane[chosen].totals->chosen++;
    r->switches += self->last_chosen >= 0 && (guint)self->last_chosen != chosen;
    self->last_chosen = (gint)chosen;
    if (!self->lane[chosen].totals->counted)
        return chosen;
    r->chosen_launches += counts->launches;
    r->chosen_tasks += counts->tasks;
    r->chosen_merge_bytes += counts->merge_state_bytes;
    return chosen;
}

static void note_regret(Replay *self, guint chosen)
{
    double us[MAX_ROUTES];
    for (guint i = 0; i < self->n; i++) {
        if (!self->lane[i].executed)
            return;
        us[i] = self->lane[i].execution.kernel_us;
    }
    self->result->chosen_kernel_us += us[chosen];
    regret_log_add(self->result->regret, us, chosen);
}

static void write_lines(Replay *self, const Step *step, gint chosen, guint64 prefill_tokens)
{
    if (self->csv == NULL)
        return;
    replay_csv_step(self->csv, step, prefill_tokens);
    for (guint i = 0; i < self->n; i++) {
        const Lane *lane = &self->lane[i];
        const ReplayLine line = {
            .route = &lane->route,
            .chosen = (gint)i == chosen,
            .counts = &self->candidate[i].counts,
            .counted = lane->totals->counted || step->rows == 0,
            .execution = lane->executed ? &lane->execution : NULL,
            .replica = self->header->replica,
            .device = self->device,
        };
        replay_csv_line(self->csv, &line);
    }
}

static gboolean replay_step(Replay *self, const Step *step, GError **error)
{
    ReplayResult *r = self->result;
    guint32 n_rows;
    const StepRow *rows = steps_reader_rows(self->steps, &n_rows);
    guint64 prefill = 0;
    for (guint32 i = 0; i < step->n_prefill; i++)
        prefill += step->prefill[i].tokens;
    r->steps++;
    r->prefill_tokens += prefill;
    gather(self, step, rows, n_rows);
    if (!self->ops->begin_step(self->backend, step, rows, n_rows, error))
        return FALSE;
    for (guint i = 0; i < self->n; i++)
        if (!count_lane(self, i, error))
            return FALSE;
    gint chosen = -1;
    if (self->features.rows > 0) {
        const gboolean run = wants_execution(self, step->index);
        guint lanes[MAX_ROUTES];
        for (guint i = 0; i < self->n; i++)
            lanes[i] = i;
        r->decode_steps++;
        r->row_steps += self->features.rows;
        if (run && !self->config->chosen_only && !replay_execute(self, step, lanes, self->n, error))
            return FALSE;
        lanes[0] = choose(self, run);
        chosen = (gint)lanes[0];
        if (run && self->config->chosen_only && !replay_execute(self, step, lanes, 1, error))
            return FALSE;
        if (run)
            note_regret(self, lanes[0]);
    }
    write_lines(self, step, chosen, prefill);
    return TRUE;
}

/* Lines to their files now and then, so that a killed run loses a second of measuring at most. */
static gboolean hand_out(Replay *self, guint64 done, gint64 *last, GError **error)
{
    const gint64 now = g_get_monotonic_time();
    if (done % 4096 != 0 && (self->result->executed_steps == 0 || now - *last < G_USEC_PER_SEC))
        return TRUE;
    *last = now;
    if (self->config->calibration != NULL)
        fflush(out_file_stream(self->config->calibration));
    return replay_csv_flush(self->csv, error);
}

static gboolean replay_loop(Replay *self, Progress *progress, GError **error)
{
    const Step *step;
    int got;
    const guint64 total = self->end == G_MAXUINT64 ? 0 : self->end - self->first;
    progress_begin(progress, "replay", total);
    guint64 done = 0;
    gint64 handed_out = g_get_monotonic_time();
    while (self->first + done < self->end &&
           (got = steps_reader_next(self->steps, &step, error)) != 0) {
        if (got < 0 || !replay_step(self, step, error))
            return FALSE;
        progress_tick(progress, ++done);
        if (self->config->steps_done != NULL)
            g_atomic_int_inc(self->config->steps_done);
        if (!progress_check(progress, error))
            return FALSE;
        if (!hand_out(self, done, &handed_out, error))
            return FALSE;
    }
    progress_end(progress);
    return TRUE;
}

ReplayResult *replay_run(const ReplayConfig *config, StepsReader *steps, OutFile *csv,
                         Progress *progress, GError **error)
{
    const double from = clock_us();
    g_auto(Replay) self = {
        .config = config,
        .steps = steps,
        .header = steps_reader_header(steps),
        .backend_config = config->config,
        .result = g_new0(ReplayResult, 1),
        .lens = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .last_chosen = -1,
        .progress = progress,
    };
    if ((config->resume != NULL && (self.earlier = earlier_open(config->resume, error)) == NULL) ||
        !replay_open(&self, error))
        return NULL;
    self.csv = replay_csv_new(csv);
    if (config->calibration != NULL)
        calibration_write_header(config->calibration);
    g_autoptr(GError) local = NULL;
    const gboolean done = replay_loop(&self, progress, &local);
    if (!replay_csv_flush(self.csv, done ? &local : NULL) || !done) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    self.result->wall_seconds = 1e-6 * (clock_us() - from);
    return g_steal_pointer(&self.result);
}
