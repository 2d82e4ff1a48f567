/* A pool of threads that run numbered work items: the CPU engine's "device".
 *
 * Private to kernels/. pool_run() hands items 0 .. n-1 out one by one (an atomic counter), the
 * calling thread takes part, and it returns when all are done. Items must not depend on one another
 * or on which thread runs them; `thread` (0 .. threads-1) serves to find scratch memory. One caller
 * at a time.
 */
#ifndef KV_KERNELS_CPU_POOL_H
#define KV_KERNELS_CPU_POOL_H

#include <stdint.h>

typedef struct CpuPool CpuPool;
/* threads = 0: as many as the affinity mask has. NULL: no memory or no threads. */
CpuPool *cpu_pool_new(int threads);
void cpu_pool_free(CpuPool *self);
int cpu_pool_threads(const CpuPool *self);
void cpu_pool_run(CpuPool *self, void (*item)(void *context, int64_t i, int thread), void *context,
                  int64_t n);

#endif
