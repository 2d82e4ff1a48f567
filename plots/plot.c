#include "plots/plot.h"

#include <math.h>

#include "base/units.h"

const char *lacks_replay(const PlotInput *input)
{
    const RunData *run = input->runs[0];
    if (run->steps == 0)
        return "no replay.csv with steps";
    return run->routes->len == 0 ? "no step has decode rows" : NULL;
}

const char *lacks_executed(const PlotInput *input)
{
    const char *why = lacks_replay(input);
    if (why != NULL)
        return why;
    for (guint i = 0; i < input->runs[0]->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(input->runs[0]->routes, i);
        if (route->total[ROUTE_KERNEL_US].n > 0)
            return NULL;
    }
    return "no step was executed (kernel_us is empty)";
}

double plot_bin_time(kv_ns first, kv_ns last, guint64 samples, gboolean end)
{
    if (samples == 1)
        return (double)(end ? last : first) / 1e9;
    return ((double)first + (double)last) / 2e9;
}

guint plot_time_block(Picture *p, guint panel, const char *label, const char *columns,
                      const TimeBins *bins, guint series, double scale)
{
    guint block = picture_block(p, panel, label, columns);
    kv_ns width = time_bins_width(bins), previous = KV_NS_NONE;
    for (guint i = 0; i < time_bins_count(bins); i++) {
        kv_ns first, last;
        guint64 samples;
        const Cell *cells = time_bins_get(bins, i, &first, &last, &samples);
        if (cells == NULL || cells[series].n == 0)
            continue;
        if (previous != KV_NS_NONE && first - previous > 3 * width)
            picture_gap(p);
        previous = last;
        const Cell *c = &cells[series];
        double row[] = {plot_bin_time(first, last, samples, FALSE), cell_mean(c) * scale,
                        c->min * scale, c->max * scale};
        picture_row(p, 4, row);
        row[0] = plot_bin_time(first, last, samples, TRUE);
        if (samples == 1)
            picture_row(p, 4, row);
    }
    return block;
}

gboolean log_bins_empty(const LogBins *bins)
{
    for (guint i = 0; i < G_N_ELEMENTS(bins->cells); i++)
        if (bins->cells[i].n > 0)
            return FALSE;
    return TRUE;
}

guint plot_log_block(Picture *p, guint panel, const char *label, const char *columns,
                     const LogBins *bins, double x_scale, double y_scale)
{
    guint block = picture_block(p, panel, label, columns);
    for (guint i = 0; i < G_N_ELEMENTS(bins->cells); i++) {
        const Cell *c = &bins->cells[i];
        if (c->n == 0)
            continue;
        const double row[] = {log_bins_center(i) * x_scale, cell_mean(c) * y_scale,
                              c->min * y_scale, c->max * y_scale};
        picture_row(p, 4, row);
    }
    return block;
}

void plot_bins_note(Picture *p, const TimeBins *bins, guint64 steps)
{
    guint used = 0;
    for (guint i = 0; i < time_bins_count(bins); i++)
        used += time_bins_get(bins, i, NULL, NULL, NULL) != NULL;
    g_autofree char *width = kv_format_time(time_bins_width(bins));
    picture_note(p, "%" G_GUINT64_FORMAT " steps in %u bins of %s: mean, min and max of each bin",
                 steps, used, width);
}

guint plot_cdf_block(Picture *p, guint panel, const char *label, const char *columns, Sampler *s,
                     double scale)
{
    guint block = picture_block(p, panel, label, columns);
    guint64 n = sampler_summary(s, 1).n;
    guint points = (guint)MIN(n, 200);
    for (guint i = 0; i < points; i++) {
        double q = points == 1 ? 1 : (double)i / (points - 1);
        const double row[] = {sampler_quantile(s, q) * scale, q};
        picture_row(p, 2, row);
    }
    return block;
}

double plot_bins_max(const TimeBins *bins, guint series)
{
    double max = 0;
    for (guint i = 0; i < time_bins_count(bins); i++) {
        const Cell *cells = time_bins_get(bins, i, NULL, NULL, NULL);
        if (cells != NULL && cells[series].n > 0)
            max = MAX(max, cells[series].max);
    }
    return max;
}

void plot_y_from_zero(Picture *p, double max, guint tics, gboolean whole)
{
    static const double nice[] = {1, 2, 2.5, 5, 10};
    double raw = max > 0 ? max / tics : 1, power = pow(10, floor(log10(raw))), step = power * 10;
    for (guint i = 0; i < G_N_ELEMENTS(nice); i++)
        if (nice[i] * power >= raw * (1 - 1e-9)) {
            step = nice[i] * power;
            break;
        }
    if (whole)
        step = MAX(1, ceil(step - 1e-9));
    double top = MAX(step, ceil(max / step - 1e-9) * step);
    gboolean thousands = top >= 10000 && fmod(step, 1000) < 1e-6 * step;
    picture_add(p, "set yrange [0:%s]\nset ytics %s\nset format y '%s'\n", picture_number(p, top),
                picture_number(p, step), thousands ? "%.0s%c" : "%g");
}

void plot_log_tics(Picture *p, char axis, double min, double max)
{
    /* A log axis cannot begin at 0; twelve decades are enough for any. */
    max = max > 0 && isfinite(max) ? max : 1;
    min = isfinite(min) ? MAX(min, max * 1e-12) : max / 10;
    max = MAX(max, min * 1.5);
    static const double fine[] = {1, 1.5, 2, 3, 4, 5, 6, 8}, usual[] = {1, 2, 5};
    gboolean narrow = max / min <= 6;
    const double *steps = narrow ? fine : usual;
    guint used = narrow ? G_N_ELEMENTS(fine) : max / min > 200 ? 1 : G_N_ELEMENTS(usual);
    picture_add(p, "set logscale %c\nset format %c '%%g'\nset %ctics (", axis, axis, axis);
    gboolean begun = FALSE;
    for (double decade = pow(10, floor(log10(min))); decade <= max; decade *= 10)
        for (guint i = 0; i < used; i++) {
            double tic = decade * steps[i];
            if (tic < min * 0.999 || tic > max * 1.001)
                continue;
            picture_add(p, "%s%s", begun ? ", " : "", picture_number(p, tic));
            begun = TRUE;
        }
    picture_add(p, ")\nset %crange [%s:%s]\n", axis, picture_number(p, min),
                picture_number(p, max));
}

void plot_key_room(Picture *p, guint entries, guint columns, double height, guint panels)
{
    guint rows = (entries + columns - 1) / columns;
    p->key_room = (0.135 * rows + 0.06) / (height * 0.82 / panels);
}

void plot_place(Picture *p, double left, double right, double bottom, double top)
{
    picture_add(p,
                "set lmargin at screen %s\nset rmargin at screen %s\n"
                "set bmargin at screen %s\nset tmargin at screen %s\n",
                picture_number(p, left), picture_number(p, right), picture_number(p, bottom),
                picture_number(p, top));
}

void plot_multi_begin(Picture *p)
{
    picture_add(p, "set multiplot\n");
}

void plot_multi_panel(Picture *p, guint i, guint n)
{
    const double bottom = 0.13, top = 0.985, gap = 0.035;
    double height = (top - bottom - gap * (n - 1)) / n;
    double y1 = top - (height + gap) * i, y0 = y1 - height;
    picture_add(p,
                "set lmargin at screen 0.165\nset rmargin at screen 0.97\n"
                "set tmargin at screen %s\nset bmargin at screen %s\n",
                picture_number(p, y1 - (i == 0 ? height * p->key_room : 0)), picture_number(p, y0));
    if (i + 1 < n)
        picture_add(p, "unset xlabel\nset format x ''\n");
    else
        picture_add(p, "set format x '%%g'\n");
}

void plot_multi_end(Picture *p)
{
    picture_add(p, "unset multiplot\n");
}

const char *plot_route_style(Picture *p, const RouteData *route, guint i)
{
    GString *style = g_string_new(NULL);
    g_string_printf(style, "lc rgb '%s' lw ", picture_route_colour(route->name, i));
    append_real(style, MAX(2.2 - 0.35 * i, 0.8));
    char *text = g_string_free(style, FALSE);
    g_ptr_array_add(p->literals, text);
    return text;
}

void plot_time_axis(Picture *p, const RunData *run)
{
    double first = (double)run->first / 1e9, last = (double)run->last / 1e9;
    picture_add(p, "set xrange [%s:%s]\nset xlabel 'simulated time (s)'\n",
                picture_number(p, first),
                picture_number(p, MAX(last, first + MAX(1e-6, first * 1e-9))));
}
