/* Maps over time: composition of the batch by row length, occupancy of the pool by page id. */
#include "plots/plot.h"

#include <math.h>

/* Cells of time bins as a regular grid, which `with image` wants: every bin, every cell. Columns
 * time, y, value. `first_cell` and `n_cells` cut off what is empty throughout. */
static guint map_block(Picture *p, guint panel, const char *label, const char *columns,
                       const TimeBins *bins, guint first_cell, guint n_cells, double y_origin,
                       double y_step)
{
    guint block = picture_map_block(p, panel, label, columns);
    double width = (double)time_bins_width(bins) / 1e9,
           origin = (double)time_bins_origin(bins) / 1e9;
    const Cell *cells = NULL;
    kv_ns until = KV_NS_NONE; /* a step longer than a bin fills the bins it lasts through */
    for (guint b = 0; b < time_bins_count(bins); b++) {
        const Cell *own = time_bins_get(bins, b, NULL, &until, NULL);
        if (own != NULL || until <= time_bins_origin(bins) + b * time_bins_width(bins))
            cells = own;
        for (guint c = first_cell; c < first_cell + n_cells; c++) {
            double mean = cells == NULL ? (double)NAN : cell_mean(&cells[c]);
            const double row[] = {origin + (b + 0.5) * width, y_origin + (c + 0.5) * y_step,
                                  mean == 0 ? (double)NAN : mean};
            picture_row(p, 3, row);
        }
    }
    return block;
}

/* White to deep blue, dark = more; even in lightness, so it survives a grey printer. */
static void palette(Picture *p)
{
    picture_add(p,
                "set palette defined (0 '#e8f1f8', 0.25 '#a6cbe3', 0.5 '#56a0cf', 0.75 '#0072b2', "
                "1 '#06304f')\nset style fill solid 1\nset colorbox user size 0.02,0.4\n");
}

/* A text terminal has no images: a mark where a cell holds anything. */
static void draw_map(Picture *p, guint block)
{
    picture_add(p,
                "if (F eq 'dumb') {\nunset colorbox\n"
                "plot DATA index %u using 1:($3 > 0 ? $2 : NaN) with points pt '#' notitle\n"
                "} else {\nplot DATA index %u using 1:2:3 with image notitle\n}\n",
                block, block);
}

static void time_range(Picture *p, const TimeBins *bins)
{
    double width = (double)time_bins_width(bins) / 1e9,
           origin = (double)time_bins_origin(bins) / 1e9;
    picture_add(p, "set xrange [%s:%s]\nset xlabel 'simulated time (s)'\n",
                picture_number(p, origin),
                picture_number(p, origin + time_bins_count(bins) * width));
}

static void used_cells(const TimeBins *bins, guint n, guint *ret_first, guint *ret_n)
{
    guint first = n, last = 0;
    for (guint b = 0; b < time_bins_count(bins); b++) {
        const Cell *cells = time_bins_get(bins, b, NULL, NULL, NULL);
        for (guint c = 0; cells != NULL && c < n; c++)
            if (cells[c].max > 0) {
                first = MIN(first, c);
                last = MAX(last, c);
            }
    }
    *ret_first = first == n ? 0 : first;
    *ret_n = first == n ? 1 : last - first + 1;
}

static Picture *make_composition(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const StepsData *steps = input->runs[0]->steps_data;
    guint first, n;
    used_cells(steps->lengths, RUN_LENGTH_CELLS, &first, &n);
    double low = (double)first / RUN_LENGTHS_PER_OCTAVE;
    double high = (double)(first + n) / RUN_LENGTHS_PER_OCTAVE;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 2.3);
    plot_bins_note(p, steps->lengths, steps->steps);
    picture_note(p, "y is log2 of the length; a cell is a quarter of an octave; NaN = no row");
    guint block = map_block(p, 1, "decode rows by length", "time_s log2_length rows_mean",
                            steps->lengths, first, n, 0, 1.0 / RUN_LENGTHS_PER_OCTAVE);
    palette(p);
    time_range(p, steps->lengths);
    picture_add(p,
                "set lmargin at screen 0.165\nset rmargin at screen 0.82\n"
                "set tmargin at screen 0.97\nset bmargin at screen 0.19\n"
                "set colorbox user origin 0.84,0.19 size 0.025,0.78\n"
                "set cblabel 'rows in the cell (mean)'\nset cbrange [0:*]\n"
                "set ylabel 'length of the row (tokens)'\nset yrange [%s:%s]\nset ytics (",
                picture_number(p, low), picture_number(p, high));
    guint from = (guint)ceil(low), to = (guint)floor(high);
    for (guint k = from; k <= to; k += to - from > 6 ? 2 : 1)
        picture_add(p, "%s'%s' %u", k > from ? ", " : "",
                    k >= 20   ? picture_scaled(p, k - 20, "Mi")
                    : k >= 10 ? picture_scaled(p, k - 10, "Ki")
                              : picture_scaled(p, k, ""),
                    k);
    picture_add(p, ")\n");
    draw_map(p, block);
    picture_panel_done(p, PICTURE_LINEAR);
    picture_end(p);
    return p;
}

static Picture *make_pool(const PlotOps *ops, const PlotInput *input, GError **error)
{
    const StepsData *steps = input->runs[0]->steps_data;
    double per_cell = (double)steps->pages_per_cell;
    Picture *p = picture_new(ops->info.name, ops->info.summary, PICTURE_COLUMN, 3.3);
    plot_bins_note(p, steps->pages, steps->steps);
    picture_note(p, "map: %" G_GUINT64_FORMAT " page ids a cell; pages of decode rows alone",
                 steps->pages_per_cell);
    guint n = (guint)((steps->pool_pages + steps->pages_per_cell - 1) / steps->pages_per_cell);
    guint map = map_block(p, 1, "share of the cell's pages held", "time_s page_id share",
                          steps->pages, 0, MIN(n, RUN_PAGE_CELLS), 0, per_cell);
    guint used =
        plot_time_block(p, 2, "pages used of the pool",
                        "time_s percent_mean percent_min percent_max", steps->fill, 0, 100);
    guint filled =
        plot_time_block(p, 2, "tokens held of the pages used",
                        "time_s percent_mean percent_min percent_max", steps->fill, 1, 100);
    palette(p);
    plot_multi_begin(p);
    time_range(p, steps->pages);
    plot_multi_panel(p, 0, 2);
    picture_add(p,
                "set rmargin at screen 0.82\nset colorbox user origin 0.84,0.58 size 0.025,0.4\n"
                "set cbrange [0:1]\nset cblabel 'share held'\n"
                "set ylabel 'page id'\nset yrange [0:%s]\n",
                picture_number(p, n * per_cell));
    draw_map(p, map);
    picture_panel_done(p, PICTURE_LINEAR);
    time_range(p, steps->pages);
    plot_multi_panel(p, 1, 2);
    plot_y_from_zero(p, 100, 4, TRUE);
    picture_add(p,
                "set rmargin at screen 0.82\nset ylabel 'percent'\n"
                "set key at graph 0.98,0.06 right bottom vertical noreverse opaque samplen 1\n"
                "set style fill transparent solid 0.22 noborder\n"
                "plot DATA index %u using 1:3:4 with filledcurves lc rgb '%s' notitle, \\\n"
                "     DATA index %u using 1:3:4 with filledcurves lc rgb '%s' notitle, \\\n"
                "     DATA index %u using 1:2 with lines lc rgb '%s' lw 1.4 "
                "title 'pages used / pool', \\\n"
                "     DATA index %u using 1:2 with lines lc rgb '%s' lw 1.4 "
                "title 'tokens held / slots of them'\n",
                used, picture_colour(2), filled, picture_colour(1), used, picture_colour(2), filled,
                picture_colour(1));
    picture_panel_done(p, PICTURE_LINEAR);
    plot_multi_end(p);
    picture_end(p);
    return p;
}

static const char *lacks(const PlotInput *input)
{
    const StepsData *steps = input->runs[0]->steps_data;
    return steps == NULL || steps->steps == 0 ? "no steps.kvsteps with steps" : NULL;
}

const PlotOps plot_composition = {
    .info = {.name = "composition", .summary = "batch composition over time: rows by length"},
    .caption = "Each column is a stretch of time, each cell the mean number of decode rows of that "
               "length (quarter octaves) in its steps. Rows climb as they decode.",
    .lacks = lacks,
    .make = make_composition,
};

const PlotOps plot_pool = {
    .info = {.name = "pool", .summary = "page pool: which ids are held, and how full pages are"},
    .caption =
        "Above: share of each range of page ids that decode rows hold, over time; a speckled "
        "column is a scattered pool. Below: pages used of the pool (prefill's too), and "
        "tokens held of the slots in the pages used.",
    .lacks = lacks,
    .make = make_pool,
};
