/* A scenario: everything a run depends on, as INI keys that are flags too.
 *
 * One table of keys ({group, key, type, default, help}) makes the command line options, reads and
 * writes scenario files ([workload] [model] [engine] [replay] [output]), and fills `--help`.
 * Precedence: flag, then file, then default. scenario_to_ini() prints every key resolved; running
 * that text again gives the same bytes.
 *
 * Values are kept as text and turned into the modules' configs by the scenario_*_config()
 * functions, which check them: a wrong value is a USAGE error that names the key and what was
 * expected.
 */
#ifndef KV_CLI_SCENARIO_H
#define KV_CLI_SCENARIO_H

#include "replay/replay.h"
#include "sim/fleet.h"
#include "sim/pool_size.h"
#include "sim/sim.h"
#include "workloads/workload.h"

typedef enum {
    SCENARIO_WORKLOAD = 1 << 0,
    SCENARIO_MODEL = 1 << 1,
    SCENARIO_ENGINE = 1 << 2,
    SCENARIO_REPLAY = 1 << 3,
    SCENARIO_OUTPUT = 1 << 4,
    SCENARIO_ALL = 31,
} ScenarioGroup;

typedef struct Scenario Scenario;
Scenario *scenario_new(void); /* all defaults */
void scenario_free(Scenario *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scenario, scenario_free)

/* Adds the options of these groups to a command's parser; they set values of `self`. */
void scenario_add_options(Scenario *self, GOptionContext *context, ScenarioGroup groups);
/* Reads a scenario file; unknown groups and keys are errors (FILE: [group] key). Values that a flag
 * has set stay. Paths in it are relative to the working directory, as they are on the command line.
 */
gboolean scenario_load(Scenario *self, const char *path, GError **error);
/* The same from text; `name` is for messages. */
gboolean scenario_load_text(Scenario *self, const char *name, const char *text, gsize len,
                            GError **error);

/* Text of a value; NULL where it is absent ("" in the file). The key must exist. */
const char *scenario_get(const Scenario *self, const char *key);
gboolean scenario_get_flag(const Scenario *self, const char *key);
gboolean scenario_get_int(const Scenario *self, const char *key, gint64 min, gint64 max,
                          gint64 *ret, GError **error);
void scenario_set(Scenario *self, const char *key, const char *value); /* as a flag would */
/* Sets one option inside the plug-in text of `key` ("scheduler", "budget"); USAGE error where that
 * is absent. */
gboolean scenario_set_inside(Scenario *self, const char *key, const char *option, const char *value,
                             GError **error);
Scenario *scenario_copy(const Scenario *self);
gboolean scenario_is_given(const Scenario *self, const char *key); /* by flag or file */
/* Every key of these groups, resolved. Free it. */
char *scenario_to_ini(const Scenario *self, ScenarioGroup groups);

/* The modules' configs. The caller initialises nothing and clears each with its own function. */
gboolean scenario_workload_config(const Scenario *self, WorkloadConfig *ret, GError **error);
/* The workload opened; `hash` asks for the SHA-256 of a log of any size. */
Workload *scenario_open_workload(const Scenario *self, gboolean hash, GError **error);
gboolean scenario_sim_config(const Scenario *self, SimConfig *ret, GError **error);
gboolean scenario_clock(const Scenario *self, guint replica, StepClock **ret, GError **error);
/* Routes separated by ','; a piece with '=' and no ':' before it belongs to the route before. Adds
 * PluginChoice *. */
gboolean scenario_parse_routes(const char *text, GPtrArray *out, GError **error);
gboolean scenario_replay_config(const Scenario *self, ReplayConfig *ret, GError **error);
gboolean scenario_fleet(const Scenario *self, FleetConfig *ret, GError **error);
/* The model, overrides applied; the pool, worked out where it is `auto`; and that arithmetic's
 * terms (USAGE error without --gpu). */
gboolean scenario_model(const Scenario *self, ModelInfo *ret, GError **error);
gboolean scenario_pool_pages(const Scenario *self, guint64 *ret, GError **error);
gboolean scenario_pool_size(const Scenario *self, PoolSizeConfig *ret, ModelInfo *ret_model,
                            GError **error);
/* Model and pool part of a steps header; workload's name and hash are the caller's to add. */
gboolean scenario_steps_header(const Scenario *self, StepsHeader *ret, GError **error);

/* Walks the table, for completion and man-page checks: key i's name and help, NULL past the end. */
const char *scenario_key(guint i, ScenarioGroup *ret_group, const char **ret_help);

#endif
