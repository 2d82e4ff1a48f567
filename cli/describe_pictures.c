#include "cli/describe_pictures.h"

#include "base/outfile.h"
#include "plots/gnuplot.h"
#include "plots/picture.h"

static Picture *rate_picture(const Description *d)
{
    Picture *p = picture_new("rate", "arrivals over time", PICTURE_COLUMN, 2.1);
    double width = kv_ns_to_seconds(d->bin_width);
    picture_note(p, "requests that arrive in bins of %.9g s, divided by that", width);
    guint block = picture_block(p, 1, "arrivals", "time_s requests_per_s");
    for (guint i = 0; i < d->n_bins; i++) {
        const double row[] = {width * i, width > 0 ? (double)d->bins[i] / width : 0.0};
        picture_row(p, 2, row);
    }
    picture_add(p,
                "set xlabel 'time since the first arrival (s)'\n"
                "set yrange [0:*]\nset ylabel 'arrivals (requests/s)'\nunset key\n"
                "plot DATA index %u using 1:2 with steps lc rgb '%s' lw 1.4\n",
                block, picture_colour(0));
    picture_panel_done(p, PICTURE_LINEAR);
    picture_end(p);
    return p;
}

static Picture *lengths_picture(const Description *d)
{
    Picture *p = picture_new("lengths", "prompt and output lengths", PICTURE_COLUMN, 2.6);
    picture_note(p, "%u requests; every one up to %d, then a fair sample", d->n_points,
                 DESCRIBE_POINTS);
    guint block = picture_block(p, 1, "requests", "prompt_tokens output_tokens");
    for (guint i = 0; i < d->n_points; i++) {
        const double row[] = {d->points[i].prompt, d->points[i].output};
        picture_row(p, 2, row);
    }
    picture_add(
        p,
        "set logscale xy\nset xlabel 'prompt (tokens)'\nset ylabel 'output (tokens)'\nunset key\n"
        "plot DATA index %u using 1:2 with points pt 7 ps 0.15 lc rgb '%s'\n",
        block, picture_colour(0));
    picture_panel_done(p, PICTURE_LOG_X | PICTURE_LOG_Y);
    picture_end(p);
    return p;
}

static gboolean draw(const Picture *p, const char *folder, GError **error)
{
    if (!picture_write(p, folder, error))
        return FALSE;
    GnuplotJob *job = gnuplot_job_start(folder, p->name, p->script->str, "png svg pdf", error);
    return job != NULL && gnuplot_job_finish(job, NULL, error);
}

gboolean describe_pictures(const Description *d, const char *folder, GError **error)
{
    if (!out_folder_make(folder, error))
        return FALSE;
    g_autoptr(Picture) rate = rate_picture(d);
    g_autoptr(Picture) lengths = lengths_picture(d);
    return (d->n_bins == 0 || draw(rate, folder, error)) &&
           (d->n_points == 0 || draw(lengths, folder, error));
}
