#include "sim/capacity.h"
#include "base/error.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define MOST_HALVINGS 20 /* below start / 2^20 nothing is kept */

static const Summary *find_summary(const SimResult *r, const char *metric)
{
    const struct {
        const char *name;
        const Summary *summary;
    } all[] = {{"ttft", &r->ttft}, {"server_ttft", &r->server_ttft},
               {"itl", &r->itl},   {"tpot", &r->tpot},
               {"e2e", &r->e2e},   {"queue_delay", &r->queue_delay}};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        if (strcmp(all[i].name, metric) == 0)
            return all[i].summary;
    return NULL;
}

/* FALSE when there is no such figure. */
static gboolean find_figure(const Summary *s, const char *figure, double *ret)
{
    const struct {
        const char *name;
        double value;
    } all[] = {{"mean", s->mean}, {"p50", s->p50}, {"p90", s->p90},
               {"p95", s->p95},   {"p99", s->p99}, {"max", s->max}};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        if (strcmp(all[i].name, figure) == 0) {
            *ret = all[i].value;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean parse_latency(CapacityTarget *t, const char *name, const char *limit)
{
    static const SimResult none = {0};
    const char *dot = strchr(name, '.');
    kv_ns time;
    double value;
    if (dot == NULL || (gsize)(dot - name) >= sizeof t->metric ||
        strlen(dot + 1) >= sizeof t->figure || !kv_parse_time(limit, &time) || time <= 0)
        return FALSE;
    g_strlcpy(t->metric, name, (gsize)(dot - name) + 1);
    g_strlcpy(t->figure, dot + 1, sizeof t->figure);
    t->limit = kv_ns_to_seconds(time);
    const Summary *s = find_summary(&none, t->metric);
    return s && find_figure(s, t->figure, &value);
}

static gboolean parse_target(CapacityTargets *all, const char *text)
{
    g_auto(GStrv) least = g_strsplit(text, ">=", 2);
    if (g_strv_length(least) == 2)
        return strcmp(g_strstrip(least[0]), "finished") == 0 &&
               kv_parse_real(g_strstrip(least[1]), &all->finished) && all->finished >= 0 &&
               all->finished <= 1;
    g_auto(GStrv) most = g_strsplit(text, "<=", 2);
    return g_strv_length(most) == 2 && all->n < G_N_ELEMENTS(all->items) &&
           parse_latency(&all->items[all->n++], g_strstrip(most[0]), g_strstrip(most[1]));
}

gboolean capacity_targets_parse(CapacityTargets *ret, const char *text, GError **error)
{
    CapacityTargets all = {.finished = 1};
    g_auto(GStrv) parts = g_strsplit(*text ? text : " ", ",", -1);
    for (guint i = 0; parts[i]; i++) {
        if (parse_target(&all, parts[i]))
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "target '%s': expected METRIC.FIGURE<=TIME, for instance ttft.p99<=2s (metrics "
                    "ttft, server_ttft, itl, tpot, e2e, queue_delay; figures mean, p50, p90, p95, "
                    "p99, max; 8 at most), or finished>=SHARE",
                    parts[i]);
        return FALSE;
    }
    *ret = all;
    return TRUE;
}

gboolean capacity_targets_kept(const CapacityTargets *targets, const SimResult *r)
{
    if ((double)r->finished < targets->finished * (double)r->requests)
        return FALSE;
    for (guint i = 0; i < targets->n; i++) {
        const CapacityTarget *t = &targets->items[i];
        const Summary *s = find_summary(r, t->metric);
        double value = 0;
        if (s->n > 0 && find_figure(s, t->figure, &value) && value > t->limit)
            return FALSE;
    }
    return TRUE;
}

void capacity_config_init(CapacityConfig *config)
{
    *config = (CapacityConfig){
        .targets = {.finished = 1},
        .start = 1,
        .precision = 0.01,
        .replications = 5,
    };
}

typedef struct Search {
    const CapacityConfig *config;
    CapacityTrial trial;
    gpointer data;
    const Progress *progress;
    gint next; /* atomic: replication to take */
    GMutex lock;
    GError *error; /* the first one */
    CapacityResult result;
} Search;

/* 1 = kept, 0 = not, -1 = error. */
static int try_load(Search *s, double load, guint32 replication, guint *trials, GError **error)
{
    SimResult result;
    if (!progress_check(s->progress, error) ||
        !s->trial(s->data, load, replication, &result, error))
        return -1;
    (*trials)++;
    return capacity_targets_kept(&s->config->targets, &result);
}

/* Brackets the edge: *low is kept (or 0), *high is not (or the largest load allowed). */
static int bracket(Search *s, guint32 replication, double *low, double *high, guint *trials,
                   GError **error)
{
    const CapacityConfig *c = s->config;
    double largest = c->largest > 0 ? c->largest : ldexp(c->start, 20);
    double load = MIN(c->start, largest);
    int kept = try_load(s, load, replication, trials, error);
    for (guint i = 0; kept == 0 && i < MOST_HALVINGS; i++) {
        *high = load;
        load /= 2;
        kept = try_load(s, load, replication, trials, error);
    }
    if (kept <= 0)
        return kept; /* nothing is kept: low stays 0 */
    *low = load;
    while (*high == 0 && kept > 0) {
        if (*low >= largest)
            return 2;
        load = MIN(*low * 2, largest);
        kept = try_load(s, load, replication, trials, error);
        if (kept > 0)
            *low = load;
        else if (kept == 0)
            *high = load;
    }
    return kept < 0 ? -1 : 1;
}

static gboolean search_one(Search *s, guint32 replication, GError **error)
{
    double low = 0, high = 0;
    guint trials = 0;
    int found = bracket(s, replication, &low, &high, &trials, error);
    while (found == 1 && high > low * (1 + s->config->precision)) {
        double middle = sqrt(low * high);
        int kept = try_load(s, middle, replication, &trials, error);
        if (kept < 0)
            return FALSE;
        *(kept ? &low : &high) = middle;
    }
    if (found < 0)
        return FALSE;
    g_mutex_lock(&s->lock);
    s->result.each[replication] = low;
    s->result.trials += trials;
    s->result.unbounded = s->result.unbounded || found == 2;
    g_mutex_unlock(&s->lock);
    return TRUE;
}

static gpointer work(gpointer data)
{
    Search *s = data;
    for (;;) {
        guint replication = (guint)g_atomic_int_add(&s->next, 1);
        if (replication >= s->config->replications)
            return NULL;
        GError *error = NULL;
        if (search_one(s, replication, &error))
            continue;
        g_atomic_int_set(&s->next, (gint)s->config->replications);
        g_mutex_lock(&s->lock);
        if (s->error == NULL)
            s->error = error;
        else
            g_error_free(error);
        g_mutex_unlock(&s->lock);
        return NULL;
    }
}

/* 97.5 % quantile of Student's t, n degrees of freedom; beyond the table Cornish-Fisher's first
 * terms (Abramowitz and Stegun 26.7.5), good to 1e-3 there. */
static double student_t(guint n)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                   2.447,  2.365, 2.306, 2.262, 2.228};
    if (n <= G_N_ELEMENTS(table))
        return table[n - 1];
    const double z = 1.959964;
    double g1 = (z * z * z + z) / 4, g2 = (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / 96;
    return z + g1 / n + g2 / ((double)n * n);
}

static void summarise(CapacityResult *r, guint n)
{
    double sum = 0, squares = 0;
    for (guint i = 0; i < n; i++)
        sum += r->each[i];
    r->load = sum / n;
    r->replications = n;
    r->low = r->high = NAN;
    if (n < 2)
        return;
    for (guint i = 0; i < n; i++)
        squares += (r->each[i] - r->load) * (r->each[i] - r->load);
    double half = student_t(n - 1) * sqrt(squares / (n - 1) / n);
    r->low = r->load - half;
    r->high = r->load + half;
}

gboolean capacity_find(const CapacityConfig *config, CapacityTrial trial, gpointer data,
                       const Progress *progress, CapacityResult *ret, GError **error)
{
    Search s = {.config = config, .trial = trial, .data = data, .progress = progress};
    if (!(config->start > 0) || !(config->precision > 0) || config->replications < 1 ||
        config->replications > G_N_ELEMENTS(s.result.each)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "capacity: expected a first load and a precision > 0, and 1 to %u replications",
                    (guint)G_N_ELEMENTS(s.result.each));
        return FALSE;
    }
    guint threads = config->threads ? config->threads : g_get_num_processors();
    threads = MIN(threads, config->replications);
    g_mutex_init(&s.lock);
    GThread **pool = g_new0(GThread *, threads);
    for (guint i = 1; i < threads; i++)
        pool[i] = g_thread_new("capacity", work, &s);
    work(&s);
    for (guint i = 1; i < threads; i++)
        g_thread_join(pool[i]);
    g_free(pool);
    g_mutex_clear(&s.lock);
    if (s.error) {
        g_propagate_error(error, s.error);
        return FALSE;
    }
    summarise(&s.result, config->replications);
    *ret = s.result;
    return TRUE;
}
