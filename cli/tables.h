/* Result tables on the terminal, printed from the JSON object of the run. */
#ifndef KV_CLI_TABLES_H
#define KV_CLI_TABLES_H

#include <stdio.h>

#include <json-glib/json-glib.h>

/* Routes side by side: launches, tasks, merge MiB, times where executed, share of the policy.
 * Below, what a reader must know of the policy (a guessed device, routes that its model lacks). */
void print_replay_table(FILE *out, JsonBuilder *finished);

#endif
