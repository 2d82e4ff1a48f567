#include "plots/plots.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/outfile.h"
#include "plots/gnuplot.h"
#include "plots/plot.h"

// clang-format off
const PluginInfo *const plots[] = {
    &plot_launches.info,
    &plot_merge.info,
    &plot_batch.info,
    &plot_step_length.info,
    &plot_share.info,
    &plot_tasks.info,
    &plot_breakdown.info,
    &plot_roof.info,
    &plot_composition.info,
    &plot_pool.info,
    &plot_latency.info,
    &plot_regions.info,
    &plot_regret.info,
    &plot_traffic.info,
    &plot_workload.info,
    &plot_compare.info,
    &plot_load.info,
    &plot_sweep.info,
    &plot_bench.info,
    &plot_peers.info,
    &plot_decisions.info,
    NULL,
};
// clang-format on

typedef struct Drawing {
    const PlotRequest *request;
    GPtrArray *runs; /* RunData * */
    GPtrArray *made;
    GQueue jobs; /* Job *, oldest first */
} Drawing;

typedef struct Job {
    GnuplotJob *gnuplot;
    const char *name;
} Job;

static gboolean load_runs(Drawing *d, Progress *progress, GError **error)
{
    for (guint i = 0; d->request->runs[i] != NULL; i++) {
        RunData *run = run_data_load(d->request->runs[i], progress, error);
        if (run == NULL)
            return FALSE;
        g_ptr_array_add(d->runs, run);
    }
    if (d->runs->len > 0)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "no run given to plot");
    return FALSE;
}

static gboolean finish_oldest(Drawing *d, GError **error)
{
    g_autofree Job *job = g_queue_pop_head(&d->jobs);
    g_autofree char *text = NULL;
    if (!gnuplot_job_finish(job->gnuplot, &text, error))
        return FALSE;
    if (d->request->terminal)
        printf("%s: %s\n%s\n", job->name, plugin_find(plots, job->name)->summary, text);
    g_ptr_array_add(d->made, g_strdup(job->name));
    return TRUE;
}

/* Waits for what still runs, keeping the first error. */
static gboolean finish_all(Drawing *d, gboolean good, GError **error)
{
    while (!g_queue_is_empty(&d->jobs)) {
        g_autoptr(GError) local = NULL;
        if (finish_oldest(d, &local))
            continue;
        if (good)
            g_propagate_error(error, g_steal_pointer(&local));
        good = FALSE;
    }
    return good;
}

/* In a terminal: sixel pictures where the terminal's name says that it shows them, else text. */
static const char *formats(const PlotRequest *request)
{
    static const char *const with_sixels[] = {"sixel", "mlterm", "foot", "contour", "yaft"};
    const char *term = g_getenv("TERM");
    if (!request->terminal)
        return "png svg pdf";
    for (guint i = 0; term != NULL && i < G_N_ELEMENTS(with_sixels); i++)
        if (strstr(term, with_sixels[i]) != NULL && isatty(STDOUT_FILENO))
            return "sixel";
    return "dumb";
}

static gboolean start(Drawing *d, const Picture *picture, const char *name, GError **error)
{
    if (g_queue_get_length(&d->jobs) >= g_get_num_processors() && !finish_oldest(d, error))
        return FALSE;
    GnuplotJob *gnuplot = gnuplot_job_start(d->request->out, picture->name, picture->script->str,
                                            formats(d->request), error);
    if (gnuplot == NULL)
        return FALSE;
    Job *job = g_new(Job, 1);
    *job = (Job){gnuplot, name};
    g_queue_push_tail(&d->jobs, job);
    return TRUE;
}

static void note(const PlotRequest *request, const char *name, const char *why)
{
    if (request->notes != NULL)
        g_ptr_array_add(request->notes, g_strdup_printf("%s: not drawn: %s", name, why));
}

/* Data and script are written first, whatever becomes of gnuplot. */
static gboolean draw_one(Drawing *d, const PlotOps *ops, const PlotInput *input, gboolean *draw,
                         GError **error)
{
    const char *why = ops->lacks(input);
    if (why != NULL && d->request->only != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: plot %s cannot be drawn: %s",
                    input->runs[0]->folder, ops->info.name, why);
        return FALSE;
    }
    if (why != NULL) {
        note(d->request, ops->info.name, why);
        return TRUE;
    }
    g_autoptr(Picture) picture = ops->make(ops, input, error);
    if (picture == NULL || !picture_write(picture, d->request->out, error))
        return FALSE;
    if (d->request->scripts_only)
        g_ptr_array_add(d->made, g_strdup(ops->info.name));
    if (!*draw)
        return TRUE;
    g_autoptr(GError) local = NULL;
    if (start(d, picture, ops->info.name, &local))
        return TRUE;
    /* Without gnuplot the other plots still get their data and scripts. */
    *draw = FALSE;
    g_propagate_error(error, g_steal_pointer(&local));
    return TRUE;
}

static gboolean draw_all(Drawing *d, Progress *progress, GError **error)
{
    PlotInput input = {(RunData *const *)d->runs->pdata, d->runs->len, progress};
    gboolean draw = !d->request->scripts_only, good = TRUE;
    g_autoptr(GError) no_gnuplot = NULL;
    for (guint i = 0; plots[i] != NULL && good; i++) {
        if (d->request->only != NULL && strcmp(d->request->only, plots[i]->name) != 0)
            continue;
        g_autoptr(GError) local = NULL;
        good = draw_one(d, (const PlotOps *)plots[i], &input, &draw, &local) &&
               progress_check(progress, local == NULL ? &local : NULL);
        if (local == NULL)
            continue;
        if (!good)
            g_propagate_error(error, g_steal_pointer(&local));
        else if (no_gnuplot == NULL)
            no_gnuplot = g_steal_pointer(&local);
    }
    good = finish_all(d, good, error);
    if (good && no_gnuplot != NULL) {
        g_propagate_error(error, g_steal_pointer(&no_gnuplot));
        return FALSE;
    }
    return good;
}

/* `made` in the order of the registry, whichever job ended first. */
static gint by_registry(gconstpointer a, gconstpointer b)
{
    const char *const *names[] = {a, b};
    guint at[2] = {0, 0};
    for (guint k = 0; k < 2; k++)
        while (plots[at[k]] != NULL && strcmp(plots[at[k]]->name, *names[k]) != 0)
            at[k]++;
    return at[0] < at[1] ? -1 : at[0] > at[1];
}

gboolean plots_draw(const PlotRequest *request, GPtrArray *made, Progress *progress, GError **error)
{
    if (request->only != NULL && plugin_find(plots, request->only) == NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "no plot '%s' (kvreplay list plots)",
                    request->only);
        return FALSE;
    }
    Drawing d = {.request = request, .made = made, .jobs = G_QUEUE_INIT};
    d.runs = g_ptr_array_new_with_free_func((GDestroyNotify)run_data_free);
    gboolean good = load_runs(&d, progress, error) && out_folder_make(request->out, error) &&
                    draw_all(&d, progress, error);
    g_ptr_array_sort(made, by_registry);
    g_ptr_array_unref(d.runs);
    return good;
}
