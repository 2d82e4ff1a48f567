/* Which routes the policy chose, against batch size and against the longest row. */
#include "plots/plot.h"

/* Steps that chose `route` with log2(rows) (by_rows) or log2(max length) = k. */
static guint64 chosen_at(const RouteData *route, gboolean by_rows, guint k)
{
    guint64 n = 0;
    for (guint other = 0; other < RUN_GRID; other++)
        n += by_rows ? route->chosen[k][other] : route->chosen[other][k];
    return n;
}

static guint share_block(Picture *p, guint panel, const RunData *run, gboolean by_rows)
{
    guint n = run->routes->len;
    GString *columns = g_string_new(by_rows ? "rows_from steps" : "max_len_from steps");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(columns, " percent_up_to_route_%u", i);
    guint block =
        picture_block(p, panel, by_rows ? "by batch size" : "by longest row", columns->str);
    g_string_free(columns, TRUE);
    for (guint k = 0; k < RUN_GRID; k++) {
        double row[RUN_MAX_ROUTES + 2] = {0};
        guint64 total = 0, sum = 0;
        for (guint i = 0; i < n; i++)
            total += chosen_at(g_ptr_array_index(run->routes, i), by_rows, k);
        if (total == 0)
            continue;
        row[0] = (double)(1u << k);
        row[1] = (double)total;
        for (guint i = 0; i < n; i++) {
            sum += chosen_at(g_ptr_array_index(run->routes, i), by_rows, k);
            row[i + 2] = 100.0 * (double)sum / (double)total;
        }
        picture_row(p, n + 2, row);
    }
    return block;
}

/* Bars from 2^k to 2^(k+1) on a log axis, each route on top of the ones before it. */
static void draw(Picture *p, const RunData *run, guint block)
{
    gboolean begun = FALSE;
    picture_add(p, "plot \\\n");
    for (guint i = 0; i < run->routes->len; i++) {
        const RouteData *route = g_ptr_array_index(run->routes, i);
        guint64 steps = 0;
        for (guint k = 0; k < RUN_GRID; k++)
            steps += chosen_at(route, TRUE, k);
        if (steps == 0)
            continue;
        g_autofree char *below = i == 0 ? g_strdup("(0)") : g_strdup_printf("%u", i + 2);
        picture_add(p,
                    "%s    DATA index %u using ($1*1.42):%s:($1*1.05):($1*1.9):%s:%u "
                    "with boxxyerror lc rgb '%s' title %s",
                    begun ? ", \\\n" : "", block, below, below, i + 3,
                    picture_route_colour(route->name, i), picture_text(p, route->name));
        begun = TRUE;
    }
    picture_add(p, "\n");
    picture_panel_done(p, PICTURE_LOG_X);
}

static Picture *make(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const RunData *run = input->runs[0];
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.3);
    picture_note(p,
                 "%" G_GUINT64_FORMAT " steps with decode rows and a chosen route; a bar holds "
                 "values from its left edge up to twice that",
                 run->chosen_steps);
    plot_multi_begin(p);
    picture_add(
        p, "set logscale x 2\nset format x '%%.0b%%B'\nset xtics 2,4\n"
           "set style fill solid 0.85 noborder\nset yrange [0:100]\n"
           "set tmargin at screen 0.84\nset bmargin at screen 0.21\n"
           "set lmargin at screen 0.165\nset rmargin at screen 0.53\n"
           "set ylabel 'share of steps (%%)' offset 0.8,0\nset xlabel 'decode rows in the step'\n"
           "set key at screen 0.56,0.99 center top vertical maxrows 2 width 0\n");
    draw(p, run, share_block(p, 1, run, TRUE));
    picture_add(p, "set lmargin at screen 0.59\nset rmargin at screen 0.97\nunset ylabel\n"
                   "set format y ''\nset xlabel 'longest row (tokens)'\nunset key\n");
    draw(p, run, share_block(p, 2, run, FALSE));
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const char *why = lacks_replay(input);
    return why != NULL ? why : input->runs[0]->chosen_steps == 0 ? "no route was chosen" : NULL;
}

const PlotOps plot_share = {
    .info = {.name = "share",
             .summary = "route share against batch size and against the longest row"},
    .caption = "Of the steps with so many decode rows (left) or so long a longest row (right), the "
               "share in which the policy chose each route. Every bar spans a factor of two.",
    .lacks = lacks,
    .make = make,
};
