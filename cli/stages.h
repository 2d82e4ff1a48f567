/* The stages of the main job, shared by `run`, `simulate` and `replay`.
 *
 * Each stage reads its input, writes its outputs under their final names only when whole, and adds
 * its part to the JSON object of the run.
 */
#ifndef KV_CLI_STAGES_H
#define KV_CLI_STAGES_H

#include <stdio.h>

#include <json-glib/json-glib.h>

#include "cli/scenario.h"

typedef struct SimulateStage {
    const char *steps_path;    /* NULL = no steps file */
    const char *requests_path; /* requests.csv; NULL = none */
} SimulateStage;

/* Name of a replica's steps file (or any other): replica 0 has the plain one, replica k
 * "NAME-k.EXT". */
char *replica_path(const char *path, guint replica);

/* Workload -> steps file(s) + requests.csv + result. Adds the members "workload" and "simulate" to
 * the object under construction, and the keys of "simulate" at its top level where `flat`. */
gboolean stage_simulate(const Scenario *scenario, const SimulateStage *stage, Progress *progress,
                        SimResult *ret, JsonBuilder *json, gboolean flat, GError **error);

/* Workload -> every scheduling decision, a JSON line a step in vLLM's terms ("-": standard output).
 */
gboolean stage_ledger(const Scenario *scenario, const char *path, Progress *progress,
                      SimResult *ret, GError **error);

/* Steps files, one a replica -> one replay.csv and one calibration table of the executed steps
 * (each NULL = none), replica after replica in their order whatever order the files are named in,
 * + results: the first replica's as member "replay", further ones' as objects with that member in
 * the array "replays". While it runs, a replica's lines stand in replica_path(CSV, k).part; a
 * failure or an interruption leaves all of these, for `resume`. */
typedef struct ReplayStage {
    const char *const *steps; /* NULL-ended, at least one */
    const char *csv, *calibration;
    gboolean resume;
} ReplayStage;
gboolean stage_replay(const Scenario *scenario, const ReplayStage *stage, Progress *progress,
                      JsonBuilder *json, GError **error);

/* Adds "kvreplay": {version, commit}. */
void json_add_program(JsonBuilder *json);
/* The finished object as text, indented; ends with a newline. Frees nothing of the builder. */
char *json_builder_text(JsonBuilder *json);
gboolean json_print(JsonBuilder *json, GError **error);

void print_sim_result(FILE *out, const SimResult *result);
gboolean write_text(const char *path, const char *text, GError **error);

#endif
