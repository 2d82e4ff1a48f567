/* The commands' functions and the few helpers that several of them share. */
#ifndef KV_CLI_COMMANDS_H
#define KV_CLI_COMMANDS_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/scenario.h"

#define COMMAND(name)                                                                              \
    gboolean cmd_##name(const Invocation *inv, int argc, char **argv, GError **error)
COMMAND(run);
COMMAND(workload);
COMMAND(simulate);
COMMAND(steps);
COMMAND(replay);
COMMAND(sweep);
COMMAND(capacity);
COMMAND(calibrate);
COMMAND(bench);
COMMAND(paper);
COMMAND(compare);
COMMAND(plot);
COMMAND(report);
COMMAND(list);
COMMAND(doctor);
#undef COMMAND

/* A positional argument: SCENARIO.ini is loaded, anything else is the workload. */
gboolean scenario_take_positional(Scenario *scenario, const char *word, GError **error);
/* Picks the backend where it is `auto`, keeps the choice in the scenario, and prints the line that
 * says which and why. */
gboolean stage_announce_backend(Scenario *scenario, FILE *out, GError **error);
/* One line on standard error that names the replay options which are set and have no effect on the
 * backend that will run; nothing where all have. */
gboolean stage_remarks(const Scenario *scenario, GError **error);

#endif
