/* A Description as JSON and as text. */
#include <math.h>

#include "workloads/describe.h"
#include "workloads/json_text.h"

static int by_text(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(a, b);
}

static GList *sorted_reasons(const WorkloadInfo *info)
{
    return g_list_sort(g_hash_table_get_keys(info->dropped), by_text);
}

static void put_summary(JsonText *j, const char *name, const Summary *s)
{
    double none = (double)NAN;
    gboolean some = s->n > 0;
    json_text_begin(j, name, '{');
    json_text_real(j, "min", some ? s->min : none);
    json_text_real(j, "p50", some ? s->p50 : none);
    json_text_real(j, "p90", some ? s->p90 : none);
    json_text_real(j, "p95", some ? s->p95 : none);
    json_text_real(j, "p99", some ? s->p99 : none);
    json_text_real(j, "max", some ? s->max : none);
    json_text_real(j, "mean", some ? s->mean : none);
    json_text_end(j, '}');
}

static void put_dropped(JsonText *j, const WorkloadInfo *info)
{
    g_autoptr(GList) reasons = sorted_reasons(info);
    json_text_begin(j, "dropped", '{');
    for (GList *l = reasons; l != NULL; l = l->next)
        json_text_int(j, l->data,
                      (gint64) * (guint64 *)g_hash_table_lookup(info->dropped, l->data));
    json_text_end(j, '}');
    json_text_begin(j, "warnings", '[');
    for (guint i = 0; i < info->warnings->len; i++)
        json_text_string(j, NULL, g_ptr_array_index(info->warnings, i));
    json_text_end(j, ']');
}

static void put_structure(JsonText *j, const Description *d)
{
    json_text_begin(j, "sessions", '{');
    json_text_int(j, "count", (gint64)d->sessions);
    json_text_int(j, "requests", (gint64)d->session_requests);
    json_text_int(j, "turns_max", d->turns_max);
    json_text_int(j, "closed_turns", (gint64)d->closed_turns);
    json_text_end(j, '}');
    json_text_begin(j, "prefix", '{');
    json_text_int(j, "block_tokens", d->block_tokens);
    json_text_int(j, "hit_tokens", (gint64)d->hit_tokens);
    json_text_real(j, "hit_fraction",
                   d->block_tokens > 0 && d->prompt_tokens > 0
                       ? (double)d->hit_tokens / (double)d->prompt_tokens
                       : (double)NAN);
    json_text_int(j, "requests", (gint64)d->keyed_requests);
    json_text_int(j, "blocks", (gint64)d->blocks);
    json_text_int(j, "distinct_blocks", (gint64)d->distinct_blocks);
    json_text_end(j, '}');
}

static double span_rate(const Description *d, guint64 amount)
{
    return d->last_arrival > 0 ? (double)amount / kv_ns_to_seconds(d->last_arrival) : (double)NAN;
}

static guint64 peak_bin(const Description *d)
{
    guint64 peak = 0;
    for (guint i = 0; i < d->n_bins; i++)
        peak = MAX(peak, d->bins[i]);
    return peak;
}

static void put_rate(JsonText *j, const Description *d)
{
    double width = kv_ns_to_seconds(d->bin_width);
    json_text_begin(j, "rate", '{');
    json_text_real(j, "mean", span_rate(d, d->requests - d->closed_turns));
    json_text_real(j, "peak", (double)peak_bin(d) / width);
    json_text_real(j, "bin_s", width);
    json_text_begin(j, "requests", '[');
    for (guint i = 0; i < d->n_bins; i++)
        json_text_int(j, NULL, (gint64)d->bins[i]);
    json_text_end(j, ']');
    json_text_end(j, '}');
}

static gboolean has_recorded(const Description *d)
{
    return d->ttft.n + d->e2e.n + d->itl.n + d->queue.n > 0;
}

static void put_recorded(JsonText *j, const Description *d, const WorkloadInfo *info)
{
    if (!has_recorded(d) && info->recorded_duration == KV_NS_NONE)
        return;
    json_text_begin(j, "recorded", '{');
    if (info->recorded_duration != KV_NS_NONE && info->recorded_duration > 0) {
        double s = kv_ns_to_seconds(info->recorded_duration);
        json_text_real(j, "duration_s", s);
        json_text_real(j, "request_throughput", (double)d->requests / s);
        json_text_real(j, "output_throughput", (double)d->output_tokens / s);
        json_text_real(j, "total_throughput", (double)(d->prompt_tokens + d->output_tokens) / s);
    }
    const struct {
        const char *name;
        const Summary *summary;
    } parts[] = {{"ttft", &d->ttft},  {"itl", &d->itl},     {"tpot", &d->tpot},
                 {"e2e", &d->e2e},    {"queue", &d->queue}, {"client_wait", &d->client_wait},
                 {"speed", &d->speed}};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i].summary->n > 0)
            put_summary(j, parts[i].name, parts[i].summary);
    json_text_end(j, '}');
}

char *description_json(const Description *d)
{
    const WorkloadInfo *info = workload_info(d->workload);
    char span[KV_NS_TEXT_SIZE];
    JsonText j;
    json_text_init(&j);
    json_text_begin(&j, NULL, '{');
    json_text_string(&j, "name", info->name);
    json_text_string(&j, "format", info->format);
    json_text_string(&j, "sha256", info->sha256);
    json_text_int(&j, "rows", (gint64)info->rows);
    json_text_int(&j, "requests", (gint64)d->requests);
    json_text_int(&j, "prompt_tokens", (gint64)d->prompt_tokens);
    json_text_int(&j, "output_tokens", (gint64)d->output_tokens);
    json_text_int(&j, "total_max", d->total_max);
    json_text_raw(&j, "span_s", kv_ns_text(d->last_arrival, span));
    json_text_string(&j, "first_arrival", info->first_arrival);
    json_text_int(&j, "first_arrival_ns", info->first_arrival_ns);
    put_dropped(&j, info);
    json_text_begin(&j, "unknown", '{');
    json_text_int(&j, "prompt", (gint64)d->unknown_prompts);
    json_text_int(&j, "output", (gint64)d->unknown_outputs);
    json_text_end(&j, '}');
    json_text_real(&j, "gap_cv", d->gap_cv);
    json_text_begin(&j, "quantiles", '{');
    json_text_string(&j, "rule", "linear");
    put_summary(&j, "prompt", &d->prompt);
    put_summary(&j, "output", &d->output);
    put_summary(&j, "gap", &d->gap);
    json_text_end(&j, '}');
    put_structure(&j, d);
    put_rate(&j, d);
    put_recorded(&j, d, info);
    json_text_end(&j, '}');
    return json_text_finish(&j);
}

/* --- for people --- */

static void line(GString *out, const char *label, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void line(GString *out, const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append_printf(out, "%-16s ", label);
    g_string_append_vprintf(out, format, args);
    g_string_append_c(out, '\n');
    va_end(args);
}

static void summary_line(GString *out, const char *label, const Summary *s, const char *unit)
{
    if (s->n == 0)
        line(out, label, "n/a");
    else
        line(out, label, "min %.6g  p50 %.6g  p90 %.6g  p99 %.6g  max %.6g  mean %.6g%s%s", s->min,
             s->p50, s->p90, s->p99, s->max, s->mean, unit[0] ? " " : "", unit);
}

static void rate_lines(GString *out, const Description *d)
{
    double width = kv_ns_to_seconds(d->bin_width), peak = (double)peak_bin(d);
    double mean = span_rate(d, d->requests - d->closed_turns);
    g_autofree char *text = isfinite(mean) ? g_strdup_printf("%.6g/s", mean) : g_strdup("n/a");
    line(out, "rate", "mean %s, peak %.6g/s in %.6g s", text, peak / width, width);
    static const char levels[] = " .:-=+*#%@";
    char strip[65] = {0};
    for (guint i = 0; i < 64 && d->n_bins > 0; i++) {
        guint a = i * d->n_bins / 64, b = MAX((i + 1) * d->n_bins / 64, a + 1);
        double top = 0;
        for (guint k = a; k < b; k++)
            top = MAX(top, (double)d->bins[k]);
        strip[i] = levels[top > 0 ? 1 + (int)(top / peak * 8) : 0];
    }
    line(out, "", "|%s|", strip);
}

static void text_header(GString *out, const Description *d, const WorkloadInfo *info)
{
    char span[KV_NS_TEXT_SIZE];
    line(out, "workload", "%s (%s)", info->name, info->format);
    line(out, "requests", "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " rows", d->requests,
         info->rows);
    g_autoptr(GList) reasons = sorted_reasons(info);
    for (GList *l = reasons; l != NULL; l = l->next)
        line(out, "dropped", "%s %" G_GUINT64_FORMAT, (char *)l->data,
             *(guint64 *)g_hash_table_lookup(info->dropped, l->data));
    for (guint i = 0; i < info->warnings->len; i++)
        line(out, "note", "%s", (char *)g_ptr_array_index(info->warnings, i));
    if (d->unknown_prompts + d->unknown_outputs > 0)
        line(out, "unknown",
             "%" G_GUINT64_FORMAT " prompt and %" G_GUINT64_FORMAT " output lengths",
             d->unknown_prompts, d->unknown_outputs);
    line(out, "tokens", "%" G_GUINT64_FORMAT " prompt, %" G_GUINT64_FORMAT " output",
         d->prompt_tokens, d->output_tokens);
    line(out, "first arrival", "%s", info->first_arrival != NULL ? info->first_arrival : "n/a");
    line(out, "span", "%s s", kv_ns_text(d->last_arrival, span));
}

static void text_recorded(GString *out, const Description *d)
{
    if (!has_recorded(d))
        return;
    g_string_append(out,
                    "recorded by the server or its client (seconds; ttft from the sending):\n");
    summary_line(out, "  ttft", &d->ttft, "");
    summary_line(out, "  itl pooled", &d->itl, "");
    summary_line(out, "  tpot", &d->tpot, "");
    summary_line(out, "  e2e", &d->e2e, "");
    summary_line(out, "  queue", &d->queue, "");
    summary_line(out, "  client wait", &d->client_wait, "");
    summary_line(out, "  speed", &d->speed, "tokens/s");
}

char *description_text(const Description *d)
{
    GString *out = g_string_new(NULL);
    text_header(out, d, workload_info(d->workload));
    summary_line(out, "prompt", &d->prompt, "tokens");
    summary_line(out, "output", &d->output, "tokens");
    summary_line(out, "gap", &d->gap, "s");
    if (isfinite(d->gap_cv))
        line(out, "gap CV", "%.6g", d->gap_cv);
    else
        line(out, "gap CV", "n/a");
    if (d->n_bins > 0)
        rate_lines(out, d);
    if (d->sessions > 0)
        line(out, "sessions",
             "%" G_GUINT64_FORMAT " with %" G_GUINT64_FORMAT
             " requests, at most %d turns; %" G_GUINT64_FORMAT " wait for their predecessor",
             d->sessions, d->session_requests, d->turns_max, d->closed_turns);
    if (d->block_tokens > 0)
        line(out, "prefix",
             "%" G_GUINT64_FORMAT
             " prompt tokens hit by an endless cache of full %d-token blocks (%.3f %%)",
             d->hit_tokens, d->block_tokens,
             100.0 * (double)d->hit_tokens / (double)d->prompt_tokens);
    text_recorded(out, d);
    return g_string_free(out, FALSE);
}
