#include "plots/paper_pictures.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/gnuplot.h"
#include "plots/paper_layer_pictures.h"
#include "plots/paper_table.h"
#include "plots/plot.h"

static const struct {
    const char *trace, *batch, *label;
} traces[] = {{"bucketed", "1", "bucketed\\nB1"}, {"homogeneous", "4", "homog.\\nB4"},
              {"bimodal", "4", "bimodal\\nB4"},   {"bimodal", "8", "bimodal\\nB8"},
              {"uniform", "8", "uniform\\nB8"},   {"zipf", "8", "zipf\\nB8"}};

typedef struct Series {
    const char *name, *label; /* of main.csv: the name, or how it begins */
    guint colour;
} Series;
static const Series own_series[] = {
    {"single", "single", 6},
    {"buckets S=", "buckets, published S", 1},
    {"workqueue S=", "workqueue, published S", 0},
    {"workqueue-fused S=", "workqueue-fused, published S", 5},
    {"workqueue balanced", "workqueue, balanced", 3},
    {"persistent", "persistent", 2},
};
static const Series long_series[] = {
    {"single", "single", 6},
    {"buckets S=", "buckets, S = 32", 1},
    {"workqueue S=", "workqueue, S = 24", 0},
    {"workqueue balanced", "workqueue, balanced", 3},
    {"workqueue-fused balanced", "workqueue-fused, balanced", 5},
    {"persistent", "persistent", 2},
};
static const Series published_series[] = {
    {"flashinfer", "FlashInfer 0.2.5", 4},
    {"buckets", "buckets", 1},
    {"workqueue", "workqueue", 0},
};

/* --- grouped bars --- */

typedef struct Bars {
    const PaperTable *table;
    const char *kind; /* of the rows */
    const char *column, *deviation;
    const Series *series;
    guint n;
    const char *y_label, *title;
    gboolean key;
} Bars;

static guint trace_place(const PaperTable *table, guint row)
{
    for (guint t = 0; t < G_N_ELEMENTS(traces); t++)
        if (paper_table_is(table, row, "trace", traces[t].trace) &&
            paper_table_is(table, row, "max_active", traces[t].batch))
            return t;
    return G_MAXUINT;
}

/* gnuplot does not count a block without rows: index i would be another block. */
static void absent_row(Picture *p, guint n)
{
    static const double absent[] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    picture_row(p, n, absent);
}

static double bars_block(Picture *p, guint panel, const Bars *bars, guint k)
{
    const double width = 0.84 / bars->n;
    double top = 0;
    gboolean empty = TRUE;
    picture_block(p, panel, bars->series[k].label, "place value deviation");
    for (guint row = 0; row < bars->table->rows->len; row++) {
        const guint t = trace_place(bars->table, row);
        if (t == G_MAXUINT || !paper_table_is(bars->table, row, "kind", bars->kind) ||
            !g_str_has_prefix(paper_table_text(bars->table, row, "name"), bars->series[k].name))
            continue;
        const double value = paper_table_real(bars->table, row, bars->column);
        const double deviation = bars->deviation == NULL
                                     ? (double)NAN
                                     : paper_table_real(bars->table, row, bars->deviation);
        const double values[] = {t + (k - 0.5 * (bars->n - 1)) * width, value, deviation};
        picture_row(p, 3, values);
        top = fmax(top, isnan(deviation) ? value : value + deviation);
        empty = FALSE;
    }
    if (empty)
        absent_row(p, 3);
    return top;
}

/* Draws one panel; an empty one (nothing measured) says so. */
static void bars_panel(Picture *p, guint panel, const Bars *bars)
{
    const guint first = p->blocks;
    double top = 0;
    for (guint k = 0; k < bars->n; k++)
        top = fmax(top, bars_block(p, panel, bars, k));
    plot_y_from_zero(p, top, 4, FALSE);
    picture_add(p, "set xrange [-0.6:%u.6]\nset xtics scale 0 (", (guint)G_N_ELEMENTS(traces) - 1);
    for (guint t = 0; t < G_N_ELEMENTS(traces); t++)
        picture_add(p, "%s\"%s\" %u", t > 0 ? ", " : "", traces[t].label, t);
    picture_add(p,
                ")\nset ylabel %s\nset title %s offset 0,-0.6 noenhanced\n"
                "set boxwidth %s\nset style fill solid 0.85 noborder\nset grid noxtics ytics\n",
                picture_text(p, bars->y_label), picture_text(p, bars->title),
                picture_number(p, 0.76 / bars->n));
    picture_add(p, top > 0 ? "unset label 1\n"
                           : "set label 1 'nothing was executed' at graph 0.5,0.5 center\n");
    picture_add(p, "plot ");
    for (guint k = 0; k < bars->n; k++) {
        picture_add(p, "%sDATA index %u using 1:2 with boxes lc rgb '%s' ", k > 0 ? ", \\\n  " : "",
                    first + k, picture_colour(bars->series[k].colour));
        if (bars->key)
            picture_add(p, "title %s", picture_text(p, bars->series[k].label));
        else
            picture_add(p, "notitle");
        if (bars->deviation != NULL)
            picture_add(p,
                        ", DATA index %u using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc "
                        "rgb '#000000' notitle",
                        first + k);
    }
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *one_panel(const char *name, const char *summary, const Bars *bars)
{
    Picture *p = picture_new(name, summary, PICTURE_PAGE, 2.6);
    picture_add(p, "set key maxrows 2\nset lmargin at screen 0.085\nset rmargin at screen 0.985\n"
                   "set bmargin at screen 0.17\n");
    bars_panel(p, 1, bars);
    picture_end(p);
    return p;
}

static Picture *launches(const PaperTable *table)
{
    const Bars bars = {table, "route", "launches_per_step", NULL, own_series, 6, "launches",
                       "",    TRUE};
    return one_panel("paper_launches", "kernel launches a step and layer, by trace and route",
                     &bars);
}

static Picture *merge_state(const PaperTable *table)
{
    const Bars bars = {
        table, "route", "merge_mib_per_step", NULL, own_series, 6, "merge state (MiB)", "", TRUE};
    return one_panel("paper_merge", "partial states a step and layer, by trace and route", &bars);
}

/* Left this machine, right the published one: each panel has an axis of its own. */
static Picture *times(const PaperTable *table)
{
    static const struct {
        const char *column, *deviation, *label;
    } rows[] = {{"event_ms", "event_ms_sd", "event (ms a step)"},
                {"wall_ms", "wall_ms_sd", "wall (ms a step)"}};
    Picture *p =
        picture_new("paper_times", "event and wall time of a step: this machine, and as published",
                    PICTURE_PAGE, 4.6);
    g_autofree char *here = NULL;
    for (guint row = 0; row < table->rows->len && here == NULL; row++)
        if (paper_table_is(table, row, "kind", "route"))
            here = g_strdup_printf("this machine: %s", paper_table_text(table, row, "device"));
    picture_note(p, "means over the executed steps of held-out seeds; bars: deviation over seeds");
    plot_multi_begin(p);
    for (guint i = 0; i < 4; i++) {
        const guint row = i / 2;
        const gboolean own = i % 2 == 0;
        const Bars bars = {.table = table,
                           .kind = own ? "route" : "published",
                           .column = rows[row].column,
                           .deviation = rows[row].deviation,
                           .series = own ? own_series : published_series,
                           .n = own ? G_N_ELEMENTS(own_series) : G_N_ELEMENTS(published_series),
                           .y_label = rows[row].label,
                           .title = row > 0 ? ""
                                    : own   ? here
                                            : "published, RTX 3060",
                           .key = row == 1};
        const double bottom = row == 0 ? 0.60 : 0.21;
        plot_place(p, own ? 0.085 : 0.70, own ? 0.62 : 0.985, bottom, bottom + 0.335);
        picture_add(p, "set key at screen %s,0.005 bottom center maxrows %u\n",
                    own ? "0.34" : "0.84", own ? 2 : 3);
        picture_add(p, "set xtics font ',5.5'\n");
        bars_panel(p, i + 1, &bars);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

/* --- lines over a number: splits, padding, contexts --- */

/* The number in a name after `prefix`; NaN when it is another name. */
static double number_after(const char *name, const char *prefix)
{
    return g_str_has_prefix(name, prefix) ? g_ascii_strtod(name + strlen(prefix), NULL)
                                          : (double)NAN;
}

static void split_panel(Picture *p, const PaperTable *table, guint panel, const char *trace,
                        const char *route)
{
    g_autofree char *prefix = g_strconcat(route, " S=", NULL);
    g_autofree char *balanced_name = g_strconcat(route, " balanced", NULL);
    const guint block = picture_block(p, panel, route, "splits event_ms low95 high95");
    double balanced = (double)NAN, top = 0;
    gboolean empty = TRUE;
    for (guint row = 0; row < table->rows->len; row++) {
        const double event = paper_table_real(table, row, "event_ms");
        if (!paper_table_is(table, row, "case", trace))
            continue;
        if (paper_table_is(table, row, "route", balanced_name))
            balanced = event;
        const double values[] = {number_after(paper_table_text(table, row, "route"), prefix), event,
                                 paper_table_real(table, row, "event_ms_low95"),
                                 paper_table_real(table, row, "event_ms_high95")};
        if (!isnan(values[0]))
            picture_row(p, 4, values);
        empty &= isnan(values[0]);
        top = fmax(top, fmax(event, isnan(values[3]) ? 0 : values[3]));
    }
    if (empty)
        absent_row(p, 4);
    const gboolean one = strcmp(route, "buckets") == 0;
    const double level[] = {one ? 26 : 14, balanced}, end[] = {one ? 38 : 26, balanced};
    const guint line = picture_block(p, panel, "balanced", "splits event_ms");
    picture_row(p, 2, level);
    picture_row(p, 2, end);
    plot_y_from_zero(p, top * 1.15, 4, FALSE);
    picture_add(
        p,
        "set title %s offset 0,-0.6 noenhanced\nset xlabel 'splits a row (S)'\n"
        "set xtics 4\nset xrange [%s]\nset ylabel 'event (ms a step)'\n"
        "plot DATA index %u using 1:2 with linespoints pt 7 ps 0.5*PS lw 1.4 lc rgb '%s' "
        "title 'fixed S', DATA index %u using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc "
        "rgb '%s' notitle, DATA index %u using 1:2 with lines dt 2 lw 1.4 lc rgb '%s' "
        "title 'balanced'\n",
        picture_text(p, trace), one ? "26:38" : "14:26", block, picture_colour(0), block,
        picture_colour(0), line, picture_colour(3));
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *split_sensitivity(const PaperTable *table)
{
    Picture *p = picture_new("paper_splits", "time of a step by splits a row", PICTURE_PAGE, 2.3);
    plot_multi_begin(p);
    plot_place(p, 0.085, 0.48, 0.19, 0.80);
    split_panel(p, table, 1, "bucketed B1", "buckets");
    plot_place(p, 0.595, 0.985, 0.19, 0.80);
    split_panel(p, table, 2, "bimodal B8", "workqueue");
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static void padding_panel(Picture *p, const PaperTable *table, guint panel, const char *column,
                          const char *label)
{
    const guint block = picture_block(p, panel, label, "place value");
    double top = 0;
    picture_add(p, "set xtics scale 0.5 (");
    for (guint row = 0; row < table->rows->len; row++) {
        const double values[] = {row, paper_table_real(table, row, column)};
        picture_row(p, 2, values);
        top = fmax(top, values[1]);
        picture_add(p, "%s%s %u", row > 0 ? ", " : "",
                    picture_text(p, paper_table_text(table, row, "route")), row);
    }
    picture_add(p, ")\n");
    plot_y_from_zero(p, top * 1.05, 4, FALSE);
    picture_add(p,
                "set xlabel 'lengths padded to'\nset xrange [-0.4:%u.4]\nset ylabel %s\n"
                "plot DATA index %u using 1:2 with linespoints pt 7 ps 0.5*PS lw 1.4 lc rgb '%s' "
                "notitle\n",
                table->rows->len - 1, picture_text(p, label), block, picture_colour(1));
    picture_panel_done(p, PICTURE_LINEAR);
}

static Picture *padding_curve(const PaperTable *table)
{
    Picture *p = picture_new("paper_padding", "launches and time of a step by bucket width",
                             PICTURE_PAGE, 2.2);
    plot_multi_begin(p);
    plot_place(p, 0.085, 0.48, 0.19, 0.94);
    padding_panel(p, table, 1, "launches_per_step", "launches a step");
    plot_place(p, 0.595, 0.985, 0.19, 0.94);
    padding_panel(p, table, 2, "event_ms", "event (ms a step)");
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static Picture *read_rate(const PaperTable *table)
{
    Picture *p =
        picture_new("paper_corrected", "read rate of one row that is as long as it is called",
                    PICTURE_PAGE, 2.8);
    picture_add(p, "set key maxrows 2\nset lmargin at screen 0.085\nset rmargin at screen 0.985\n"
                   "set xlabel 'context (Ki tokens)'\nset logscale x 2\nset xrange [13:160]\n"
                   "set ylabel 'K and V read (GB/s)'\n");
    const guint first = p->blocks;
    double top = 0;
    for (guint k = 0; k < G_N_ELEMENTS(long_series); k++) {
        gboolean empty = TRUE;
        picture_block(p, 1, long_series[k].label, "context_Ki GB_per_s low95 high95");
        for (guint row = 0; row < table->rows->len; row++) {
            const double bytes = paper_table_real(table, row, "kv_mib_per_step") * (1 << 20) / 1e6;
            if (!g_str_has_prefix(paper_table_text(table, row, "route"), long_series[k].name))
                continue;
            const double values[] = {g_ascii_strtod(paper_table_text(table, row, "case"), NULL),
                                     bytes / paper_table_real(table, row, "event_ms"),
                                     bytes / paper_table_real(table, row, "event_ms_high95"),
                                     bytes / paper_table_real(table, row, "event_ms_low95")};
            picture_row(p, 4, values);
            top = fmax(top, fmax(values[1], isnan(values[3]) ? 0 : values[3]));
            empty = FALSE;
        }
        if (empty)
            absent_row(p, 4);
    }
    plot_y_from_zero(p, top * 1.02, 4, FALSE);
    picture_add(p, "plot ");
    for (guint k = 0; k < G_N_ELEMENTS(long_series); k++)
        picture_add(
            p,
            "%sDATA index %u using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '%s' "
            "title %s, DATA index %u using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb "
            "'%s' notitle",
            k > 0 ? ", \\\n  " : "", first + k, picture_colour(long_series[k].colour),
            picture_text(p, long_series[k].label), first + k,
            picture_colour(long_series[k].colour));
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LOG_X);
    picture_end(p);
    return p;
}

/* --- all of them --- */

static const struct {
    const char *table;
    Picture *(*make)(const PaperTable *table);
    const char *needs[5];
} pictures[] = {
    {"main.csv", launches, {"trace", "max_active", "kind", "name"}},
    {"main.csv", merge_state, {"trace", "max_active", "kind", "name"}},
    {"main.csv", times, {"trace", "max_active", "kind", "name"}},
    {"splits.csv", split_sensitivity, {"case", "route", "event_ms"}},
    {"padding.csv", padding_curve, {"route", "launches_per_step", "event_ms"}},
    {"corrected.csv", read_rate, {"case", "route", "kv_mib_per_step", "event_ms"}},
    {"layer.csv", paper_layer_shares, {"model", "cell", "batch", "route"}},
    {"layer.csv", paper_layer_host, {"model", "cell", "batch", "route"}},
};

static gboolean is_there(const char *folder, const char *file)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

gboolean paper_pictures_draw(const char *folder, gboolean scripts_only, GError **error)
{
    g_autofree char *where = g_build_filename(folder, "plots", NULL);
    GnuplotJob *job[G_N_ELEMENTS(pictures)] = {NULL};
    gboolean ok = TRUE, draw = !scripts_only;
    g_autoptr(GError) missing = NULL;
    for (guint i = 0; ok && i < G_N_ELEMENTS(pictures); i++) {
        if (!is_there(folder, pictures[i].table))
            continue;
        g_autoptr(PaperTable) table = paper_table_read(folder, pictures[i].table, error);
        g_autoptr(Picture) picture = table != NULL ? pictures[i].make(table) : NULL;
        ok = table != NULL && paper_table_good(table, pictures[i].needs, error);
        if (picture == NULL || !ok)
            continue;
        ok = picture_write(picture, where, error);
        if (ok && draw) /* without gnuplot the rest still gets its data and scripts */
            job[i] = gnuplot_job_start(where, picture->name, picture->script->str, "png svg pdf",
                                       &missing);
        draw = draw && missing == NULL;
    }
    for (guint i = 0; i < G_N_ELEMENTS(pictures); i++) {
        g_autoptr(GError) local = NULL;
        if (job[i] == NULL || gnuplot_job_finish(job[i], NULL, &local))
            continue;
        if (ok)
            g_propagate_error(error, g_steal_pointer(&local));
        ok = FALSE;
    }
    if (ok && missing != NULL) {
        g_propagate_error(error, g_steal_pointer(&missing));
        return FALSE;
    }
    return ok;
}
