/* Writing requests: kvreplay's own workload file and what other tools read.
 *
 *   kvreplay    everything, exactly; reads back to the same requests (formats/kvreplay.c)
 *   mooncake    JSON lines {timestamp (ms, exact to the ns), input_length, output_length,
 * hash_ids}; closed-loop turns as the AIPerf dialect has them (session_id, delay before the row);
 *               keys are renumbered 0, 1, 2 ... in order of appearance
 *   vllm-bench  one JSON object with input_lens, output_lens, start_times (seconds), as
 *               `vllm bench serve --save-detailed` names them; sessions and keys are lost, and so
 * are closed-loop turns' waits: the number lost is returned as a warning
 *
 * A source is read to its end, closed-loop turns right after their predecessor. Memory O(1),
 * mooncake: 16 bytes per distinct key.
 */
#ifndef KV_WORKLOADS_WRITE_H
#define KV_WORKLOADS_WRITE_H

#include "base/outfile.h"
#include "base/progress.h"
#include "workloads/workload.h"

extern const PluginInfo *const workload_writers[]; /* names and summaries, for `list` and `--to` */

/* Does not commit `out`. *ret_warning (may be NULL): what the format could not hold; NULL if all;
 * free it. */
gboolean workload_write(Workload *workload, const char *writer, OutFile *out, Progress *progress,
                        char **ret_warning, GError **error);

#endif
