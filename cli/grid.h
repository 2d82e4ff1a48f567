/* One cell of a what-if grid, or one trial of a capacity search: a scenario with a few keys
 * changed, simulated (and, where asked, planned and counted) without leaving files.
 *
 * A key is a scenario key ("pool-pages"), a key inside a plug-in's text ("scheduler.budget",
 * "arrivals.rate"), or a short name for one of those: rate, cv, users -> arrivals; budget, seqs ->
 * scheduler; scale -> the time scale of a log. Thread-safe: scenarios are copied.
 */
#ifndef KV_CLI_GRID_H
#define KV_CLI_GRID_H

#include "cli/scenario.h"

/* Changes one key; the value is checked when the scenario is used. USAGE error for an unknown key.
 */
gboolean grid_set(Scenario *scenario, const char *key, const char *value, GError **error);
/* Simulates `scenario` as it is: files and fleets included. */
gboolean grid_simulate(const Scenario *scenario, SimResult *ret, GError **error);
/* The figures of a cell: their CSV header, and one line of them. With `replay` the steps are
 * planned and counted too, in a steps file that is removed again. */
const char *grid_figures(gboolean replay);
char *grid_cell_line(const Scenario *scenario, gboolean replay, GError **error);

#endif
