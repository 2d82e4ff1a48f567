/* Pictures and report of `kvreplay paper --out`, from the tables in its folder.
 *
 * Figures of the published card stand in panels of their own: no axis holds two machines. Pictures
 * go to FOLDER/plots (NAME.png, .svg, .pdf with .dat and .gp beside them), the page to
 * FOLDER/report.html, in the style of a run's report and as self-contained. What the folder has no
 * table of is left out. Without gnuplot: MACHINE error naming the package; data and scripts are
 * still there. `scripts_only`: those alone, and gnuplot is not called.
 */
#ifndef KV_PLOTS_PAPER_PICTURES_H
#define KV_PLOTS_PAPER_PICTURES_H

#include <glib.h>

gboolean paper_pictures_draw(const char *folder, gboolean scripts_only, GError **error);
gboolean paper_report_write(const char *folder, GError **error);

#endif
