/* kvreplay compare A B: two runs side by side, paired step by step and request by request. */
#include <math.h>
#include <string.h>

#include <json-glib/json-glib.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/paired.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "plots/csv_rows.h"

static const char examples[] =
    "Pairs steps of equal number (the chosen route's line, or --route's) and requests of equal id, "
    "and\n"
    "prints the mean of A, of B, and of B - A with a 95 % interval (batch means).\n"
    "\nExamples:\n"
    "  kvreplay compare before after\n"
    "  kvreplay compare a b --route workqueue --route-b persistent --json\n";

#define MAX_METRICS 12

/* A file of both runs: which columns to pair, and what lines take part. */
typedef struct PairSource {
    const char *file, *key;
    const char *names[MAX_METRICS]; /* as printed */
    const char *columns[MAX_METRICS];
    const char *minus[MAX_METRICS]; /* subtracted column; NULL = none */
    double scale[MAX_METRICS];
} PairSource;

static const PairSource step_source = {
    "replay.csv",
    "step",
    {"duration_ms", "rows", "waiting", "launches", "tasks", "merge_state_mib", "kv_touched_mib",
     "plan_us", "kernel_us", "wall_us"},
    {"duration_ns", "rows", "waiting", "launches", "tasks", "merge_state_bytes", "kv_bytes_touched",
     "plan_us", "kernel_us", "wall_us"},
    {NULL},
    {1e-6, 1, 1, 1, 1, 1.0 / (1 << 20), 1.0 / (1 << 20), 1, 1, 1},
};
static const PairSource request_source = {
    "requests.csv",
    "request_id",
    {"ttft_s", "e2e_s", "queue_delay_s"},
    {"first_token_ns", "finish_ns", "first_scheduled_ns"},
    {"arrival_ns", "arrival_ns", "arrival_ns"},
    {1e-9, 1e-9, 1e-9},
};

/* One run's side: its file, and where its columns are. */
typedef struct Side {
    CsvRows *rows;
    const char *route; /* NULL = the chosen one */
    int key, route_column, chosen_column, replica_column;
    int columns[MAX_METRICS], minus[MAX_METRICS];
} Side;

static gboolean side_open(Side *side, const char *folder, const PairSource *source,
                          const char *route, GError **error)
{
    g_autofree char *path = g_build_filename(folder, source->file, NULL);
    side->rows = csv_rows_open(path, error);
    if (side->rows == NULL || !csv_rows_need(side->rows, &source->key, 1, &side->key, error))
        return FALSE;
    side->route = route;
    side->route_column = csv_rows_find(side->rows, "route");
    side->chosen_column = csv_rows_find(side->rows, "chosen");
    side->replica_column = source == &step_source ? csv_rows_find(side->rows, "replica") : -1;
    for (int i = 0; source->names[i] != NULL; i++) {
        if (!csv_rows_need(side->rows, &source->columns[i], 1, &side->columns[i], error))
            return FALSE;
        side->minus[i] =
            source->minus[i] != NULL ? csv_rows_find(side->rows, source->minus[i]) : -1;
    }
    return TRUE;
}

static gboolean takes_part(const Side *side)
{
    if (side->route_column < 0)
        return TRUE;
    if (side->route != NULL)
        return strcmp(csv_rows_text(side->rows, side->route_column), side->route) == 0;
    return strcmp(csv_rows_text(side->rows, side->chosen_column), "1") == 0;
}

/* Rising through the file: steps of one replica after those of another. */
static gboolean side_key(Side *side, gint64 *ret, GError **error)
{
    gint64 replica = 0;
    if (!csv_rows_int(side->rows, side->key, ret, error) ||
        (side->replica_column >= 0 &&
         !csv_rows_int_or(side->rows, side->replica_column, 0, &replica, error)))
        return FALSE;
    *ret += CLAMP(replica, 0, 1 << 20) << 40;
    return TRUE;
}

/* 1 = on a line that takes part, 0 = end, -1 = error. */
static int side_next(Side *side, gint64 *ret_key, GError **error)
{
    int got;
    while ((got = csv_rows_next(side->rows, error)) == 1)
        if (takes_part(side))
            return side_key(side, ret_key, error) ? 1 : -1;
    return got;
}

/* NaN where a field is empty. */
static gboolean side_value(Side *side, int i, double scale, double *ret, GError **error)
{
    double minus = 0.0;
    if (!csv_rows_real(side->rows, side->columns[i], ret, error) ||
        (side->minus[i] >= 0 && !csv_rows_real(side->rows, side->minus[i], &minus, error)))
        return FALSE;
    *ret = (*ret - minus) * scale;
    return TRUE;
}

static gboolean add_pair(Side *a, Side *b, const PairSource *source, Paired *pairs, GError **error)
{
    for (int i = 0; source->names[i] != NULL; i++) {
        double va, vb;
        if (!side_value(a, i, source->scale[i], &va, error) ||
            !side_value(b, i, source->scale[i], &vb, error))
            return FALSE;
        if (!isnan(va) && !isnan(vb))
            paired_add(&pairs[i], va, vb);
    }
    return TRUE;
}

static gboolean pair_files(Side *a, Side *b, const PairSource *source, Paired *pairs,
                           GError **error)
{
    gint64 ka = 0, kb = 0;
    int ga = side_next(a, &ka, error), gb = ga < 0 ? -1 : side_next(b, &kb, error);
    while (ga == 1 && gb == 1) {
        if (ka == kb && !add_pair(a, b, source, pairs, error))
            return FALSE;
        gboolean step_a = ka <= kb, step_b = kb <= ka;
        if (step_a)
            ga = side_next(a, &ka, error);
        if (ga >= 0 && step_b)
            gb = side_next(b, &kb, error);
    }
    return ga >= 0 && gb >= 0;
}

static void print_pairs(const PairSource *source, const Paired *pairs)
{
    for (int i = 0; source->names[i] != NULL; i++) {
        const Paired *p = &pairs[i];
        if (p->n == 0)
            continue;
        double d = paired_mean_difference(p), half = paired_half_width(p);
        g_autofree char *interval = isnan(half) ? g_strdup("n/a") : g_strdup_printf("%.4g", half);
        g_print("%-16s %10" G_GUINT64_FORMAT " %14.6g %14.6g %14.6g +- %-10s %8.2f\n",
                source->names[i], p->n, p->sum_a / (double)p->n, p->sum_b / (double)p->n, d,
                interval, p->sum_a != 0.0 ? 100.0 * d * (double)p->n / p->sum_a : 0.0);
    }
}

static void pairs_json(JsonBuilder *b, const PairSource *source, const Paired *pairs)
{
    for (int i = 0; source->names[i] != NULL; i++) {
        const Paired *p = &pairs[i];
        if (p->n == 0)
            continue;
        double half = paired_half_width(p);
        json_builder_set_member_name(b, source->names[i]);
        json_builder_begin_object(b);
        json_builder_set_member_name(b, "pairs");
        json_builder_add_int_value(b, (gint64)p->n);
        json_builder_set_member_name(b, "mean_a");
        json_builder_add_double_value(b, p->sum_a / (double)p->n);
        json_builder_set_member_name(b, "mean_b");
        json_builder_add_double_value(b, p->sum_b / (double)p->n);
        json_builder_set_member_name(b, "mean_difference");
        json_builder_add_double_value(b, paired_mean_difference(p));
        json_builder_set_member_name(b, "half_width_95");
        if (isnan(half))
            json_builder_add_null_value(b);
        else
            json_builder_add_double_value(b, half);
        json_builder_end_object(b);
    }
}

static gboolean compare_files(char **runs, const PairSource *source, const char *route_a,
                              const char *route_b, Paired *pairs, GError **error)
{
    Side a = {0}, b = {0};
    gboolean ok = side_open(&a, runs[0], source, route_a, error) &&
                  side_open(&b, runs[1], source, route_b, error) &&
                  pair_files(&a, &b, source, pairs, error);
    csv_rows_free(a.rows);
    csv_rows_free(b.rows);
    return ok;
}

gboolean cmd_compare(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *route = NULL, *route_b = NULL;
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        {"route", 0, 0, G_OPTION_ARG_STRING, &route,
         "this route's lines instead of the chosen one's", "NAME"},
        {"route-b", 0, 0, G_OPTION_ARG_STRING, &route_b, "another route in B", "NAME"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "RUN-A RUN-B", examples, entries);
    ParseOutcome outcome = command_parse(context, 2, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc != 3) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name the output folders of two runs");
        return FALSE;
    }
    Paired steps[MAX_METRICS] = {{0}}, requests[MAX_METRICS] = {{0}};
    if (!compare_files(argv + 1, &step_source, route, route_b != NULL ? route_b : route, steps,
                       error) ||
        !compare_files(argv + 1, &request_source, NULL, NULL, requests, error))
        return FALSE;
    if (json) {
        g_autoptr(JsonBuilder) b = json_builder_new();
        json_builder_begin_object(b);
        pairs_json(b, &step_source, steps);
        pairs_json(b, &request_source, requests);
        json_builder_end_object(b);
        return json_print(b, error);
    }
    g_print("%-16s %10s %14s %14s %14s    %-10s %8s\n", "A = first, B", "pairs", "mean A", "mean B",
            "B - A", "95 %", "B/A-1 %");
    print_pairs(&step_source, steps);
    print_pairs(&request_source, requests);
    return TRUE;
}
