/* Pictures of a workload before any simulation: arrivals over time, and prompt against output
 * lengths.
 *
 * rate and lengths, each with its data and gnuplot script beside PNG, SVG and PDF
 * (plots/picture.h).
 */
#ifndef KV_CLI_DESCRIBE_PICTURES_H
#define KV_CLI_DESCRIBE_PICTURES_H

#include "workloads/describe.h"

/* Makes `folder`. MACHINE error without gnuplot; data and scripts are there then. */
gboolean describe_pictures(const Description *description, const char *folder, GError **error);

#endif
