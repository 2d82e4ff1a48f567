/* Devices: which of the machine's devices a replay is spread over, and how.
 *
 * `--devices` names them: "all", a list "0,2,3" in the order of use, or "auto": the one that
 * `--device` names where one replica of one share is replayed, else all that are there. A backend
 * without devices of its own (cpu, counters) takes any list: as many host threads, each a virtual
 * device; "all" is then one.
 *
 * Spread: a replica of `tp` shares uses a group of tp devices; groups = max(1, devices / tp), and
 * replica k goes to group k mod groups. With fewer devices than shares the one group has them all
 * and share r runs on its device r mod size, shares of one device after one another. Leftover
 * devices stay idle. So the same fleet on other devices does the same work: everything but times
 * and device numbers is equal.
 */
#ifndef KV_REPLAY_DEVICES_H
#define KV_REPLAY_DEVICES_H

#include "replay/backend.h"

enum { DEVICES_MAX = 64 };

typedef struct Devices {
    guint n;
    gint ordinal[DEVICES_MAX];
} Devices;

/* USAGE error for a list that makes no sense; MACHINE for a device that is not there. `one` is what
 * "auto" takes where one is enough. */
gboolean devices_resolve(Devices *ret, const char *text, const BackendOps *ops, gint one,
                         guint replicas, gint tp, GError **error);
guint devices_groups(const Devices *self, gint tp);
/* The devices of a group. */
Devices devices_group(const Devices *self, gint tp, guint group);
/* "0", "0;1": as in replay.csv. Free it. */
char *devices_text(const Devices *self);

#endif
