/* A device profile: what a policy knows of the machine. Made by `calibrate`, or a built-in guess.
 *
 * File: one JSON object,
 *   {"kvreplay_profile": 1, "device": "...", "workers": 132,
 *    "cost": {"bandwidth_gbps": 4545, "launch_us": 1.4, "cmin": 132, "routes": {"workqueue": 0.5}},
 *    "learned": {"worker_gbps": 100, "routes": {"workqueue": {"fixed_us": .., "launch_us": ..,
 *                "stream": .., "tail": .., "merge": .., "wave_us": .., "host_us": ..,
 *                "host_task_us": .., "near": {"kv_bytes": [..], "tasks": [..], ..}}}},
 *    "measured": {...}}
 * GB = 10^9 bytes. `near` has a whole number a point in each of its arrays (replay/near.h);
 * "read_gbps" of `learned`, which no reading can pass, and `near` may be absent. `cost` and
 * `learned` may each be absent; `measured` is for people: device, driver, toolkit, commit, date and
 * command, bandwidths, launch and plan costs. Thresholds come from here: nothing in the code knows
 * a card.
 */
#ifndef KV_REPLAY_PROFILE_H
#define KV_REPLAY_PROFILE_H

#include <json-glib/json-glib.h>

#include "replay/near.h"

/* One route's learned coefficients, all >= 0 (replay/model.h has the formula). */
typedef struct LearnedRoute {
    char *route;
    double fixed_us, launch_us, stream, tail, merge, wave_us;
    double host_us, host_task_us; /* wall beyond the kernel: a step, and a task of it */
    double excess;
    Near *near; /* NULL = none */
} LearnedRoute;

typedef struct RouteTerm {
    char *route;
    double us;
} RouteTerm;

typedef struct DeviceProfile {
    char *device;
    gboolean guess;   /* built in, not measured: every use says so */
    gint workers;     /* CTAs (or threads) that run at once */
    double bandwidth; /* beta: bytes a microsecond, streaming */
    double launch_us; /* lambda */
    double cmin;      /* tasks below which the bandwidth is not reached */
    GArray *terms;    /* RouteTerm: added to the route's cost */
    gboolean has_learned;
    double worker_bandwidth; /* bytes a microsecond that one worker can read alone */
    double read_rate;        /* bytes a microsecond that no reading can pass; 0 = not known */
    GArray *learned;         /* LearnedRoute */
    JsonNode *measured;      /* what was measured and on what: an object, kept as it is; NULL */
} DeviceProfile;

/* NULL + INPUT error naming the file and what is wrong. */
DeviceProfile *device_profile_read(const char *path, GError **error);
/* A small GPU, labelled a guess: what is planned for where nothing was measured. */
DeviceProfile *device_profile_guess(void);
/* INPUT error, and no file, where a figure is none that device_profile_read() takes. */
gboolean device_profile_write(const DeviceProfile *self, const char *path, GError **error);
void device_profile_free(DeviceProfile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DeviceProfile, device_profile_free)

const LearnedRoute *device_profile_learned(const DeviceProfile *self, const char *route);
double device_profile_term(const DeviceProfile *self,
                           const char *route); /* 0 where there is none */
gboolean device_profile_has_term(const DeviceProfile *self, const char *route);

#endif
