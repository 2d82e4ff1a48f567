/* Pictures: data and a gnuplot script beside every picture, drawn through a pipe.
 *
 * A plot is one file with an ops struct: it reads what a run recorded (replay.csv, requests.csv,
 * steps, summary.json of one output folder, or of several laid over one another), writes NAME.dat
 * and NAME.gp into the plots folder, and gnuplot makes NAME.png, NAME.svg and NAME.pdf from them.
 * The script runs on its own in its folder, so that anyone can redraw it. Without gnuplot: MACHINE
 * error naming the package; data and scripts are still there.
 */
#ifndef KV_PLOTS_PLOTS_H
#define KV_PLOTS_PLOTS_H

#include "base/progress.h"
#include "base/spec.h"

typedef struct PlotRequest {
    const char *const *runs; /* output folders, NULL-ended; the first is the one reported on */
    const char *out;         /* folder for the pictures */
    const char *only;        /* one plot's name; NULL = all that the run has data for */
    gboolean terminal;       /* draw as text on standard output instead */
    gboolean scripts_only;   /* write data and scripts, do not call gnuplot */
    GPtrArray *notes;        /* "NAME: not drawn: REASON" (char *) is appended; NULL = not wanted */
} PlotRequest;

extern const PluginInfo *const plots[];

/* Names of the pictures made are appended to `made` (char *), in registry order. */
gboolean plots_draw(const PlotRequest *request, GPtrArray *made, Progress *progress,
                    GError **error);
/* Is gnuplot there? Its version, or NULL and the fix in *ret_why. Free both. */
char *plots_gnuplot_version(char **ret_why);

/* report.html: one self-contained page from an output folder (scenario.ini, summary.json, plots).
 */
gboolean report_write(const char *run_folder, const char *path, GError **error);

#endif
