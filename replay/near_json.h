/* The points of replay/near.h in a device profile: an object with an array of whole numbers for
 * each field, a number a point, all of one length. */
#ifndef KV_REPLAY_NEAR_JSON_H
#define KV_REPLAY_NEAR_JSON_H

#include <json-glib/json-glib.h>

#include "replay/near.h"

enum { NEAR_JSON_MOST = 512 }; /* points of a route: bounds what a decision costs */

/* Settled. NULL, and in *ret_wrong the name of the array that is not as said or has a number out of
 * its range. */
Near *near_from_json(JsonObject *object, const char **ret_wrong);
/* The object's value; its name is the caller's. */
void near_to_json(const Near *self, JsonBuilder *builder);

#endif
