#include "sim/sim.h"

#include <json-glib/json-glib.h>

static void put_int(JsonBuilder *b, const char *key, guint64 v)
{
    json_builder_set_member_name(b, key);
    json_builder_add_int_value(b, (gint64)v);
}

static void put_real(JsonBuilder *b, const char *key, double v)
{
    json_builder_set_member_name(b, key);
    json_builder_add_double_value(b, v);
}

/* A latency without samples has null figures. */
static void put_summary(JsonBuilder *b, const char *key, const Summary *s)
{
    const struct {
        const char *key;
        double value;
    } figures[] = {{"mean", s->mean}, {"min", s->min}, {"p50", s->p50}, {"p90", s->p90},
                   {"p95", s->p95},   {"p99", s->p99}, {"max", s->max}};
    json_builder_set_member_name(b, key);
    json_builder_begin_object(b);
    put_int(b, "n", s->n);
    for (gsize i = 0; i < G_N_ELEMENTS(figures); i++) {
        json_builder_set_member_name(b, figures[i].key);
        if (s->n)
            json_builder_add_double_value(b, figures[i].value);
        else
            json_builder_add_null_value(b);
    }
    json_builder_end_object(b);
}

static void put_counts(const SimResult *r, JsonBuilder *b)
{
    put_int(b, "requests", r->requests);
    put_int(b, "finished", r->finished);
    json_builder_set_member_name(b, "refused");
    json_builder_begin_object(b);
    for (guint i = 0; i < r->n_refused_by; i++)
        put_int(b, r->refused_by[i].reason, r->refused_by[i].count);
    json_builder_end_object(b);
    put_int(b, "clipped", r->clipped);
    put_int(b, "steps", r->steps);
    put_int(b, "row_steps", r->row_steps);
    put_int(b, "prompt_tokens", r->prompt_tokens);
    put_int(b, "output_tokens", r->output_tokens);
    put_int(b, "prefill_tokens", r->prefill_tokens);
    put_int(b, "recomputed_tokens", r->recomputed_tokens);
    put_int(b, "preemptions", r->preemptions);
    put_int(b, "prefix_hit_tokens", r->prefix_hit_tokens);
    put_int(b, "prefix_queried_tokens", r->prefix_queried_tokens);
    put_int(b, "host_hit_tokens", r->host_hit_tokens);
    put_int(b, "host_bytes_in", r->host_bytes_in);
    put_int(b, "host_bytes_out", r->host_bytes_out);
}

static void put_classes(const SimResult *r, JsonBuilder *b)
{
    json_builder_set_member_name(b, "classes");
    json_builder_begin_array(b);
    for (guint i = 0; i < r->n_classes; i++) {
        const ClassResult *c = &r->classes[i];
        json_builder_begin_object(b);
        put_int(b, "class", i);
        put_int(b, "requests", c->requests);
        put_int(b, "finished", c->finished);
        put_int(b, "refused", c->refused);
        put_int(b, "good", c->good);
        put_int(b, "output_tokens", c->output_tokens);
        put_summary(b, "ttft", &c->ttft);
        put_summary(b, "tpot", &c->tpot);
        put_summary(b, "e2e", &c->e2e);
        put_summary(b, "queue_delay", &c->queue_delay);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void put_rates(const SimResult *r, JsonBuilder *b)
{
    double s = kv_ns_to_seconds(r->duration);
    put_real(b, "requests_per_s", s > 0 ? (double)r->finished / s : 0);
    put_real(b, "prompt_tokens_per_s", s > 0 ? (double)r->prompt_tokens / s : 0);
    put_real(b, "output_tokens_per_s", s > 0 ? (double)r->output_tokens / s : 0);
    put_int(b, "measured", r->measured);
    put_int(b, "good", r->good);
    put_real(b, "good_requests_per_s", s > 0 ? (double)r->good / s : 0);
}

void sim_result_to_json(const SimResult *r, JsonBuilder *b)
{
    put_counts(r, b);
    put_real(b, "duration_s", kv_ns_to_seconds(r->duration));
    put_real(b, "busy_s", kv_ns_to_seconds(r->busy));
    put_int(b, "pages_peak", r->pages_peak);
    put_int(b, "pages_end", r->pages_end);
    put_int(b, "waiting_peak", r->waiting_peak);
    put_int(b, "rows_peak", r->rows_peak);
    put_real(b, "pages_mean", r->pages_mean);
    put_real(b, "pages_filled_mean", r->pages_filled_mean);
    put_real(b, "rows_mean", r->rows_mean);
    put_real(b, "waiting_mean", r->waiting_mean);
    put_summary(b, "ttft", &r->ttft);
    put_summary(b, "server_ttft", &r->server_ttft);
    put_summary(b, "client_wait", &r->client_wait);
    put_summary(b, "itl", &r->itl);
    put_summary(b, "tpot", &r->tpot);
    put_summary(b, "itl_per_request", &r->itl_per_request);
    put_summary(b, "e2e", &r->e2e);
    put_summary(b, "queue_delay", &r->queue_delay);
    put_rates(r, b);
    if (r->n_classes > 1)
        put_classes(r, b);
}
