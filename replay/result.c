#include "replay/result.h"

#include <math.h>

#include "base/stats.h"

void replay_result_free(ReplayResult *self)
{
    if (self == NULL)
        return;
    char *texts[] = {self->reason, self->policy, self->policy_note, self->splits,
                     self->dtype,  self->model,  self->profile,     self->devices};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_clear_pointer(&self->device, json_node_unref);
    for (guint i = 0; i < self->n_routes; i++) {
        g_free(self->route[i].label);
        g_free(self->route[i].refused);
        g_free(self->route[i].left_out);
        g_clear_pointer(&self->route[i].kernel_us, g_array_unref);
    }
    g_free(self->route);
    regret_log_free(self->regret);
    g_free(self);
}

static void add_ranks(RouteTotals *self, const Execution *e)
{
    if (e->ranks == 0)
        return;
    self->ranks = e->ranks;
    for (gint r = 0; r < e->ranks; r++)
        self->rank_sum[r] += e->rank_us[r];
    self->skew_sum += e->rank_skew_us;
    self->skew_max = MAX(self->skew_max, e->rank_skew_us);
}

void route_totals_add_execution(RouteTotals *self, const ReplayResult *result, const Execution *e,
                                gint64 kv_bytes)
{
    self->executed++;
    self->kernel_sum += e->kernel_us;
    self->wall_sum += MAX(e->wall_us, 0);
    self->plan_sum += MAX(e->plan_us, 0);
    self->upload_bytes += e->upload_bytes;
    self->copies += e->copies;
    self->memsets += e->memsets;
    self->executed_kv_bytes += kv_bytes;
    g_array_append_val(self->kernel_us, e->kernel_us);
    add_ranks(self, e);
    if (!e->checked)
        return;
    self->checked++;
    self->wrong += !backend_errors_pass(result->type, e->max_abs_err, e->mean_abs_err);
    /* NaN stays. */
    self->max_err = e->max_abs_err <= self->max_err ? self->max_err : e->max_abs_err;
    self->mean_err_sum += e->mean_abs_err;
}

gboolean replay_result_correct(const ReplayResult *self)
{
    for (guint i = 0; i < self->n_routes; i++)
        if (self->route[i].wrong > 0)
            return FALSE;
    return TRUE;
}

/* --- JSON --- */

static void put_real(JsonBuilder *b, const char *key, double value)
{
    json_builder_set_member_name(b, key);
    if (isfinite(value))
        json_builder_add_double_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void put_int(JsonBuilder *b, const char *key, gint64 value)
{
    json_builder_set_member_name(b, key);
    json_builder_add_int_value(b, value);
}

static void put_text(JsonBuilder *b, const char *key, const char *value)
{
    json_builder_set_member_name(b, key);
    if (value != NULL)
        json_builder_add_string_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void put_interval(JsonBuilder *b, const char *key, Interval i)
{
    json_builder_set_member_name(b, key);
    json_builder_begin_object(b);
    put_real(b, "value", i.value);
    put_real(b, "low95", i.low);
    put_real(b, "high95", i.high);
    json_builder_end_object(b);
}

static void put_totals(JsonBuilder *b, const char *key, const RouteTotals *t, gint64 layers)
{
    json_builder_set_member_name(b, key);
    json_builder_begin_object(b);
    put_int(b, "launches", t->launches * layers);
    put_int(b, "merge_launches", t->merge_launches * layers);
    put_int(b, "tasks", t->tasks * layers);
    put_int(b, "kv_bytes", t->kv_bytes * layers);
    put_int(b, "kv_bytes_touched", t->kv_bytes_touched * layers);
    put_int(b, "merge_state_bytes", t->merge_state_bytes * layers);
    put_int(b, "merge_traffic_bytes", 2 * t->merge_state_bytes * layers);
    json_builder_end_object(b);
}

static void put_counts(JsonBuilder *b, const ReplayResult *r, const RouteTotals *t)
{
    const double n = (double)r->decode_steps, mib = 1 << 20;
    put_real(b, "kv_mib_per_step", (double)t->kv_bytes / mib / n);
    put_real(b, "kv_touched_mib_per_step", (double)t->kv_bytes_touched / mib / n);
    if (!t->counted)
        return;
    put_real(b, "launches_per_step", (double)t->launches / n);
    put_real(b, "merge_launches_per_step", (double)t->merge_launches / n);
    put_real(b, "tasks_per_step", (double)t->tasks / n);
    put_real(b, "nonempty_fraction_mean", t->nonempty / n);
    put_real(b, "merge_mib_per_step", (double)t->merge_state_bytes / mib / n);
    put_real(b, "merge_traffic_mib_per_step", 2 * (double)t->merge_state_bytes / mib / n);
    put_real(b, "merge_traffic_to_kv", 2 * (double)t->merge_state_bytes / (double)t->kv_bytes);
    put_totals(b, "one_layer", t, 1);
    put_totals(b, "all_layers", t, r->layers);
}

static void put_ranks(JsonBuilder *b, const RouteTotals *t)
{
    const double n = (double)t->executed;
    json_builder_set_member_name(b, "rank_kernel_us_mean");
    json_builder_begin_array(b);
    for (gint r = 0; r < t->ranks; r++)
        json_builder_add_double_value(b, t->rank_sum[r] / n);
    json_builder_end_array(b);
    put_real(b, "rank_skew_us_mean", t->skew_sum / n);
    put_real(b, "rank_skew_us_max", t->skew_max);
}

static void put_times(JsonBuilder *b, const ReplayResult *r, const RouteTotals *t)
{
    put_int(b, "executed_steps", (gint64)t->executed);
    if (t->left_out != NULL) {
        put_int(b, "left_out_steps", (gint64)t->left_out_steps);
        put_text(b, "left_out", t->left_out);
    }
    if (t->executed == 0)
        return;
    const double n = (double)t->executed;
    const double kernel = t->kernel_sum / n / r->executed_layers, plan = t->plan_sum / n;
    double *us = (double *)(void *)t->kernel_us->data;
    sort_doubles(us, t->kernel_us->len);
    put_real(b, "kernel_us_mean", t->kernel_sum / n);
    put_real(b, "kernel_us_p50", quantile_linear(us, t->kernel_us->len, 0.5));
    put_real(b, "kernel_us_p99", quantile_linear(us, t->kernel_us->len, 0.99));
    put_real(b, "wall_us_mean", t->wall_sum / n);
    put_real(b, "plan_us_mean", plan);
    put_real(b, "layer_us_plan_each_layer", kernel + plan);
    put_real(b, "layer_us_plan_once_a_step", kernel + plan / r->layers);
    put_real(b, "kernel_gb_per_s",
             (double)t->executed_kv_bytes * r->executed_layers / t->kernel_sum / 1e3);
    put_real(b, "upload_bytes_mean", (double)t->upload_bytes / n);
    if (t->ranks > 0)
        put_ranks(b, t);
    put_int(b, "checked_steps", (gint64)t->checked);
    if (t->checked == 0)
        return;
    put_real(b, "max_abs_err", t->max_err);
    put_real(b, "mean_abs_err", t->mean_err_sum / (double)t->checked);
    put_int(b, "wrong_steps", (gint64)t->wrong);
}

static void put_routes(JsonBuilder *b, const ReplayResult *r)
{
    json_builder_set_member_name(b, "routes");
    json_builder_begin_object(b);
    for (guint i = 0; i < r->n_routes; i++) {
        const RouteTotals *t = &r->route[i];
        json_builder_set_member_name(b, t->label);
        json_builder_begin_object(b);
        if (t->refused != NULL) {
            put_text(b, "refused", t->refused);
        } else {
            put_counts(b, r, t);
            put_times(b, r, t);
        }
        json_builder_end_object(b);
    }
    json_builder_end_object(b);
}

static void put_regret(JsonBuilder *b, const ReplayResult *r)
{
    json_builder_set_member_name(b, "regret");
    if (regret_log_steps(r->regret) == 0) {
        json_builder_add_null_value(b);
        return;
    }
    const Regret regret = regret_log_summary(r->regret);
    json_builder_begin_object(b);
    put_int(b, "steps", (gint64)regret.steps);
    put_interval(b, "mean", regret.mean);
    put_real(b, "p50", regret.p50);
    put_real(b, "p99", regret.p99);
    put_real(b, "worst", regret.worst);
    put_interval(b, "time_to_oracle", regret.to_oracle);
    json_builder_end_object(b);
    json_builder_set_member_name(b, "fixed_route_time_to_policy");
    json_builder_begin_object(b);
    for (guint i = 0, at = 0; i < r->n_routes; i++)
        if (r->route[i].refused == NULL)
            put_interval(b, r->route[i].label, regret_log_ratio(r->regret, at++));
    json_builder_end_object(b);
}

static void put_policy(JsonBuilder *b, const ReplayResult *r)
{
    const double n = (double)r->decode_steps;
    json_builder_set_member_name(b, "policy");
    json_builder_begin_object(b);
    put_text(b, "name", r->policy);
    put_text(b, "note", r->policy_note);
    put_text(b, "profile", r->profile);
    json_builder_set_member_name(b, "profile_is_a_guess");
    json_builder_add_boolean_value(b, r->profile_guess);
    json_builder_set_member_name(b, "shares");
    json_builder_begin_object(b);
    for (guint i = 0; i < r->n_routes; i++)
        if (r->route[i].refused == NULL)
            put_real(b, r->route[i].label, n > 0 ? (double)r->route[i].chosen / n : 0);
    json_builder_end_object(b);
    put_int(b, "switches", (gint64)r->switches);
    put_real(b, "launches_per_step", (double)r->chosen_launches / n);
    put_real(b, "tasks_per_step", (double)r->chosen_tasks / n);
    put_real(b, "merge_mib_per_step", (double)r->chosen_merge_bytes / (1 << 20) / n);
    put_real(b, "decision_us_mean", r->policy_us / (double)r->policy_timed);
    put_regret(b, r);
    json_builder_end_object(b);
}

void replay_result_to_json(const ReplayResult *r, JsonBuilder *b)
{
    put_text(b, "backend", r->backend);
    put_text(b, "backend_reason", r->reason);
    json_builder_set_member_name(b, "device");
    json_builder_add_value(b, json_node_copy(r->device));
    put_int(b, "replica", r->replica);
    put_text(b, "devices", r->devices);
    put_text(b, "model", r->model);
    put_text(b, "dtype", r->dtype);
    put_text(b, "splits", r->splits);
    put_int(b, "workers", r->workers);
    put_int(b, "layers", r->layers);
    put_int(b, "tp", r->tp);
    put_int(b, "executed_layers", r->executed_layers);
    put_int(b, "repeats", r->repeats);
    put_int(b, "steps", (gint64)r->steps);
    put_int(b, "decode_steps", (gint64)r->decode_steps);
    put_int(b, "row_steps", (gint64)r->row_steps);
    put_int(b, "executed_steps", (gint64)r->executed_steps);
    put_int(b, "resumed_steps", (gint64)r->resumed_steps);
    put_int(b, "checked_steps", (gint64)r->checked_steps);
    put_int(b, "prefill_tokens_modelled_not_executed", (gint64)r->prefill_tokens);
    json_builder_set_member_name(b, "correct");
    if (r->checked_steps > 0)
        json_builder_add_boolean_value(b, replay_result_correct(r));
    else
        json_builder_add_null_value(b);
    put_policy(b, r);
    put_routes(b, r);
    put_real(b, "wall_seconds", r->wall_seconds);
}
