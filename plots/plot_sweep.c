/* Curves of a sweep: results over the load axis, a band for the seeds; latency against load. */
#include "plots/plot.h"
#include "plots/sweep_table.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

typedef struct Result {
    const char *names[8];
    const char *label;
    gboolean log;
} Result;

static const Result wanted[] = {
    {{"ttft_p99_s", "ttft_p99", "ttft_s_p99", "ttft_p50", "ttft_mean", NULL}, "TTFT (s)", TRUE},
    {{"itl_p99_s", "itl_p99", "tpot_p99_s", "tpot_p99", "itl_p50", "tpot_mean", NULL},
     "inter-token time (s)",
     TRUE},
    {{"throughput_tokens_per_s", "output_tokens_per_s", "output_tokens/duration_s", NULL},
     "output tokens/s",
     FALSE},
    {{"launches_per_step", "preemptions", "pages_peak", "waiting_mean", NULL}, "", FALSE},
};

static const char *axis_label(const SweepTable *table)
{
    const char *axis = sweep_table_axis(table);
    if (g_strcmp0(axis, "rate") == 0 || g_strcmp0(axis, "arrivals") == 0)
        return "offered load (requests/s)";
    return axis != NULL ? axis : "cell";
}

/* "ttft_p99_s" -> "TTFT, p99 (s)". */
static const char *latency_label(Picture *p, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, "_", -1);
    g_autofree char *what = g_ascii_strup(parts[0], -1);
    GString *label = g_string_new(what);
    for (guint i = 1; parts[i] != NULL; i++)
        if (strcmp(parts[i], "s") != 0)
            g_string_append_printf(label, ", %s", parts[i]);
    g_string_append(label, " (s)");
    const char *text = picture_text(p, label->str);
    g_string_free(label, TRUE);
    return text;
}

static guint curve_block(Picture *p, guint panel, const SweepTable *table, guint curve, int metric)
{
    g_autofree double *x = NULL;
    g_autofree Cell *y = NULL;
    guint n = sweep_table_points(table, curve, metric, &x, &y);
    const char *label = sweep_table_label(table, curve);
    guint block = picture_block(p, panel, label[0] != '\0' ? label : "all cells",
                                "x result_mean result_min result_max");
    for (guint i = 0; i < n; i++) {
        const double row[] = {x[i], cell_mean(&y[i]), y[i].min, y[i].max};
        picture_row(p, 4, row);
    }
    return block;
}

static void curves_panel(Picture *p, guint panel, const SweepTable *table, int metric,
                         const Result *result)
{
    GString *bands = g_string_new(NULL), *lines = g_string_new(NULL);
    for (guint c = 0; c < sweep_table_curves(table); c++) {
        guint block = curve_block(p, panel, table, c, metric);
        const char *label = sweep_table_label(table, c);
        g_string_append_printf(bands,
                               "    DATA index %u using 1:3:4 with filledcurves lc rgb '%s' "
                               "notitle, \\\n",
                               block, picture_colour(c));
        g_string_append_printf(
            lines,
            "%s    DATA index %u using 1:2 with linespoints pt 7 ps 0.3*PS lc rgb "
            "'%s' lw 1.4 title %s",
            c > 0 ? ", \\\n" : "", block, picture_colour(c),
            picture_text(p, label[0] != '\0' ? label : "mean, min and max"));
    }
    const char *name = sweep_table_metric_name(table, metric);
    picture_add(p, "%s\nset yrange [%s:*]\nset format y '%%g'\nset ylabel %s noenhanced\n",
                result->log ? "set logscale y" : "unset logscale y", result->log ? "*" : "0",
                result->log ? latency_label(p, name)
                            : picture_text(p, result->label[0] != '\0' ? result->label : name));
    picture_add(p, "plot \\\n%s%s\n", bands->str, lines->str);
    picture_panel_done(p, result->log ? PICTURE_LOG_Y : PICTURE_LINEAR);
    g_string_free(bands, TRUE);
    g_string_free(lines, TRUE);
}

static gboolean no_cells(const SweepTable *table, const char *path, GError **error)
{
    if (sweep_table_axis(table) != NULL)
        return FALSE;
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: no parameter column has more than one value: nothing to draw against", path);
    return TRUE;
}

static Picture *make_sweep(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const char *path = input->runs[0]->sweep_path;
    g_autoptr(SweepTable) table = sweep_table_load(path, error);
    if (table == NULL || no_cells(table, path, error))
        return NULL;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_PAGE, 3.9);
    picture_note(p, "mean, min and max over the cells that differ in nothing but the seed");
    plot_multi_begin(p);
    picture_add(p, "set key at screen 0.5,0.99 center top vertical maxrows 3\n");
    guint drawn = 0;
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
        int metric = sweep_table_metric(table, wanted[i].names);
        if (metric < 0)
            continue;
        guint x = drawn % 2, y = drawn / 2;
        plot_place(p, x == 0 ? 0.08 : 0.58, x == 0 ? 0.48 : 0.98, y == 0 ? 0.58 : 0.11,
                   y == 0 ? 0.86 : 0.40);
        picture_add(p, "set xlabel %s noenhanced\n", picture_text(p, axis_label(table)));
        curves_panel(p, ++drawn, table, metric, &wanted[i]);
        picture_add(p, "set key off\n");
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    return input->runs[0]->sweep_path == NULL ? "no sweep.csv" : NULL;
}

const PlotOps plot_sweep = {
    .info = {.name = "sweep", .summary = "curves of a sweep, with bands over seeds"},
    .caption =
        "Results over the swept parameter; line: mean over seeds, band: smallest and largest "
        "seed. Cells that differ in another parameter are separate curves.",
    .wide = TRUE,
    .lacks = lacks,
    .make = make_sweep,
};

/* Marks of the first curve: the knee of its latency, and the most it ever puts through. */
static void find_marks(const SweepTable *table, int latency, int rate, double *knee, double *most)
{
    g_autofree double *x = NULL, *x2 = NULL, *mean = NULL;
    g_autofree Cell *y = NULL, *y2 = NULL;
    guint n = sweep_table_points(table, 0, latency, &x, &y);
    mean = g_new(double, n + 1);
    for (guint i = 0; i < n; i++)
        mean[i] = cell_mean(&y[i]);
    *knee = sweep_knee(x, mean, n);
    *most = (double)NAN;
    guint m = rate >= 0 ? sweep_table_points(table, 0, rate, &x2, &y2) : 0;
    for (guint i = 0; i < m; i++)
        *most = isnan(*most) ? cell_mean(&y2[i]) : MAX(*most, cell_mean(&y2[i]));
}

static void load_marks(Picture *p, double knee, double most)
{
    if (isfinite(knee))
        picture_add(p,
                    "set arrow 1 from first %s, graph 0 to first %s, graph 1 nohead dt 2 lw 0.8\n"
                    "set label 1 'knee' at first %s, graph 0.06 offset 0.5,0 noenhanced\n",
                    picture_number(p, knee), picture_number(p, knee), picture_number(p, knee));
    if (isfinite(most))
        picture_add(p,
                    "set arrow 2 from graph 0, first %s to graph 1, first %s nohead dt 3 lw 0.8\n"
                    "set label 2 'capacity' at graph 0.02, first %s offset 0,-0.6 noenhanced\n",
                    picture_number(p, most), picture_number(p, most), picture_number(p, most));
}

static Picture *make_load(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const char *path = input->runs[0]->sweep_path;
    g_autoptr(SweepTable) table = sweep_table_load(path, error);
    if (table == NULL || no_cells(table, path, error))
        return NULL;
    int latency = sweep_table_metric(table, wanted[0].names);
    int rate = sweep_table_metric(table, wanted[2].names);
    if (latency < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:1: no TTFT column (ttft_p99 ...)", path);
        return NULL;
    }
    double knee, most;
    find_marks(table, latency, rate, &knee, &most);
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 3.3);
    picture_note(p, "mean, min and max over seeds; knee and capacity are of the first curve");
    plot_multi_begin(p);
    guint panels = rate >= 0 ? 2 : 1;
    plot_key_room(p, sweep_table_curves(table), 1, 3.3, panels);
    picture_add(p, "set key maxcols 1\n");
    picture_add(p, "set xlabel %s noenhanced\n", picture_text(p, axis_label(table)));
    plot_multi_panel(p, 0, panels);
    load_marks(p, knee, (double)NAN);
    curves_panel(p, 1, table, latency, &wanted[0]);
    if (rate >= 0) {
        picture_add(p, "set xlabel %s noenhanced\n", picture_text(p, axis_label(table)));
        plot_multi_panel(p, 1, panels);
        picture_add(p, "set key off\nunset label 1\n");
        load_marks(p, (double)NAN, most);
        curves_panel(p, 2, table, rate, &wanted[2]);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *load_lacks(const PlotInput *input)
{
    const char *path = input->runs[0]->sweep_path;
    if (path == NULL)
        return "no sweep.csv";
    g_autoptr(SweepTable) table = sweep_table_load(path, NULL);
    return table != NULL && !sweep_table_axis_is_load(table) ? "the sweep does not vary the load"
                                                             : NULL;
}

const PlotOps plot_load = {
    .info = {.name = "load", .summary = "latency and throughput against load"},
    .caption = "TTFT and output tokens per second against the offered load. The knee is where the "
               "first curve bends away from its chord most; the capacity is the most it ever puts "
               "through.",
    .lacks = load_lacks,
    .make = make_load,
};
