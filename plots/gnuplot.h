/* gnuplot as a child process, fed through a pipe.
 *
 * A job runs one script in one folder: the script goes down the pipe, gnuplot's complaints are
 * collected, its exit status is checked, and pictures get their final names only when all went
 * well. Jobs run side by side, up to the number of processors. No shell is involved. Errors:
 * MACHINE, with gnuplot's first complaint, or the package to install where there is no gnuplot.
 */
#ifndef KV_PLOTS_GNUPLOT_H
#define KV_PLOTS_GNUPLOT_H

#include <glib.h>

#define GNUPLOT_MISSING "gnuplot is not installed (Debian package gnuplot-nox)"

typedef struct GnuplotJob GnuplotJob;
/* `formats`: "png svg pdf", or "dumb" or "sixel", with what is drawn collected for
 * gnuplot_job_finish(). */
GnuplotJob *gnuplot_job_start(const char *folder, const char *name, const char *script,
                              const char *formats, GError **error);
/* Waits, checks, renames NAME.png.part and so on; frees the job. `ret_text` (may be NULL) gets what
 * gnuplot drew on standard output. */
gboolean gnuplot_job_finish(GnuplotJob *self, char **ret_text, GError **error);

#endif
