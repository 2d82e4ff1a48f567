/* A small steps file for replay's tests, written by hand: rows join, grow over page edges, sit out
 * and leave; a prefill-only step stands first. */
#ifndef KV_TESTS_REPLAY_SUPPORT_H
#define KV_TESTS_REPLAY_SUPPORT_H

#include <glib.h>

#include "replay/replay.h"
#include "sim/steps_file.h"

typedef struct SmallRow {
    guint32 joins, leaves; /* steps: present in [joins, leaves) */
    guint32 length;        /* at joining */
} SmallRow;

typedef struct SmallRun {
    const SmallRow *rows;
    guint n_rows;
    guint32 steps;
    guint32 page_size;
    guint32 q_heads, kv_heads, head_dim;
    guint32 replica;
    guint32 paused_row, paused_from,
        paused_to; /* that row is paused in these steps; from = to: none */
} SmallRun;

/* Writes it to `path`. */
void small_run_write(const SmallRun *run, const char *path);
extern const SmallRun small_run;

PluginChoice test_choice(const char *kind, const PluginInfo *const *registry, const char *text);
/* Config with a backend, a policy, a split rule, an execute rule and routes (NULL-ended; NULL =
 * all). */
void test_config(ReplayConfig *ret, const char *backend, const char *policy, const char *splits,
                 const char *execute, const char *const *route_texts);
/* Runs it; the CSV's text in *ret_csv where that is not NULL. NULL + error as replay_run. */
ReplayResult *test_replay(const ReplayConfig *config, const char *steps_path, char **ret_csv,
                          GError **error);
JsonObject *test_json(const ReplayResult *result, JsonNode **ret_owner);
/* A number by path, "routes.single.launches_per_step". */
double test_number(JsonObject *o, const char *path);

#endif
