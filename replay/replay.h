/* Replay: a steps file through a backend, a policy and the routes, into replay.csv.
 *
 * Every step is planned and counted for every route; the steps chosen by `execute` are executed by
 * every route (or by the chosen one alone), alternating, and checked against the fp64 reference
 * every `check_every` executed steps. Columns of replay.csv: docs/outputs.md, one line per (step,
 * route).
 *
 * With tp > 1 every share of the heads is executed (replay/backend_ranks.h). A fleet, one steps
 * file a replica, is replayed by replay_fleet.h. replay_run() may be called from several threads at
 * once, each with a reader and outputs of its own; a CUDA device is made current in the calling
 * thread.
 */
#ifndef KV_REPLAY_REPLAY_H
#define KV_REPLAY_REPLAY_H

#include "base/outfile.h"
#include "base/progress.h"
#include "replay/backend.h"
#include "replay/devices.h"
#include "replay/policy.h"

typedef enum { EXECUTE_SAMPLE, EXECUTE_ALL, EXECUTE_RANGE, EXECUTE_EVERY } ExecuteKind;

typedef struct ReplayConfig {
    PluginChoice backend; /* of `backends`; info NULL = auto */
    PluginChoice policy;
    PluginChoice splits;
    GPtrArray *routes; /* PluginChoice *: candidates, in order */
    ExecuteKind execute;
    guint64 execute_a, execute_b; /* sample: a = count; range: [a, b); every: a = k */
    guint64 from, to;             /* steps looked at at all: [from, to); to 0 = end */
    gboolean chosen_only;         /* execute only the chosen route */
    gint repeats;                 /* >= 5 on a GPU; CPU default 1 */
    gint check_every;             /* 1 = every executed step */
    gint workers; /* CTAs at once that plans are made for; 0 = the GPU's, or the profile's where the
                     backend is no GPU: the CPU executes the task lists that the GPU would get */
    BackendConfig config; /* shape is taken from the steps file */
    char *devices;        /* "auto", "all" or a list (replay/devices.h); NULL = auto */
    const Devices *on;    /* borrowed; resolved already; NULL = from `devices` */
    gint *steps_done;     /* borrowed; counted up atomically; NULL = nobody asks */
    const char *resume; /* borrowed; replay.csv.part of an interrupted run, whose measured steps are
                           taken from it instead of being executed again; NULL = none */
    OutFile *calibration; /* borrowed; a calibration table of the executed steps; NULL = none */
    char *profile;        /* device profile file; NULL = built-in guess, labelled */
} ReplayConfig;
void replay_config_init(ReplayConfig *config);
void replay_config_clear(ReplayConfig *config);
/* "all" | "N" | "A:B" | "every=K" */
gboolean replay_parse_execute(ReplayConfig *config, const char *text, GError **error);

typedef struct ReplayResult ReplayResult; /* totals by route, shares, regret, errors; opaque */
void replay_result_free(ReplayResult *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ReplayResult, replay_result_free)
void replay_result_to_json(const ReplayResult *self, JsonBuilder *builder);
/* FALSE when a checked output was outside the tolerance (max < 2e-3, mean < 3e-4) or NaN. */
gboolean replay_result_correct(const ReplayResult *self);

/* One line saying which backend was chosen and why. Free it. */
char *replay_backend_line(const ReplayConfig *config, GError **error);

/* `csv` may be NULL. An interruption ends after the step in hand, with INTERRUPTED; what was
 * written to csv is whole lines. */
ReplayResult *replay_run(const ReplayConfig *config, StepsReader *steps, OutFile *csv,
                         Progress *progress, GError **error);

#endif
