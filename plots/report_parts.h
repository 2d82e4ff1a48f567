/* The sections of report.html, each a function that appends to the page. */
#ifndef KV_PLOTS_REPORT_PARTS_H
#define KV_PLOTS_REPORT_PARTS_H

#include "plots/run_data.h"

#define REPORT_TABLE_ROWS 400 /* a table shows at most about this many, evenly taken */

void report_summary(GString *page, const RunData *run);
void report_pictures(GString *page, const RunData *run);
void report_scenario(GString *page, const RunData *run);
void report_provenance(GString *page, const RunData *run);
gboolean report_tables(GString *page, const RunData *run, GError **error);
/* What hovering needs of plots/NAME.dat and NAME.axes, as a JSON array; NULL where there is
 * none. */
char *report_hover_json(const char *folder, const char *name);

#endif
