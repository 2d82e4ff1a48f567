/* Decision regions: which route the learned model takes, over batch size, longest row and skew.
 *
 * For each point a batch is made up: `rows` rows of which the longest has `longest` tokens, the
 * others as long ("equal"), evenly spread from a sixteenth of it ("spread"), or all a sixteenth
 * ("one-long"). Nothing is run: counters follow from the lengths, times from the profile. Points
 * are half octaves: rows 1 to 128, longest 128 to 131072.
 *
 * CSV: rows,longest,skew,route,expected_us,second,second_us: the route taken, and the next one.
 */
#ifndef KV_REPLAY_REGIONS_H
#define KV_REPLAY_REGIONS_H

#include "base/outfile.h"
#include "replay/profile.h"
#include "replay/route.h"

/* USAGE when the profile has no learned model of a built-in route. */
gboolean regions_write(const DeviceProfile *profile, const AttnShape *shape, OutFile *csv,
                       GError **error);

#endif
