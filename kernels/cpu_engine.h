/* The CPU engine: executes a plan's task lists for real, with threads and vector code.
 *
 * Not a stand-in for GPU times: it checks plans, merges and counters on machines without a GPU, and
 * gives real (CPU) measurements. K and V are streamed once per KV head for the whole group. Vector
 * code is one file per instruction set (cpu_tile.h). Bits do not depend on the number of threads
 * (they do on the instruction set). Pure C, no GLib; pthreads. One run at a time on an engine.
 */
#ifndef KV_KERNELS_CPU_ENGINE_H
#define KV_KERNELS_CPU_ENGINE_H

#include <stdbool.h>

#include "kernels/plan.h"

typedef struct AttnCpu AttnCpu;
/* threads = 0: all cores of the process's affinity mask. NULL: no memory or no threads. */
AttnCpu *attn_cpu_new(int threads);
void attn_cpu_free(AttnCpu *self);
int attn_cpu_threads(const AttnCpu *self);
const char *attn_cpu_isa(const AttnCpu *self); /* "portable", "avx2", "avx512" */
/* Takes another one (for tests); FALSE when this processor or build has it not. */
bool attn_cpu_force_isa(AttnCpu *self, const char *name);
/* Runs all launches of the plan, in order, each one ended before the next begins. Synchronous.
 * `partials` must hold plan->counts.partial_slots slots. */
AttnStatus attn_cpu_run(AttnCpu *self, const AttnShape *shape, const AttnPool *pool,
                        const AttnBatch *batch, const AttnPlan *plan, AttnPartials *partials);
/* With all threads: the fp64 reference of a whole batch, ret[rows][q_heads][head_dim]; contents of
 * the pages listed (kernels/content.h). */
AttnStatus attn_cpu_reference(AttnCpu *self, const AttnShape *shape, const AttnPool *pool,
                              const AttnBatch *batch, double *ret);
void attn_cpu_fill_pages(AttnCpu *self, const AttnShape *shape, const AttnPool *pool, uint64_t seed,
                         const int32_t *pages, int64_t n);
/* Asks the system for huge pages (transparent ones, 2 MB) in memory that will hold K and V, before
 * it is written. Pages of a pool lie anywhere, and with 4 KB pages the engine waits for address
 * translation too: measured in parts of the read rate, with them and with huge ones, G 1: 62 and
 * 74 %, G 4: 79 and 87 %, G 4 at head dimension 64: 67 and 83 %. A wish: nothing is lost where it
 * is not granted. Memory touched here and there takes up to 2 MB a place. `data` itself should
 * begin on a cache line: entries that lie across one more line cost a fifth. */
void attn_cpu_advise(void *data, int64_t bytes);
/* Streaming read rate of the machine with this engine's threads, bytes/s: sums `bytes` of memory.
 */
double attn_cpu_read_rate(AttnCpu *self, const void *data, int64_t bytes, int repeats);

#endif
