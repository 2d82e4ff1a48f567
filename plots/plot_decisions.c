/* Decision regions of a device profile: the route that the learned model takes. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plots/csv_rows.h"
#include "plots/plot.h"

typedef struct Point {
    double rows, longest, margin; /* margin: the second route's time over the first's, less 1 */
    guint skew, route;
} Point;

typedef struct Regions {
    GArray *points;
    GPtrArray *skews, *routes; /* char *, in order of appearance */
} Regions;

static void regions_clear(Regions *self)
{
    g_clear_pointer(&self->points, g_array_unref);
    g_clear_pointer(&self->skews, g_ptr_array_unref);
    g_clear_pointer(&self->routes, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Regions, regions_clear)

static guint number_of(GPtrArray *names, const char *name)
{
    guint at;
    if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, &at))
        return at;
    g_ptr_array_add(names, g_strdup(name));
    return names->len - 1;
}

static gboolean read_regions(const char *path, Regions *ret, GError **error)
{
    static const char *const names[] = {"rows",  "longest",     "skew",
                                        "route", "expected_us", "second_us"};
    int at[G_N_ELEMENTS(names)], got;
    g_autoptr(CsvRows) rows = csv_rows_open(path, error);
    if (rows == NULL || !csv_rows_need(rows, names, G_N_ELEMENTS(names), at, error))
        return FALSE;
    ret->points = g_array_new(FALSE, FALSE, sizeof(Point));
    ret->skews = g_ptr_array_new_with_free_func(g_free);
    ret->routes = g_ptr_array_new_with_free_func(g_free);
    while ((got = csv_rows_next(rows, error)) > 0) {
        Point point;
        double us, second;
        if (!csv_rows_real(rows, at[0], &point.rows, error) ||
            !csv_rows_real(rows, at[1], &point.longest, error) ||
            !csv_rows_real(rows, at[4], &us, error) || !csv_rows_real(rows, at[5], &second, error))
            return FALSE;
        point.margin = isnan(second) ? 1 : second / us - 1;
        point.skew = number_of(ret->skews, csv_rows_text(rows, at[2]));
        point.route = number_of(ret->routes, csv_rows_text(rows, at[3]));
        g_array_append_val(ret->points, point);
    }
    if (got == 0 && ret->points->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:2: no points", path);
        return FALSE;
    }
    return got == 0;
}

/* One skew: a block a route; squares are full where the margin is 2 % and more. */
static void panel(Picture *p, const Regions *regions, guint skew, gboolean titles)
{
    GString *text = g_string_new(NULL);
    for (guint route = 0; route < regions->routes->len; route++) {
        const char *name = regions->routes->pdata[route];
        guint block = 0;
        gboolean begun = FALSE; /* an empty block would not count as one */
        for (guint i = 0; i < regions->points->len; i++) {
            const Point *point = &g_array_index(regions->points, Point, i);
            if (point->skew != skew || point->route != route)
                continue;
            if (!begun)
                block =
                    picture_map_block(p, skew + 1, name, "log2_rows log2_longest margin_percent");
            begun = TRUE;
            const double row[] = {log2(point->rows), log2(point->longest), 100 * point->margin};
            picture_row(p, 3, row);
        }
        if (begun)
            g_string_append_printf(text,
                                   "    DATA index %u using 1:2:($3 > 2 ? 0.24 : 0.1 + "
                                   "0.07*$3):($3 > 2 ? 0.24 : 0.1 + "
                                   "0.07*$3) with boxxyerror lc rgb '%s' notitle, \\\n",
                                   block, picture_route_colour(name, route));
        if (titles)
            g_string_append_printf(text, "    NaN with boxes lc rgb '%s' title %s, \\\n",
                                   picture_route_colour(name, route), picture_text(p, name));
    }
    picture_add(p, "plot \\\n%s    NaN notitle\n", text->str);
    g_string_free(text, TRUE);
    picture_panel_done(p, PICTURE_LINEAR);
}

static void axes(Picture *p, gboolean left)
{
    picture_add(p, "set xtics (");
    for (guint k = 0; k <= 7; k++)
        picture_add(p, "%s'%u' %u", k > 0 ? ", " : "", 1u << k, k);
    picture_add(p, ")\nset ytics (");
    for (guint k = 7; k <= 17; k++)
        picture_add(p, "%s'%s' %u", k > 7 ? ", " : "",
                    !left     ? ""
                    : k >= 10 ? picture_scaled(p, k - 10, "Ki")
                              : picture_scaled(p, k, ""),
                    k);
    picture_add(p, ")\n%s\n", left ? "set ylabel 'longest row (tokens)'" : "unset ylabel");
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    g_auto(Regions) regions = {0};
    if (!read_regions(input->runs[0]->regions_path, &regions, error))
        return NULL;
    const guint n = regions.skews->len;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_PAGE, 2.9);
    picture_note(p, "margin: the second route's expected time over the first's, less 1");
    picture_add(p, "set xrange [-0.4:7.4]\nset yrange [6.6:17.4]\nunset grid\n"
                   "set style fill solid 0.9 noborder\nset xlabel 'rows'\n"
                   "set key at screen 0.5,0.995 center top vertical maxrows 1 width 1\n");
    plot_multi_begin(p);
    for (guint skew = 0; skew < n; skew++) {
        const double width = 0.91 / n, left = 0.075 + skew * width;
        plot_place(p, left, left + width - 0.015, 0.14, 0.82);
        axes(p, skew == 0);
        picture_add(p, "set title %s offset 0,-0.8\n%s",
                    picture_text(p, regions.skews->pdata[skew]), skew > 0 ? "set key off\n" : "");
        panel(p, &regions, skew, skew == 0);
    }
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    return input->runs[0]->regions_path == NULL ? "no regions.csv" : NULL;
}

const PlotOps plot_decisions = {
    .info = {.name = "decisions", .summary = "which route the learned model takes, by the profile"},
    .caption = "Each square is a made-up batch: rows, longest row, and how the others compare "
               "(equal, evenly spread from a sixteenth, or all a sixteenth). The colour is the "
               "route of the least expected time; the smaller the square, the closer the next one "
               "(full from 2 %).",
    .wide = TRUE,
    .lacks = lacks,
    .make = make,
};
